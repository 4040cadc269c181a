/**
 * Renders the output of `tidemark compact`: the plan, the draft of the summary, the receipt, and where the result was
 * written.
 */
import type { TurnEvent } from '@tidemark/core/engine/events'
import {
  formatCount,
  formatDollars,
  formatInteger,
  formatTokenLimit,
  formatTokens,
} from '@tidemark/terminal/render/format-numbers'
import { renderHeading, stackBlocks } from '@tidemark/terminal/render/layout'
import type { Screen } from '@tidemark/terminal/render/screen'
import {
  alignLeft,
  alignRight,
  cutTextEnd,
  formatPath,
  toSafeLine,
  wrapMarkdownLine,
  wrapText,
} from '@tidemark/terminal/render/text'
import type { CompactionPreview, RecordsAndTokens } from 'tidemark/internal'
import type { CompactionReport, UndoReport } from 'tidemark/logs'

export function renderCompactPage(
  preview: CompactionPreview,
  screen: Screen,
  { full = false }: { readonly full?: boolean },
): string {
  const blocks = [
    renderPlan(preview, screen),
    renderDraft(preview, screen, full),
    renderReceipt(preview, screen),
  ]
  return `${stackBlocks(blocks).join('\n')}\n`
}

/**
 * Where `tidemark compact` writes its result. `dry` writes nothing; `why` is then the reason, or null if the user asked
 * for a dry run.
 */
export type CompactDestination =
  | { readonly kind: 'in-place' | 'copy'; readonly path: string }
  | { readonly kind: 'dry'; readonly why: string | null }

export function renderCompactFooter(
  { id }: CompactionReport,
  mode: CompactDestination,
  screen: Screen,
): string {
  const text =
    mode.kind === 'dry'
      ? dryRunNote(mode.why)
      : `Written to ${formatPath(mode.path)}. To undo: tidemark compact ${formatPath(mode.path)} --undo ${id}`
  return `\n${wrapText(text, screen.columns).map(screen.colors.bold).join('\n')}\n`
}

function dryRunNote(why: string | null): string {
  const because = why === null ? '' : `: ${why}`
  return `Dry run${because}. Nothing was written; -o FILE writes a new session that continues from here.`
}

// The plan of a compaction: what is summarized, what is kept, what is attached again, its cost, and after how many
// model calls it pays for itself.

function renderPlan(preview: CompactionPreview, screen: Screen): readonly string[] {
  const { plan, model, window, summarizer } = preview
  const text = summarizer === 'notes' ? 'notes' : 'summary'
  const size = window === null ? 'window not known' : `window ${formatTokenLimit(window)}`
  return [
    renderHeading(`Compaction of ${formatPath(preview.file)}`, `${toSafeLine(model)}, ${size}`, screen),
    renderSizes(preview, screen),
    ...describeCut(preview).flatMap((note) => wrapText(note, screen.columns, '  ')),
    '',
    renderHeading(
      'Plan',
      summarizer === 'notes' ? 'all but the newest messages' : PLAN_FORMS[plan.form],
      screen,
    ),
    ...renderPlanRow('summarized', plan.goes, `replaced by the ${text}`, screen),
    ...renderPlanRow('kept', plan.stays, 'word for word', screen),
    ...(plan.unanswered.records > 0
      ? renderPlanRow('unanswered', plan.unanswered, 'kept, moved to the end', screen)
      : []),
    ...renderPrefix(measurePrefix(preview), screen),
    ...renderNotEstimated(plan.notEstimated, screen),
    ...renderPlanLine(text, alignRight(formatTokens(measureSummary(preview)), 17), 'new', screen),
    ...renderPlanRow('re-attached', plan.comesBack, describeReattached(preview), screen),
    ...renderPrice(preview),
    ...describePlan(preview).flatMap((remark) =>
      wrapText(remark, screen.columns, '  ').map(screen.colors.dim),
    ),
  ]
}

/** Returns the estimated tokens of the summary: what the other parts leave of the new size, so that all parts add up to it. */
function measureSummary(preview: CompactionPreview): number {
  const { plan, tokensAfter } = preview
  const rest = plan.stays.tokens + plan.unanswered.tokens + plan.comesBack.tokens + measurePrefix(preview)
  return Math.max(0, tokensAfter - rest)
}

/** Returns the tokens of system prompt and tools; 0 for logs of other programs, whose sizes do not include them. */
function measurePrefix({ format, plan, tokensBefore }: CompactionPreview): number {
  const rest = tokensBefore - plan.goes.tokens - plan.stays.tokens - plan.unanswered.tokens
  return format === 'tidemark' ? Math.max(0, rest) : 0
}

const PLAN_FORMS = { full: 'whole conversation', from: 'from a record on', up_to: 'up to a record' } as const

function renderSizes(
  { tokensBefore, tokensAfter, plan }: CompactionPreview,
  { colors, symbols }: Screen,
): string {
  const aim = plan.target === null ? '' : colors.dim(`  target ${formatTokenLimit(plan.target)}`)
  return `  ${formatTokens(tokensBefore)} ${symbols.arrow} ${colors.bold(`${formatTokens(tokensAfter)} tokens`)}${aim}`
}

function describeCut({ movedFrom, at, recordsAfter, plan }: CompactionPreview): readonly string[] {
  const moved =
    movedFrom === null
      ? []
      : [
          `The cut was moved back from ${toSafeLine(movedFrom)} to ${toSafeLine(at ?? '')}, so that no tool call is separated from its result.`,
        ]
  const later =
    recordsAfter === 0
      ? []
      : [
          `As of ${toSafeLine(at ?? '')}: ${formatCount(recordsAfter, 'later record is', 'later records are')} left out.`,
        ]
  return [...moved, ...later, ...(plan.note === null ? [] : [toSafeLine(plan.note)])]
}

const PLAN_NAME_WIDTH = 14

function renderPlanRow(
  name: string,
  { records, tokens }: RecordsAndTokens,
  aside: string,
  screen: Screen,
): readonly string[] {
  const figures = alignRight(formatInteger(records), 8) + alignRight(formatTokens(tokens), 9)
  return renderPlanLine(name, figures, records === 0 ? '' : aside, screen)
}

function renderPrefix(tokens: number, screen: Screen): readonly string[] {
  const figures = alignRight(formatTokens(tokens), 17)
  return tokens === 0 ? [] : renderPlanLine('system, tools', figures, 'stay', screen)
}

/** Renders the tokens that the provider counted in addition; nothing for so few that they may be rounding errors. */
function renderNotEstimated(tokens: number, screen: Screen): readonly string[] {
  if (tokens < 100) return []
  const aside = 'more by the count of the provider; in neither figure above, and not counted as freed'
  return renderPlanLine('not estimated', alignRight(formatTokens(tokens), 17), aside, screen)
}

/** Renders a line of the plan. Text that does not fit after the figures continues on the next line, in the same column. */
function renderPlanLine(
  name: string,
  figures: string,
  aside: string,
  { columns, colors }: Screen,
): readonly string[] {
  const start = `  ${alignLeft(name, PLAN_NAME_WIDTH)}${figures}`
  if (aside === '') return [start]
  const [first = '', ...others] = wrapText(aside, columns - start.length - 2)
  const indent = ' '.repeat(start.length + 2)
  return [`${start}  ${colors.dim(first)}`, ...others.map((line) => `${indent}${colors.dim(line)}`)]
}

const MAX_NAMED = 3

function describeReattached({ receipt }: CompactionPreview): string {
  const names = receipt.carried.map(({ key }) => {
    const colon = key.indexOf(':')
    // A plan that is not in a file has the id of a call as its key, which tells the user nothing.
    return toSafeLine(key.startsWith('plan:') ? 'plan' : key.slice(colon + 1) || key.slice(0, colon))
  })
  const more = names.length - MAX_NAMED
  const named = names.slice(0, MAX_NAMED).map((name) => name.split('/').at(-1) ?? name)
  return `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function renderPrice({ price }: CompactionPreview): readonly string[] {
  if (price === null) return [`  ${alignLeft('cost', PLAN_NAME_WIDTH)}not known`]
  const { costUsd, paidUsd, breakEvenCalls } = price
  const pays =
    breakEvenCalls === null
      ? 'does not pay for itself'
      : `pays for itself after ${formatCount(breakEvenCalls, 'call')}`
  const paid = paidUsd === 0 ? '' : `; the draft has cost ${formatDollars(paidUsd)}`
  return [`  ${alignLeft('cost', PLAN_NAME_WIDTH)}${formatDollars(costUsd)}, ${pays}${paid}`]
}

function describePlan({ prefixTokens, session, notes, plan }: CompactionPreview): readonly string[] {
  const prefix =
    prefixTokens === 0
      ? []
      : [
          `System prompt, tools and whatever else the log does not have: about ${formatTokens(prefixTokens)} tokens of each request, on top of the figures above and of the target.`,
        ]
  const history =
    session.records <= plan.goes.records + plan.stays.records + plan.unanswered.records
      ? []
      : [
          `The summary covers all ${formatCount(session.records, 'record')} of the session (${formatTokens(session.tokens)} tokens), including those compacted before.`,
        ]
  return [...prefix, ...history, ...notes.map((note) => `Note: ${toSafeLine(note)}`)]
}

// The draft of the summary, as the model gets it in later requests.

/** Number of lines of the draft that are printed without `--full`. */
const MAX_DRAFT_LINES = 40

function renderDraft(preview: CompactionPreview, screen: Screen, isFull: boolean): readonly string[] {
  const { summary } = preview
  // The engine marks its cuts with an ellipsis, which some terminals cannot show.
  const lines = summary.trimEnd().replaceAll('…', screen.symbols.more).split('\n')
  const more = isFull ? 0 : Math.max(0, lines.length - MAX_DRAFT_LINES)
  const aside = `${describeSummarizer(preview)}, ${formatInteger(summary.length)} characters`
  return [
    renderHeading('Draft', aside, screen),
    ...lines
      .slice(0, lines.length - more)
      .flatMap((line) => wrapMarkdownLine(sanitizeLine(line, screen.symbols), screen.columns, '  ')),
    ...(more > 0
      ? [screen.colors.dim(`  ${screen.symbols.more} ${formatCount(more, 'more line')}: --full shows them`)]
      : []),
    ...(preview.fallbackReason === null
      ? []
      : wrapText(describeSummaryFallback(preview), screen.columns, '  ').map(screen.colors.yellow)),
  ]
}

/** Explains why the summary was not written by the requested model. */
export function describeSummaryFallback({ trace, fallbackReason }: CompactionPreview): string {
  const last = trace.findLast(
    ({ tier, outcome }) => tier === 'summary' && outcome !== 'accepted' && outcome !== 'skipped',
  )
  const why = toSafeLine(last?.why ?? fallbackReason ?? '')
  return `The model did not write the summary (${why}): it was written without a model.`
}

function describeSummarizer({ summarizer, model }: CompactionPreview): string {
  if (summarizer === 'local') return 'written without a model'
  if (summarizer === 'notes') return 'notes from the log, without a model'
  return summarizer === 'block' ? 'by the provider' : `by ${toSafeLine(model)}`
}

/** Removes control characters and secrets from a line, and keeps its indentation. Symbols of notes are replaced by `symbols`. */
function sanitizeLine(line: string, { more, arrow }: Screen['symbols']): string {
  const indent = /^[ \t]*/.exec(line)?.[0] ?? ''
  const text = toSafeLine(line).replaceAll('…', more).replaceAll('→', arrow)
  return `${indent.replaceAll('\t', '  ')}${text}`
}

// The receipt of a compaction: what was removed from the context, and which of it can still be retrieved.

type Losses = CompactionPreview['receipt']['lost']
type LossKind = 'files' | 'userMessages' | 'errors' | 'identifiers'

const LOSS_KINDS: readonly (readonly [LossKind, string, string])[] = [
  ['files', 'file', 'files'],
  ['userMessages', 'user message', 'user messages'],
  ['errors', 'error', 'errors'],
  ['identifiers', 'name', 'names'],
]

const MAX_LOSSES = 4
const LOSS_NAME_WIDTH = 22

function renderReceipt({ receipt }: CompactionPreview, screen: Screen): readonly string[] {
  const { summarised, kept, carried, lost, retrievable } = receipt
  const lines = LOSS_KINDS.flatMap((kind) => renderLosses(kind, lost, screen))
  return [
    renderHeading('Receipt', `${formatCount(retrievable.length, 'record')} can be retrieved by id`, screen),
    `  summarized ${formatCount(summarised.length, 'record')}, kept ${formatCount(kept.length, 'record')}, re-attached ${formatCount(carried.length, 'item')}`,
    ...(lines.length === 0
      ? ['  no file, user message, error or name was lost']
      : ['  no longer in the context:', ...lines]),
  ]
}

function renderLosses(
  [kind, one, many]: (typeof LOSS_KINDS)[number],
  lost: Losses,
  screen: Screen,
): readonly string[] {
  const texts = lost[kind]
  const amount = texts.length + (kind === 'identifiers' ? lost.moreIdentifiers : 0)
  if (amount === 0) return []
  const named = texts
    .slice(0, MAX_LOSSES)
    .map(({ text }) => cutTextEnd(toSafeLine(text), 40, screen.symbols.more))
  const rest = amount > named.length ? ` ${screen.symbols.more}` : ''
  const listed = cutTextEnd(
    `${named.join(', ')}${rest}`,
    screen.columns - LOSS_NAME_WIDTH - 4,
    screen.symbols.more,
  )
  return [`    ${alignLeft(formatCount(amount, one, many), LOSS_NAME_WIDTH)}${screen.colors.dim(listed)}`]
}

export function renderUndoPage(
  { id, kind, tokensBefore, tokensAfter }: UndoReport,
  mode: CompactDestination,
  screen: Screen,
): string {
  const what = kind === 'compact' ? 'compaction' : 'clearing'
  const sizes = `${formatTokens(tokensBefore)} ${screen.symbols.arrow} ${formatTokens(tokensAfter)} tokens`
  const where = mode.kind === 'dry' ? dryRunNote(mode.why) : `Written to ${formatPath(mode.path)}.`
  return `${screen.colors.bold(`Undid the ${what} ${toSafeLine(id)}`)}: ${sizes}.\n${where}\n`
}

/** Returns the text of the progress line for an event of a compaction. Null gives the general text `compacting`. */
export function formatCompactProgress(event: TurnEvent | null): string {
  if (event?.type === 'summary-progress')
    return `compacting: ${formatInteger(event.characters)} characters of the summary`
  return event?.type === 'phase' && event.phase !== 'done' ? event.phase : 'compacting'
}
