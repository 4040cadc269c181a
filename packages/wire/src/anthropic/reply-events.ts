/** A whole reply as the events that would have brought it: for replies that come in one body, and for servers. */
import type { BlockEnded, Json, JsonObject, Reply, ReplyEvent, Usage } from '@tidemark/core'
import { given } from '../given.ts'
import type { Frame } from '../sse.ts'
import { type Opening, openingOf, type Split } from './block-opening.ts'
import { toFrames } from './frames.ts'

/** Known only when the reply is over: null in its head. */
const LATE_FIELDS = ['stop_reason', 'stop_sequence', 'stop_details', 'context_management']
const LATE_FIGURES = ['output_tokens_details', 'server_tool_use', 'iterations', 'fallback_credit']
/** The figures told again at the end. */
const FINAL_FIGURES = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
  ...LATE_FIGURES,
]

/** The frames of a stream that says `reply`. `split` cuts texts and inputs into deltas: whole unless given. */
export function framesOf(reply: Reply, split: Split = whole): readonly Frame[] {
  return eventsOf(reply, split).flatMap(toFrames)
}

export function eventsOf(reply: Reply, split: Split = whole): readonly ReplyEvent[] {
  return [
    headOf(reply),
    ...figuresOf(reply),
    ...blocksIn(reply).flatMap((block) => blockEvents(block, split)),
    ...endOf(reply),
  ]
}

/** What is no usage yet cannot stand in the head; a stream tells it behind. */
function figuresOf({ figures }: Reply): readonly ReplyEvent[] {
  return figures === undefined ? [] : [{ type: 'reply-updated', fields: {}, usage: figures }]
}

/** A splitter that cuts every so many characters. */
export function every(size: number): Split {
  return (text) =>
    Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size))
}

function whole(text: string): readonly string[] {
  return [text]
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
