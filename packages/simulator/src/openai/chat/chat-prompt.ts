/**
 * Converts the messages of a Chat Completions request to units for the prompt cache and to messages for a script. Also
 * drops the oldest messages, as servers do that cut a prompt to the window without an error.
 */
import { type Block, isObject, type JsonObject } from '../../protocol/messages-request.ts'
import {
  CALL_OVERHEAD_TOKENS,
  countTextTokens,
  countToolDefinitionTokens,
  TOKENS_PER_DOCUMENT,
  TOKENS_PER_IMAGE,
  TURN_OVERHEAD_TOKENS,
} from '../../protocol/tokenizer.ts'
import type { PromptUnit } from '../cache/prompt-units.ts'
import type { JsonFields } from '../openai-shape.ts'
import { createToolView, createViewBuilder, type ScriptView, type ViewBuilder } from '../script-view.ts'
import type { ChatBody, ChatMessage } from '../validation/chat-shape.ts'

interface ChatPrompt {
  readonly units: readonly PromptUnit[]
  readonly view: ScriptView
  /** Number of units that are tools. */
  readonly tools: number
}

/** Builds the prompt of a request twice: as units for the cache, and as messages for a script. */
export function buildChatPrompt({ tools, messages }: Pick<ChatBody, 'tools' | 'messages'>): ChatPrompt {
  const declared = tools ?? []
  const toolUnits = declared.map((tool, index) => ({
    path: `tools[${index}]`,
    text: JSON.stringify(tool),
    tokens: countToolDefinitionTokens(tool),
  }))
  const view = createViewBuilder()
  const units: PromptUnit[] = [...toolUnits]
  for (const [index, message] of messages.entries()) {
    units.push(...listMessageUnits(message, `messages[${index}]`))
    addToView(message, view)
  }
  return { units, tools: toolUnits.length, view: view.finish(createToolView(declared)) }
}

/**
 * Drops the oldest messages until the prompt has at most `window` tokens, as Ollama does. System messages and the last
 * message stay. `isCut`: true if any message was dropped.
 */
export function dropOldestMessages(
  body: ChatBody,
  window: number,
): { readonly messages: readonly ChatMessage[]; readonly isCut: boolean } {
  const { messages } = body
  const count = (list: readonly ChatMessage[]): number =>
    buildChatPrompt({ tools: body.tools ?? null, messages: list }).units.reduce(
      (sum, unit) => sum + unit.tokens,
      0,
    )
  let kept = messages
  while (count(kept) > window) {
    const at = kept.findIndex(({ role }, index) => role !== 'system' && index < kept.length - 1)
    if (at < 0) break
    kept = kept.toSpliced(at, 1)
  }
  return { messages: kept, isCut: kept.length < messages.length }
}

/** Lists the units of a message: one for each content part, one for its reasoning, and one for each call. */
export function listMessageUnits(message: ChatMessage, path: string): readonly PromptUnit[] {
  const { role, reasoning_content: reasoning } = message
  const head = `${role} ${message.tool_call_id ?? ''} `
  const extra = role === 'tool' ? CALL_OVERHEAD_TOKENS : TURN_OVERHEAD_TOKENS
  const units: PromptUnit[] = [{ path, text: head, tokens: extra }]
  if (typeof reasoning === 'string')
    units.push({ path, text: `reasoning ${reasoning}`, tokens: countTextTokens(reasoning) })
  for (const [index, part] of toParts(message.content).entries()) {
    const { prompt_cache_breakpoint: mark, ...content } = part
    units.push({
      path: `${path}.content[${index}]`,
      text: typeof content.text === 'string' ? `text ${content.text}` : JSON.stringify(content),
      tokens: countPartTokens(part),
      ...(isObject(mark)
        ? { breakpoint: { ttl: mark.ttl === '12h' || mark.ttl === '30m' ? mark.ttl : null } }
        : {}),
    })
  }
  for (const [index, call] of (message.tool_calls ?? []).entries()) {
    const { id, name, text } = readCall(call)
    units.push({
      path: `${path}.tool_calls[${index}]`,
      text: `call ${id} ${name} ${text}`,
      tokens: CALL_OVERHEAD_TOKENS + countTextTokens(name) + countTextTokens(text),
    })
  }
  return units
}

function toParts(content: ChatMessage['content']): readonly JsonFields[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return content ?? []
}

function countPartTokens(part: JsonFields): number {
  if (typeof part.text === 'string') return countTextTokens(part.text)
  if (part.type === 'image_url') return TOKENS_PER_IMAGE
  return part.type === 'file' ? TOKENS_PER_DOCUMENT : countTextTokens(JSON.stringify(part))
}

interface ChatCall {
  readonly id: string
  readonly name: string
  /** The arguments of a function as written, or the text for a custom tool. */
  readonly text: string
  readonly isCustom: boolean
}

function readCall(call: JsonFields): ChatCall {
  const isCustom = call.type === 'custom'
  const named = isCustom ? call.custom : call.function
  const fields = isObject(named) ? named : {}
  const text = isCustom ? fields.input : fields.arguments
  return { id: String(call.id), name: String(fields.name), text: String(text ?? ''), isCustom }
}

function addToView(message: ChatMessage, view: ViewBuilder): void {
  const blocks = toParts(message.content).map(toBlock)
  if (message.role === 'tool') {
    view.addResult(String(message.tool_call_id), blocks)
    return
  }
  const { reasoning_content: reasoning } = message
  if (typeof reasoning === 'string' && reasoning !== '')
    view.addBlock('assistant', { type: 'thinking', thinking: reasoning })
  view.addMessage(message.role, blocks)
  for (const call of message.tool_calls ?? []) {
    const { id, name, text, isCustom } = readCall(call)
    view.addCall(id, name, isCustom ? { input: text } : parseArguments(text))
  }
}

function parseArguments(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    // The cast is safe because the value was parsed from JSON.
    return isObject(value) ? (value as JsonObject) : {}
  } catch {
    return {}
  }
}

function toBlock(part: JsonFields): Block {
  if (typeof part.text === 'string') return { type: 'text', text: part.text }
  if (part.type === 'refusal') return { type: 'text', text: String(part.refusal) }
  return { ...part, type: part.type === 'image_url' ? 'image' : 'document' }
}
