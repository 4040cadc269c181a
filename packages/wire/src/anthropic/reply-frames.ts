/**
 * A complete reply as the events, and the frames, that would have streamed it: for replies that arrive in one body, and for
 * gateways and simulators.
 */
import {
  type Block,
  type BlockDelta,
  type BlockEnded,
  elementsOf,
  isBlock,
  type Json,
  type JsonObject,
  memberOf,
  membersOf,
  objectText,
  type Reply,
  type ReplyEvent,
  type ReplyUpdated,
  rawUnlessSurvives,
  readJson,
  type Usage,
  withMember,
} from '@tidemark/core'
import type { Frame } from '../http/sse.ts'
import { given } from '../optional-fields.ts'
import { errorObject } from './failure.ts'

/** Known only when the reply is complete: null in `message_start`. */
const LATE_FIELDS = ['stop_reason', 'stop_sequence', 'stop_details', 'context_management']
const LATE_FIGURES = ['output_tokens_details', 'server_tool_use', 'iterations', 'fallback_credit']
/** Usage fields repeated in the last `message_delta`. */
const FINAL_FIGURES = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
  ...LATE_FIGURES,
]

/** The frames of a stream for `reply`. `split` cuts texts and tool inputs into deltas; by default each is one delta. */
export function framesOf(reply: Reply, split: Split = (text) => [text]): readonly Frame[] {
  return eventsOf(reply, split).flatMap(toFrames)
}

export function eventsOf(reply: Reply, split: Split = (text) => [text]): readonly ReplyEvent[] {
  return [
    headOf(reply),
    ...figuresOf(reply),
    ...blocksIn(reply).flatMap((block) => blockEvents(block, split)),
    ...endOf(reply),
  ]
}

/** Incomplete usage cannot be part of `message_start`; a stream sends it after that. */
function figuresOf({ figures }: Reply): readonly ReplyEvent[] {
  return figures === undefined ? [] : [{ type: 'reply-updated', fields: {}, usage: figures }]
}

/** Cuts a text into pieces that give the text when joined. */
type Split = (text: string) => readonly string[]

/** A splitter that cuts after every `size` characters. */
export function every(size: number): Split {
  return (text) =>
    Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size))
}

function headOf({ message }: Reply): ReplyEvent {
  const late = LATE_FIELDS.filter((field) => Object.hasOwn(message, field)).map((field) => [field, null])
  const usage = message.usage === undefined ? {} : { usage: usageAtStart(message.usage) }
  return {
    type: 'reply-started',
    message: { ...message, ...Object.fromEntries(late), content: [], ...usage },
  }
}

function usageAtStart(usage: Usage): Usage {
  const late = LATE_FIGURES.filter((field) => Object.hasOwn(usage, field)).map((field) => [field, null])
  return { ...usage, ...Object.fromEntries(late), output_tokens: Math.min(1, usage.output_tokens) }
}

function endOf(reply: Reply): readonly ReplyEvent[] {
  const { usage, ...message } = reply.message
  const figures = usage === undefined ? {} : { usage: pick(usage, FINAL_FIGURES) }
  const updated: ReplyEvent = { type: 'reply-updated', fields: pick(message, LATE_FIELDS), ...figures }
  return [updated, { type: 'reply-ended', reply }]
}

function pick(from: object, keys: readonly string[]): JsonObject {
  const entries = Object.entries(from).filter((entry): entry is [string, Json] => keys.includes(entry[0]))
  return Object.fromEntries(entries)
}

function blocksIn(reply: Reply): readonly BlockEnded[] {
  const { content } = reply.message
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const raws = new Map(reply.rawBlocks.map(({ index, text }) => [index, text]))
  const cuts = new Map(reply.cutInputs.map(({ index, text }) => [index, text]))
  return blocks.map((block, index) => {
    return {
      type: 'block-ended',
      index,
      block,
      ...given({ raw: raws.get(index), cutInput: cuts.get(index) }),
    }
  })
}

function blockEvents(ended: BlockEnded, split: Split): readonly ReplyEvent[] {
  const { index } = ended
  const { deltas, ...start }: Opening = openingOf(ended, split)
  const grew = deltas.map((delta): ReplyEvent => ({ type: 'block-grew', index, delta }))
  return [{ type: 'block-started', index, ...start }, ...grew, ended]
}

// A finished block split into the empty block that starts it and the deltas that fill it.

interface Opening {
  readonly block: Block
  readonly raw?: string
  readonly deltas: readonly BlockDelta[]
}

function openingOf(ended: BlockEnded, split: Split): Opening {
  const { block } = ended
  if (block.type === 'text' && typeof block.text === 'string') return textOpening(ended, split)
  if (block.type === 'thinking' && typeof block.thinking === 'string') return thinkingOpening(ended, split)
  if (block.type.endsWith('tool_use') && block.input !== undefined) return callOpening(ended, split)
  if (block.type === 'compaction' && !block.signature) return compactionOpening(ended)
  return hollow(ended, {}, [])
}

function textOpening(ended: BlockEnded, split: Split): Opening {
  const { text, citations } = ended.block
  const pieces = piecesOf(text, split).map((piece): BlockDelta => ({ kind: 'text', text: piece }))
  if (!Array.isArray(citations) || citations.length === 0) return hollow(ended, { text: '' }, pieces)
  return hollow(ended, { text: '', citations: [] }, [...pieces, ...citationDeltas(ended)])
}

function citationDeltas({ block, raw }: BlockEnded): readonly BlockDelta[] {
  const text = (raw === undefined ? undefined : memberOf(raw, 'citations')) ?? JSON.stringify(block.citations)
  return elementsOf(text).map((each): BlockDelta => {
    return { kind: 'citation', citation: readJson(each) ?? null, ...given({ raw: rawUnlessSurvives(each) }) }
  })
}

/** Thinking without text has only a signature to send. */
function thinkingOpening(ended: BlockEnded, split: Split): Opening {
  const { thinking, signature } = ended.block
  const pieces = piecesOf(thinking, split).map((text): BlockDelta => ({ kind: 'thinking', text }))
  if (typeof signature !== 'string') return hollow(ended, { thinking: '' }, pieces)
  return hollow(ended, { thinking: '', signature: '' }, [...pieces, { kind: 'signature', signature }])
}

/** The API sends an empty first piece of input, and nothing else if the input is empty. */
function callOpening(ended: BlockEnded, split: Split): Opening {
  const { block, raw, cutInput } = ended
  const exact = raw === undefined ? undefined : memberOf(raw, 'input')
  const text = cutInput ?? exact ?? JSON.stringify(block.input)
  const pieces = text === '{}' ? [] : piecesOf(text, split)
  const deltas = ['', ...pieces].map((json): BlockDelta => ({ kind: 'input', json }))
  return hollow(ended, { input: {} }, deltas)
}

const IN_COMPACTION_DELTA = new Set(['content', 'encrypted_content'])

/** The form of threshold compaction: one delta with everything. A signed block has no deltas. */
function compactionOpening(ended: BlockEnded): Opening {
  const fields: JsonObject = Object.fromEntries(
    Object.entries(ended.block).filter((entry): entry is [string, Json] => IN_COMPACTION_DELTA.has(entry[0])),
  )
  const empty = Object.fromEntries(Object.keys(fields).map((key) => [key, null]))
  return hollow(ended, empty, [{ kind: 'fields', fields }])
}

function piecesOf(text: unknown, split: Split): readonly string[] {
  return typeof text === 'string' && text !== '' ? split(text) : []
}

function hollow({ block, raw }: BlockEnded, fields: JsonObject, deltas: readonly BlockDelta[]): Opening {
  if (raw === undefined) return { block: { ...block, ...fields, type: block.type }, deltas }
  const members = Object.entries(fields).reduce(
    (all, [key, value]) => withMember(all, key, JSON.stringify(value)),
    membersOf(raw),
  )
  const text = objectText(members)
  const start = readJson(text)
  return { block: isBlock(start) ? start : block, ...given({ raw: rawUnlessSurvives(text) }), deltas }
}

// Neutral events as frames of the Messages API.

/** Fields of `message_delta` inside its `delta`; the others are beside it. */
const IN_DELTA = new Set(['stop_reason', 'stop_sequence', 'stop_details', 'container'])

export function toFrames(event: ReplyEvent): readonly Frame[] {
  switch (event.type) {
    case 'reply-started':
      return [frame('message_start', `"message":${JSON.stringify({ type: 'message', ...event.message })}`)]
    case 'block-started':
      return [
        frame(
          'content_block_start',
          `"index":${event.index},"content_block":${event.raw ?? JSON.stringify(event.block)}`,
        ),
      ]
    case 'block-grew':
      return [frame('content_block_delta', `"index":${event.index},"delta":${deltaText(event.delta)}`)]
    case 'block-ended':
      return [frame('content_block_stop', `"index":${event.index}`)]
    case 'reply-updated':
      return [frame('message_delta', updateText(event))]
    case 'reply-alive':
      return [frame('ping')]
    case 'reply-other':
      return [{ ...(event.name === '' ? {} : { event: event.name }), data: event.text }]
    case 'reply-ended':
      return [frame('message_stop')]
    case 'reply-failed':
      return [frame('error', `"error":${JSON.stringify(errorObject(event.failure))}`)]
  }
}

function frame(event: string, members = ''): Frame {
  return { event, data: `{"type":"${event}"${members === '' ? '' : `,${members}`}}` }
}

function deltaText(delta: BlockDelta): string {
  if (delta.kind === 'citation')
    return `{"type":"citations_delta","citation":${delta.raw ?? JSON.stringify(delta.citation)}}`
  return JSON.stringify(deltaObject(delta))
}

function deltaObject(delta: Exclude<BlockDelta, { kind: 'citation' }>): JsonObject {
  switch (delta.kind) {
    case 'text':
      return { type: 'text_delta', text: delta.text }
    case 'thinking':
      return {
        type: 'thinking_delta',
        thinking: delta.text,
        ...given({ estimated_tokens: delta.estimatedTokens }),
      }
    case 'signature':
      return { type: 'signature_delta', signature: delta.signature }
    case 'input':
      return { type: 'input_json_delta', partial_json: delta.json }
    case 'fields':
      return { type: 'compaction_delta', ...delta.fields }
    case 'other':
      return delta.value
  }
}

function updateText({ fields, usage }: ReplyUpdated): string {
  const all = Object.entries(fields)
  const inside = all.filter(([key]) => IN_DELTA.has(key))
  const beside = all.filter(([key]) => !IN_DELTA.has(key))
  const members = { delta: Object.fromEntries(inside), ...given({ usage }) }
  return JSON.stringify({ ...members, ...Object.fromEntries(beside) }).slice(1, -1)
}
