/**
 * A model's reply as provider-neutral events, and its assembly. Every stream ends with exactly one `reply-ended` or
 * `reply-failed`.
 */
import type { Block } from '../log/block.ts'
import type { Json, JsonObject } from '../log/json.ts'
import type { AssistantMessage, RawBlockText, Usage } from '../log/record.ts'

export type ReplyEvent =
  | ReplyStarted
  | BlockStarted
  | BlockDeltaEvent
  | BlockEnded
  | ReplyUpdated
  | ReplyPing
  | UnknownReplyEvent
  | ReplyEnded
  | ReplyFailed

/** The start of the reply: id, model, the usage known so far. Its content follows with the blocks. */
interface ReplyStarted {
  readonly type: 'reply-started'
  readonly message: AssistantMessage
}

/** A block as first announced; `raw` if its JSON would not survive parse and stringify. */
interface BlockStarted {
  readonly type: 'block-started'
  readonly index: number
  readonly block: Block
  readonly raw?: string
}

interface BlockDeltaEvent {
  readonly type: 'block-grew'
  readonly index: number
  readonly delta: BlockDelta
}

export type BlockDelta =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking'; readonly text: string; readonly estimatedTokens?: number }
  | { readonly kind: 'signature'; readonly signature: string }
  /** A part of the JSON of `input`, as the model wrote it. */
  | { readonly kind: 'input'; readonly json: string }
  | { readonly kind: 'citation'; readonly citation: Json; readonly raw?: string }
  /** Fields that replace those of the block. */
  | { readonly kind: 'fields'; readonly fields: JsonObject }
  /** A kind the codec does not know, unchanged. */
  | { readonly kind: 'other'; readonly value: JsonObject }

/** The complete block, as it goes into the log. */
export interface BlockEnded {
  readonly type: 'block-ended'
  readonly index: number
  readonly block: Block
  /** The exact JSON of the block, only if it would not survive parse and stringify. */
  readonly raw?: string
  /** The input of the tool call was cut off: this is what arrived. `input` is empty; the call must not be run. */
  readonly cutInput?: string
}

/**
 * Fields of the message that are known only now (`stop_reason` …). In both, a value replaces the previous one and null
 * leaves it: figures are cumulative and never added up.
 */
export interface ReplyUpdated {
  readonly type: 'reply-updated'
  readonly fields: JsonObject
  readonly usage?: JsonObject
}

/** A ping: no content. */
interface ReplyPing {
  readonly type: 'reply-alive'
}

/** An event the codec does not know, as it arrived: `name` and `text` from the wire. */
interface UnknownReplyEvent {
  readonly type: 'reply-other'
  readonly name: string
  readonly text: string
}

export interface ReplyEnded {
  readonly type: 'reply-ended'
  readonly reply: Reply
}

/** `reply` is what had arrived; null if nothing had. */
export interface ReplyFailed {
  readonly type: 'reply-failed'
  readonly failure: ModelFailure
  readonly reply: Reply | null
}

/** An assembled reply. */
export interface Reply {
  /** Its content holds the completed blocks, in order. */
  readonly message: AssistantMessage
  /** Exact JSON of blocks that would not survive parse and stringify, by index in the content. */
  readonly rawBlocks: readonly RawBlockText[]
  /** Tool calls whose input was cut off, by index in the content: not to be run. */
  readonly cutInputs: readonly RawBlockText[]
  /** Blocks that started and never ended; empty unless the reply failed. */
  readonly unfinished: readonly OpenBlock[]
  /** Deltas and events the codec did not know. The message lacks what they would have changed. */
  readonly others: readonly Json[]
  /** Usage figures that arrived without one of the totals, and so make no usage. */
  readonly figures?: JsonObject
}

/** A block under construction. */
export interface OpenBlock {
  readonly index: number
  readonly block: Block
  readonly raw?: string
  /** JSON of `input` so far. */
  readonly input: string
  /** JSON of each citation that arrived on its own. */
  readonly citations: readonly string[]
}

/** A reply being assembled from its events: an incremental fold that a codec keeps in its state. */
export interface ReplyAssembly {
  readonly message: AssistantMessage | null
  /** Every usage figure so far. They become the message's usage once both totals are among them. */
  readonly usage: JsonObject
  readonly ended: readonly BlockEnded[]
  readonly open: ReadonlyMap<number, OpenBlock>
  readonly others: readonly Json[]
}

export const emptyReplyAssembly: ReplyAssembly = {
  message: null,
  usage: {},
  ended: [],
  open: new Map(),
  others: [],
}

/** The reply that `events` make, complete or not; null if they never started one. */
export function collectReply(events: Iterable<ReplyEvent>): Reply | null {
  let assembly = emptyReplyAssembly
  for (const event of events) assembly = addReplyEvent(assembly, event)
  return toReply(assembly)
}

export function addReplyEvent(assembly: ReplyAssembly, event: ReplyEvent): ReplyAssembly {
  switch (event.type) {
    case 'reply-started':
      return withMessageStart(assembly, event.message)
    case 'block-started':
      return withOpenBlock(assembly, createOpenBlock(event))
    case 'block-grew':
      return withDelta(assembly, event.index, event.delta)
    case 'block-ended':
      return {
        ...assembly,
        ended: [...assembly.ended, event],
        open: withoutBlock(assembly.open, event.index),
      }
    case 'reply-updated':
      return withUpdate(assembly, event.fields, event.usage)
    case 'reply-other':
      return { ...assembly, others: [...assembly.others, { name: event.name, text: event.text }] }
    default:
      return assembly
  }
}

export function toReply(assembly: ReplyAssembly): Reply | null {
  if (assembly.message === null) return null
  const ended = assembly.ended.toSorted((a, b) => a.index - b.index)
  const usage = isUsage(assembly.usage) ? { usage: assembly.usage } : {}
  const isPartial = !isUsage(assembly.usage) && Object.keys(assembly.usage).length > 0
  return {
    message: { ...assembly.message, content: ended.map((event) => event.block), ...usage },
    rawBlocks: listBlockTexts(ended, (event) => event.raw),
    cutInputs: listBlockTexts(ended, (event) => event.cutInput),
    unfinished: [...assembly.open.values()].toSorted((a, b) => a.index - b.index),
    others: assembly.others,
    ...(isPartial ? { figures: assembly.usage } : {}),
  }
}

/** `record` with the fields of `update`; null leaves what was there. */
export function overlayFields<T extends object>(record: T, update: JsonObject): T {
  const news = Object.entries(update).filter(([key, value]) => value !== null || !Object.hasOwn(record, key))
  return { ...record, ...Object.fromEntries(news) }
}

function listBlockTexts(
  ended: readonly BlockEnded[],
  pick: (event: BlockEnded) => string | undefined,
): readonly RawBlockText[] {
  return ended.flatMap((event, index) => {
    const text = pick(event)
    return text === undefined ? [] : [{ index, text }]
  })
}

function createOpenBlock({ index, block, raw }: BlockStarted): OpenBlock {
  return { index, block, ...(raw === undefined ? {} : { raw }), input: '', citations: [] }
}

function withOpenBlock(assembly: ReplyAssembly, block: OpenBlock): ReplyAssembly {
  return { ...assembly, open: new Map(assembly.open).set(block.index, block) }
}

function withoutBlock(open: ReadonlyMap<number, OpenBlock>, index: number): ReadonlyMap<number, OpenBlock> {
  const rest = new Map(open)
  rest.delete(index)
  return rest
}

function withDelta(assembly: ReplyAssembly, index: number, delta: BlockDelta): ReplyAssembly {
  if (delta.kind === 'other')
    return { ...assembly, others: [...assembly.others, { index, delta: delta.value }] }
  const open = assembly.open.get(index)
  return open === undefined ? assembly : withOpenBlock(assembly, growBlock(open, delta))
}

function growBlock(open: OpenBlock, delta: Exclude<BlockDelta, { kind: 'other' }>): OpenBlock {
  switch (delta.kind) {
    case 'text':
      return { ...open, block: appendText(open.block, 'text', delta.text) }
    case 'thinking':
      return { ...open, block: appendText(open.block, 'thinking', delta.text) }
    case 'signature':
      return { ...open, block: { ...open.block, signature: delta.signature } }
    case 'input':
      return { ...open, input: open.input + delta.json }
    case 'citation':
      return addCitation(open, delta.citation, delta.raw)
    case 'fields':
      return { ...open, block: { ...open.block, ...delta.fields, type: open.block.type } }
  }
}

function appendText(block: Block, field: string, text: string): Block {
  const before = block[field]
  return { ...block, [field]: typeof before === 'string' ? before + text : text }
}

function addCitation(open: OpenBlock, citation: Json, raw?: string): OpenBlock {
  const before = open.block.citations
  const citations = [...(Array.isArray(before) ? before : []), citation]
  const text = raw ?? JSON.stringify(citation)
  return { ...open, block: { ...open.block, citations }, citations: [...open.citations, text] }
}

function withMessageStart(assembly: ReplyAssembly, message: AssistantMessage): ReplyAssembly {
  const usage = Object.entries(message.usage ?? {}).filter(
    (entry): entry is [string, Json] => entry[1] !== undefined,
  )
  return { ...assembly, message, usage: Object.fromEntries(usage) }
}

function withUpdate(assembly: ReplyAssembly, fields: JsonObject, usage: JsonObject = {}): ReplyAssembly {
  if (assembly.message === null) return assembly
  return {
    ...assembly,
    message: overlayFields(assembly.message, fields),
    usage: overlayFields(assembly.usage, usage),
  }
}

function isUsage(figures: JsonObject): figures is JsonObject & Usage {
  return typeof figures.input_tokens === 'number' && typeof figures.output_tokens === 'number'
}

/** Why a model call failed, independent of the provider: each codec maps its errors to these. */
export type ModelFailureKind =
  | 'overflow' // the prompt does not fit the window
  | 'too-large' // too many bytes, whatever the tokens
  | 'media' // an image or document the provider does not accept: too large, too many, unreadable
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
  | 'network' // no connection, or one that broke before the reply was complete
  | 'bad-reply' // the response is no valid reply
  | 'aborted'
  | 'unknown'

/** How far the prompt was over the limit, as far as the provider reported it. */
export interface TokenGap {
  readonly actual?: number
  readonly limit?: number
  /** Tokens over the limit, if reported or implied by the other two. */
  readonly over?: number
}

export interface ModelFailure {
  readonly kind: ModelFailureKind
  /** The same request may succeed later. A prompt that is too long never does. */
  readonly retryable: boolean
  /** The provider's message if there is one. */
  readonly message: string
  readonly status?: number
  /** The provider's `retry-after`. */
  readonly retryAfterMs?: number
  readonly gap?: TokenGap
  /** The provider's error type, and its error code if it has one. */
  readonly errorType?: string
  readonly errorCode?: string
  /** The part of the request that was refused, if the provider named it: `messages.1.content.0`. */
  readonly path?: string
  readonly requestId?: string
  readonly details?: JsonObject
}
