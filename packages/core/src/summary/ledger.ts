/**
 * Builds the ledger: a list of the files and code identifiers in use, which is added to a summary. Grouped by file,
 * most likely to be needed first, within a token budget. Rebuilt from the whole log at every compaction, so that
 * repeated compactions neither extend nor degrade it.
 */

import {
  collectJsonStrings,
  describeToolCall,
  type FileTouch,
  readToolResultText,
} from '../facts/tool-calls.ts'
import { readUserInputs } from '../facts/user-input.ts'
import { type Block, isTextBlock, isToolResult, isToolUse, toBlocks } from '../log/block.ts'
import { isSyntheticError, type KnownRecord } from '../log/record.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import {
  EXTENSION_PATTERN,
  findNamesInText,
  type NamesInText,
  readLastPathPart,
} from '../text/code-in-text.ts'
import { redact, SECRET_CUES } from '../text/redact.ts'
import type { Estimator } from '../tokens/estimator.ts'

interface Ledger {
  readonly lines: readonly string[]
  readonly text: string
  readonly tokens: number
}

interface LedgerBudget {
  readonly tokens: number
  readonly estimate: Estimator
}

/** Writes the ledger with as many of the ranked names as fit into the budget. Names that look like credentials are left out. */
export function* buildLedger(names: readonly RankedName[], rules: LedgerBudget): WorkInSteps<Ledger> {
  const ranked: RankedName[] = []
  for (const candidate of names.slice(0, rules.tokens)) {
    if (redact(candidate.text) === candidate.text) ranked.push(candidate)
    yield 2 * NAME_WORK
  }
  return yield* fitLedger(ranked, rules)
}

/** Finds the files and identifiers that the records name, and ranks them by weight per token, highest first. */
export function* rankNames(
  history: readonly KnownRecord[],
  estimate: Estimator,
): WorkInSteps<readonly RankedName[]> {
  const { files, identifiers } = yield* weighNames(yield* findNameMentions(history))
  const weights = new Map(identifiers.map(({ name, weight }) => [name, weight]))
  const candidates: readonly RankedName[] = [
    ...files.map((file) => {
      // A file such as `tide_table.ts` also names the identifier `tide_table`.
      const stem = weights.get(readLastPathPart(file.path).replace(EXTENSION_PATTERN, '')) ?? 0
      return { weight: file.weight + stem, text: file.path, file, name: null }
    }),
    ...identifiers.map((name) => ({ weight: name.weight, text: name.name, file: null, name })),
  ]
  const measured: { readonly candidate: RankedName; readonly density: number }[] = []
  for (const candidate of candidates) {
    measured.push({ candidate, density: candidate.weight / measureName(candidate.text, estimate) })
    yield NAME_WORK
  }
  return measured
    .toSorted(
      (one, other) => other.density - one.density || (one.candidate.text < other.candidate.text ? -1 : 1),
    )
    .map(({ candidate }) => candidate)
}

/**
 * Writes the ledger with as many of the ranked names as fit into the token budget. Their number is found by binary
 * search, because more names almost always need more tokens.
 */
function* fitLedger(ranked: readonly RankedName[], rules: LedgerBudget): WorkInSteps<Ledger> {
  let fits = 0
  let most = ranked.length + 1
  while (most - fits > 1) {
    const tried = Math.floor((fits + most) / 2)
    if (renderLedger(ranked.slice(0, tried), rules).tokens <= rules.tokens) fits = tried
    else most = tried
    yield NAME_WORK * tried
  }
  return renderLedger(ranked.slice(0, fits), rules)
}

function renderLedger(chosen: readonly RankedName[], rules: LedgerBudget): Ledger {
  const listed = new Set(chosen.flatMap(({ file }) => (file === null ? [] : [file.path])))
  const pathWords = new Set([...listed].flatMap((path) => path.split(/[^A-Za-z0-9_$]+/)))
  const names = chosen.flatMap(({ name }) => (name === null || pathWords.has(name.name) ? [] : [name]))
  const symbols = new Map<string, string[]>([...listed, ''].map((path) => [path, []]))
  for (const { name, file } of names) symbols.get(file !== null && listed.has(file) ? file : '')?.push(name)
  const files = chosen.flatMap(({ file }) =>
    file === null ? [] : [{ ...file, symbols: symbols.get(file.path) ?? [] }],
  )
  const lines = chosen.length === 0 ? [] : formatLedger(files, symbols.get('') ?? [])
  const text = lines.join('\n')
  return { lines, text, tokens: text === '' ? 0 : rules.estimate.text(text) }
}

/** A file or an identifier that may be listed in the ledger. `name` is null for a file, `file` is null for an identifier. */
export interface RankedName {
  readonly weight: number
  readonly text: string
  readonly file: FileWeight | null
  readonly name: IdentifierWeight | null
}

/**
 * Estimates the tokens of eight copies of a name, to compare names: with one copy, rounding would make all short names
 * cost the same.
 */
function measureName(name: string, estimate: Estimator): number {
  return estimate.text(` ${name}`.repeat(8))
}

// A name's weight estimates how likely it is to be needed next: each mention adds about one divided by its age. Halving
// or doubling any of the three constants below changes recall on recorded sessions by only a few percentage points.

/** Weight factor of a name that occurs in a tool result: the model has seen it but not used it yet. */
const RESULT_WEIGHT = 0.5
/**
 * In a text with n names, a name that occurs k times has its weight multiplied by k / n to this power (the fifth root),
 * so that the names of a long file do not displace all others.
 */
const DILUTION_EXPONENT = 0.2
/** Added to the age of a mention, counted in model calls, so that the newest mentions weigh about the same. */
const NEAR_CALLS = 3

/** Work for each mention of a name, expressed as a number of characters to read. */
const NAME_WORK = 40

interface FileWeight {
  readonly path: string
  readonly weight: number
}

interface IdentifierWeight {
  readonly name: string
  readonly weight: number
  /** Path of the file in which the identifier was last seen; null if unknown. */
  readonly file: string | null
  /** uuid of the record in which the identifier was last seen. */
  readonly uuid: string
}

/** Sums for each file and identifier how much its mentions weigh. */
export function* weighNames(mentions: readonly Mention[]): WorkInSteps<{
  readonly files: readonly FileWeight[]
  readonly identifiers: readonly IdentifierWeight[]
}> {
  const wholePath = yield* createPathResolver(mentions)
  const files = new Map<string, FileWeight>()
  const identifiers = new Map<string, IdentifierWeight>()
  for (const mention of mentions) {
    const share = mentionWeight(mention)
    const whole = mention.about === null ? null : wholePath(mention.about)
    const named = new Set([...mention.names.files, ...mention.touches.map(({ path }) => path)])
    for (const path of new Set([...named].map(wholePath))) addFileWeight(files, path, share)
    for (const [name, times] of mention.names.identifiers) {
      const before = identifiers.get(name)
      const weight = (before?.weight ?? 0) + share * times ** DILUTION_EXPONENT
      identifiers.set(name, { name, weight, file: whole ?? before?.file ?? null, uuid: mention.uuid })
    }
    yield NAME_WORK * countNames(mention)
  }
  return { files: [...files.values()], identifiers: [...identifiers.values()] }
}

function mentionWeight({ by, age, names }: Mention): number {
  const count = countNames({ names })
  return (by === 'result' ? RESULT_WEIGHT : 1) / (age + NEAR_CALLS) / count ** DILUTION_EXPONENT
}

function countNames({ names }: Pick<Mention, 'names'>): number {
  return Math.max(1, names.files.size + names.identifiers.size)
}

function addFileWeight(files: Map<string, FileWeight>, path: string, share: number): void {
  files.set(path, { path, weight: (files.get(path)?.weight ?? 0) + share })
}

/**
 * Creates a function that resolves a relative path or bare file name to the newest absolute path with that ending, or
 * returns it unchanged.
 */
function* createPathResolver(mentions: readonly Mention[]): WorkInSteps<(path: string) => string> {
  const byBase = new Map<string, Set<string>>()
  for (const { names, touches } of mentions) {
    for (const path of [...names.files, ...touches.map((touch) => touch.path)]) {
      const absolute = toAbsolutePath(path)
      if (absolute === null) continue
      const known = byBase.get(readLastPathPart(absolute)) ?? new Set()
      // Deleted and added again, the path becomes the newest of its name.
      known.delete(absolute)
      byBase.set(readLastPathPart(absolute), known.add(absolute))
    }
    yield NAME_WORK * names.files.size
  }
  return (path) => {
    const absolute = toAbsolutePath(path)
    if (absolute !== null) return absolute
    // Diffs prefix paths with `a/` or `b/`, which is not part of the path.
    const tail = `/${path.replace(/^(?:(?:\.|[ab])\/)+/, '')}`
    return [...(byBase.get(readLastPathPart(path)) ?? [])].findLast((known) => known.endsWith(tail)) ?? path
  }
}

/** Returns an absolute path, with slashes also on Windows; null if the path is not absolute. */
function toAbsolutePath(path: string): string | null {
  if (path.startsWith('/')) return path
  return /^[A-Za-z]:[\\/]/.test(path) ? path.replaceAll('\\', '/') : null
}

// Search for the places where records mention files and identifiers. A summary is skipped, since it only repeats
// earlier records, unless those are missing from the log.

interface Mention {
  /** `work`: the user or the model wrote the name. `result`: it occurs in a tool result. */
  readonly by: 'work' | 'result'
  /** Number of model calls after this mention. */
  readonly age: number
  readonly names: NamesInText
  /** Files that the tool call containing this mention read or changed. */
  readonly touches: readonly FileTouch[]
  /** Path of the first file that the call read or changed, to which names in its result are attributed; null for none. */
  readonly about: string | null
  /** uuid of the record that contains the mention. */
  readonly uuid: string
}

/** A text of a record in which names are looked for: a tool call, a tool result, or what was written. */
interface Passage extends Pick<Mention, 'by' | 'touches'> {
  readonly texts: readonly string[]
  /** If the text is a tool call: its id. `resultOf`: if the text is a result, the id of its call. */
  readonly callId?: string
  readonly resultOf?: string
}

/**
 * Finds all mentions of files and identifiers, oldest first. Credentials are removed first, since part of a password
 * may look like an identifier. The mentions are not cached for the next compaction: as parts of the texts, they would
 * keep these texts in memory as long as the session.
 */
export function* findNameMentions(history: readonly KnownRecord[]): WorkInSteps<readonly Mention[]> {
  const mentions: (Omit<Mention, 'age'> & { readonly turn: number })[] = []
  const touched = new Map<string, readonly FileTouch[]>()
  let turn = 0
  let response = ''
  for (const record of history) {
    if (isSyntheticError(record)) continue
    if (record.isCompactSummary === true) {
      if (mentions.length > 0) continue
    } else if (record.type === 'assistant' && record.message.id !== response) {
      response = record.message.id
      turn += 1
    }
    for (const { by, touches, texts, callId, resultOf } of listPassages(record)) {
      if (callId !== undefined) touched.set(callId, touches)
      const about = (resultOf === undefined ? touches : touched.get(resultOf))?.[0]?.path ?? null
      const text = texts.join('\n')
      mentions.push({
        by,
        names: findNamesInText(redactLines(text)),
        touches,
        about,
        turn,
        uuid: record.uuid,
      })
      yield text.length
    }
  }
  return mentions.map(({ turn: at, ...mention }) => ({ ...mention, age: turn - at }))
}

function listPassages(record: KnownRecord): readonly Passage[] {
  if (record.isCompactSummary === true) {
    const blocks = record.type === 'user' ? toBlocks(record.message.content) : []
    return [{ by: 'result', texts: blocks.map(readBlockText), touches: [] }]
  }
  if (record.type === 'assistant')
    return toBlocks(record.message.content).flatMap((block): readonly Passage[] => {
      if (isTextBlock(block)) return [{ by: 'work', texts: [block.text], touches: [] }]
      if (!isToolUse(block)) return []
      const { touches } = describeToolCall(block.name, block.input)
      return [{ by: 'work', texts: collectJsonStrings(block.input), touches, callId: block.id }]
    })
  const typed = readUserInputs(record).filter(({ author, text }) => author.kind !== 'tool' && text !== '')
  const work: readonly Passage[] =
    typed.length === 0 ? [] : [{ by: 'work', texts: [typed.map(({ text }) => text).join('\n')], touches: [] }]
  if (record.type !== 'user') return work
  const results = toBlocks(record.message.content)
    .filter(isToolResult)
    .map(
      (block): Passage => ({
        by: 'result',
        texts: [readToolResultText(block.content)],
        touches: [],
        resultOf: block.tool_use_id,
      }),
    )
  return [...results, ...work]
}

function readBlockText(block: Block): string {
  return isTextBlock(block) ? block.text : ''
}

const SECRET_CUE = new RegExp(`${SECRET_CUES}|-----BEGIN`, 'i')

/** Removes credentials from a text. For speed, checks only lines with a cue: all credentials but private keys are in one line. */
function redactLines(text: string): string {
  if (!SECRET_CUE.test(text)) return text
  if (text.includes('-----BEGIN')) return redact(text)
  return text
    .split('\n')
    .map((line) => (SECRET_CUE.test(line) ? redact(line) : line))
    .join('\n')
}

// The text of the list.

interface LedgerFileLine {
  readonly path: string
  /** Identifiers that were last mentioned together with this file. */
  readonly symbols: readonly string[]
}

/**
 * Formats the names: one line for each file, followed by the file's identifiers. The folder that most files share is named
 * once in the heading, and files of the same folder are listed below its name, so that more names fit. Every path can
 * still be put together from its lines.
 */
function formatLedger(files: readonly LedgerFileLine[], names: readonly string[]): readonly string[] {
  const listed = files.filter((file) => !isBareName(file))
  const root = findSharedFolder(listed.map(({ path }) => path))
  const folders = new Map<string, LedgerFileLine[]>()
  for (const file of listed) {
    const path = shortenPath(file.path, root)
    const folder = path.slice(0, path.lastIndexOf('/') + 1)
    folders.set(folder, [...(folders.get(folder) ?? []), file])
  }
  const body = [...folders].flatMap(([folder, own]) => {
    const isShort = own.length === 1 || folder === ''
    const lines = own.map((file) => `${isShort ? folder : ' '}${formatFileLine(file)}`)
    return isShort ? lines : [folder, ...lines]
  })
  const also = [...files.filter(isBareName).map(({ path }) => path), ...names]
  const heading = root === '' ? LEDGER_HEADING : `${LEDGER_HEADING}, in ${root}`
  return [heading, ...body, ...(also.length === 0 ? [] : [`Also: ${also.join(' ')}`])]
}

/**
 * Shortens a path below the folder in the heading. If only the end of a path is known, it begins with `…/`: it may be
 * in another folder.
 */
function shortenPath(path: string, root: string): string {
  if (root === '' || !path.includes('/')) return path
  if (path.startsWith(root)) return path.slice(root.length)
  return ABSOLUTE_PATH.test(path) ? path : `…/${path.replace(/^\.\//, '')}`
}

const LEDGER_HEADING = 'In use'
const ABSOLUTE_PATH = /^(?:[A-Za-z]:)?\//

/** Finds the folder that saves the most characters if it is left out of all paths below it; an empty text if none saves any. */
function findSharedFolder(paths: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const path of paths) {
    if (!ABSOLUTE_PATH.test(path)) continue
    for (let end = path.indexOf('/', 1); end !== -1; end = path.indexOf('/', end + 1)) {
      const folder = path.slice(0, end + 1)
      counts.set(folder, (counts.get(folder) ?? 0) + 1)
    }
  }
  const saved = [...counts].map(([folder, count]) => ({ folder, saved: (count - 1) * folder.length }))
  const [best] = saved.toSorted(
    (one, other) => other.saved - one.saved || (one.folder < other.folder ? -1 : 1),
  )
  return best === undefined || best.saved === 0 ? '' : best.folder
}

/** Returns true if a file is known by its bare name only, without folder or identifiers. It gets no line of its own. */
function isBareName({ path, symbols }: LedgerFileLine): boolean {
  return !path.includes('/') && symbols.length === 0
}

function formatFileLine({ path, symbols }: LedgerFileLine): string {
  return `${path.slice(path.lastIndexOf('/') + 1)}${symbols.length === 0 ? '' : `: ${symbols.join(' ')}`}`
}
