/** What a script reads off the conversation it is shown. */
import { type Block, blocksOf, isObject, type JsonObject, type MessageParam, textField } from '../api.ts'

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
