/**
 * Scripts are functions that play the model. This file has their types and helpers to read the conversation. A script
 * sees the prompt as the model would, after compaction blocks, context edits and dropped thinking.
 */

import type { Fault } from '../faults/fault.ts'
import {
  type Block,
  isObject,
  type JsonObject,
  type MessageParam,
  type MessagesBody,
  readTextField,
  toBlocks,
} from '../protocol/messages-request.ts'

/**
 * A script returns what the model generates. The simulator handles ids, signatures, usage, stop sequences and
 * `max_tokens`. If a script throws, the simulator answers with status 500.
 *
 * @example
 * const script: Script = ({ messages }, { turn }) => ({
 *   blocks: [{ type: 'text', text: `Turn ${turn + 1} after ${messages.length} messages.` }],
 * })
 */
export type Script = (request: ScriptRequest, context: ScriptContext) => Reply | Promise<Reply>

export interface ScriptRequest {
  /** `compaction` if the provider's own compaction asks for a summary. */
  readonly kind: 'message' | 'compaction'
  /** The summary prompt of the provider's own compaction; null for a `message`. */
  readonly instructions: string | null
  readonly model: string
  readonly maxTokens: number
  readonly system: readonly Block[]
  readonly tools: readonly JsonObject[]
  readonly messages: readonly MessageParam[]
  /** The body of the request as sent. For OpenAI's APIs, its content in the fields of the Messages API. */
  readonly body: MessagesBody
  readonly headers: Readonly<Record<string, string>>
}

export interface ScriptContext {
  /** Number of API requests before this one; 0 for the first. */
  readonly index: number
  /** Number of assistant turns in the conversation so far; 0 at the start. */
  readonly turn: number
  readonly inputTokens: number
  /** Returns a random number in [0, 1). The same seed gives the same sequence. */
  readonly random: () => number
  /** Current time on the simulator's clock, in milliseconds since 1970. */
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

/** A block that a script generates. The simulator adds ids and signatures that are missing. */
export type ReplyBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string }
  | { readonly type: 'redacted_thinking'; readonly data?: string }
  | { readonly type: 'tool_use'; readonly name: string; readonly input: JsonObject; readonly id?: string }
  | Block

/** The value that a script returns: blocks, stop reason, delays and fault of a response. */
export interface Reply {
  readonly blocks: readonly ReplyBlock[]
  /** Stop reason of the response. Default: `tool_use` if the blocks include a tool call, otherwise `end_turn`. */
  readonly stopReason?: StopReason
  readonly stopSequence?: string
  readonly stopDetails?: JsonObject
  readonly delays?: ReplyDelays
  readonly fault?: Fault
}

export interface ReplyDelays {
  /** Delay before the first byte of the response. */
  readonly startMs?: number
  /** Delay before each block except the first. */
  readonly blockMs?: number
  /** Delay before each delta of a block. */
  readonly pieceMs?: number
}

// Helpers that read the conversation.

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input: JsonObject
}

export interface ToolResult {
  readonly id: string
  /** Name of the called tool; empty if the tool call is not in the conversation. */
  readonly name: string
  readonly text: string
  readonly isError: boolean
}

/** Returns the user messages after the last assistant message, which the model has to answer. */
function findUnansweredMessages(messages: readonly MessageParam[]): readonly MessageParam[] {
  const last = messages.findLastIndex((message) => message.role === 'assistant')
  return messages.slice(last + 1).filter((message) => message.role === 'user')
}

/** Returns the text of the user messages after the last assistant message, without tool results; empty if there is none. */
export function readLastUserText(messages: readonly MessageParam[]): string {
  return findUnansweredMessages(messages).flatMap(listMessageTexts).join('\n')
}

export function listMessageTexts(message: MessageParam): readonly string[] {
  return toBlocks(message.content)
    .filter((block) => block.type === 'text')
    .map((block) => readTextField(block, 'text'))
}

export function listToolCalls(message: MessageParam): readonly ToolCall[] {
  if (message.role !== 'assistant') return []
  return toBlocks(message.content).flatMap((block) => toToolCall(block) ?? [])
}

function toToolCall(block: Block): ToolCall | null {
  if (block.type !== 'tool_use') return null
  const input: unknown = block.input
  // The cast is safe because the block comes from a JSON body.
  const fields = isObject(input) ? (input as JsonObject) : {}
  return { id: readTextField(block, 'id'), name: readTextField(block, 'name'), input: fields }
}

/** Lists the tool results after the last assistant message, each with the name of its tool. */
export function listLastToolResults(messages: readonly MessageParam[]): readonly ToolResult[] {
  const names = new Map(messages.flatMap(listToolCalls).map((call) => [call.id, call.name]))
  return findUnansweredMessages(messages).flatMap((message) => listToolResults(message, names))
}

export function listToolResults(
  message: MessageParam,
  names: ReadonlyMap<string, string> = new Map(),
): readonly ToolResult[] {
  return toBlocks(message.content)
    .filter((block) => block.type === 'tool_result')
    .map((block) => {
      const id = readTextField(block, 'tool_use_id')
      return { id, name: names.get(id) ?? '', text: readResultText(block), isError: block.is_error === true }
    })
}

function readResultText(block: Block): string {
  const { content } = block
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((each: unknown) => (isObject(each) && typeof each.text === 'string' ? each.text : ''))
    .join('\n')
}

/** Returns the first `length` characters, one fewer if the last would be half of a surrogate pair. */
export function takeCharacters(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '')
}

export function containsText(text: string, part: string | RegExp): boolean {
  return typeof part === 'string' ? text.includes(part) : text.search(part) >= 0
}

/** Name of the request header that identifies the session, for scripts that keep progress per session. */
export const SESSION_HEADER = 'x-simulator-session'

/**
 * Returns the session of a request: from a header, otherwise from `metadata.user_id`. Requests without either share
 * one session.
 */
export function readSessionKey({ headers, body }: Pick<ScriptRequest, 'headers' | 'body'>): string {
  const metadata: unknown = body.metadata
  const user = isObject(metadata) && typeof metadata.user_id === 'string' ? metadata.user_id : ''
  return headers[SESSION_HEADER] ?? headers['x-claude-code-session-id'] ?? user
}

/** Matches system prompts of requests whose whole task is a summary, as opencode and pi send them for a compaction. */
const SUMMARIZER_ROLE = /\byou are an? [\w\s]*\b(?:summari[sz]ation assistant|tasked with summari[sz]ing)\b/i

/**
 * Matches requests for a summary without `<summary>` tags: those of opencode and pi, which put the conversation into
 * `<conversation>` tags, and those of older versions of opencode.
 */
const SUMMARY_DEMAND =
  /<\/conversation>[\s\S]*\bsummar|\banchored summary\b|\bprompt for continuing our conversation\b/i

/**
 * Checks whether a request asks for a summary. True for the provider's own compaction. Also true if the last text of
 * the client contains `<summary>`, and either `<analysis>` or words that ask to summarize a conversation; and for
 * compaction requests of opencode and pi, which declare no tools and are recognized by their system prompt or last
 * text.
 */
export function isSummaryRequest(
  request: Pick<ScriptRequest, 'kind' | 'messages'> & Partial<Pick<ScriptRequest, 'system' | 'tools'>>,
): boolean {
  if (request.kind === 'compaction') return true
  const prompt = readLastText(request)
  const { system = [], tools = [] } = request
  const isAlone = tools.length === 0
  if (isAlone && system.some((block) => SUMMARIZER_ROLE.test(readTextField(block, 'text')))) return true
  if (isAlone && SUMMARY_DEMAND.test(prompt)) return true
  if (!prompt.includes('<summary>')) return false
  return (
    prompt.includes('<analysis>') ||
    (/\bsummari[sz]e\b/i.test(prompt) && /\b(?:conversation|session)\b/i.test(prompt))
  )
}

/** Returns the text that asks for a summary: the provider's instructions, or the last text of the client. */
export function readSummaryPrompt(
  request: Pick<ScriptRequest, 'kind' | 'instructions' | 'messages'>,
): string {
  return request.kind === 'compaction' ? (request.instructions ?? '') : readLastText(request)
}

function readLastText({ messages }: Pick<ScriptRequest, 'messages'>): string {
  return findUnansweredMessages(messages).flatMap(listMessageTexts).at(-1) ?? ''
}

/**
 * A script that answers with the text of the last user message, or `ok` if that message has no text.
 *
 * @example
 * const simulator = createSimulator({ script: withSummaries(echo) })
 */
export const echo: Script = (request) => {
  const last = request.messages.findLast((message) => message.role === 'user')
  const texts = last === undefined ? [] : listMessageTexts(last)
  return { blocks: [{ type: 'text', text: texts.join('\n') || 'ok' }] }
}
