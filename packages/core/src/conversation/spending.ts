/**
 * What a log keeps of money beside its responses: calls that said nothing to the conversation, and what was lost
 * of the cache. With these the bill of a session can be told from its log alone.
 */
import type { JsonObject } from './json.ts'

/** `model_call`: a call whose response is no part of the conversation. A fork, a summary, a reply that said nothing. */
export interface LoggedCall {
  /** Of the response. */
  readonly id: string
  /** Who asked: `compact`, `session_memory` … */
  readonly source: string
  readonly model: string
  /** As the provider told it. */
  readonly usage: JsonObject
}

/** `cache_loss`: what was processed again that could have been read, as it was judged when it happened. */
export interface CacheLoss {
  /** A break, or the price of an act of the engine's own that was announced. */
  readonly kind: 'break' | 'act'
  readonly source: string
  /** In one word: `tools-added`, `expired` … For an act, what was done. */
  readonly reason: string
  readonly tokens: number
  /** Dollars above the price of a read; null where a price was not known. */
  readonly usd: number | null
  /** The line that a person was told. */
  readonly sentence: string
}
