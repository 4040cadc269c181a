/**
 * Decides which events of a session become span events, and with which attributes. Attributes are numbers and codes,
 * never text of the conversation, hooks or provider, because an exporter may send them anywhere. docs/telemetry.md has
 * the table.
 */
import type { CommittedCompaction, TurnEvent } from '@tidemark/core/engine/events'
import type { AttributeValue } from './trace-scope.ts'

export type SpanAttributes = Record<string, AttributeValue>

interface SpanEvent {
  readonly name: string
  readonly attributes: SpanAttributes
}

type EventTable = {
  readonly [Type in TurnEvent['type']]?: (
    event: Extract<TurnEvent, { readonly type: Type }>,
  ) => readonly [name: string, attributes: Readonly<Record<string, AttributeValue | null>>]
}

const TABLE: EventTable = {
  microcompact: ({ way, clearing, tokensBefore, tokensAfter }) => [
    'microcompact',
    { way, freed_tokens: clearing.freedTokens, tokens_before: tokensBefore, tokens_after: tokensAfter },
  ],
  'compact-failed': ({ trigger, cause, refused }) => [
    'compact_failed',
    { trigger, cause, reason: refused.reason },
  ],
  'sm-compact': ({ tokensBefore, tokensAfter, by, fallbackReason, kept }) => [
    'sm_compact',
    {
      by,
      fallback_reason: fallbackReason,
      tokens_before: tokensBefore,
      tokens_after: tokensAfter,
      kept_tokens: kept.tokens,
    },
  ],
  'sm-compact-refused': ({ reason }) => ['sm_compact_refused', { reason }],
  'sm-compact-threshold-exceeded': ({ tokens, threshold }) => [
    'sm_compact_threshold_exceeded',
    { tokens, threshold },
  ],
  'cache-break': ({ event }) => [
    'cache_break',
    {
      reason: event.reason.kind,
      expected_tokens: event.expected,
      read_tokens: event.read,
      lost_tokens: event.tokensLost,
      lost_usd: event.moneyLost,
    },
  ],
  'act-paid': ({ act }) => [
    'own_rewrite_paid',
    { rewritten_tokens: act.tokensRewritten, spent_usd: act.moneySpent },
  ],
  fork: ({ fork }) => [
    'fork',
    { source: fork.source, expected_tokens: fork.expected, read_tokens: fork.read, hit_rate: fork.share },
  ],
  'context-restored': ({ keys, skipped, shed }) => [
    'post_compact_file_restore_success',
    { restored: keys.length, skipped: skipped.length, shed: shed.length },
  ],
  'restore-failed': ({ carrier }) => ['post_compact_file_restore_error', { source: carrier }],
  'reactive-compact': () => ['reactive_compact', {}],
  'breaker-open': ({ failures }) => ['breaker_open', { failures }],
  // The name of a hook in a settings file is its command, which may contain any text.
  'veto-overruled': () => ['veto_overruled', {}],
  'hook-failed': () => ['hook_failed', {}],
  'media-dropped': ({ items }) => ['media_dropped', { items }],
  'thinking-dropped': ({ responses }) => ['thinking_dropped', { responses }],
  'reply-dropped': ({ cause }) => ['reply_dropped', { reason: cause.kind }],
  'answer-continued': ({ part }) => ['answer_continued', { part }],
  'spill-failed': () => ['spill_failed', {}],
  'accounting-failed': () => ['accounting_failed', {}],
  retrying: ({ cause, delayMs, attempt }) => ['retrying', { reason: cause.kind, delay_ms: delayMs, attempt }],
  undone: ({ kind }) => ['undone', { kind }],
}

/** Returns the span event for an event of a session; null if it has none. */
export function toSpanEvent(event: TurnEvent): SpanEvent | null {
  const describe = TABLE[event.type] as ((event: TurnEvent) => readonly [string, object]) | undefined
  if (describe === undefined) return null
  const [name, attributes] = describe(event)
  return { name: `tidemark.${name}`, attributes: withPrefix('tidemark', attributes) }
}

/** Returns the attributes of the span of a compaction that was committed. */
export function toCompactionAttributes(compaction: CommittedCompaction): SpanAttributes {
  const { usage, link, fallbackReason } = compaction
  return {
    ...withPrefix('tidemark.compaction', {
      outcome: 'committed',
      id: compaction.id,
      trigger: compaction.trigger,
      cause: compaction.cause,
      fired_by: compaction.firedBy,
      summarizer: compaction.summarizer,
      // The rest of the reason may quote the provider's message.
      fallback_reason: fallbackReason === null ? null : (fallbackReason.split(':')[0] ?? null),
      attempts: compaction.steps.length,
      tokens_before: compaction.tokensBefore,
      tokens_after: compaction.tokensAfter,
      records_covered_locally: compaction.recordsCoveredLocally,
      threshold: compaction.threshold,
      source: compaction.source,
      will_retrigger: compaction.willRetrigger,
      turns_since_last: link.turnsBetween,
      is_close_to_last: link.isClose,
    }),
    ...withPrefix('tidemark.compaction.summary', {
      calls: usage.calls,
      input_tokens: usage.input,
      output_tokens: usage.output,
      cache_read_tokens: usage.cacheRead,
      cache_creation_tokens: usage.cacheWritten,
      total_tokens: usage.input + usage.output + usage.cacheRead + usage.cacheWritten,
    }),
    ...withPrefix('tidemark.compaction.content', compaction.metrics),
  }
}

/** Puts a prefix before all names and leaves out what is null. */
function withPrefix(prefix: string, attributes: object): SpanAttributes {
  const known = Object.entries(attributes).filter(([, value]) => value !== null && value !== undefined)
  return Object.fromEntries(known.map(([name, value]) => [`${prefix}.${name}`, value as AttributeValue]))
}
