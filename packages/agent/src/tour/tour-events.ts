/** Descriptions of the events of the job with Tidemark, for users who see them for the first time. */
import { basename } from 'node:path'
import { formatCount, formatTokens } from '@tidemark/terminal/render/format-numbers'
import type { SessionEvent } from 'tidemark'
import { createTourEventStep, createTourLine, formatCentsOrDollars, type TourStep } from './tour-steps.ts'

export interface EventDescriber {
  /** Returns the steps for an event; none if the tour does not show it. `requests`: number of answered requests so far. */
  describe(event: SessionEvent, requests: number): readonly TourStep[]
  /** Returns one sentence with the numbers of shown events. */
  summarize(): string
}

type EventOf<Type extends SessionEvent['type']> = Extract<SessionEvent, { readonly type: Type }>

/** Creates the describer of one run. It must get all events in order, because it joins related ones: a clearing and its cost. */
export function createEventDescriber(): EventDescriber {
  let price: EventOf<'act-paid'>['act'] | null = null
  let restored: readonly string[] = []
  let tests = ''
  const totals = { cleared: 0, compactions: 0, restored: 0, breaks: 0, refusals: 0 }
  function toStep(event: SessionEvent): TourStep | null {
    switch (event.type) {
      case 'tool-ended': {
        const step = toToolStep(event)
        const isTold = step?.text === tests
        if (step?.text.includes('tests') === true) tests = step.text
        return isTold ? null : step
      }
      case 'spilled':
        return createTourEventStep(
          'a command printed a lot. The model sees its beginning and end, and can read the rest from disk.',
        )
      case 'act-paid':
        price = event.act
        return null
      case 'microcompact':
        totals.cleared += event.clearing.metadata.compactedToolIds.length
        return toClearingStep(event, price)
      case 'cache-break':
        totals.breaks += 1
        return toCacheBreakStep(event.event)
      case 'reactive-compact':
        totals.refusals += 1
        return createTourEventStep(
          `the provider refuses: "${event.message}" (planted by this tour; it happens when an estimate was too low). Tidemark compacts, and sends the request again.`,
          { kind: 'refused', message: event.message },
        )
      case 'context-restored':
        restored = event.keys
        return null
      case 'compact':
        totals.compactions += 1
        totals.restored += restored.length
        return toCompactionStep(event.compaction, restored)
      default:
        return null
    }
  }
  return {
    describe(event, requests) {
      const step = toStep(event)
      if (event.type === 'microcompact' || event.type === 'compact') price = null
      if (step === null) return []
      return [step.kind === 'act' ? { ...step, text: `${requests} requests in: ${step.text}` } : step]
    },
    summarize: () =>
      `On the way: ${formatCount(totals.cleared, 'old tool result')} cleared, ${formatCount(totals.compactions, 'compaction')}, ${formatCount(totals.restored, 'thing')} brought back, ${formatCount(totals.breaks, 'cache break')} explained, ${formatCount(totals.refusals, 'refused prompt')} recovered.`,
  }
}

/** Returns a step for an edit or a test run; null for other tool calls. The caller leaves out a test run that ends like the one before. */
function toToolStep({ call, result }: EventOf<'tool-ended'>): TourStep | null {
  const { file_path: path, command } = call.input as {
    readonly file_path?: string
    readonly command?: string
  }
  if (call.name === 'Edit' || call.name === 'Write') return createTourLine(`The agent changes ${path}.`)
  if (command !== 'node --test') return null
  const output = JSON.stringify(result.content)
  const [passed, failed] = ['pass', 'fail'].map((name) => new RegExp(`\\b${name} (\\d+)`).exec(output)?.[1])
  return createTourLine(`The agent runs the tests: ${passed ?? '?'} pass, ${failed ?? '?'} fail.`)
}

function toClearingStep(
  { clearing, tokensBefore, tokensAfter }: EventOf<'microcompact'>,
  price: EventOf<'act-paid'>['act'] | null,
): TourStep {
  const results = clearing.metadata.compactedToolIds.length
  const earned =
    price?.breakEvenTurns == null
      ? ''
      : `; it would be earned back after ${formatCount(price.breakEvenTurns, 'request')}`
  const cost =
    price?.moneySpent == null ? '' : ` Price: ${formatCentsOrDollars(price.moneySpent)}, once${earned}.`
  return createTourEventStep(
    `cleared ${formatCount(results, 'old tool result')} from the prompt (the log keeps them): ${formatSizes(tokensBefore, tokensAfter)}.${cost}`,
    { kind: 'cleared', results, tokensBefore, tokensAfter },
  )
}

function toCacheBreakStep({
  reason,
  tokensLost,
  moneyLost,
  sentence,
}: EventOf<'cache-break'>['event']): TourStep {
  const data = { kind: 'cache-break', reason: reason.kind, tokensLost, moneyLost }
  if (reason.kind !== 'expired') return createTourEventStep(sentence, data)
  const cost = moneyLost === null ? '' : `, for ${formatCentsOrDollars(moneyLost)} more`
  return createTourEventStep(
    `a cache break, and why: ${Math.round(reason.gapMs / 60_000)} minutes passed, but the provider keeps the beginning of a prompt only for ${reason.ttl === '1h' ? '1 hour' : '5 minutes'}. ${formatTokens(tokensLost)} tokens were processed again${cost}.`,
    data,
  )
}

function toCompactionStep(
  { tokensBefore, tokensAfter, receipt, usage, cause, summarizer }: EventOf<'compact'>['compaction'],
  restored: readonly string[],
): TourStep {
  const what =
    summarizer === 'notes'
      ? 'the notes that Tidemark keeps beside it, without asking the model'
      : `a summary of ${formatTokens(usage.output)} tokens`
  const entries = formatCount(receipt.summarised.length, 'entry', 'entries')
  const back = describeRestored(restored)
  return createTourEventStep(
    `compacted. ${entries} of the conversation became ${what}: ${formatSizes(tokensBefore, tokensAfter)}.${back === '' ? '' : ` Brought back as they are now: ${back}.`}`,
    { kind: 'compacted', cause, tokensBefore, tokensAfter, restored },
  )
}

/** Describes what was attached again after a compaction: the todo list, and files as they are on disk. */
function describeRestored(keys: readonly string[]): string {
  const files = keys.flatMap((key) => (key.startsWith('files:') ? [basename(key)] : []))
  const shown = files.slice(0, 2).join(', ')
  const more = files.length > 2 ? ` and ${files.length - 2} more` : ''
  return [
    ...(keys.some((key) => key.startsWith('todos:')) ? ['the todo list'] : []),
    ...(files.length === 0 ? [] : [`${formatCount(files.length, 'file')} (${shown}${more})`]),
  ].join(', ')
}

function formatSizes(before: number, after: number): string {
  return `${formatTokens(before)} → ${formatTokens(after)} tokens`
}
