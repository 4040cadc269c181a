/** Puts a reply together from its events. The fold is incremental: a codec keeps it as part of its state. */
import type { Block } from '../conversation/block.ts'
import type { Json, JsonObject } from '../conversation/json.ts'
import type { AssistantMessage, RawBlock, Usage } from '../conversation/record.ts'
import type { BlockDelta, BlockEnded, BlockStarted, OpenBlock, Reply, ReplyEvent } from './reply.ts'

export interface Assembly {
  readonly message: AssistantMessage | null
  /** Every figure told so far. They become the message's usage once both totals are among them. */
  readonly usage: JsonObject
  readonly ended: readonly BlockEnded[]
  readonly open: ReadonlyMap<number, OpenBlock>
  readonly others: readonly Json[]
}

export const emptyAssembly: Assembly = { message: null, usage: {}, ended: [], open: new Map(), others: [] }

/** The reply that `events` make, as far as they go; null where they never began one. */
export function collect(events: Iterable<ReplyEvent>): Reply | null {
  let assembly = emptyAssembly
  for (const event of events) assembly = assemble(assembly, event)
  return replyOf(assembly)
}

export function assemble(assembly: Assembly, event: ReplyEvent): Assembly {
  switch (event.type) {
    case 'reply-started':
      return withHead(assembly, event.message)
    case 'block-started':
      return withOpen(assembly, openBlock(event))
    case 'block-grew':
      return withDelta(assembly, event.index, event.delta)
    case 'block-ended':
      return { ...assembly, ended: [...assembly.ended, event], open: without(assembly.open, event.index) }
    case 'reply-updated':
      return withUpdate(assembly, event.fields, event.usage)
    case 'reply-other':
      return { ...assembly, others: [...assembly.others, { name: event.name, text: event.text }] }
    default:
      return assembly
  }
}

export function replyOf(assembly: Assembly): Reply | null {
  if (assembly.message === null) return null
  const ended = assembly.ended.toSorted((a, b) => a.index - b.index)
  const usage = isUsage(assembly.usage) ? { usage: assembly.usage } : {}
  const isPartial = !isUsage(assembly.usage) && Object.keys(assembly.usage).length > 0
  return {
    message: { ...assembly.message, content: ended.map((event) => event.block), ...usage },
    rawBlocks: texts(ended, (event) => event.raw),
    cutInputs: texts(ended, (event) => event.cutInput),
    unfinished: [...assembly.open.values()].toSorted((a, b) => a.index - b.index),
    others: assembly.others,
    ...(isPartial ? { figures: assembly.usage } : {}),
  }
}

/** The fields of `update` in place of those of `record`; null leaves what was there. */
export function overlay<T extends object>(record: T, update: JsonObject): T {
  const news = Object.entries(update).filter(([key, value]) => value !== null || !Object.hasOwn(record, key))
  return { ...record, ...Object.fromEntries(news) }
}

function texts(
  ended: readonly BlockEnded[],
  pick: (event: BlockEnded) => string | undefined,
): readonly RawBlock[] {
  return ended.flatMap((event, index) => {
    const text = pick(event)
    return text === undefined ? [] : [{ index, text }]
  })
}

function openBlock({ index, block, raw }: BlockStarted): OpenBlock {
  return { index, block, ...(raw === undefined ? {} : { raw }), input: '', citations: [] }
}

function withOpen(assembly: Assembly, block: OpenBlock): Assembly {
  return { ...assembly, open: new Map(assembly.open).set(block.index, block) }
}

function without(open: ReadonlyMap<number, OpenBlock>, index: number): ReadonlyMap<number, OpenBlock> {
  const rest = new Map(open)
  rest.delete(index)
  return rest
}

function withDelta(assembly: Assembly, index: number, delta: BlockDelta): Assembly {
  if (delta.kind === 'other')
    return { ...assembly, others: [...assembly.others, { index, delta: delta.value }] }
  const open = assembly.open.get(index)
  return open === undefined ? assembly : withOpen(assembly, grow(open, delta))
}

function grow(open: OpenBlock, delta: Exclude<BlockDelta, { kind: 'other' }>): OpenBlock {
  switch (delta.kind) {
    case 'text':
      return { ...open, block: appendTo(open.block, 'text', delta.text) }
    case 'thinking':
      return { ...open, block: appendTo(open.block, 'thinking', delta.text) }
    case 'signature':
      return { ...open, block: { ...open.block, signature: delta.signature } }
    case 'input':
      return { ...open, input: open.input + delta.json }
    case 'citation':
      return cite(open, delta.citation, delta.raw)
    case 'fields':
      return { ...open, block: { ...open.block, ...delta.fields, type: open.block.type } }
  }
}

function appendTo(block: Block, field: string, text: string): Block {
  const before = block[field]
  return { ...block, [field]: typeof before === 'string' ? before + text : text }
}

function cite(open: OpenBlock, citation: Json, raw?: string): OpenBlock {
  const before = open.block.citations
  const citations = [...(Array.isArray(before) ? before : []), citation]
  const text = raw ?? JSON.stringify(citation)
  return { ...open, block: { ...open.block, citations }, citations: [...open.citations, text] }
}

function withHead(assembly: Assembly, message: AssistantMessage): Assembly {
  const usage = Object.entries(message.usage ?? {}).filter(
    (entry): entry is [string, Json] => entry[1] !== undefined,
  )
  return { ...assembly, message, usage: Object.fromEntries(usage) }
}

function withUpdate(assembly: Assembly, fields: JsonObject, usage: JsonObject = {}): Assembly {
  if (assembly.message === null) return assembly
  return { ...assembly, message: overlay(assembly.message, fields), usage: overlay(assembly.usage, usage) }
}

function isUsage(figures: JsonObject): figures is JsonObject & Usage {
  return typeof figures.input_tokens === 'number' && typeof figures.output_tokens === 'number'
}
