/**
 * The model behind the simulator: a function from what the model is shown to what it answers. A script sees
 * the prompt as the model would (after compaction blocks, context edits and dropped thinking) and says only
 * what is generated; ids, signatures, usage, stop sequences and `max_tokens` are the simulator's business.
 */
import type { Block, JsonObject, MessageParam, MessagesBody } from '../api.ts'
import type { Fault } from '../faults/fault.ts'

export type Script = (request: ScriptRequest, context: ScriptContext) => Reply | Promise<Reply>

export interface ScriptRequest {
  /** `compaction` where the provider itself asks for a summary; `instructions` is then the prompt for it. */
  readonly kind: 'message' | 'compaction'
  readonly instructions: string | null
  readonly model: string
  readonly maxTokens: number
  readonly system: readonly Block[]
  readonly tools: readonly JsonObject[]
  readonly messages: readonly MessageParam[]
  /** The request as it came, for what is not said above. */
  readonly body: MessagesBody
  readonly headers: Readonly<Record<string, string>>
}

export interface ScriptContext {
  /** Requests this simulator has answered before, 0 for the first. */
  readonly index: number
  /** Responses of the model in the conversation so far, 0 in the first turn. */
  readonly turn: number
  readonly inputTokens: number
  /** The same sequence of numbers in [0, 1) in every run with the same seed. */
  readonly random: () => number
  /** Milliseconds since 1970 on the simulator's clock. */
  readonly now: number
}

export type StopReason =
  | 'end_turn'
  | 'max_tokens'
  | 'stop_sequence'
  | 'tool_use'
  | 'pause_turn'
  | 'refusal'
  | 'model_context_window_exceeded'

/** What the model writes. Ids and signatures are filled in where they are left out. */
export type ReplyBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string }
  | { readonly type: 'redacted_thinking'; readonly data?: string }
  | { readonly type: 'tool_use'; readonly name: string; readonly input: JsonObject; readonly id?: string }
  | Block

export interface Reply {
  readonly blocks: readonly ReplyBlock[]
  /** `tool_use` where a call is among the blocks, else `end_turn`, unless said otherwise. */
  readonly stopReason?: StopReason
  readonly stopSequence?: string
  readonly stopDetails?: JsonObject
  readonly delays?: Delays
  readonly fault?: Fault
}

export interface Delays {
  /** Before the first byte. */
  readonly startMs?: number
  /** Before each block but the first. */
  readonly blockMs?: number
  /** Between the pieces of a block. */
  readonly pieceMs?: number
}
