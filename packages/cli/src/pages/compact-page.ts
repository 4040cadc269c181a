/** The page of a compaction: plan, draft, receipt, and where it was written. */
import type { TurnEvent } from '@tidemark/core'
import type { CompactionPreview, CompactionReport, Portion, UndoReport } from 'tidemark'
import { count, dollars, limit, tokens, whole } from '../render/figures.ts'
import { heading, stacked } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import { cutEnd, left, right, shown, shownPath, wrap } from '../render/text.ts'

export function compactPage(
  preview: CompactionPreview,
  screen: Screen,
  { full = false }: { readonly full?: boolean },
): string {
  const blocks = [
    planLines(preview, screen),
    draftLines(preview, screen, full),
    receiptLines(preview, screen),
  ]
  return `${stacked(blocks).join('\n')}\n`
}

/** Where the result goes. `why` it is a dry run, if that was not requested. */
export type Went =
  | { readonly kind: 'in-place' | 'copy'; readonly path: string }
  | { readonly kind: 'dry'; readonly why: string | null }

export function footer({ id }: CompactionReport, mode: Went, screen: Screen): string {
  const text =
    mode.kind === 'dry'
      ? dryWords(mode.why)
      : `Written to ${shownPath(mode.path)}. To undo: tidemark compact ${shownPath(mode.path)} --undo ${id}`
  return `\n${wrap(text, screen.columns).map(screen.colors.bold).join('\n')}\n`
}

function dryWords(why: string | null): string {
  const because = why === null ? '' : `: ${why}`
  return `Dry run${because}. Nothing was written; -o FILE writes a new session that continues from here.`
}

// The plan: what is summarized, kept and re-attached, the cost, and after how many calls it pays for itself.

function planLines(preview: CompactionPreview, screen: Screen): readonly string[] {
  const { plan, model, window } = preview
  const size = window === null ? 'window not known' : `window ${limit(window)}`
  return [
    heading(`Compaction of ${shownPath(preview.file)}`, `${shown(model)}, ${size}`, screen),
    sizes(preview, screen),
    ...cutNotes(preview).flatMap((note) => wrap(note, screen.columns, '  ')),
    '',
    heading('Plan', FORMS[plan.form], screen),
    row('summarized', plan.goes, 'replaced by the summary', screen),
    row('kept', plan.stays, 'word for word', screen),
    ...(plan.unanswered.records > 0
      ? [row('unanswered', plan.unanswered, 'kept, moved to the end', screen)]
      : []),
    row('re-attached', plan.comesBack, comingBack(preview), screen),
    ...price(preview),
    ...remarks(preview).flatMap((remark) => wrap(remark, screen.columns, '  ').map(screen.colors.dim)),
  ]
}

const FORMS = { full: 'whole conversation', from: 'from a record on', up_to: 'up to a record' } as const

function sizes({ tokensBefore, tokensAfter, plan }: CompactionPreview, { colors, symbols }: Screen): string {
  const aim = plan.target === null ? '' : colors.dim(`  target ${limit(plan.target)}`)
  return `  ${tokens(tokensBefore)} ${symbols.arrow} ${colors.bold(`${tokens(tokensAfter)} tokens`)}${aim}`
}

function cutNotes({ movedFrom, at, recordsAfter, plan }: CompactionPreview): readonly string[] {
  const moved =
    movedFrom === null
      ? []
      : [
          `The cut was moved back from ${shown(movedFrom)} to ${shown(at ?? '')}, so that no tool call is separated from its result.`,
        ]
  const later =
    recordsAfter === 0
      ? []
      : [`As of ${shown(at ?? '')}: ${count(recordsAfter, 'later record is', 'later records are')} left out.`]
  return [...moved, ...later, ...(plan.note === null ? [] : [shown(plan.note)])]
}

const NAME = 14

function row(name: string, { records, tokens: size }: Portion, aside: string, screen: Screen): string {
  const figures = right(whole(records), 8) + right(tokens(size), 9)
  return `  ${left(name, NAME)}${figures}  ${records === 0 ? '' : screen.colors.dim(aside)}`.trimEnd()
}

const MOST_NAMED = 3

function comingBack({ receipt }: CompactionPreview): string {
  const names = receipt.carried.map(({ key }) => shown(key.slice(key.indexOf(':') + 1) || key.slice(0, -1)))
  const more = names.length - MOST_NAMED
  const named = names.slice(0, MOST_NAMED).map((name) => name.split('/').at(-1) ?? name)
  return `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function price({ price: found }: CompactionPreview): readonly string[] {
  if (found === null) return [`  ${left('cost', NAME)}not known`]
  const { costUsd, breakEvenCalls } = found
  const pays =
    breakEvenCalls === null
      ? 'does not pay for itself'
      : `pays for itself after ${count(breakEvenCalls, 'call')}`
  return [`  ${left('cost', NAME)}${dollars(costUsd)}, ${pays}`]
}

function remarks({ prefixTokens, session, notes, plan }: CompactionPreview): readonly string[] {
  const prefix =
    prefixTokens === 0
      ? []
      : [
          `About ${tokens(prefixTokens)} tokens of each request (system prompt, tools) are not in the log and come on top.`,
        ]
  const history =
    session.records <= plan.goes.records
      ? []
      : [
          `The summary covers all ${count(session.records, 'record')} of the session (${tokens(session.tokens)} tokens), including those compacted before.`,
        ]
  return [...prefix, ...history, ...notes.map((note) => `Note: ${shown(note)}`)]
}

// The draft of the summary, as the model will read it.

/** Lines shown without `--full`. */
const MOST_LINES = 40

function draftLines(preview: CompactionPreview, screen: Screen, isFull: boolean): readonly string[] {
  const { summary } = preview
  const lines = summary.trimEnd().split('\n')
  const more = isFull ? 0 : Math.max(0, lines.length - MOST_LINES)
  const aside = `${by(preview)}, ${whole(summary.length)} characters`
  return [
    heading('Draft', aside, screen),
    ...lines.slice(0, lines.length - more).flatMap((line) => wrap(plain(line), screen.columns, '  ')),
    ...(more > 0
      ? [screen.colors.dim(`  ${screen.symbols.more} ${count(more, 'more line')}: --full shows them`)]
      : []),
    ...(preview.fallbackReason === null
      ? []
      : wrap(fallbackWords(preview), screen.columns, '  ').map(screen.colors.yellow)),
  ]
}

/** Why the summary was written without the model that was requested. */
export function fallbackWords({ trace, fallbackReason }: CompactionPreview): string {
  const last = trace.findLast(
    ({ tier, outcome }) => tier === 'summary' && outcome !== 'accepted' && outcome !== 'skipped',
  )
  const why = shown(last?.why ?? fallbackReason ?? '')
  return `The model did not write the summary (${why}): it was written without a model.`
}

function by({ summarizer, model }: CompactionPreview): string {
  if (summarizer === 'local') return 'written without a model'
  return summarizer === 'block' ? 'by the provider' : `by ${shown(model)}`
}

/** Made safe for the terminal; its indent is kept. */
function plain(line: string): string {
  const indent = /^[ \t]*/.exec(line)?.[0] ?? ''
  return `${indent.replaceAll('\t', '  ')}${shown(line)}`
}

// The receipt: what left the context, what is no longer in it anywhere, and what can be retrieved.

type Losses = CompactionPreview['receipt']['lost']
type Kind = 'files' | 'userMessages' | 'errors' | 'identifiers'

const KINDS: readonly (readonly [Kind, string, string])[] = [
  ['files', 'file', 'files'],
  ['userMessages', 'user message', 'user messages'],
  ['errors', 'error', 'errors'],
  ['identifiers', 'name', 'names'],
]

const MOST = 4
const NAME_RECEIPT = 22

function receiptLines({ receipt }: CompactionPreview, screen: Screen): readonly string[] {
  const { summarised, kept, carried, lost, retrievable } = receipt
  const lines = KINDS.flatMap((kind) => lossLine(kind, lost, screen))
  return [
    heading('Receipt', `${count(retrievable.length, 'record')} can be retrieved by id`, screen),
    `  summarized ${count(summarised.length, 'record')}, kept ${count(kept.length, 'record')}, re-attached ${count(carried.length, 'item')}`,
    ...(lines.length === 0
      ? ['  no file, user message, error or name was lost']
      : ['  no longer in the context:', ...lines]),
  ]
}

function lossLine(
  [kind, one, many]: (typeof KINDS)[number],
  lost: Losses,
  screen: Screen,
): readonly string[] {
  const texts = lost[kind]
  const amount = texts.length + (kind === 'identifiers' ? lost.moreIdentifiers : 0)
  if (amount === 0) return []
  const named = texts.slice(0, MOST).map(({ text }) => cutEnd(shown(text), 40, screen.symbols.more))
  const rest = amount > named.length ? ` ${screen.symbols.more}` : ''
  const listed = cutEnd(`${named.join(', ')}${rest}`, screen.columns - NAME_RECEIPT - 4, screen.symbols.more)
  return [`    ${left(count(amount, one, many), NAME_RECEIPT)}${screen.colors.dim(listed)}`]
}

export function undoPage(
  { id, kind, tokensBefore, tokensAfter }: UndoReport,
  mode: Went,
  screen: Screen,
): string {
  const what = kind === 'compact' ? 'compaction' : 'clearing'
  const sizes = `${tokens(tokensBefore)} ${screen.symbols.arrow} ${tokens(tokensAfter)} tokens`
  const where = mode.kind === 'dry' ? dryWords(mode.why) : `Written to ${shownPath(mode.path)}.`
  return `${screen.colors.bold(`Undid the ${what} ${shown(id)}`)}: ${sizes}.\n${where}\n`
}

/** The progress of a compaction. `null`: no event since the last one. */
export function progressText(event: TurnEvent | null): string {
  if (event?.type === 'summary-progress')
    return `compacting: ${whole(event.characters)} characters of the summary`
  return event?.type === 'phase' && event.phase !== 'done' ? event.phase : 'compacting'
}
