/**
 * The model behind the simulator: a function from what the model is shown to what it answers. A script sees
 * the prompt as the model would (after compaction blocks, context edits and dropped thinking) and says only
 * what is generated; ids, signatures, usage, stop sequences and `max_tokens` are the simulator's business.
 */

import type { Fault } from '../faults/fault.ts'
import {
  type Block,
  blocksOf,
  isObject,
  type JsonObject,
  type MessageParam,
  type MessagesBody,
  textField,
} from '../protocol/api.ts'

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

// What a script reads off the conversation it is shown.

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input: JsonObject
}

export interface ToolResult {
  readonly id: string
  /** Of the tool; empty where the call is not in the conversation. */
  readonly name: string
  readonly text: string
  readonly isError: boolean
}

/** The user messages after the last response: what the model is to answer. */
export function unansweredIn(messages: readonly MessageParam[]): readonly MessageParam[] {
  const last = messages.findLastIndex((message) => message.role === 'assistant')
  return messages.slice(last + 1).filter((message) => message.role === 'user')
}

/** The text of the unanswered messages, tool results left out. */
export function lastUserText(messages: readonly MessageParam[]): string {
  return unansweredIn(messages).flatMap(textsOf).join('\n')
}

export function textsOf(message: MessageParam): readonly string[] {
  return blocksOf(message.content)
    .filter((block) => block.type === 'text')
    .map((block) => textField(block, 'text'))
}

export function callsOf(message: MessageParam): readonly ToolCall[] {
  if (message.role !== 'assistant') return []
  return blocksOf(message.content).flatMap((block) => callOf(block) ?? [])
}

export function callOf(block: Block): ToolCall | null {
  if (block.type !== 'tool_use') return null
  const input: unknown = block.input
  // What came out of a body is JSON all through.
  const fields = isObject(input) ? (input as JsonObject) : {}
  return { id: textField(block, 'id'), name: textField(block, 'name'), input: fields }
}

/** The results that the last response is answered with, each with the name of its tool. */
export function lastResults(messages: readonly MessageParam[]): readonly ToolResult[] {
  const names = new Map(messages.flatMap(callsOf).map((call) => [call.id, call.name]))
  return unansweredIn(messages).flatMap((message) => resultsOf(message, names))
}

export function resultsOf(
  message: MessageParam,
  names: ReadonlyMap<string, string> = new Map(),
): readonly ToolResult[] {
  return blocksOf(message.content)
    .filter((block) => block.type === 'tool_result')
    .map((block) => {
      const id = textField(block, 'tool_use_id')
      return { id, name: names.get(id) ?? '', text: resultText(block), isError: block.is_error === true }
    })
}

function resultText(block: Block): string {
  const { content } = block
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((each: unknown) => (isObject(each) && typeof each.text === 'string' ? each.text : ''))
    .join('\n')
}

/** At most so many characters, and never half of one. */
export function beginning(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '')
}

// Which session a request belongs to, for scripts that remember how far they came.

export const SESSION_HEADER = 'x-simulator-session'

/** Headers first, then the user id of the metadata; requests that say nothing are one session. */
export function sessionKey({ headers, body }: Pick<ScriptRequest, 'headers' | 'body'>): string {
  const metadata: unknown = body.metadata
  const user = isObject(metadata) && typeof metadata.user_id === 'string' ? metadata.user_id : ''
  return headers[SESSION_HEADER] ?? headers['x-claude-code-session-id'] ?? user
}

// Is the model asked to sum up? By the provider itself, or by a client in its last message.

/**
 * The last text of the request demands `<summary>` tags, and either `<analysis>` before them or a summary of a
 * conversation. Only the last text counts: what lies before it is material, whatever it says.
 */
export function isSummaryRequest(request: Pick<ScriptRequest, 'kind' | 'messages'>): boolean {
  if (request.kind === 'compaction') return true
  const asked = lastText(request)
  if (!asked.includes('<summary>')) return false
  return (
    asked.includes('<analysis>') ||
    (/\bsummari[sz]e\b/i.test(asked) && /\b(?:conversation|session)\b/i.test(asked))
  )
}

/** What asks for the summary: the provider's instructions, or the last text of the client. */
export function summaryPrompt(request: Pick<ScriptRequest, 'kind' | 'instructions' | 'messages'>): string {
  return request.kind === 'compaction' ? (request.instructions ?? '') : lastText(request)
}

function lastText({ messages }: Pick<ScriptRequest, 'messages'>): string {
  return unansweredIn(messages).flatMap(textsOf).at(-1) ?? ''
}

// Says back the last thing the person said: the smallest script there is.

export const echo: Script = (request) => {
  const last = request.messages.findLast((message) => message.role === 'user')
  const said = blocksOf(last?.content)
    .filter((block) => block.type === 'text')
    .map((block) => textField(block, 'text'))
  return { blocks: [{ type: 'text', text: said.join('\n') || 'ok' }] }
}
