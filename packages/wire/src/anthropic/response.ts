/** A Messages API response in one JSON body, decoded and encoded. */
import {
  type AssistantMessage,
  type Block,
  elementsOf,
  type Failure,
  isBlock,
  isObject,
  type Json,
  type JsonObject,
  memberOf,
  type Reply,
  rawUnlessSurvives,
  readJson,
  survives,
  type Usage,
} from '@tidemark/core'
import { failure } from '../failure/classify-failure.ts'
import { given } from '../optional-fields.ts'
import { toFailure } from './failure.ts'

type Response =
  | { readonly ok: true; readonly reply: Reply }
  | { readonly ok: false; readonly failure: Failure }

export function fromResponse(text: string): Response {
  const body = readJson(text)
  if (!isObject(body)) return refused('The response body is not a JSON object')
  if (body.type === 'error') return { ok: false, failure: toFailure({ body: text }) }
  const head = readHead(body)
  const content = blocksOf(body)
  if (head === null || content === null)
    return refused('The response body is not a message: it must have id, model and content')
  const message = { ...head.message, content }
  const { figures } = head
  const partial = Object.keys(figures).length > 0 ? { figures } : {}
  return {
    ok: true,
    reply: { message, rawBlocks: rawBlocks(text), cutInputs: [], unfinished: [], others: [], ...partial },
  }
}

/** The body text. A tool call whose input was cut off gets an empty input: a JSON body cannot express it. */
export function toResponse({ message, rawBlocks: raws, figures }: Reply): string {
  const { content, ...fields } = { ...message, ...given({ usage: message.usage ?? figures }) }
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const exact = new Map(raws.map(({ index, text }) => [index, text]))
  const texts = blocks.map((block, index) => exact.get(index) ?? JSON.stringify(block))
  return `${JSON.stringify({ type: 'message', ...fields }).slice(0, -1)},"content":[${texts.join(',')}]}`
}

function blocksOf({ content }: JsonObject): readonly Block[] | null {
  return Array.isArray(content) && content.every(isBlock) ? content : null
}

function rawBlocks(text: string): Reply['rawBlocks'] {
  if (survives(text)) return []
  return elementsOf(memberOf(text, 'content') ?? '[]').flatMap((element, index) => {
    const raw = rawUnlessSurvives(element)
    return raw === undefined ? [] : [{ index, text: raw }]
  })
}

function refused(message: string): Response {
  return { ok: false, failure: failure('bad-reply', message) }
}

interface Head {
  /** With empty content, and without usage unless both totals are present. */
  readonly message: AssistantMessage
  /** Usage fields that are not yet a complete usage. */
  readonly figures: JsonObject
}

/**
 * The message object of a response or of `message_start`, without its content. Null if it is not a message: without an id
 * the records of a reply could not be grouped.
 */
export function readHead(value: Json | undefined): Head | null {
  if (!isObject(value)) return null
  const { usage, id, model, ...fields } = value
  if (typeof id !== 'string' || id === '' || typeof model !== 'string') return null
  const figures = isObject(usage) ? usage : {}
  const message: AssistantMessage = { id, ...fields, role: 'assistant', model, content: [] }
  return isUsage(figures) ? { message: { ...message, usage: figures }, figures: {} } : { message, figures }
}

function isUsage(figures: JsonObject): figures is JsonObject & Usage {
  return typeof figures.input_tokens === 'number' && typeof figures.output_tokens === 'number'
}
