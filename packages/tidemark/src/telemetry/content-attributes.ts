/**
 * Converts messages, replies, and inputs and results of tools to span attributes of the GenAI conventions, as JSON
 * text. Only used if the host asks for content. Secrets are redacted; images and documents are named by their type
 * only.
 */
import type { ModelStreamInput } from '@tidemark/core/engine/ports'
import type { Reply } from '@tidemark/core/engine/reply'
import { type Block, readStopReason, type ToolResultBlock, toBlocks } from '@tidemark/core/log/block'
import { redactStrings } from '@tidemark/core/text/redact'
import type { SpanAttributes } from './event-attributes.ts'

/** Returns the attributes with the messages and, if there is one, the system prompt of a request. */
export function toRequestAttributes({ payload }: ModelStreamInput): SpanAttributes {
  const { system, messages } = payload
  const sent = messages.map(({ role, content }) => ({ role, parts: toBlocks(content).map(toPart) }))
  return {
    'gen_ai.input.messages': toText(sent),
    ...(system === undefined ? {} : { 'gen_ai.system_instructions': toText(toBlocks(system).map(toPart)) }),
  }
}

export function toReplyAttributes({ message }: Reply): SpanAttributes {
  const parts = toBlocks(message.content).map(toPart)
  const replies = [{ role: 'assistant', parts, finish_reason: readStopReason(message) }]
  return { 'gen_ai.output.messages': toText(replies) }
}

export function toToolArgumentAttributes(input: unknown): SpanAttributes {
  return { 'gen_ai.tool.call.arguments': toText(input) }
}

export function toToolResultAttributes({ content }: ToolResultBlock): SpanAttributes {
  return { 'gen_ai.tool.call.result': toText(toResultParts(content)) }
}

function toResultParts(content: ToolResultBlock['content']): unknown {
  return typeof content === 'string' ? content : toBlocks(content ?? []).map(toPart)
}

/** Converts a content block to a part of a message as the conventions have it. */
function toPart(block: Block): Readonly<Record<string, unknown>> {
  const fields = block as Readonly<Record<string, unknown>>
  switch (block.type) {
    case 'text':
      return { type: 'text', content: fields.text }
    case 'thinking':
      return { type: 'reasoning', content: fields.thinking }
    case 'tool_use':
      return { type: 'tool_call', id: fields.id, name: fields.name, arguments: fields.input }
    case 'tool_result': {
      const { content } = block as ToolResultBlock
      return { type: 'tool_call_response', id: fields.tool_use_id, response: toResultParts(content) }
    }
    default:
      return { type: block.type }
  }
}

function toText(value: unknown): string {
  return JSON.stringify(redactStrings(value)) ?? 'null'
}
