/**
 * Provider-neutral events of a streamed reply, and their assembly into a message. Every stream ends with exactly one
 * `reply-ended` or `reply-failed`. Also the kinds of failures of a call, and when a failed call is retried.
 */
import type { Block } from '../log/block.ts'
import type { Json, JsonObject } from '../log/json.ts'
import type { AssistantMessage, RawBlockText } from '../log/record.ts'
import type { ReplyReport } from '../log/reply-report.ts'
import type { Policy } from '../policy/policy.ts'

export type ReplyEvent =
  | ReplyStarted
  | BlockStarted
  | { readonly type: 'block-grew'; readonly index: number; readonly delta: BlockDelta }
  | BlockEnded
  | ReplyUpdated
  /** A ping, which has no content. */
  | { readonly type: 'reply-alive' }
  /**
   * The provider had begun to answer when the connection broke, before the usage came, or the caller aborted a request that
   * was sent. It bills the prompt nevertheless. The request is sent again, or the call fails.
   */
  | { readonly type: 'reply-lost' }
  /** An event of unknown kind, with its name and data as received. */
  | { readonly type: 'reply-other'; readonly name: string; readonly text: string }
  | ReplyEnded
  | ReplyFailed

/** The reply started: id, model and what was reported so far. The content follows as block events. */
interface ReplyStarted {
  readonly type: 'reply-started'
  readonly message: AssistantMessage
  readonly report?: ReplyReport
}

/** A content block started. `raw` is its exact JSON, set only if parsing and stringifying would change it. */
interface BlockStarted {
  readonly type: 'block-started'
  readonly index: number
  readonly block: Block
  readonly raw?: string
}

export type BlockDelta =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking'; readonly text: string; readonly estimatedTokens?: number }
  | { readonly kind: 'signature'; readonly signature: string }
  /** A fragment of the JSON of a tool call's `input`, as the model wrote it. */
  | { readonly kind: 'input'; readonly json: string }
  | { readonly kind: 'citation'; readonly citation: Json; readonly raw?: string }
  /** Fields that replace fields of the block. */
  | { readonly kind: 'fields'; readonly fields: JsonObject }
  /** A delta of unknown kind, passed on unchanged. */
  | { readonly kind: 'other'; readonly value: JsonObject }

/** A content block is complete. `block` is appended to the log as it is. */
export interface BlockEnded {
  readonly type: 'block-ended'
  readonly index: number
  readonly block: Block
  /** Exact JSON of the block, set only if parsing and stringifying would change it. */
  readonly raw?: string
  /** The part of a tool call's input that arrived before the reply was cut off. `input` is then empty; the tool must not run. */
  readonly cutInput?: string
}

/**
 * Message fields that arrive late, such as why the reply ended, and updated usage, both in the provider's own words. A value
 * replaces the previous one; null keeps it. Usage figures are cumulative, so they are never added up.
 */
export interface ReplyUpdated {
  readonly type: 'reply-updated'
  readonly fields: JsonObject
  readonly usage?: JsonObject
  /** Everything reported so far, in place of the previous report; missing if nothing has changed. */
  readonly report?: ReplyReport
}

export interface ReplyEnded {
  readonly type: 'reply-ended'
  readonly reply: Reply
}

/** The reply failed. `reply` has the part that arrived; null if nothing arrived. */
export interface ReplyFailed {
  readonly type: 'reply-failed'
  readonly failure: ModelFailure
  readonly reply: Reply | null
}

/** A reply assembled from its events, complete or partial. */
export interface Reply extends ReplyReport {
  /** The message with all complete blocks, in order. */
  readonly message: AssistantMessage
  /** Exact JSON of blocks that parsing and stringifying would change, with their index in the content. */
  readonly rawBlocks: readonly RawBlockText[]
  /** Tool calls whose input was cut off, with their index in the content. They must not run. */
  readonly cutInputs: readonly RawBlockText[]
  /** Blocks that started but never ended; empty unless the reply failed. */
  readonly unfinished: readonly OpenBlock[]
  /** Deltas and events of unknown kind, which are not applied to the message. */
  readonly others: readonly Json[]
  /** The provider's own figures of a reply whose usage is not complete. `message.usage` is then not set. */
  readonly figures?: JsonObject
}

/** A content block that is still being received. */
export interface OpenBlock {
  readonly index: number
  readonly block: Block
  readonly raw?: string
  /** JSON of the tool call's `input` received so far. */
  readonly input: string
  /** Exact JSON of each citation that arrived as a delta. */
  readonly citations: readonly string[]
}

/** State of assembling a reply from its events. Immutable: each event gives a new value. */
export interface ReplyAssembly {
  readonly message: AssistantMessage | null
  /** The provider's own usage figures so far. They become the message's usage once the report has usage. */
  readonly figures: JsonObject
  readonly report: ReplyReport
  readonly ended: readonly BlockEnded[]
  readonly open: ReadonlyMap<number, OpenBlock>
  readonly others: readonly Json[]
}

export const emptyReplyAssembly: ReplyAssembly = {
  message: null,
  figures: {},
  report: {},
  ended: [],
  open: new Map(),
  others: [],
}

/** Returns the assembly with one event of the stream. Events without content, and the last one, change nothing. */
export function addReplyEvent(assembly: ReplyAssembly, event: ReplyEvent): ReplyAssembly {
  switch (event.type) {
    case 'reply-started':
      return withMessageStart(assembly, event)
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
      return withUpdate(assembly, event)
    case 'reply-other':
      return { ...assembly, others: [...assembly.others, { name: event.name, text: event.text }] }
    default:
      return assembly
  }
}

/** Returns the reply as far as it has arrived; null before `reply-started`. */
export function toReply(assembly: ReplyAssembly): Reply | null {
  if (assembly.message === null) return null
  const ended = assembly.ended.toSorted((a, b) => a.index - b.index)
  const { message, figures, report } = assembly
  const isPartial = report.usage === undefined && Object.keys(figures).length > 0
  return {
    ...report,
    message: {
      ...message,
      content: ended.map((event) => event.block),
      ...(report.usage === undefined ? {} : { usage: figures }),
    },
    rawBlocks: listBlockTexts(ended, (event) => event.raw),
    cutInputs: listBlockTexts(ended, (event) => event.cutInput),
    unfinished: [...assembly.open.values()].toSorted((a, b) => a.index - b.index),
    others: assembly.others,
    ...(isPartial ? { figures } : {}),
  }
}

/** Returns `record` with the fields of `update`. A null in `update` does not replace an existing value. */
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

function withMessageStart(assembly: ReplyAssembly, { message, report = {} }: ReplyStarted): ReplyAssembly {
  return { ...assembly, message, figures: message.usage ?? {}, report }
}

function withUpdate(assembly: ReplyAssembly, { fields, usage = {}, report }: ReplyUpdated): ReplyAssembly {
  if (assembly.message === null) return assembly
  return {
    ...assembly,
    message: overlayFields(assembly.message, fields),
    figures: overlayFields(assembly.figures, usage),
    report: report ?? assembly.report,
  }
}

/** Why a model call failed, in terms common to all providers. Each codec maps its provider's errors to these kinds. */
export type ModelFailureKind =
  | 'overflow' // the prompt exceeds the context window
  | 'too-large' // the request has too many bytes
  | 'media' // an image or document is too large or unreadable, or there are too many
  | 'thinking-binding' // thinking was sent back where it is no longer valid
  | 'invalid-request'
  | 'auth'
  | 'billing' // no credit, or a spending limit was reached: a retry does not help
  | 'permission'
  | 'not-found'
  | 'conflict'
  | 'rate-limit'
  | 'overloaded'
  | 'server'
  | 'timeout'
  | 'network' // there was no connection, or it broke before the reply was complete
  | 'bad-reply' // the response is incomplete or cannot be decoded
  | 'aborted'
  | 'unknown'

/** By how much the prompt exceeded the token limit, as far as the provider reported it. */
export interface TokenExcess {
  readonly actual?: number
  readonly limit?: number
  /** Tokens above the limit, as the provider reported them or computed as `actual` minus `limit`. */
  readonly over?: number
}

export interface ModelFailure {
  readonly kind: ModelFailureKind
  /** True if the same request may succeed later. Always false for a prompt that is too long. */
  readonly retryable: boolean
  /** Error message of the provider, or a description if there is none. */
  readonly message: string
  readonly status?: number
  /** Milliseconds to wait before a retry, from the provider's `retry-after` header. */
  readonly retryAfterMs?: number
  /** For a prompt that is too long: its size and the limit, as far as the provider reported them. */
  readonly gap?: TokenExcess
  /** The provider's own error type; `errorCode`: its error code, if any. */
  readonly errorType?: string
  readonly errorCode?: string
  /** Part of the request that the provider refused, such as `messages.1.content.0`; missing if it named none. */
  readonly path?: string
  readonly requestId?: string
  readonly details?: JsonObject
}

/** A retry that is about to begin. `attempt` is the number of attempts that have failed so far. */
export interface UpcomingRetry {
  readonly cause: ModelFailure
  readonly delayMs: number
  readonly attempt: number
}

type RetryPlan =
  | { readonly again: true; readonly delayMs: number }
  | { readonly again: false; readonly why: string }

/**
 * Decides whether to retry a failed request, and after what delay. `attempt` counts from 0. `chance` is a random number
 * in [0, 1) that shortens the delay, so that many clients do not retry at the same time.
 */
export function planRetry(
  failure: ModelFailure,
  attempt: number,
  policy: Policy['turn']['network'],
  chance: number,
): RetryPlan {
  if (!failure.retryable) return { again: false, why: 'the same request would be refused again' }
  if (attempt >= policy.retries) return { again: false, why: `tried ${attempt + 1} times` }
  const { retryAfterMs } = failure
  if (retryAfterMs !== undefined && retryAfterMs > policy.longestRetryAfterSeconds * 1000)
    return { again: false, why: `the provider asks to wait ${Math.ceil(retryAfterMs / 1000)} s` }
  const backoffMs = Math.min(policy.firstDelayMs * 2 ** attempt, policy.maximumDelayMs)
  const delayMs = retryAfterMs ?? Math.round(backoffMs * (1 - (policy.jitterPercent / 100) * chance))
  return { again: true, delayMs }
}
