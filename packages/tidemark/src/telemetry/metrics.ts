/**
 * The metrics of sessions: those of the GenAI conventions for model calls, turns and tools, and Tidemark's own for
 * compactions, the prompt cache and cost. Attributes have few values: no session id, no text.
 */
import type { Counter, Histogram, Meter, Attributes as MetricAttributes } from '@opentelemetry/api'
import type { CommittedCompaction, TurnEvent } from '@tidemark/core/engine/events'
import type { ObservedSession } from './telemetry.ts'

export interface MetricInstruments {
  readonly tokenUsage: Histogram
  readonly callDuration: Histogram
  readonly firstChunk: Histogram
  readonly turnDuration: Histogram
  readonly toolDuration: Histogram
  readonly compactions: Counter
  readonly compactionDuration: Histogram
  readonly compactionTokens: Histogram
  readonly compactionContent: Histogram
  readonly summaryTokens: Counter
  readonly clearedTokens: Counter
  readonly cacheBreaks: Counter
  readonly cacheLostTokens: Counter
  readonly retries: Counter
  readonly cost: Counter
}

const TOKEN_BUCKETS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304]
const SECOND_BUCKETS = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
]

export function createInstruments(meter: Meter): MetricInstruments {
  const tokens = (name: string, description: string): Histogram =>
    meter.createHistogram(name, {
      description,
      unit: '{token}',
      advice: { explicitBucketBoundaries: TOKEN_BUCKETS },
    })
  const seconds = (name: string, description: string): Histogram =>
    meter.createHistogram(name, {
      description,
      unit: 's',
      advice: { explicitBucketBoundaries: SECOND_BUCKETS },
    })
  const count = (name: string, unit: string, description: string): Counter =>
    meter.createCounter(name, { description, unit })
  return {
    tokenUsage: tokens('gen_ai.client.token.usage', 'Number of input and output tokens used.'),
    callDuration: seconds('gen_ai.client.operation.duration', 'Duration of model calls.'),
    firstChunk: seconds('gen_ai.client.operation.time_to_first_chunk', 'Time to the first part of a reply.'),
    turnDuration: seconds('gen_ai.invoke_agent.duration', 'Duration of turns.'),
    toolDuration: seconds('gen_ai.execute_tool.duration', 'Duration of tool calls, with their hooks.'),
    compactions: count('tidemark.compaction.count', '{compaction}', 'Compactions, committed and failed.'),
    compactionDuration: seconds('tidemark.compaction.duration', 'Duration of committed compactions.'),
    compactionTokens: tokens('tidemark.compaction.tokens', 'Context before and after a compaction.'),
    compactionContent: tokens(
      'tidemark.compaction.content.tokens',
      'Context before a compaction, by kind of content.',
    ),
    summaryTokens: count('tidemark.compaction.summary.tokens', '{token}', 'Tokens of summary calls.'),
    clearedTokens: count('tidemark.clearing.tokens', '{token}', 'Tokens of cleared tool results.'),
    cacheBreaks: count('tidemark.cache.break.count', '{break}', 'Cache breaks that were not expected.'),
    cacheLostTokens: count('tidemark.cache.break.tokens', '{token}', 'Tokens lost by cache breaks.'),
    retries: count('tidemark.retry.count', '{retry}', 'Requests that were sent again after a fault.'),
    cost: count('tidemark.cost', 'USD', 'Cost of model calls whose price is known.'),
  }
}

interface CountedSession {
  readonly session: Pick<ObservedSession, 'hasTool'>
  readonly instruments: MetricInstruments
}

/**
 * Returns the name of a tool for metrics. Invented names are replaced, because they would create attribute values
 * without limit.
 */
export function toMetricToolName({ session }: Pick<CountedSession, 'session'>, name: string): string {
  return session.hasTool(name) ? name : OTHER_TOOL
}

/** The name for all tools that do not exist, following the OpenTelemetry convention for unlisted values. */
const OTHER_TOOL = '_OTHER'

/**
 * Adds an event of a session to the metrics; most events change none. `base`: the attributes that all metrics of the
 * session have.
 */
export function countInMetrics(observer: CountedSession, event: TurnEvent, base: MetricAttributes): void {
  const { instruments } = observer
  switch (event.type) {
    case 'compact':
      countCompaction(observer, event.compaction, base)
      break
    case 'compact-failed':
      instruments.compactions.add(1, {
        ...base,
        'tidemark.compaction.trigger': event.trigger,
        'tidemark.compaction.cause': event.cause,
        'error.type': event.refused.reason,
      })
      break
    case 'microcompact':
      instruments.clearedTokens.add(Math.max(0, event.clearing.freedTokens), {
        ...base,
        'tidemark.clearing.way': event.way,
      })
      break
    case 'cache-break': {
      const attributes = { ...base, 'tidemark.cache.break.reason': event.event.reason.kind }
      instruments.cacheBreaks.add(1, attributes)
      instruments.cacheLostTokens.add(Math.max(0, event.event.tokensLost), attributes)
      break
    }
    case 'retrying':
      instruments.retries.add(1, { ...base, 'error.type': event.cause.kind })
      break
    case 'priced': {
      const { total } = event.call.money
      const attributes = { ...base, 'gen_ai.response.model': event.call.model }
      if (total !== null) instruments.cost.add(total, attributes)
      break
    }
  }
}

function countCompaction(
  observer: CountedSession,
  compaction: CommittedCompaction,
  base: MetricAttributes,
): void {
  const { instruments } = observer
  const { usage } = compaction
  const attributes = {
    ...base,
    'tidemark.compaction.trigger': compaction.trigger,
    'tidemark.compaction.cause': compaction.cause,
    'tidemark.compaction.summarizer': compaction.summarizer,
  }
  instruments.compactions.add(1, attributes)
  instruments.compactionDuration.record(compaction.durationMs / 1000, attributes)
  const sizes = { before: compaction.tokensBefore, after: compaction.tokensAfter }
  for (const [moment, tokens] of Object.entries(sizes))
    instruments.compactionTokens.record(tokens, { ...attributes, 'tidemark.compaction.moment': moment })
  for (const [kind, tokens] of nameContentKinds(observer, compaction.metrics))
    instruments.compactionContent.record(tokens, { ...base, 'tidemark.content.kind': kind })
  const spent = {
    input: usage.input,
    output: usage.output,
    cache_read: usage.cacheRead,
    cache_creation: usage.cacheWritten,
  }
  for (const [type, tokens] of Object.entries(spent))
    instruments.summaryTokens.add(tokens, { ...attributes, 'tidemark.token.type': type })
}

const TOOL_KIND = /^(tool_(?:request|result))_(.+)_(tokens)$/s

/** Returns the tokens by kind of content. Tools that do not exist are added up under one name. */
function nameContentKinds(
  observer: CountedSession,
  metrics: CommittedCompaction['metrics'],
): ReadonlyMap<string, number> {
  const named = new Map<string, number>()
  for (const [kind, tokens] of Object.entries(metrics)) {
    const [, group, tool = '', unit] = TOOL_KIND.exec(kind) ?? []
    const name = group === undefined ? kind : `${group}_${toMetricToolName(observer, tool)}_${unit}`
    named.set(name, (named.get(name) ?? 0) + tokens)
  }
  return named
}
