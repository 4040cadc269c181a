/** Reads a response in the neutral form, which is that of the Messages API: id, model, content blocks, usage. */
import type { Reply } from '@tidemark/core/engine/reply'
import { isBlock } from '@tidemark/core/log/block'
import { isObject, type Json, type JsonObject } from '@tidemark/core/log/json'
import type { AssistantMessage } from '@tidemark/core/log/record'
import type { ReplyReport } from '@tidemark/core/log/reply-report'
import { hasUsageTotals, readAnthropicReport } from './message-usage.ts'

/** Returns the reply in a message object; null if id, model or content is missing. */
export function readMessageReply(value: JsonObject): Reply | null {
  const head = readMessageHead(value)
  const { content } = value
  if (head === null || !Array.isArray(content) || !content.every(isBlock)) return null
  const { message, partialUsage, report } = head
  const partial = Object.keys(partialUsage).length > 0 ? { figures: partialUsage } : {}
  return {
    ...report,
    message: { ...message, content },
    rawBlocks: [],
    cutInputs: [],
    unfinished: [],
    others: [],
    ...partial,
  }
}

interface MessageHead {
  /** The message with empty content. It has usage only if both input and output tokens are known. */
  readonly message: AssistantMessage
  /** Usage fields of a response without input or output tokens; empty if both are known. */
  readonly partialUsage: JsonObject
  readonly report: ReplyReport
}

/**
 * Reads the message object of a response or of `message_start`, without its content. Returns null if id or model is
 * missing.
 */
export function readMessageHead(value: Json | undefined): MessageHead | null {
  if (!isObject(value)) return null
  const { usage, id, model, ...fields } = value
  if (typeof id !== 'string' || id === '' || typeof model !== 'string') return null
  const figures = isObject(usage) ? usage : {}
  const message: AssistantMessage = { id, ...fields, role: 'assistant', model, content: [] }
  const report = readReplyReport(fields, figures)
  return hasUsageTotals(figures)
    ? { message: { ...message, usage: figures }, partialUsage: {}, report }
    : { message, partialUsage: figures, report }
}

/** Returns what a reply reports, from its fields and its usage figures. It has usage only if both totals are known. */
export function readReplyReport(
  fields: { readonly [field: string]: unknown },
  figures: JsonObject,
): ReplyReport {
  return readAnthropicReport({ ...fields, usage: hasUsageTotals(figures) ? figures : undefined })
}
