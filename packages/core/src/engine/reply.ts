/**
 * A model's reply as it arrives, in neutral events. Every stream ends in exactly one `reply-ended` or
 * `reply-failed`, and nothing comes after it.
 */
import type { Block } from '../log/block.ts'
import type { Json, JsonObject } from '../log/json.ts'
import type { AssistantMessage, RawBlock, Usage } from '../log/record.ts'

export type ReplyEvent =
  | ReplyStarted
  | BlockStarted
  | BlockGrew
  | BlockEnded
  | ReplyUpdated
  | ReplyAlive
  | ReplyOther
  | ReplyEnded
  | ReplyFailed

/** The head of the reply: id, model, the usage known so far. Its content comes with the blocks. */
interface ReplyStarted {
  readonly type: 'reply-started'
  readonly message: AssistantMessage
}

/** A block as first announced; `raw` where its text would not survive parse and stringify. */
interface BlockStarted {
  readonly type: 'block-started'
  readonly index: number
  readonly block: Block
  readonly raw?: string
}

interface BlockGrew {
  readonly type: 'block-grew'
  readonly index: number
  readonly delta: BlockDelta
}

export type BlockDelta =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking'; readonly text: string; readonly estimatedTokens?: number }
  | { readonly kind: 'signature'; readonly signature: string }
  /** A piece of the JSON text of `input`, as the model wrote it. */
  | { readonly kind: 'input'; readonly json: string }
  | { readonly kind: 'citation'; readonly citation: Json; readonly raw?: string }
  /** Fields that replace those of the block. */
  | { readonly kind: 'fields'; readonly fields: JsonObject }
  /** A kind the codec does not know, untouched. */
  | { readonly kind: 'other'; readonly value: JsonObject }

/** The whole block: what goes into the log. */
export interface BlockEnded {
  readonly type: 'block-ended'
  readonly index: number
  readonly block: Block
  /** The exact text of the block, only where it would not survive parse and stringify. */
  readonly raw?: string
  /** The call's input broke off: this is all of it that came, `input` is empty, the call must not be run. */
  readonly cutInput?: string
}

/**
 * Fields of the message that are known only now (`stop_reason` …). In both, a value replaces the one before
 * and null leaves it: figures are cumulative and never added up.
 */
export interface ReplyUpdated {
  readonly type: 'reply-updated'
  readonly fields: JsonObject
  readonly usage?: JsonObject
}

/** A sign of life without content. */
interface ReplyAlive {
  readonly type: 'reply-alive'
}

/** Something the codec does not know, as it came: `name` and `text` from the wire. */
interface ReplyOther {
  readonly type: 'reply-other'
  readonly name: string
  readonly text: string
}

export interface ReplyEnded {
  readonly type: 'reply-ended'
  readonly reply: Reply
}

/** `reply` is what had arrived; null where that was nothing. */
export interface ReplyFailed {
  readonly type: 'reply-failed'
  readonly failure: Failure
  readonly reply: Reply | null
}

/** A reply put together. */
export interface Reply {
  /** Its content holds the blocks that were ended, in order. */
  readonly message: AssistantMessage
  /** Exact texts of blocks that would not survive parse and stringify, by index in the content. */
  readonly rawBlocks: readonly RawBlock[]
  /** Calls whose input broke off, by index in the content: not to be run. */
  readonly cutInputs: readonly RawBlock[]
  /** Blocks that began and were never ended; empty unless the reply failed. */
  readonly unfinished: readonly OpenBlock[]
  /** Deltas and events the codec did not know. What they would have changed is not in the message. */
  readonly others: readonly Json[]
  /** Figures that were told and make no usage, since one of the totals never came. */
  readonly figures?: JsonObject
}

/** A block while it grows. */
export interface OpenBlock {
  readonly index: number
  readonly block: Block
  readonly raw?: string
  /** JSON text of `input` so far. */
  readonly input: string
  /** JSON text of each citation that came by itself. */
  readonly citations: readonly string[]
}

// Puts a reply together from its events. The fold is incremental: a codec keeps it as part of its state.

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

// Why a call to a model gave no answer, in words that every provider's codec maps its own onto.

export type FailureKind =
  | 'overflow' // the prompt does not fit the window
  | 'too-large' // too many bytes, whatever the tokens
  | 'media' // an image or document that the provider will not take: too large, too many, unreadable
  | 'thinking-binding' // thinking sent back where it is no longer valid
  | 'invalid-request'
  | 'auth'
  | 'billing' // no credit, or a spending limit reached: waiting does not help
  | 'permission'
  | 'not-found'
  | 'conflict'
  | 'rate-limit'
  | 'overloaded'
  | 'server'
  | 'timeout'
  | 'network' // no connection, or one that broke before the reply was whole
  | 'bad-reply' // something came back that is no reply
  | 'aborted'
  | 'unknown'

/** How far the prompt was over, as far as the provider said. */
export interface TokenGap {
  readonly actual?: number
  readonly limit?: number
  /** Tokens that have to go; given wherever it was said or follows from the other two. */
  readonly over?: number
}

export interface Failure {
  readonly kind: FailureKind
  /** The very same request may succeed later. A prompt that is too long never does. */
  readonly retryable: boolean
  /** The provider's own words where it said any. */
  readonly message: string
  readonly status?: number
  /** How long the provider asked us to wait. */
  readonly retryAfterMs?: number
  readonly gap?: TokenGap
  /** What the provider calls it: its error type, and the finer code where it has one. */
  readonly errorType?: string
  readonly errorCode?: string
  /** The part of the request that was refused, where the provider named one: `messages.1.content.0`. */
  readonly path?: string
  readonly requestId?: string
  readonly details?: JsonObject
}
