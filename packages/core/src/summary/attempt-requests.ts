/** What is asked at each stage of the chain, or why the stage is passed over. */

import type { Entry } from '../context/entry.ts'
import { partsOf } from '../context/message-parts.ts'
import { isThinking } from '../log/block.ts'
import { typedText } from '../log/record.ts'
import {
  type Ask,
  type AskDeadlines,
  type BlockAsk,
  type Chain,
  type DirectAsk,
  type ForkAsk,
  type LocalAsk,
  summariserOf,
  tokensIn,
} from './attempt.ts'
import { roleOf } from './select-span.ts'
import {
  answerTokens,
  metaRecord,
  prepareInput,
  roundsOfEntries,
  SUMMARISER_SYSTEM_PROMPT,
  TRUNCATION_MARKER,
} from './summary-input.ts'
import { boundInstructions, type SummaryTask, summaryPrompt } from './summary-prompt.ts'

/** In front of a part that begins with the model. */
const PART_MARKER = '[earlier parts of this conversation are summarised apart]'

export type Made<A extends Ask> = A | { readonly skip: string; readonly message: string }

export function blockAsk(chain: Chain): Made<BlockAsk> {
  const { span, policy, own, instructions } = chain.context
  if (!policy.chain.block) return skip('off', 'The provider’s own summary is turned off by policy.')
  if (!needsBlock(chain))
    return skip('not-needed', 'No kept message carries thinking that is bound to what lies before it.')
  const { onDemand, maxInstructionCharacters, beta } = own.profile.compaction
  if (!onDemand) return skip('not-offered', 'The provider writes no summary on demand.')
  if (span.pinned.length > 0 || !isParted(chain))
    return skip('no-place', 'The kept messages would not directly follow what is summarised.')
  const wanted = (text: string | null): string =>
    summaryPrompt({ ...taskOf(chain), instructions: text, analysis: false })
  const room = maxInstructionCharacters - [...wanted('x')].length + 1
  const text = wanted(boundInstructions(instructions ?? '', Math.max(0, room)).text)
  const last = span.summarised.at(-1)
  if ([...text].length > maxInstructionCharacters || last === undefined)
    return skip('no-room', 'The provider takes no instructions of this length.')
  const tokens = chain.context.unclearedTokens + chain.context.tokensOfText(text) + answerTokens(own)
  if (own.window !== null && tokens > own.window)
    return skip('window-too-small', 'The conversation without any clearing does not fit the window.')
  return {
    kind: 'block',
    rung: 0,
    instructions: text,
    beta,
    through: last.record.uuid,
    deadlines: deadlinesOf(chain),
  }
}

/** Kept behind a summary, with thinking that any other change before it would make invalid. */
function needsBlock({ context: { span, own } }: Chain): boolean {
  if (span.form !== 'up_to' || own.profile.thinking.binding !== 'prefix') return false
  return span.kept.some((entry) => partsOf(entry).some(({ block }) => isThinking(block)))
}

/** The first kept message is of another role than the last summarised one, and no system message. */
function isParted({ context: { span } }: Chain): boolean {
  const before = span.summarised.findLast(speaks)
  const behind = [...span.kept, ...span.unanswered].find(speaks)
  if (before === undefined || behind === undefined) return false
  const role = roleOf(behind.record)
  return role !== 'system' && role !== roleOf(before.record)
}

function speaks(entry: Entry): boolean {
  return roleOf(entry.record) !== null
}

export function forkAsk(chain: Chain): Made<ForkAsk> {
  const { policy, parent, isWarm, own, span } = chain.context
  if (!policy.chain.fork) return skip('off', 'Forks are turned off by policy.')
  if (parent === null) return skip('no-parent', 'No request of this conversation is there to fork.')
  if (!isWarm) return skip('cold', 'The cache has gone cold: a call of its own is cheaper.')
  const prompt = summaryPrompt({ ...taskOf(chain), instructions: chain.context.instructions })
  const tokens = parent.tokens + chain.context.tokensOfText(prompt) + own.outputTokens
  if (own.window !== null && tokens > own.window)
    return skip('window-too-small', 'The conversation and its summary do not fit the window together.')
  return {
    kind: 'fork',
    rung: 1,
    message: { role: 'user', content: prompt },
    through: span.form === 'up_to' ? (span.summarised.at(-1)?.record.uuid ?? null) : null,
    deadlines: deadlinesOf(chain),
  }
}

export function directAsk(chain: Chain): Made<DirectAsk> {
  if (chain.drops === 0 && !fits(chain))
    return skip('window-too-small', 'The conversation does not fit the summariser’s window.')
  const { instructions } = chain.context
  const prompt = summaryPrompt({ ...taskOf(chain), instructions, remark: chain.remark })
  const marker = chain.drops > 0 ? TRUNCATION_MARKER : null
  return madeDirect(chain, {
    entries: chain.material,
    prompt,
    marker,
    rung: chain.drops > 0 ? 3 : 2,
    part: null,
  })
}

export function partAsk(chain: Chain): Made<DirectAsk> {
  const { parts } = chain
  const entries = parts?.parts[parts.asked]
  if (parts === null || entries === undefined) return skip('no-part', 'No part is left to be summarised.')
  const part = { number: parts.asked + 1, of: parts.parts.length }
  const { instructions } = chain.context
  const prompt = summaryPrompt({ ...taskOf(chain), instructions, ...(part.of > 1 ? { part } : {}) })
  const { outputTokens } = parts
  return madeDirect(chain, { entries, prompt, marker: PART_MARKER, rung: 3, part, outputTokens })
}

export function joinAsk(chain: Chain): Made<DirectAsk> {
  const summaries = chain.parts?.summaries ?? []
  if (summaries.length < 2) return skip('no-part', 'There are no two parts to put together.')
  const told = summaries.map((summary, index) => `Part ${index + 1} of ${summaries.length}.\n${summary}`)
  const entries = [{ record: metaRecord('summaries-of-parts', told.join('\n\n')), index: -1 }]
  const { instructions } = chain.context
  const prompt = summaryPrompt({ ...taskOf(chain), instructions, joins: true })
  return madeDirect(chain, { entries, prompt, marker: null, rung: 3, part: 'join' })
}

interface DirectParts {
  readonly entries: readonly Entry[]
  readonly prompt: string
  readonly marker: string | null
  readonly rung: 2 | 3
  readonly part: DirectAsk['part']
  readonly outputTokens?: number
}

function madeDirect(chain: Chain, { rung, part, ...input }: DirectParts): DirectAsk {
  const { tools } = chain.context
  const made = prepareInput({ ...input, summariser: summariserOf(chain), tools, asText: chain.asText })
  return { kind: 'direct', rung, part, dropped: chain.covered.length, deadlines: deadlinesOf(chain), ...made }
}

export function localAsk(chain: Chain): Made<LocalAsk> {
  const { policy, span } = chain.context
  if (policy.chain.local === 'never') return skip('off', 'A summary without a model is forbidden by policy.')
  const share = Math.ceil((replacedTokens(chain) * policy.maximumPercentOfReplaced) / 100) - 1
  const maximumTokens = Math.max(0, Math.min(share, chain.context.largestSummary ?? share))
  return { kind: 'local', rung: 4, entries: span.summarised, maximumTokens, deadlines: deadlinesOf(chain) }
}

export function replacedTokens(chain: Chain): number {
  return tokensIn(chain, chain.context.span.summarised)
}

/** Tokens of the summariser's window that are left for the conversation; null where the window is not known. */
export function roomFor(chain: Chain, answer: number = answerTokens(summariserOf(chain))): number | null {
  const { tokensOfText, instructions } = chain.context
  if (chain.window === null) return null
  const task = `${SUMMARISER_SYSTEM_PROMPT}\n${summaryPrompt({ ...taskOf(chain), instructions })}`
  return chain.window - answer - tokensOfText(task)
}

function fits(chain: Chain): boolean {
  const room = roomFor(chain)
  return room === null || tokensIn(chain, chain.material) <= room
}

/** The task without anybody's wishes: what comes back where a model echoes it. */
export function taskOf({ context: { span } }: Chain): SummaryTask {
  const { form } = span
  return form === 'from' ? { form, beginsWith: beginningOf(span.summarised) } : { form }
}

const BEGINNING = 120

function beginningOf(entries: readonly Entry[]): string | null {
  const first = entries.find(speaks)
  if (first === undefined) return null
  const said =
    typedText(first.record) ??
    partsOf(first)
      .map(({ block }) => block.text)
      .find(isString) ??
    ''
  const line = [...said.replace(/\s+/g, ' ').trim()].slice(0, BEGINNING).join('')
  return line === '' ? null : line
}

function isString(value: unknown): value is string {
  return typeof value === 'string'
}

function deadlinesOf({ context: { policy } }: Chain): AskDeadlines {
  const { keepAliveSeconds, stallSeconds, attemptSeconds } = policy.waiting
  return {
    keepAliveMs: keepAliveSeconds * 1000,
    stallMs: stallSeconds * 1000,
    attemptMs: attemptSeconds * 1000,
  }
}

function skip(reason: string, message: string): { readonly skip: string; readonly message: string } {
  return { skip: reason, message }
}

// A conversation in parts, each sized to the window of the summariser: summarised one by one, then together. What
// fits into no part is handed back for the local extractor to cover.

interface PartRoom {
  /** Tokens of input and output together that the summariser can take, the prompt aside. */
  readonly tokens: number
  /** Tokens that a summary may take at most. */
  readonly outputTokens: number
  readonly tokensOf: (entry: Entry) => number
}

interface Parts {
  readonly parts: readonly (readonly Entry[])[]
  /** Rounds too large for any part, and the oldest ones where there would be too many parts. */
  readonly covered: readonly Entry[]
  /** Tokens that the summary of one part may take, so that all of them fit together. */
  readonly outputTokens: number
}

/** Parts at most: beyond that the oldest are covered without a model. */
export const MOST_PARTS = 8
/** A summary of a part below this says nothing. */
const LEAST_OUTPUT = 400

/** Null where the window is too small for even two parts to be put together. */
export function splitParts(entries: readonly Entry[], room: PartRoom): Parts | null {
  const most = Math.min(MOST_PARTS, Math.floor(room.tokens / LEAST_OUTPUT) - 2)
  if (most < 2) return null
  const outputTokens = Math.min(room.outputTokens, Math.floor(room.tokens / (most + 2)))
  const each = room.tokens - outputTokens
  const { groups, tooLarge } = grouped(roundsOfEntries(entries), each, room.tokensOf)
  const shown = groups.slice(-most)
  if (shown.length === 0) return null
  const inParts = new Set(shown.flat())
  const covered =
    tooLarge.length + groups.length > shown.length ? entries.filter((entry) => !inParts.has(entry)) : []
  return { parts: shown, covered, outputTokens }
}

interface Grouped {
  readonly groups: readonly (readonly Entry[])[]
  readonly tooLarge: readonly (readonly Entry[])[]
}

/** As many whole rounds as fit. One that is too large ends a group: what comes after it is another part. */
function grouped(
  rounds: readonly (readonly Entry[])[],
  each: number,
  tokensOf: (entry: Entry) => number,
): Grouped {
  const groups: Entry[][] = []
  const tooLarge: (readonly Entry[])[] = []
  let used = Number.POSITIVE_INFINITY
  for (const round of rounds) {
    const tokens = round.reduce((sum, entry) => sum + tokensOf(entry), 0)
    if (tokens > each) {
      tooLarge.push(round)
      used = Number.POSITIVE_INFINITY
    } else if (used + tokens > each) {
      groups.push([...round])
      used = tokens
    } else {
      groups.at(-1)?.push(...round)
      used += tokens
    }
  }
  return { groups, tooLarge }
}
