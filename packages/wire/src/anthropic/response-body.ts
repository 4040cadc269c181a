/** Decodes and encodes a Messages API response that is one JSON body, not a stream. */
import type { Reply } from '@tidemark/core/engine/reply'
import {
  findJsonMember,
  findUnstableJsonText,
  isObject,
  omitUndefined,
  parseJson,
  splitJsonArray,
  survivesJsonRoundTrip,
} from '@tidemark/core/log/json'
import { createFailure } from '../failure/classify-failure.ts'
import { readMessageReply } from '../providers/message-object.ts'
import type { DecodeBodyResult } from '../providers/provider-codec.ts'
import { readAnthropicFailure } from './anthropic-errors.ts'

/** Decodes a body, or classifies it as a failure if it is an error or not a message. Keeps exact texts in `rawBlocks`. */
export function decodeResponseBody(text: string): DecodeBodyResult {
  const body = parseJson(text)
  if (!isObject(body)) return badReply('The response body is not a JSON object')
  if (body.type === 'error') return { ok: false, failure: readAnthropicFailure({ body: text }) }
  const reply = readMessageReply(body)
  return reply === null
    ? badReply('The response body is not a message: it must have id, model and content')
    : { ok: true, reply: { ...reply, rawBlocks: findRawBlocks(text) } }
}

/**
 * Encodes a reply as a JSON response body. A tool call whose input is incomplete gets the input `{}`, since JSON needs
 * a value.
 */
export function encodeResponseBody({ message, rawBlocks, figures }: Reply): string {
  const { content, ...fields } = { ...message, ...omitUndefined({ usage: message.usage ?? figures }) }
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const exact = new Map(rawBlocks.map(({ index, text }) => [index, text]))
  const texts = blocks.map((block, index) => exact.get(index) ?? JSON.stringify(block))
  return `${JSON.stringify({ type: 'message', ...fields }).slice(0, -1)},"content":[${texts.join(',')}]}`
}

function findRawBlocks(text: string): Reply['rawBlocks'] {
  if (survivesJsonRoundTrip(text)) return []
  return splitJsonArray(findJsonMember(text, 'content') ?? '[]').flatMap((element, index) => {
    const raw = findUnstableJsonText(element)
    return raw === undefined ? [] : [{ index, text: raw }]
  })
}

function badReply(message: string): DecodeBodyResult {
  return { ok: false, failure: createFailure('bad-reply', message) }
}
