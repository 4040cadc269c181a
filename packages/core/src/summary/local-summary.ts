/**
 * The summary that needs no model: the same nine sections, taken from the records by fixed rules. What only the log
 * knows for certain goes in first: the person's words, errors that still stand, files that were changed, open tasks.
 */
import type { Estimator } from '../tokens/estimator.ts'
import { SUMMARY_HEADING } from './accept-summary.ts'
import { ERRORS, FILES, type Fitted, MESSAGES, type Piece, SNIPPETS, errorPieces, filePieces, fitPieces, messagePieces, workPieces } from './local-sections.ts'
import type { Facts } from './session-facts.ts'
import { type CompactForm, sectionTitles } from './summary-prompt.ts'
import { beginning } from './truncate-text.ts'

export interface LocalSummaryRules {
  readonly form: CompactForm
  /** Tokens of the whole. */
  readonly tokens: number
  /** Tokens of the person's messages: of one, and of all. */
  readonly messages: { readonly each: number; readonly total: number }
  /** Tokens of the list of files, snippets aside. */
  readonly files: number
  readonly estimate: Pick<Estimator, 'text'>
}

interface LocalSummary {
  /** Headed `Summary:`; without secrets. */
  readonly text: string
  readonly tokens: number
  /** What found no room: uuids of messages and of results, paths of files. */
  readonly leftOut: readonly string[]
}

/** Snippets may take this share of the whole: they are worth having, and the files can be read again. */
const SNIPPET_SHARE = 0.25
const ERROR_SHARE = 0.4
/** No one kind of thing may take it all, the person's words not even. */
const MESSAGE_SHARE = 0.8
const FILE_SHARE = 0.5

export function localSummary(facts: Facts, rules: LocalSummaryRules): LocalSummary {
  const pieces = piecesOf(facts, rules)
  const frame = rules.estimate.text(spelt(NOTHING, rules.form))
  let room = rules.tokens - frame
  let made = fill(pieces, rules, { room, clean: facts.clean })
  // The tokens of a whole and of its parts differ by a little, and so do those of the note on what is left out.
  while (made.tokens > rules.tokens && room > 0) {
    room -= Math.max(16, made.tokens - rules.tokens)
    made = fill(pieces, rules, { room, clean: facts.clean })
  }
  return made
}

/** Ranks, the lowest first: what only the log knows for certain, where the work stands, what helps to go on. */
function piecesOf(facts: Facts, { messages, estimate }: LocalSummaryRules): readonly Piece[] {
  const rules = { eachTokens: messages.each, estimate }
  return [
    ...workPieces(facts, { must: 0, now: 5, rest: 8 }),
    ...messagePieces(facts.messages, 1, rules),
    ...filePieces(facts.files, { edited: 4, snippets: 6, read: 7 }),
    ...errorPieces(facts.commands, facts.failedCalls, { open: 3, settled: 6, calls: 9 }),
  ]
}

interface Filling {
  readonly room: number
  readonly clean: (text: string) => string
}

function fill(pieces: readonly Piece[], rules: LocalSummaryRules, { room, clean }: Filling): LocalSummary {
  const caps = new Map([
    [MESSAGES, Math.min(rules.messages.total, MESSAGE_SHARE * room)],
    [FILES, Math.min(rules.files, FILE_SHARE * room)],
    [ERRORS, ERROR_SHARE * room],
    [SNIPPETS, SNIPPET_SHARE * room],
  ])
  const fitted = fitPieces(pieces, { total: room, caps, estimate: rules.estimate })
  const text = clean(spelt(fitted, rules.form))
  const leftOut = fitted.leftOut.flatMap(({ id }) => (id === null ? [] : [id]))
  return { text, tokens: rules.estimate.text(text), leftOut }
}

const NOTHING: Fitted = { placed: [], leftOut: [], tokens: 0 }

function spelt({ placed, leftOut }: Fitted, form: CompactForm): string {
  const sections = sectionTitles(form).map((title, index) => {
    const own = placed.filter(({ section }) => section === index + 1).map(({ text }) => text)
    const missing = leftOut.filter(({ section }) => section === index + 1)
    const lines = [...own, ...leftOutNote(missing)]
    return [`${index + 1}. ${title}`, ...(lines.length === 0 ? [NONE] : lines)].join('\n')
  })
  return [SUMMARY_HEADING, ...sections].join('\n\n')
}

const NONE = 'Nothing on record.'
const NAMED = 3
const LONGEST_ID = 120

/** Said, with a few of the ids by which the log gives them back. */
function leftOutNote(missing: readonly Piece[]): readonly string[] {
  const ids = missing.flatMap(({ id }) => (id === null ? [] : [id]))
  if (ids.length === 0) return []
  const named = ids
    .slice(0, NAMED)
    .map((id) => beginning(id, LONGEST_ID))
    .join(', ')
  return [`(${ids.length} more in the transcript: ${named}${ids.length > NAMED ? ', …' : ''})`]
}

// A model's summary with what no model was shown in front of it, told by the local extractor.

interface LocalCover {
  /** What the local extractor made of the records. */
  readonly text: string
  /** How many they were. */
  readonly records: number
}

/** Where nothing had to be covered the summary stays as it is. */
export function composeSummary(summary: string, cover: LocalCover | null): string {
  if (cover === null || cover.records === 0) return summary
  const body = withoutHeading(summary)
  const told = withoutHeading(cover.text)
  const many = cover.records === 1 ? 'One record' : `${cover.records} records`
  return [
    SUMMARY_HEADING,
    `${many} did not fit into the summariser's window. This was taken from the log without a model:`,
    '',
    told,
    '',
    'The rest, summarised by the model:',
    '',
    body,
  ].join('\n')
}

function withoutHeading(text: string): string {
  const trimmed = text.trim()
  return trimmed.startsWith(SUMMARY_HEADING) ? trimmed.slice(SUMMARY_HEADING.length).trim() : trimmed
}
