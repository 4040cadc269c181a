/**
 * Decodes the event stream of the Messages API into provider-independent reply events, as a pure function `(state,
 * frame) → [state, events]`. Unknown frames and deltas are passed on. Every reply ends with exactly one `reply-ended`
 * or `reply-failed` event.
 */
import {
  addReplyEvent,
  type BlockDelta,
  type BlockEnded,
  emptyReplyAssembly,
  type ModelFailure,
  type OpenBlock,
  type ReplyAssembly,
  type ReplyEvent,
  toReply,
} from '@tidemark/core/engine/reply'
import { type Block, isBlock } from '@tidemark/core/log/block'
import {
  findJsonMember,
  findUnstableJsonText,
  formatJsonArray,
  formatJsonObject,
  isObject,
  type JsonMember,
  type JsonObject,
  omitUndefined,
  parseJson,
  splitJsonArray,
  splitJsonObject,
  survivesJsonRoundTrip,
  withJsonMember,
} from '@tidemark/core/log/json'
import { createFailure } from '../failure/classify-failure.ts'
import {
  decodeSseBytes,
  finishSse,
  initialSseState,
  type SseFrame,
  type SseRemainder,
  type SseState,
} from '../http/sse.ts'
import { readMessageHead, readReplyReport } from '../providers/message-object.ts'
import { readAnthropicFailure } from './anthropic-errors.ts'

interface StreamState {
  readonly assembly: ReplyAssembly
  /** True after the `reply-ended` or `reply-failed` event. Later frames are ignored. */
  readonly isClosed: boolean
}

type StreamStep = readonly [StreamState, readonly ReplyEvent[]]

export const initialStreamState: StreamState = { assembly: emptyReplyAssembly, isClosed: false }

type FrameHandler = (state: StreamState, data: JsonObject, text: string) => StreamStep

const FRAME_HANDLERS: ReadonlyMap<string, FrameHandler> = new Map<string, FrameHandler>([
  ['message_start', handleMessageStart],
  ['content_block_start', handleBlockStart],
  ['content_block_delta', handleBlockDelta],
  ['content_block_stop', handleBlockStop],
  ['message_delta', handleMessageDelta],
  ['message_stop', handleMessageStop],
])

/** Decodes one frame. An error frame, or one that violates the protocol of the stream, ends the reply with a failure. */
export function decodeReplyFrame(state: StreamState, frame: SseFrame): StreamStep {
  if (state.isClosed) return [state, []]
  const data = parseJson(frame.data)
  const name = frameName(frame, data)
  if (name === 'error') return failReply(state, readAnthropicFailure({ body: frame.data }))
  if (name === 'ping') return emitEvents(state, [{ type: 'reply-alive' }])
  const handle = FRAME_HANDLERS.get(name)
  if (handle === undefined) return emitEvents(state, [{ type: 'reply-other', name, text: frame.data }])
  return isObject(data)
    ? handle(state, data, frame.data)
    : failMalformedFrame(state, `${name} without readable data`)
}

/** Returns the type of a frame, from its JSON data or from its event name. Some servers send only one of them. */
function frameName(frame: SseFrame, data: unknown): string {
  if (frame.event === 'error') return 'error'
  return isObject(data) && typeof data.type === 'string' ? data.type : (frame.event ?? '')
}

function handleMessageStart(state: StreamState, data: JsonObject): StreamStep {
  if (state.assembly.message !== null) return failMalformedFrame(state, 'the message began twice')
  const head = readMessageHead(data.message)
  if (head === null) return failMalformedFrame(state, 'a message without id or model')
  const started: ReplyEvent = { type: 'reply-started', message: head.message, report: head.report }
  const hasPartialUsage = Object.keys(head.partialUsage).length > 0
  const usage: readonly ReplyEvent[] = hasPartialUsage
    ? [{ type: 'reply-updated', fields: {}, usage: head.partialUsage }]
    : []
  return emitEvents(state, [started, ...usage, ...toInitialBlockEvents(data.message)])
}

/**
 * Returns events for content blocks inside `message_start`. The Messages API sends no blocks there, but other servers
 * may.
 */
function toInitialBlockEvents(message: unknown): readonly ReplyEvent[] {
  const content = isObject(message) && Array.isArray(message.content) ? message.content : []
  return content.filter(isBlock).flatMap((block, index): readonly ReplyEvent[] => [
    { type: 'block-started', index, block },
    { type: 'block-ended', index, block },
  ])
}

function handleBlockStart(state: StreamState, data: JsonObject, text: string): StreamStep {
  const { index, content_block: block } = data
  if (typeof index !== 'number' || !isBlock(block))
    return failMalformedFrame(state, 'a block without index or type')
  if (state.assembly.message === null) return failMalformedFrame(state, 'a block before the message')
  if (state.assembly.open.has(index)) return failMalformedFrame(state, `block ${index} began twice`)
  const raw = findRawMember(text, 'content_block')
  return emitEvents(state, [{ type: 'block-started', index, block, ...omitUndefined({ raw }) }])
}

function handleBlockDelta(state: StreamState, data: JsonObject, text: string): StreamStep {
  const { index, delta } = data
  if (typeof index !== 'number' || !isObject(delta))
    return failMalformedFrame(state, 'a delta without index or content')
  if (!state.assembly.open.has(index))
    return failMalformedFrame(state, `a delta for block ${index}, which is not open`)
  return emitEvents(state, [{ type: 'block-grew', index, delta: readDelta(delta, text) }])
}

function handleBlockStop(state: StreamState, data: JsonObject): StreamStep {
  const open = typeof data.index === 'number' ? state.assembly.open.get(data.index) : undefined
  if (open === undefined)
    return failMalformedFrame(state, `the end of block ${data.index}, which is not open`)
  return emitEvents(state, [finishBlock(open)])
}

/**
 * Converts `message_delta` to an update of the reply's fields, both those inside its `delta` object and those beside
 * it.
 */
function handleMessageDelta(state: StreamState, data: JsonObject): StreamStep {
  if (state.assembly.message === null)
    return failMalformedFrame(state, 'the end of a message before its beginning')
  const { type: _, delta, usage, ...beside } = data
  const fields = { ...(isObject(delta) ? delta : {}), ...beside }
  const update = { type: 'reply-updated' as const, fields, ...(isObject(usage) ? { usage } : {}) }
  const { message, figures } = addReplyEvent(state.assembly, update)
  return emitEvents(state, [{ ...update, report: readReplyReport(message ?? {}, figures) }])
}

/** Ends the reply. Also ends content blocks that are still open, because some servers omit `content_block_stop`. */
function handleMessageStop(state: StreamState): StreamStep {
  const open = [...state.assembly.open.values()].toSorted((a, b) => a.index - b.index)
  const [ended, ends] = emitEvents(state, open.map(finishBlock))
  const reply = toReply(ended.assembly)
  if (reply === null)
    return failReply(ended, createFailure('bad-reply', 'The stream ended a reply that it never began'))
  return [{ ...ended, isClosed: true }, [...ends, { type: 'reply-ended', reply }]]
}

function emitEvents(state: StreamState, events: readonly ReplyEvent[]): StreamStep {
  return [{ ...state, assembly: events.reduce(addReplyEvent, state.assembly) }, events]
}

/**
 * Ends the reply with a failure. The event contains the content received so far. Emits nothing if the reply has already
 * ended.
 */
function failReply(state: StreamState, failed: ModelFailure): StreamStep {
  if (state.isClosed) return [state, []]
  const reply = toReply(state.assembly)
  return [{ ...state, isClosed: true }, [{ type: 'reply-failed', failure: failed, reply }]]
}

/** Fails the reply at a frame that violates the stream protocol. Ignoring the frame could lose content. */
function failMalformedFrame(state: StreamState, what: string): StreamStep {
  return failReply(state, createFailure('bad-reply', `The stream broke its own protocol: ${what}`))
}

/**
 * Ends a reply after its connection has closed. If the reply was not complete, emits `reply-failed`. A last frame that
 * lacks only its blank line is still decoded.
 */
export function finishReply(
  state: StreamState,
  end: SseRemainder = { rest: null, cutCharacter: false },
): StreamStep {
  const isWhole = end.rest !== null && isObject(parseJson(end.rest.data))
  const [last, events] = end.rest !== null && isWhole ? decodeReplyFrame(state, end.rest) : [state, []]
  const where = end.cutCharacter ? ', in the middle of a character' : ''
  const cut = createFailure('network', `The connection ended before the reply was complete${where}`)
  const [closed, closing] = failReply(last, cut)
  return [closed, [...events, ...closing]]
}

/** State for decoding a reply from bytes: the states of the SSE decoder and of the reply decoder. */
export interface ByteStreamState {
  readonly sse: SseState
  readonly stream: StreamState
}

type ByteStep = readonly [ByteStreamState, readonly ReplyEvent[]]

export const initialByteStreamState: ByteStreamState = { sse: initialSseState, stream: initialStreamState }

export function decodeReplyBytes(state: ByteStreamState, chunk: Uint8Array): ByteStep {
  const [sse, frames] = decodeSseBytes(state.sse, chunk)
  const events: ReplyEvent[] = []
  let { stream } = state
  for (const frame of frames) {
    const [next, emitted] = decodeReplyFrame(stream, frame)
    stream = next
    events.push(...emitted)
  }
  return [{ sse, stream }, events]
}

/**
 * Ends a reply that is decoded from bytes. `cause` is the failure to report; by default, that the connection closed.
 */
export function finishReplyBytes(state: ByteStreamState, cause?: ModelFailure): ByteStep {
  const [stream, events] =
    cause === undefined ? finishReply(state.stream, finishSse(state.sse)) : failReply(state.stream, cause)
  return [{ sse: state.sse, stream }, events]
}

// Decoding of the deltas of a content block.

type DeltaReader = (delta: JsonObject, text: string) => BlockDelta | null

const DELTA_READERS: ReadonlyMap<unknown, DeltaReader> = new Map<string, DeltaReader>([
  ['text_delta', ({ text }) => (typeof text === 'string' ? { kind: 'text', text } : null)],
  ['thinking_delta', readThinkingDelta],
  [
    'signature_delta',
    ({ signature }) => (typeof signature === 'string' ? { kind: 'signature', signature } : null),
  ],
  [
    'input_json_delta',
    ({ partial_json: json }) => (typeof json === 'string' ? { kind: 'input', json } : null),
  ],
  ['citations_delta', readCitationDelta],
  ['compaction_delta', ({ type: _, ...fields }) => ({ kind: 'fields', fields })],
])

function readDelta(delta: JsonObject, text: string): BlockDelta {
  return DELTA_READERS.get(delta.type)?.(delta, text) ?? { kind: 'other', value: delta }
}

function readThinkingDelta({ thinking, estimated_tokens: estimate }: JsonObject): BlockDelta | null {
  if (typeof thinking !== 'string') return null
  return {
    kind: 'thinking',
    text: thinking,
    ...(typeof estimate === 'number' ? { estimatedTokens: estimate } : {}),
  }
}

function readCitationDelta({ citation }: JsonObject, text: string): BlockDelta | null {
  if (citation === undefined) return null
  const delta = findRawMember(text, 'delta')
  const raw = delta === undefined ? undefined : findRawMember(delta, 'citation')
  return { kind: 'citation', citation, ...omitUndefined({ raw }) }
}

/**
 * Returns the exact JSON text of an object member. Returns undefined if parsing and stringifying would not change it.
 */
function findRawMember(text: string, key: string): string | undefined {
  if (survivesJsonRoundTrip(text)) return undefined
  const member = findJsonMember(text, key)
  return member === undefined ? undefined : findUnstableJsonText(member)
}

// Building of a finished content block, with its exact JSON text if parsing and stringifying would change it.

function finishBlock(open: OpenBlock): BlockEnded {
  const { index } = open
  const hasInput = open.input.trim() !== ''
  const input = hasInput ? parseJson(open.input) : undefined
  const block = input === undefined ? open.block : { ...open.block, input }
  const raw = findRawBlock(open, block, input === undefined ? undefined : open.input)
  return {
    type: 'block-ended',
    index,
    block,
    ...omitUndefined({ raw, cutInput: hasInput && input === undefined ? open.input : undefined }),
  }
}

function findRawBlock(open: OpenBlock, block: Block, input: string | undefined): string | undefined {
  const plain = open.raw === undefined && open.citations.every(survivesJsonRoundTrip)
  if (plain && (input === undefined || survivesJsonRoundTrip(input))) return undefined
  const written = splitJsonObject(JSON.stringify(block))
  let members = open.raw === undefined ? written : mergeChangedMembers(splitJsonObject(open.raw), written)
  if (input !== undefined) members = withJsonMember(members, 'input', input)
  if (open.citations.length > 0) members = withJsonMember(members, 'citations', encodeCitations(open))
  return findUnstableJsonText(formatJsonObject(members))
}

/**
 * Returns the JSON members of a block: those sent in `content_block_start`, with the members that deltas changed
 * replaced.
 */
function mergeChangedMembers(
  announced: readonly JsonMember[],
  written: readonly JsonMember[],
): readonly JsonMember[] {
  return written.reduce((all, { key, text }) => {
    const before = all.findLast((member) => member.key === key)
    const same = before !== undefined && JSON.stringify(parseJson(before.text)) === text
    return same ? all : withJsonMember(all, key, text)
  }, announced)
}

function encodeCitations({ raw, block, citations }: OpenBlock): string {
  const text = raw === undefined ? undefined : findJsonMember(raw, 'citations')
  if (text?.startsWith('[')) return formatJsonArray([...splitJsonArray(text), ...citations])
  const all = Array.isArray(block.citations) ? block.citations : []
  const announced = all.slice(0, all.length - citations.length).map((each) => JSON.stringify(each))
  return formatJsonArray([...announced, ...citations])
}
