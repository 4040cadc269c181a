/** The text of an opened compaction line: why and how it was made, what left the context, what was attached again. */

import { SUMMARY_LABELS } from '@tidemark/terminal/render/describe-event'
import {
  formatCount,
  formatDuration,
  formatInteger,
  formatTokens,
} from '@tidemark/terminal/render/format-numbers'
import { toOneLinePreview, toSafeLine } from '@tidemark/terminal/render/text'
import type { EventOf, Receipt } from 'tidemark'

/** Returns the receipt of a compaction: what left the context, and what was attached again. */
export function formatReceipt(receipt: Receipt): string {
  const { files, userMessages, errors, identifiers, moreIdentifiers } = receipt.lost
  return [
    `Replaced by the summary: ${formatCount(receipt.summarised.length, 'message or result', 'messages and results')}`,
    `Kept word for word: ${formatCount(receipt.kept.length, 'message or result', 'messages and results')}`,
    ...formatListSection('Attached again', receipt.carried, ({ key }) => key.replace(/:$/, '')),
    ...formatListSection('Left out', receipt.leftOut ?? [], ({ source, why }) => `${source}: ${why}`),
    ...formatListSection('Files no longer mentioned', files, ({ text }) => text),
    ...formatListSection('User messages no longer complete', userMessages, ({ text }) => shortenFact(text)),
    ...formatListSection('Errors no longer mentioned', errors, describeLostError),
    ...formatListSection('Names no longer mentioned', identifiers, ({ text }) => text),
    ...(moreIdentifiers > 0 ? [`  and ${formatInteger(moreIdentifiers)} more names`] : []),
    '',
    'Everything is in the log: the model finds it with its history tool, you with /history TEXT. /undo restores it.',
  ].join('\n')
}

type Compaction = EventOf<'compact'>['compaction']

interface ListedFigures extends Pick<Compaction, 'trigger' | 'summarizer' | 'fallbackReason'> {
  readonly cause: Compaction['cause'] | undefined
  readonly durationMs: number | undefined
}

/** Returns lines about a compaction: why it was made, who wrote the summary, why not as usual, and how long it took. */
export function formatCompactionFigures(figures: ListedFigures): readonly string[] {
  const { trigger, cause, summarizer, fallbackReason, durationMs } = figures
  const why = cause === undefined ? TRIGGERS[trigger] : COMPACT_CAUSES[cause]
  return [
    `Why: ${why}`,
    `Summary: ${SUMMARY_LABELS[summarizer]}`,
    ...(fallbackReason === null ? [] : [`Why not the usual one: ${describeFallback(fallbackReason)}`]),
    ...(durationMs === undefined ? [] : [`Took: ${formatDuration(durationMs)}`]),
  ]
}

const TRIGGERS: Readonly<Record<Compaction['trigger'], string>> = {
  manual: 'you asked for it',
  auto: 'the context was nearly full',
}

const COMPACT_CAUSES: Readonly<Record<Compaction['cause'], string>> = {
  threshold: 'the context was nearly full',
  price: 'a smaller context costs less from here on',
  reactive: 'the provider refused the request as too long',
  prepared: 'the context was nearly full, and a summary was ready',
  idle: 'a pause, after which the context has to be cached again anyway',
  'model-switch': 'the other model has a smaller window',
  person: 'you asked for it',
}

const FALLBACKS: Readonly<Record<string, string>> = {
  no_summary: 'no usable summary was written',
  api_error: 'the call for the summary failed',
  prompt_too_long: 'the conversation was too long for one call',
}

/** Returns why the first summary was not used: the reason in words, with its details. */
function describeFallback(reason: string): string {
  const [, name = '', rest = ''] = /^(\w+)(?::\s*(.*))?$/s.exec(reason) ?? []
  const why = FALLBACKS[name]
  if (why === undefined) return toSafeLine(reason)
  return rest === '' ? why : `${why}: ${toSafeLine(rest)}`
}

/** Returns the calls that wrote the summary, with their tokens. */
export function describeSummaryCalls({
  calls,
  input,
  cacheRead,
  cacheWritten,
  output,
}: Compaction['usage']): readonly string[] {
  if (calls === 0) return ['Model calls for it: none']
  const sent = formatTokens(input + cacheRead + cacheWritten)
  return [
    `Model calls for it: ${calls}, ${sent} tokens in (${formatTokens(cacheRead)} of them cached), ${formatTokens(output)} out`,
  ]
}

const ATTEMPT_NAMES: Readonly<Record<string, string>> = {
  block: 'by the provider',
  fork: 'at the end of the cached conversation',
  direct: 'in a call of its own',
  local: 'from the log, without a model',
}

/** Returns the attempts at a summary as a list; empty if there was only one. */
export function describeSummaryAttempts(steps: Compaction['steps']): readonly string[] {
  const texts = steps.map(
    ({ kind, outcome, message }) => `${ATTEMPT_NAMES[kind] ?? kind}: ${outcome}. ${message}`,
  )
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  if (counts.size < 2) return []
  return formatListSection('Attempts', [...counts], ([text, count]) =>
    count === 1 ? text : `${text} (${count} times)`,
  )
}

const FACT_CHARACTERS = 200

/** Describes an error with its command, and whether that has succeeded since: the end of a stack trace shows neither. */
export function describeLostError({ text, command, isSettled }: Receipt['lost']['errors'][number]): string {
  const name = toOneLinePreview(command, COMMAND_CHARACTERS)
  return isSettled
    ? `an error of ${name}, which has succeeded since`
    : `${name}: ${shortenFact(startAtWholeLine(text))}`
}

const COMMAND_CHARACTERS = 60

/** Drops the first line of an error that was cut, because it may begin in the middle. */
function startAtWholeLine(error: string): string {
  return error.length < CUT_ERROR ? error : error.replace(/^.*\n/, '')
}

/** Returns a fact of a receipt on one line, cut at `FACT_CHARACTERS`. */
export function shortenFact(text: string): string {
  return toOneLinePreview(text, FACT_CHARACTERS)
}

/** An error with this many characters is only the end of a longer one. */
const CUT_ERROR = 600

const MAX_LISTED = 100
/** Maximum characters of an item, such as an error of many lines. */
const MAX_CHARACTERS = 300

/** Formats items as lines below a title with their number; empty without items. Each is made safe to print and cut. */
export function formatListSection<Item>(
  title: string,
  items: readonly Item[],
  format: (item: Item) => string,
): readonly string[] {
  if (items.length === 0) return []
  const more = items.length - MAX_LISTED
  return [
    '',
    `${title} (${formatInteger(items.length)})`,
    ...items
      .slice(0, MAX_LISTED)
      .map((item) => `  ${toOneLinePreview(toSafeLine(format(item)), MAX_CHARACTERS)}`),
    ...(more > 0 ? [`  and ${formatInteger(more)} more`] : []),
  ]
}
