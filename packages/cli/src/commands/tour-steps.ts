/**
 * Output of `tidemark tour`: converts session events to lines of text, and to data for `--json`. Most events are not
 * shown.
 */
import type { SessionEvent } from 'tidemark'
import { formatDollars, formatInteger, formatPercent, formatCount as many } from '../render/format-numbers.ts'
import type { Screen } from '../render/screen.ts'
import { wrapText } from '../render/text.ts'

export interface TourStep {
  /**
   * How the step is printed: as a heading (`scene`), as plain text (`line`), or marked as a rewrite of the context
   * (`act`).
   */
  readonly kind: 'scene' | 'line' | 'act'
  readonly text: string
  readonly data?: Readonly<Record<string, unknown>>
}

export function headingStep(text: string): TourStep {
  return { kind: 'scene', text }
}

export function textStep(text: string, data?: TourStep['data']): TourStep {
  return data === undefined ? { kind: 'line', text } : { kind: 'line', text, data }
}

export function rewriteStep(text: string, data?: TourStep['data']): TourStep {
  return data === undefined ? { kind: 'act', text } : { kind: 'act', text, data }
}

/** Converts a session event to a step of the tour. Returns null if the tour does not show this event. */
export function toTourStep(event: SessionEvent): TourStep | null {
  switch (event.type) {
    case 'microcompact':
      return toClearingStep(event)
    case 'compact':
      return toCompactionStep(event.compaction)
    case 'cache-break':
      return rewriteStep(event.event.sentence, {
        reason: event.event.reason.kind,
        tokens: event.event.tokensLost,
      })
    case 'act-paid':
      return rewriteStep(formatRewriteCost(event.act))
    case 'thinking-dropped':
      return rewriteStep(
        `The provider rejected the thinking of ${many(event.responses, 'earlier response')}: removed it and sent the request again.`,
      )
    case 'undone':
      return rewriteStep(`Undone: ${event.of}`)
    default:
      return null
  }
}

function toClearingStep({
  clearing,
  way,
  tokensBefore,
  tokensAfter,
}: Extract<SessionEvent, { readonly type: 'microcompact' }>): TourStep {
  const results = many(clearing.metadata.compactedToolIds.length, 'old tool result')
  return rewriteStep(`Cleared ${results}: ${formatSizes(tokensBefore, tokensAfter)}.`, {
    way,
    tokensBefore,
    tokensAfter,
    cost: clearing.cost,
  })
}

/**
 * Describes what a rewrite of the context cost. The cost is known only after the next model call, when the provider has
 * reported its usage.
 */
function formatRewriteCost({
  tokensRewritten,
  moneySpent,
  breakEvenTurns,
}: Extract<SessionEvent, { readonly type: 'act-paid' }>['act']): string {
  const price = moneySpent === null ? 'price not known' : formatDollars(moneySpent)
  const pays = breakEvenTurns === null ? '' : ` Pays for itself in ${many(breakEvenTurns, 'call')}.`
  return `Cost: ${formatInteger(tokensRewritten)} tokens re-cached (${price}).${pays}`
}

function toCompactionStep({
  tokensBefore,
  tokensAfter,
  summarizer,
  receipt,
  id,
}: Extract<SessionEvent, { readonly type: 'compact' }>['compaction']): TourStep {
  const { lost, summarised, carried } = receipt
  const by = summarizer === 'local' ? 'without a model' : 'by the model'
  const losses = [
    [lost.files.length, 'file'],
    [lost.userMessages.length, 'user message'],
    [lost.errors.length, 'error'],
    [lost.identifiers.length + lost.moreIdentifiers, 'name'],
  ] as const
  const named = losses.filter(([amount]) => amount > 0).map(([amount, kind]) => many(amount, kind))
  return rewriteStep(
    [
      `Compacted ${by}: ${formatSizes(tokensBefore, tokensAfter)}.`,
      `Summarized ${many(summarised.length, 'record')}, re-attached ${many(carried.length, 'item')}.`,
      named.length === 0
        ? 'The summary lost no file, message, error or name.'
        : `No longer in the context, but retrievable: ${named.join(', ')}.`,
    ].join(' '),
    { id, summarizer, tokensBefore, tokensAfter, lost },
  )
}

function formatSizes(before: number, after: number): string {
  return `${formatInteger(Math.round(before))} → ${formatInteger(Math.round(after))} tokens`
}

/** Totals of the model calls since the tour last printed a step. */
interface CallTotals {
  readonly count: number
  readonly prompt: number
  readonly read: number
  /** Prompt tokens of the last model call. */
  readonly last: number
  readonly cost: number
}

export const NO_MODEL_CALLS: CallTotals = { count: 0, prompt: 0, read: 0, last: 0, cost: 0 }

export function addModelCall(calls: CallTotals, event: SessionEvent): CallTotals {
  if (event.type !== 'priced') return calls
  const { tokens, money } = event.call
  const prompt = tokens.input + tokens.cacheRead + tokens.write5m + tokens.write1h
  return {
    count: calls.count + 1,
    prompt: calls.prompt + prompt,
    read: calls.read + tokens.cacheRead,
    last: prompt,
    cost: calls.cost + (money.total ?? 0),
  }
}

export function toCallsStep({ count, prompt, read, last, cost }: CallTotals): readonly TourStep[] {
  if (count === 0) return []
  const hits = formatPercent(prompt === 0 ? 0 : read / prompt)
  const text = `${many(count, 'model call')}, ${formatDollars(cost)}: ${hits} cache hits, last prompt ${formatInteger(last)} tokens.`
  return [textStep(text, { calls: count, prompt, cacheRead: read, cost })]
}

/** Renders a step of the tour: headings are bold, context rewrites begin with `*`, and long lines are wrapped. */
export function renderTourStep(step: TourStep, screen: Screen): string {
  const { colors, symbols } = screen
  const { kind } = step
  const text = step.text.replaceAll('→', symbols.arrow).replaceAll('…', symbols.more)
  if (kind === 'scene') return `\n${wrapText(text, screen.columns).map(colors.bold).join('\n')}\n`
  const lines = wrapText(text, screen.columns, kind === 'act' ? '  * ' : '  ')
  return `${(kind === 'act' ? lines.map(colors.cyan) : lines).join('\n')}\n`
}
