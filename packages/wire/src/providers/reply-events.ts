/**
 * Converts a complete reply to the events of a stream that would have produced it. Used for replies that arrive as one JSON
 * body, and by gateways and simulators.
 */
import type { BlockDelta, BlockEnded, Reply, ReplyEvent } from '@tidemark/core/engine/reply'
import { type Block, isBlock } from '@tidemark/core/log/block'
import {
  findJsonMember,
  findUnstableJsonText,
  formatJsonObject,
  type Json,
  type JsonObject,
  omitUndefined,
  parseJson,
  splitJsonArray,
  splitJsonObject,
  withJsonMember,
} from '@tidemark/core/log/json'
import { readReplyReport } from './message-object.ts'

/** Message fields that are known only at the end of a reply and are therefore null in `message_start`. */
const FIELDS_KNOWN_AT_END = ['stop_reason', 'stop_sequence', 'stop_details', 'context_management']
const USAGE_KNOWN_AT_END = ['output_tokens_details', 'server_tool_use', 'iterations', 'fallback_credit']
/** Usage fields of `message_start` that the last `message_delta` sends again. */
const USAGE_REPEATED_AT_END = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
  ...USAGE_KNOWN_AT_END,
]

export function replyToEvents(reply: Reply, split: TextSplitter = (text) => [text]): readonly ReplyEvent[] {
  return [
    toStartEvent(reply),
    ...toPartialUsageEvents(reply),
    ...toBlockEndEvents(reply).flatMap((block) => toBlockEvents(block, split)),
    ...toEndEvents(reply),
  ]
}

/**
 * Returns an update event with the usage of a reply that lacks input or output tokens. `message_start` cannot carry it,
 * because it needs both.
 */
function toPartialUsageEvents({ figures }: Reply): readonly ReplyEvent[] {
  return figures === undefined ? [] : [{ type: 'reply-updated', fields: {}, usage: figures }]
}

/** A function that cuts a text into pieces. The joined pieces equal the text. */
export type TextSplitter = (text: string) => readonly string[]

/** Returns a function that cuts a text into pieces of `size` UTF-16 units, which may split a surrogate pair. */
export function createReplySplitter(size: number): TextSplitter {
  return (text) =>
    Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size))
}

function toStartEvent({ message }: Reply): ReplyEvent {
  const late = FIELDS_KNOWN_AT_END.filter((field) => Object.hasOwn(message, field)).map((field) => [
    field,
    null,
  ])
  const usage = message.usage === undefined ? {} : { usage: initialUsage(message.usage) }
  const started = { ...message, ...Object.fromEntries(late), content: [], ...usage }
  return { type: 'reply-started', message: started, report: readReplyReport(started, started.usage ?? {}) }
}

function initialUsage(usage: JsonObject): JsonObject {
  const late = USAGE_KNOWN_AT_END.filter((field) => Object.hasOwn(usage, field)).map((field) => [field, null])
  return { ...usage, ...Object.fromEntries(late), output_tokens: Math.min(1, Number(usage.output_tokens)) }
}

function toEndEvents(reply: Reply): readonly ReplyEvent[] {
  const { usage, ...message } = reply.message
  const figures = usage === undefined ? {} : { usage: pickFields(usage, USAGE_REPEATED_AT_END) }
  const updated: ReplyEvent = {
    type: 'reply-updated',
    fields: pickFields(message, FIELDS_KNOWN_AT_END),
    ...figures,
    report: omitUndefined({ usage: reply.usage, stop: reply.stop }),
  }
  return [updated, { type: 'reply-ended', reply }]
}

function pickFields(from: object, keys: readonly string[]): JsonObject {
  const entries = Object.entries(from).filter((entry): entry is [string, Json] => keys.includes(entry[0]))
  return Object.fromEntries(entries)
}

function toBlockEndEvents(reply: Reply): readonly BlockEnded[] {
  const { content } = reply.message
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const raws = new Map(reply.rawBlocks.map(({ index, text }) => [index, text]))
  const cuts = new Map(reply.cutInputs.map(({ index, text }) => [index, text]))
  return blocks.map((block, index) => {
    return {
      type: 'block-ended',
      index,
      block,
      ...omitUndefined({ raw: raws.get(index), cutInput: cuts.get(index) }),
    }
  })
}

function toBlockEvents(ended: BlockEnded, split: TextSplitter): readonly ReplyEvent[] {
  const { index } = ended
  const { deltas, ...start }: DisassembledBlock = disassembleBlock(ended, split)
  const grew = deltas.map((delta): ReplyEvent => ({ type: 'block-grew', index, delta }))
  return [{ type: 'block-started', index, ...start }, ...grew, ended]
}

// Splitting of a finished content block into an empty block, sent first, and the deltas that fill it.

interface DisassembledBlock {
  readonly block: Block
  readonly raw?: string
  readonly deltas: readonly BlockDelta[]
}

function disassembleBlock(ended: BlockEnded, split: TextSplitter): DisassembledBlock {
  const { block } = ended
  if (block.type === 'text' && typeof block.text === 'string') return disassembleText(ended, split)
  if (block.type === 'thinking' && typeof block.thinking === 'string')
    return disassembleThinking(ended, split)
  if (block.type.endsWith('tool_use') && block.input !== undefined) return disassembleToolUse(ended, split)
  if (block.type === 'compaction' && !block.signature) return disassembleCompaction(ended)
  return emptyBlock(ended, {}, [])
}

function disassembleText(ended: BlockEnded, split: TextSplitter): DisassembledBlock {
  const { text, citations } = ended.block
  const pieces = splitText(text, split).map((piece): BlockDelta => ({ kind: 'text', text: piece }))
  if (!Array.isArray(citations) || citations.length === 0) return emptyBlock(ended, { text: '' }, pieces)
  return emptyBlock(ended, { text: '', citations: [] }, [...pieces, ...toCitationDeltas(ended)])
}

function toCitationDeltas({ block, raw }: BlockEnded): readonly BlockDelta[] {
  const text =
    (raw === undefined ? undefined : findJsonMember(raw, 'citations')) ?? JSON.stringify(block.citations)
  return splitJsonArray(text).map((each): BlockDelta => {
    return {
      kind: 'citation',
      citation: parseJson(each) ?? null,
      ...omitUndefined({ raw: findUnstableJsonText(each) }),
    }
  })
}

/** Splits a thinking block. A block without thinking text has only a signature delta. */
function disassembleThinking(ended: BlockEnded, split: TextSplitter): DisassembledBlock {
  const { thinking, signature } = ended.block
  const pieces = splitText(thinking, split).map((text): BlockDelta => ({ kind: 'thinking', text }))
  if (typeof signature !== 'string') return emptyBlock(ended, { thinking: '' }, pieces)
  return emptyBlock(ended, { thinking: '', signature: '' }, [...pieces, { kind: 'signature', signature }])
}

/**
 * Splits a tool call into an empty block and input deltas. As in the API, the first delta is empty, and it is the only
 * one if the input is `{}`.
 */
function disassembleToolUse(ended: BlockEnded, split: TextSplitter): DisassembledBlock {
  const { block, raw, cutInput } = ended
  const exact = raw === undefined ? undefined : findJsonMember(raw, 'input')
  const text = cutInput ?? exact ?? JSON.stringify(block.input)
  const pieces = text === '{}' ? [] : splitText(text, split)
  const deltas = ['', ...pieces].map((json): BlockDelta => ({ kind: 'input', json }))
  return emptyBlock(ended, { input: {} }, deltas)
}

const COMPACTION_DELTA_FIELDS = new Set(['content', 'encrypted_content'])

/** Splits an unsigned compaction block (from threshold compaction) into an empty block and one delta with all fields. */
function disassembleCompaction(ended: BlockEnded): DisassembledBlock {
  const fields: JsonObject = Object.fromEntries(
    Object.entries(ended.block).filter((entry): entry is [string, Json] =>
      COMPACTION_DELTA_FIELDS.has(entry[0]),
    ),
  )
  const empty = Object.fromEntries(Object.keys(fields).map((key) => [key, null]))
  return emptyBlock(ended, empty, [{ kind: 'fields', fields }])
}

function splitText(text: unknown, split: TextSplitter): readonly string[] {
  return typeof text === 'string' && text !== '' ? split(text) : []
}

function emptyBlock(
  { block, raw }: BlockEnded,
  fields: JsonObject,
  deltas: readonly BlockDelta[],
): DisassembledBlock {
  if (raw === undefined) return { block: { ...block, ...fields, type: block.type }, deltas }
  const members = Object.entries(fields).reduce(
    (all, [key, value]) => withJsonMember(all, key, JSON.stringify(value)),
    splitJsonObject(raw),
  )
  const text = formatJsonObject(members)
  const start = parseJson(text)
  return {
    block: isBlock(start) ? start : block,
    ...omitUndefined({ raw: findUnstableJsonText(text) }),
    deltas,
  }
}
