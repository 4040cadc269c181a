/** Decodes and encodes a Messages API response that is one JSON body, not a stream. */
import type { ModelFailure, Reply } from '@tidemark/core/engine/reply'
import { type Block, isBlock } from '@tidemark/core/log/block'
import {
  findJsonMember,
  findUnstableJsonText,
  isObject,
  type Json,
  type JsonObject,
  omitUndefined,
  parseJson,
  splitJsonArray,
  survivesJsonRoundTrip,
} from '@tidemark/core/log/json'
import type { AssistantMessage, Usage } from '@tidemark/core/log/record'
import { createFailure } from '../failure/classify-failure.ts'
import { toAnthropicFailure } from './anthropic-errors.ts'

type DecodedResponse =
  | { readonly ok: true; readonly reply: Reply }
  | { readonly ok: false; readonly failure: ModelFailure }

export function decodeResponse(text: string): DecodedResponse {
  const body = parseJson(text)
  if (!isObject(body)) return badReply('The response body is not a JSON object')
  if (body.type === 'error') return { ok: false, failure: toAnthropicFailure({ body: text }) }
  const head = readMessageHead(body)
  const content = readContentBlocks(body)
  if (head === null || content === null)
    return badReply('The response body is not a message: it must have id, model and content')
  const message = { ...head.message, content }
  const { partialUsage } = head
  const partial = Object.keys(partialUsage).length > 0 ? { figures: partialUsage } : {}
  return {
    ok: true,
    reply: { message, rawBlocks: findRawBlocks(text), cutInputs: [], unfinished: [], others: [], ...partial },
  }
}

/**
 * Encodes a reply as a JSON response body. A tool call whose input is incomplete gets the input `{}`, since JSON needs
 * a value.
 */
export function encodeResponse({ message, rawBlocks, figures }: Reply): string {
  const { content, ...fields } = { ...message, ...omitUndefined({ usage: message.usage ?? figures }) }
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const exact = new Map(rawBlocks.map(({ index, text }) => [index, text]))
  const texts = blocks.map((block, index) => exact.get(index) ?? JSON.stringify(block))
  return `${JSON.stringify({ type: 'message', ...fields }).slice(0, -1)},"content":[${texts.join(',')}]}`
}

function readContentBlocks({ content }: JsonObject): readonly Block[] | null {
  return Array.isArray(content) && content.every(isBlock) ? content : null
}

function findRawBlocks(text: string): Reply['rawBlocks'] {
  if (survivesJsonRoundTrip(text)) return []
  return splitJsonArray(findJsonMember(text, 'content') ?? '[]').flatMap((element, index) => {
    const raw = findUnstableJsonText(element)
    return raw === undefined ? [] : [{ index, text: raw }]
  })
}

function badReply(message: string): DecodedResponse {
  return { ok: false, failure: createFailure('bad-reply', message) }
}

interface MessageHead {
  /** The message with empty content. It has usage only if both input and output tokens are known. */
  readonly message: AssistantMessage
  /** Usage fields of a response without input or output tokens; empty if both are known. */
  readonly partialUsage: JsonObject
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
  return isCompleteUsage(figures)
    ? { message: { ...message, usage: figures }, partialUsage: {} }
    : { message, partialUsage: figures }
}

function isCompleteUsage(figures: JsonObject): figures is JsonObject & Usage {
  return typeof figures.input_tokens === 'number' && typeof figures.output_tokens === 'number'
}
