/**
 * Encodes a model call as a request of Chat Completions. Successive responses become one message. Each tool result is a
 * separate message right after the calls, as the API requires.
 */
import type { TracedMessage } from '@tidemark/core/context/flatten-context'
import type { ModelStreamInput } from '@tidemark/core/engine/ports'
import {
  type Block,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  readBlockOrigin,
  type ToolResultBlock,
  type ToolUseBlock,
  toBlocks,
} from '@tidemark/core/log/block'
import { findJsonMember, isJsonObject, isObject, type Json, type JsonObject } from '@tidemark/core/log/json'
import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import type { EncodeCallOptions, EncodedRequest } from '../providers/provider-codec.ts'
import type { Dialect } from './dialects.ts'
import { type BodySpelling, encodeOpenaiBody, type RequestFront } from './incremental-body.ts'
import {
  CHAT_ONLY_TYPES,
  FAILED_NOTE,
  readClientRole,
  readCustomToolInput,
  readOpenaiItem,
  toDataUrl,
} from './input-items.ts'
import {
  LIMIT_FIELD_PARAMETER,
  readNeutralSettings,
  readNeutralTool,
  SYSTEM_ROLE_PARAMETER,
  spellToolChoice,
} from './request-settings.ts'

export function encodeChatCall(
  call: ModelStreamInput,
  options: EncodeCallOptions,
  dialect: Dialect,
): WorkInSteps<EncodedRequest> {
  return encodeOpenaiBody(call, options, createSpelling(dialect))
}

function createSpelling(dialect: Dialect): BodySpelling {
  return {
    list: 'messages',
    toFields: (front) => toFields(front, dialect),
    toSystemItems: ({ system, parameters }) =>
      system.length === 0
        ? []
        : [{ role: parameters[SYSTEM_ROLE_PARAMETER] ?? dialect.system, content: joinTexts(system) }],
    toItems(messageAt, index) {
      const message = messageAt(index)
      if (message === undefined) return []
      if (message.message.role !== 'assistant') return toInputMessages(message.message, dialect)
      if (messageAt(index - 1)?.message.role === 'assistant') return []
      return [toAssistantMessage(listRun(messageAt, index), dialect)]
    },
  }
}

/** Returns the responses from `index` on, up to the next message that is not a response. */
function listRun(
  messageAt: (index: number) => TracedMessage | undefined,
  index: number,
): readonly TracedMessage[] {
  const run: TracedMessage[] = []
  for (let at = index; messageAt(at)?.message.role === 'assistant'; at += 1) {
    const message = messageAt(at)
    if (message !== undefined) run.push(message)
  }
  return run
}

function toFields({ model, parameters, tools }: RequestFront, dialect: Dialect): JsonObject {
  const { maxOutput, effort, thinks, toolChoice, others } = readNeutralSettings(parameters)
  const level = effort ?? (thinks ? null : 'none')
  return {
    model,
    ...(maxOutput === null
      ? {}
      : { [String(parameters[LIMIT_FIELD_PARAMETER] ?? dialect.maxOutput)]: maxOutput }),
    ...(level === null || dialect.effort === null ? {} : { [dialect.effort]: level }),
    ...(toolChoice === null || tools.length === 0 ? {} : spellToolChoice(toolChoice, toNamedChoice)),
    ...others,
    ...(tools.length === 0 ? {} : { tools: tools.map((tool) => toTool(tool, dialect)) }),
  }
}

function toNamedChoice(name: string): JsonObject {
  return { type: 'function', function: { name } }
}

function toTool(tool: JsonObject, { name }: Dialect): JsonObject {
  const parts = readNeutralTool(tool)
  if (parts === null) return tool
  return { type: 'function', function: name === 'openai' ? { ...parts, strict: false } : parts }
}

function joinTexts(blocks: readonly Block[]): string {
  return blocks.map((block) => (isTextBlock(block) ? block.text : JSON.stringify(block))).join('\n\n')
}

/** Tool results come first, because the API accepts nothing between a call and its result. */
function toInputMessages(
  { role, content }: TracedMessage['message'],
  dialect: Dialect,
): readonly JsonObject[] {
  const blocks = toBlocks(content)
  if (role === 'system')
    return [{ role: readClientRole(blocks) ?? dialect.system, content: joinTexts(blocks) }]
  const results = blocks.filter(isToolResult)
  const parts = [...results.flatMap(listMedia), ...blocks.filter((block) => !isToolResult(block))].map(toPart)
  return [
    ...results.map(toToolMessage),
    ...(parts.length === 0 ? [] : [{ role: 'user', content: toContent(parts) }]),
  ]
}

function toToolMessage({ tool_use_id: id, content = '', is_error: isError }: ToolResultBlock): JsonObject {
  const text = typeof content === 'string' ? content : joinTexts(content.filter((block) => !isMedia(block)))
  return { role: 'tool', tool_call_id: id, content: (isError === true ? FAILED_NOTE : '') + text }
}

/** Lists the images of a tool result. A tool message can only have text, so they follow in a user message. */
function listMedia({ content }: ToolResultBlock): readonly Block[] {
  return Array.isArray(content) ? content.filter(isMedia) : []
}

function isMedia({ type, source }: Block): boolean {
  return (type === 'image' || type === 'document') && isObject(source)
}

function toContent(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  const [only] = parts
  return parts.length === 1 && typeof only?.text === 'string' && Object.keys(only).length === 2
    ? only.text
    : parts
}

function toPart(block: Block): JsonObject {
  const own = readOpenaiItem(block)
  if (own !== null && (CHAT_ONLY_TYPES.has(String(own.type)) || own.type === 'input_audio')) return own
  if (isTextBlock(block)) return { type: 'text', text: block.text }
  const { title } = block
  const source = block.source as Json | undefined
  const url = isJsonObject(source) ? toDataUrl(source) : null
  if (block.type === 'image' && url !== null) return { type: 'image_url', image_url: { url } }
  if (block.type === 'document' && url !== null) {
    const filename = typeof title === 'string' ? title : 'document.pdf'
    return { type: 'file', file: { filename, file_data: url } }
  }
  return { type: 'text', text: JSON.stringify(block) }
}

function toAssistantMessage(run: readonly TracedMessage[], dialect: Dialect): JsonObject {
  const parts = run.flatMap(({ message, raw }) =>
    toBlocks(message.content).map((block, index) => ({ block, raw: raw?.get(index) })),
  )
  const texts = parts.flatMap(({ block }) => (isTextBlock(block) ? [block.text] : []))
  const calls = parts.flatMap(({ block, raw }) => (isToolUse(block) ? [toCall(block, raw)] : []))
  return {
    role: 'assistant',
    content: texts.length === 0 && calls.length > 0 ? null : texts.join('\n\n'),
    ...toReasoning(
      parts.map(({ block }) => block),
      dialect,
    ),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }
}

function toCall(block: ToolUseBlock, raw: string | undefined): JsonObject {
  const { id, name, input } = block
  const own = readOpenaiItem(block)
  if (own?.type === 'custom')
    return { id, type: 'custom', custom: { name, input: readCustomToolInput(input) } }
  if (typeof own?.arguments === 'string')
    return { id, type: 'function', function: { name, arguments: own.arguments } }
  const exact = raw === undefined ? undefined : findJsonMember(raw, 'input')
  return { id, type: 'function', function: { name, arguments: exact ?? JSON.stringify(input) } }
}

/** Returns the fields in which reasoning is sent back, byte for byte, to the server that created it. */
function toReasoning(blocks: readonly Block[], dialect: Dialect): JsonObject {
  const { name, reasoning, details, returnsReasoning } = dialect
  if (!returnsReasoning || reasoning === null) return {}
  const own = blocks.filter((block) => isThinkingBlock(block) && readBlockOrigin(block)?.vendor === name)
  if (own.length === 0) return {}
  const texts = own.map(({ thinking }) => (typeof thinking === 'string' ? thinking : ''))
  const opaque = own.flatMap((block) => {
    const list = readBlockOrigin(block)?.item?.[details ?? '']
    return Array.isArray(list) ? list : []
  })
  return {
    [reasoning]: texts.join(''),
    ...(details === null || opaque.length === 0 ? {} : { [details]: opaque }),
  }
}
