/**
 * Writes the local summary: the nine sections of a summary, extracted from the records by fixed rules without a model.
 * User messages, errors that still occur, edited files and open tasks are placed first; the model's own texts fill what
 * is left. Deterministic.
 */

import type { SessionFacts } from '../facts/session-facts.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { SUMMARY_HEADING } from './accept-summary.ts'
import type { CompactionForm } from './select-span.ts'
import {
  createErrorPieces,
  createFilePieces,
  createUserMessagePieces,
  ERRORS_GROUP,
  FILES_GROUP,
  fitSummaryPieces,
  formatLeftOutNote,
  MESSAGES_GROUP,
  type PlacedPieces,
  SNIPPETS_GROUP,
  type SummaryPiece,
} from './summary-pieces.ts'
import { findSectionNumbers, listSectionTitles, MESSAGES_SECTION_NUMBER } from './summary-prompt.ts'
import { createFindingPieces, createWorkPieces, FINDINGS_GROUP } from './work-pieces.ts'

export interface LocalSummaryOptions {
  readonly form: CompactionForm
  /** Maximum tokens of the whole local summary. */
  readonly tokens: number
  /** Maximum tokens of everything in the summary except the user messages; default: no separate limit. */
  readonly restTokens?: number
  /** Maximum tokens of one user message, and of all user messages together; null if the summary is not to list them. */
  readonly messages: { readonly each: number; readonly total: number } | null
  /** Maximum tokens of the list of files, without code snippets. */
  readonly files: number
  readonly estimate: Pick<Estimator, 'text'>
}

export interface LocalSummaryMaterial {
  readonly facts: SessionFacts
  /** The pieces that `createLocalSummaryPieces` makes of the facts. */
  readonly pieces: readonly SummaryPiece[]
}

interface LocalSummary {
  /** The local summary under the heading `Summary:`, with credentials removed. */
  readonly text: string
  readonly tokens: number
  /** Facts that did not fit into the summary: uuids of messages and tool results, paths of files. */
  readonly leftOut: readonly string[]
}

/**
 * A local summary and the list of names that is added to it together take at most this share of the tokens that they
 * replace, and at most so many tokens. User messages are not counted.
 */
const LARGEST_PART = { share: 1 / 4, tokens: 12_000 }
/** The list of names takes at most this share of the tokens of list and local summary together. */
const NAMES_SHARE = 1 / 4

/**
 * Returns the most tokens that a local summary may have without the user messages. `replaced`: tokens that the summary replaces.
 */
export function computeLocalSummaryLimit(replaced: number): number {
  const both = Math.min(LARGEST_PART.tokens, replaced * LARGEST_PART.share)
  return Math.floor(both * (1 - NAMES_SHARE))
}

/** Returns the most tokens of the list of names. `rest`: tokens of the local summary beside the user messages. */
export function computeNameListLimit(rest: number): number {
  return Math.max(0, Math.floor((rest * NAMES_SHARE) / (1 - NAMES_SHARE)))
}

/** Maximum share of the summary's tokens for each group of facts, so that no group displaces all others. */
const GROUP_SHARES = { messages: 0.8, files: 0.5, errors: 0.4, findings: 0.4, snippets: 0.25 }

/**
 * Writes the local summary within `given.tokens`. It always has the first request and the latest message. If not even
 * these fit, it is the smallest summary with both, which exceeds `given.tokens`.
 */
export function* writeLocalSummary(
  { facts, pieces }: LocalSummaryMaterial,
  given: LocalSummaryOptions,
): WorkInSteps<LocalSummary> {
  const rules = { ...given, estimate: rememberEstimates(given.estimate) }
  const isSmall = Math.min(rules.tokens, rules.restTokens ?? rules.tokens) < TIGHT_TOKENS
  const made = isSmall ? null : yield* fillLocalSummary(facts, rules, pieces, false)
  if (made !== null && made.tokens <= rules.tokens) return made
  return yield* fillLocalSummary(facts, rules, pieces, true)
}

/** Writes the summary again with a smaller room until its text as a whole is within the limits. */
function* fillLocalSummary(
  facts: SessionFacts,
  rules: LocalSummaryOptions,
  others: readonly SummaryPiece[],
  isTight: boolean,
): WorkInSteps<FittedSummary> {
  const headings = rules.estimate.text(formatSections({ placed: [], leftOut: [] }, rules, isTight))
  let room = rules.tokens - headings
  let rest = (rules.restTokens ?? rules.tokens) - headings
  let made = yield* fitLocalSummary(facts, rules, others, { room, rest, isTight })
  // The whole text may have more tokens than its pieces together, because of rounding and of notes on pieces left out.
  for (;;) {
    const [over, restOver] = [
      made.tokens - rules.tokens,
      made.restTokens - (rules.restTokens ?? rules.tokens),
    ]
    if (over > 0 && room > 0) room -= Math.max(16, over)
    else if (restOver > 0 && rest > 0) rest -= Math.max(16, restOver)
    else return made
    made = yield* fitLocalSummary(facts, rules, others, { room, rest, isTight })
  }
}

/** Creates an estimator that measures each text once, since the same pieces are fitted several times. */
function rememberEstimates({ text: estimate }: Pick<Estimator, 'text'>): Pick<Estimator, 'text'> {
  const known = new Map<string, number>()
  return {
    text: (text) => {
      const tokens = known.get(text) ?? estimate(text)
      known.set(text, tokens)
      return tokens
    },
  }
}

/**
 * Lists the pieces of a local summary except the user messages, each a text about one fact. Pieces with a lower rank are
 * placed first: the first request and the latest message (rank -1), open tasks (0), user messages (1 and 2, added by
 * `listMessagePieces`), the state of the work, what the model decided and found, then details that help to continue.
 */
export function* createLocalSummaryPieces(facts: SessionFacts): WorkInSteps<readonly SummaryPiece[]> {
  const work = createWorkPieces(facts, {
    requests: REQUESTS_RANK,
    must: MUST_RANK,
    now: 5,
    rest: 9,
    last: 14,
  })
  yield work.reduce((sum, { full }) => sum + full.length, 0)
  return [
    ...work,
    ...createFilePieces(facts.files, { edited: 4, snippets: 13, read: 8 }),
    ...createErrorPieces(facts.failures, facts.failedCalls, { open: 3, settled: 7, calls: 12 }),
    ...(yield* createFindingPieces(facts, { recent: 6, older: 10 })),
  ].map((piece) => (piece.rank <= MUST_RANK ? piece : { ...piece, groups: [...piece.groups, REST_GROUP] }))
}

/** Everything but user messages and what the work cannot continue without. */
const REST_GROUP = 'rest'
const REQUESTS_RANK = -1
const MUST_RANK = 0
const MESSAGES_RANK = 1

/** Creates the pieces with the user messages, cut so that they fit into their share of `room` next to the open tasks. */
function listMessagePieces(
  facts: SessionFacts,
  { messages, estimate }: LocalSummaryOptions,
  others: readonly SummaryPiece[],
  room: number,
): readonly SummaryPiece[] {
  if (messages === null) return []
  const must = measureMust(others, { estimate })
  const totalTokens = Math.min(messages.total, GROUP_SHARES.messages * room, room - must)
  return createUserMessagePieces(facts.messages, MESSAGES_RANK, {
    eachTokens: messages.each,
    totalTokens,
    estimate,
  })
}

/** Measures the pieces without which the work cannot continue. They are placed even if the rest then exceeds its limit. */
function measureMust(
  pieces: readonly SummaryPiece[],
  { estimate }: Pick<LocalSummaryOptions, 'estimate'>,
): number {
  const must = pieces.filter(({ rank }) => rank <= MUST_RANK)
  return must.reduce((sum, { full }) => sum + estimate.text(full), 0)
}

interface FittedSummary extends LocalSummary {
  /** Tokens of everything that is not a user message. */
  readonly restTokens: number
}

/** Places the pieces in `room` tokens, of which all but the user messages get at most `rest`, and writes the text. */
function* fitLocalSummary(
  facts: SessionFacts,
  rules: LocalSummaryOptions,
  others: readonly SummaryPiece[],
  { room, rest, isTight }: { readonly room: number; readonly rest: number; readonly isTight: boolean },
): WorkInSteps<FittedSummary> {
  const pieces = [...others, ...listMessagePieces(facts, rules, others, room)]
  const shared = Math.max(0, Math.min(room, rest))
  const caps = new Map([
    [MESSAGES_GROUP, Math.min(rules.messages?.total ?? 0, GROUP_SHARES.messages * room)],
    [FILES_GROUP, Math.min(rules.files, GROUP_SHARES.files * shared)],
    [ERRORS_GROUP, GROUP_SHARES.errors * shared],
    [FINDINGS_GROUP, GROUP_SHARES.findings * shared],
    [SNIPPETS_GROUP, GROUP_SHARES.snippets * shared],
    [REST_GROUP, rest - measureMust(others, rules)],
  ])
  const isKept = ({ rank }: SummaryPiece): boolean => rank === REQUESTS_RANK
  const fitted = fitSummaryPieces(pieces, { tokens: room, caps, countTokens: rules.estimate.text, isKept })
  yield pieces.reduce((sum, { full }) => sum + full.length, 0)
  const text = facts.clean(formatSections(fitted, rules, isTight))
  yield text.length
  const tokens = rules.estimate.text(text)
  return {
    text,
    tokens,
    restTokens: tokens - fitted.messageTokens,
    leftOut: fitted.leftOut.flatMap(({ id }) => (id === null ? [] : [id])),
  }
}

/**
 * Below this number of tokens, or if the requests do not fit otherwise, a local summary is tight: it has no headings of
 * empty sections and does not name what is left out.
 */
const TIGHT_TOKENS = 400

function formatSections(
  { placed, leftOut }: Pick<PlacedPieces, 'placed' | 'leftOut'>,
  { form, messages }: Pick<LocalSummaryOptions, 'form' | 'messages'>,
  isTight: boolean,
): string {
  const sections = listSectionTitles(form).flatMap((title, index) => {
    const own = placed.filter(({ section }) => section === index + 1).map(({ text }) => text)
    const missing = isTight ? [] : leftOut.filter(({ section }) => section === index + 1)
    const lines = [...own, ...formatLeftOutNote(missing)]
    if (lines.length === 0 && (isTight || (messages === null && index + 1 === MESSAGES_SECTION_NUMBER)))
      return []
    return [[`${index + 1}. ${title}`, ...(lines.length === 0 ? [EMPTY_SECTION] : lines)].join('\n')]
  })
  const note = isTight && leftOut.length > 0 ? [`(${leftOut.length} more facts in the transcript)`] : []
  return [SUMMARY_HEADING, ...sections, ...note].join('\n\n')
}

const EMPTY_SECTION = 'Nothing on record.'
/** Sections that the repair of a model's summary does not add as lists of facts. */
const FILLED_SECTIONS: ReadonlySet<number> = new Set([1, 2, 5, 8, 9])

/**
 * Writes the sections that a model's summary lacks from the log, within `tokens`: the request, the concepts, what was
 * solved, the work in hand and the next step. Files, errors, messages and tasks are added by `repairSummary`.
 */
export function writeMissingModelSections(
  summary: string,
  { facts, pieces }: LocalSummaryMaterial,
  { form, tokens, estimate }: Pick<LocalSummaryOptions, 'form' | 'tokens' | 'estimate'>,
): readonly string[] {
  const titles = listSectionTitles(form)
  const found = new Set(findSectionNumbers(summary))
  const isMissing = (section: number): boolean =>
    FILLED_SECTIONS.has(section) && !found.has(section) && !hasTitle(summary, titles[section - 1] ?? '')
  const missing = pieces.filter(({ section }) => isMissing(section))
  const { placed } = fitSummaryPieces(missing, { tokens, countTokens: estimate.text })
  return titles.flatMap((title, index) => {
    const own = placed.filter(({ section }) => section === index + 1).map(({ text }) => text)
    return own.length === 0 ? [] : [facts.clean([`${index + 1}. ${title}`, ...own].join('\n'))]
  })
}

/** Checks whether a text has a line that is the title of a section, without its number. */
function hasTitle(text: string, title: string): boolean {
  return text.split('\n').some(
    (line) =>
      line
        .replace(/[^\p{L} ]/gu, '')
        .trim()
        .toLowerCase() === title.toLowerCase(),
  )
}
