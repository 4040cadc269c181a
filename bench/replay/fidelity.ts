/**
 * What a policy keeps in view, measured apart from the engine on the requests of a replay:
 * needs@20: of the paths, commands, identifiers and lines to edit that the twenty calls after a compaction use and the
 * conversation had before it, the share that the first request after it shows. Words and commands: of the names that the
 * user wrote, and of the commands run before, that a call uses again, the share that its request shows. Reasons and
 * prompts: of all sentences that the model, or the user, wrote so far, the share that the request shows.
 */
import { type Block, isTextBlock, isToolUse } from '@tidemark/core/log/block'
import {
  type BilledRequest,
  collectTextLines,
  listReplacedLines,
  listRequestBlocks,
  listStrings,
  type RecordedSession,
  type RewriteReport,
} from 'tidemark/internal'
import { listIdentifiers, listPaths, readLastPart } from '../../scripts/recorded/recall.ts'

/** Found and wanted, summed over all requests at which the measure was taken. */
export interface Share {
  found: number
  wanted: number
}

export interface FidelityTotals {
  readonly paths: Share
  readonly identifiers: Share
  readonly needCommands: Share
  readonly linesToEdit: Share
  readonly words: Share
  readonly commands: Share
  readonly reasons: Share
  readonly prompts: Share
}

export function createFidelityTotals(): FidelityTotals {
  const none = (): Share => ({ found: 0, wanted: 0 })
  return {
    paths: none(),
    identifiers: none(),
    needCommands: none(),
    linesToEdit: none(),
    words: none(),
    commands: none(),
    reasons: none(),
    prompts: none(),
  }
}

const NEEDS_CALLS = 20
/** Sentences are looked for in every tenth request: they change slowly, and there are many. */
const SAMPLE_EVERY = 10
const SENTENCE_LENGTH = 40

interface StepNames {
  readonly paths: readonly string[]
  readonly identifiers: readonly string[]
  readonly commands: readonly string[]
  readonly lines: readonly string[]
}

/** Measures the requests of one session; `totals` are added to. */
export class FidelityMeter {
  readonly #totals: FidelityTotals
  readonly #session: RecordedSession
  readonly #used: readonly StepNames[]
  /** Number of the step in which each name, line and command first stood. */
  readonly #first = new Map<string, number>()
  readonly #firstByUser = new Map<string, number>()
  #requests = 0

  constructor(session: RecordedSession, totals: FidelityTotals) {
    this.#session = session
    this.#totals = totals
    this.#used = session.steps.map(({ kind, blocks }) => (kind === 'response' ? listUsed(blocks) : NOTHING))
    for (const [index, { blocks, isPrompt }] of session.steps.entries())
      for (const name of blocks.flatMap((block) => [
        ...indexBlock(block).names,
        ...collectTextLines(block),
      ])) {
        if (!this.#first.has(name)) this.#first.set(name, index)
        if (isPrompt && !this.#firstByUser.has(name)) this.#firstByUser.set(name, index)
      }
  }

  measure(request: BilledRequest, step: number, rewrites: readonly RewriteReport[]): void {
    const blocks = listRequestBlocks(request)
    const isShown = (name: string): boolean => blocks.some((block) => indexBlock(block).names.has(name))
    const isRun = (command: string): boolean =>
      blocks.some((block) => indexBlock(block).text.includes(command))
    if (rewrites.some(({ kind }) => kind === 'compaction')) this.#measureNeeds(blocks, step, isShown, isRun)
    const used = this.#used[step] ?? NOTHING
    const names = [...used.paths, ...used.identifiers]
    add(
      this.#totals.words,
      names.filter((name) => (this.#firstByUser.get(name) ?? step) < step),
      isShown,
    )
    add(this.#totals.commands, this.#listEarlier(used.commands, step), isRun)
    this.#requests += 1
    if (this.#requests % SAMPLE_EVERY === 0) this.#measureSentences(blocks, step)
  }

  #measureNeeds(
    blocks: readonly object[],
    step: number,
    isShown: (name: string) => boolean,
    isRun: (command: string) => boolean,
  ): void {
    const next: StepNames[] = []
    for (let at = step; at < this.#used.length && next.length < NEEDS_CALLS; at += 1)
      if (this.#session.steps[at]?.kind === 'response') next.push(this.#used[at] ?? NOTHING)
    const list = (field: keyof StepNames): readonly string[] =>
      this.#listEarlier([...new Set(next.flatMap((each) => each[field]))], step)
    add(this.#totals.paths, list('paths'), isShown)
    add(this.#totals.identifiers, list('identifiers'), isShown)
    add(this.#totals.needCommands, list('commands'), isRun)
    add(this.#totals.linesToEdit, list('lines'), (line) =>
      blocks.some((block) => collectTextLines(block).has(line)),
    )
  }

  #listEarlier(names: readonly string[], step: number): readonly string[] {
    return names.filter((name) => (this.#first.get(name) ?? step) < step)
  }

  #measureSentences(blocks: readonly object[], step: number): void {
    const shown = new Set(blocks.flatMap((block) => [...indexBlock(block).sentences]))
    const earlier = this.#session.steps.slice(0, step)
    const list = (wanted: (step: RecordedSession['steps'][number]) => boolean): readonly string[] =>
      earlier
        .filter(wanted)
        .flatMap(({ blocks: own }) =>
          own.filter(isTextBlock).flatMap((block) => [...indexBlock(block).sentences]),
        )
    const has = (sentence: string): boolean => shown.has(sentence)
    add(
      this.#totals.reasons,
      list(({ kind }) => kind === 'response'),
      has,
    )
    add(
      this.#totals.prompts,
      list(({ isPrompt }) => isPrompt),
      has,
    )
  }
}

const NOTHING: StepNames = { paths: [], identifiers: [], commands: [], lines: [] }

function add(share: Share, wanted: readonly string[], isFound: (name: string) => boolean): void {
  share.wanted += wanted.length
  share.found += wanted.filter(isFound).length
}

function listUsed(blocks: readonly Block[]): StepNames {
  const calls = blocks.filter(isToolUse)
  const strings = calls.flatMap(({ input }) => listStrings(input))
  const commands = calls.flatMap(({ input }) => {
    const { command } = input as { readonly command?: unknown }
    return typeof command === 'string' && command.trim() !== '' ? [command.trim()] : []
  })
  return {
    paths: [...new Set(strings.flatMap(listPaths).map(readLastPart))],
    identifiers: [...new Set(strings.flatMap(listIdentifiers))],
    commands: [...new Set(commands)],
    lines: [...new Set(listReplacedLines(blocks).flatMap(({ lines }) => lines))],
  }
}

interface BlockIndex {
  readonly text: string
  /** Identifiers, last parts of paths, and commands. */
  readonly names: ReadonlySet<string>
  readonly sentences: ReadonlySet<string>
}

const indexes = new WeakMap<object, BlockIndex>()

function indexBlock(block: object): BlockIndex {
  const known = indexes.get(block)
  if (known !== undefined) return known
  const strings = listStrings(block)
  const index = {
    text: strings.join('\n'),
    names: new Set([
      ...strings.flatMap(listIdentifiers),
      ...strings.flatMap(listPaths).map(readLastPart),
      ...(isToolUse(block as Block) ? listUsed([block as Block]).commands : []),
    ]),
    sentences: new Set(strings.flatMap(listSentences)),
  }
  indexes.set(block, index)
  return index
}

/** Returns the sentences of a text, without list marks and quotation marks before them. */
function listSentences(text: string): readonly string[] {
  return text
    .split(/\n|(?<=[.!?。！？])\s+/u)
    .map((sentence) => sentence.replace(/^[\s>*#"“-]+(?:\d+\.\s+)?/u, '').trim())
    .filter(({ length }) => length >= SENTENCE_LENGTH)
}
