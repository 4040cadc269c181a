/**
 * A model's reply as it arrives, in neutral events. Every stream ends in exactly one `reply-ended` or
 * `reply-failed`, and nothing comes after it.
 */
import type { Block } from '../conversation/block.ts'
import type { Json, JsonObject } from '../conversation/json.ts'
import type { AssistantMessage, RawBlock } from '../conversation/record.ts'
import type { Failure } from './failure.ts'

export type ReplyEvent =
  | ReplyStarted
  | BlockStarted
  | BlockGrew
  | BlockEnded
  | ReplyUpdated
  | ReplyAlive
  | ReplyOther
  | ReplyEnded
  | ReplyFailed

/** The head of the reply: id, model, the usage known so far. Its content comes with the blocks. */
export interface ReplyStarted {
  readonly type: 'reply-started'
  readonly message: AssistantMessage
}

/** A block as first announced; `raw` where its text would not survive parse and stringify. */
export interface BlockStarted {
  readonly type: 'block-started'
  readonly index: number
  readonly block: Block
  readonly raw?: string
}

export interface BlockGrew {
  readonly type: 'block-grew'
  readonly index: number
  readonly delta: BlockDelta
}

export type BlockDelta =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking'; readonly text: string; readonly estimatedTokens?: number }
  | { readonly kind: 'signature'; readonly signature: string }
  /** A piece of the JSON text of `input`, as the model wrote it. */
  | { readonly kind: 'input'; readonly json: string }
  | { readonly kind: 'citation'; readonly citation: Json; readonly raw?: string }
  /** Fields that replace those of the block. */
  | { readonly kind: 'fields'; readonly fields: JsonObject }
  /** A kind the codec does not know, untouched. */
  | { readonly kind: 'other'; readonly value: JsonObject }

/** The whole block: what goes into the log. */
export interface BlockEnded {
  readonly type: 'block-ended'
  readonly index: number
  readonly block: Block
  /** The exact text of the block, only where it would not survive parse and stringify. */
  readonly raw?: string
  /** The call's input broke off: this is all of it that came, `input` is empty, the call must not be run. */
  readonly cutInput?: string
}

/**
 * Fields of the message that are known only now (`stop_reason` …). In both, a value replaces the one before
 * and null leaves it: figures are cumulative and never added up.
 */
export interface ReplyUpdated {
  readonly type: 'reply-updated'
  readonly fields: JsonObject
  readonly usage?: JsonObject
}

/** A sign of life without content. */
export interface ReplyAlive {
  readonly type: 'reply-alive'
}

/** Something the codec does not know, as it came: `name` and `text` from the wire. */
export interface ReplyOther {
  readonly type: 'reply-other'
  readonly name: string
  readonly text: string
}

export interface ReplyEnded {
  readonly type: 'reply-ended'
  readonly reply: Reply
}

/** `reply` is what had arrived; null where that was nothing. */
export interface ReplyFailed {
  readonly type: 'reply-failed'
  readonly failure: Failure
  readonly reply: Reply | null
}

/** A reply put together. */
export interface Reply {
  /** Its content holds the blocks that were ended, in order. */
  readonly message: AssistantMessage
  /** Exact texts of blocks that would not survive parse and stringify, by index in the content. */
  readonly rawBlocks: readonly RawBlock[]
  /** Calls whose input broke off, by index in the content: not to be run. */
  readonly cutInputs: readonly RawBlock[]
  /** Blocks that began and were never ended; empty unless the reply failed. */
  readonly unfinished: readonly OpenBlock[]
  /** Deltas and events the codec did not know. What they would have changed is not in the message. */
  readonly others: readonly Json[]
  /** Figures that were told and make no usage, since one of the totals never came. */
  readonly figures?: JsonObject
}

/** A block while it grows. */
export interface OpenBlock {
  readonly index: number
  readonly block: Block
  readonly raw?: string
  /** JSON text of `input` so far. */
  readonly input: string
  /** JSON text of each citation that came by itself. */
  readonly citations: readonly string[]
}
