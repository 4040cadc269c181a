/**
 * The event stream of the Messages API as neutral events: a pure `(state, frame) → [state, events]` with one handler for
 * each kind of frame. Unknown frames and deltas are passed on. A stream ends with exactly one `reply-ended` or
 * `reply-failed`; after it nothing is emitted.
 */
import {
  type Assembly,
  arrayText,
  assemble,
  type Block,
  type BlockDelta,
  type BlockEnded,
  elementsOf,
  emptyAssembly,
  type Failure,
  isBlock,
  isObject,
  type JsonObject,
  type Member,
  memberOf,
  membersOf,
  type OpenBlock,
  objectText,
  type ReplyEvent,
  rawUnlessSurvives,
  readJson,
  replyOf,
  survives,
  withMember,
} from '@tidemark/core'
import { failure } from '../failure/classify-failure.ts'
import { decodeSse, endSse, type Frame, type SseEnd, type SseState, sseStart } from '../http/sse.ts'
import { given } from '../optional-fields.ts'
import { toFailure } from './failure.ts'
import { readHead } from './response.ts'

interface StreamState {
  readonly assembly: Assembly
  /** The closing event was emitted: whatever follows is ignored. */
  readonly closed: boolean
}

type Step = readonly [StreamState, readonly ReplyEvent[]]

export const streamStart: StreamState = { assembly: emptyAssembly, closed: false }

type Handler = (state: StreamState, data: JsonObject, text: string) => Step

const HANDLERS: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['message_start', takeMessageStart],
  ['content_block_start', takeBlockStart],
  ['content_block_delta', takeBlockDelta],
  ['content_block_stop', takeBlockStop],
  ['message_delta', takeMessageDelta],
  ['message_stop', takeMessageStop],
])

export function fromFrame(state: StreamState, frame: Frame): Step {
  if (state.closed) return [state, []]
  const data = readJson(frame.data)
  const name = nameOf(frame, data)
  if (name === 'error') return fail(state, toFailure({ body: frame.data }))
  if (name === 'ping') return emit(state, [{ type: 'reply-alive' }])
  const handle = HANDLERS.get(name)
  if (handle === undefined) return emit(state, [{ type: 'reply-other', name, text: frame.data }])
  return isObject(data) ? handle(state, data, frame.data) : failBadly(state, `${name} without readable data`)
}

/** The frame's event name equals the `type` in its data; some servers send only one of them. */
function nameOf(frame: Frame, data: unknown): string {
  if (frame.event === 'error') return 'error'
  return isObject(data) && typeof data.type === 'string' ? data.type : (frame.event ?? '')
}

function takeMessageStart(state: StreamState, data: JsonObject): Step {
  if (state.assembly.message !== null) return failBadly(state, 'the message began twice')
  const head = readHead(data.message)
  if (head === null) return failBadly(state, 'a message without id or model')
  const started: ReplyEvent = { type: 'reply-started', message: head.message }
  const hasPartialUsage = Object.keys(head.figures).length > 0
  const usage: readonly ReplyEvent[] = hasPartialUsage
    ? [{ type: 'reply-updated', fields: {}, usage: head.figures }]
    : []
  return emit(state, [started, ...usage, ...announcedBlocks(data.message)])
}

/** Blocks already in `message_start`: the API sends none, other servers may. */
function announcedBlocks(message: unknown): readonly ReplyEvent[] {
  const content = isObject(message) && Array.isArray(message.content) ? message.content : []
  return content.filter(isBlock).flatMap((block, index): readonly ReplyEvent[] => [
    { type: 'block-started', index, block },
    { type: 'block-ended', index, block },
  ])
}

function takeBlockStart(state: StreamState, data: JsonObject, text: string): Step {
  const { index, content_block: block } = data
  if (typeof index !== 'number' || !isBlock(block)) return failBadly(state, 'a block without index or type')
  if (state.assembly.message === null) return failBadly(state, 'a block before the message')
  if (state.assembly.open.has(index)) return failBadly(state, `block ${index} began twice`)
  const raw = rawMember(text, 'content_block')
  return emit(state, [{ type: 'block-started', index, block, ...given({ raw }) }])
}

function takeBlockDelta(state: StreamState, data: JsonObject, text: string): Step {
  const { index, delta } = data
  if (typeof index !== 'number' || !isObject(delta))
    return failBadly(state, 'a delta without index or content')
  if (!state.assembly.open.has(index))
    return failBadly(state, `a delta for block ${index}, which is not open`)
  return emit(state, [{ type: 'block-grew', index, delta: readDelta(delta, text) }])
}

function takeBlockStop(state: StreamState, data: JsonObject): Step {
  const open = typeof data.index === 'number' ? state.assembly.open.get(data.index) : undefined
  if (open === undefined) return failBadly(state, `the end of block ${data.index}, which is not open`)
  return emit(state, [finishBlock(open)])
}

/** Fields inside `delta` and those beside it are all fields of the message. */
function takeMessageDelta(state: StreamState, data: JsonObject): Step {
  if (state.assembly.message === null) return failBadly(state, 'the end of a message before its beginning')
  const { type: _, delta, usage, ...beside } = data
  const fields = { ...(isObject(delta) ? delta : {}), ...beside }
  return emit(state, [{ type: 'reply-updated', fields, ...(isObject(usage) ? { usage } : {}) }])
}

/** Ends blocks that are still open as well: some servers leave their `content_block_stop` out. */
function takeMessageStop(state: StreamState): Step {
  const open = [...state.assembly.open.values()].toSorted((a, b) => a.index - b.index)
  const [ended, ends] = emit(state, open.map(finishBlock))
  const reply = replyOf(ended.assembly)
  if (reply === null) return fail(ended, failure('bad-reply', 'The stream ended a reply that it never began'))
  return [{ ...ended, closed: true }, [...ends, { type: 'reply-ended', reply }]]
}

function emit(state: StreamState, events: readonly ReplyEvent[]): Step {
  return [{ ...state, assembly: events.reduce(assemble, state.assembly) }, events]
}

/** Ends the reply early, once, with what has arrived so far. */
function fail(state: StreamState, failed: Failure): Step {
  if (state.closed) return [state, []]
  const reply = replyOf(state.assembly)
  return [{ ...state, closed: true }, [{ type: 'reply-failed', failure: failed, reply }]]
}

/** For a frame that breaks the protocol. Continuing would lose its content, so the reply ends here. */
function failBadly(state: StreamState, what: string): Step {
  return fail(state, failure('bad-reply', `The stream broke its own protocol: ${what}`))
}

/**
 * The bytes have ended. Emits the closing event if the stream did not; a last frame without its blank line still counts
 * if its data is complete.
 */
export function endReply(state: StreamState, end: SseEnd = { rest: null, cutCharacter: false }): Step {
  const isWhole = end.rest !== null && isObject(readJson(end.rest.data))
  const [last, events] = end.rest !== null && isWhole ? fromFrame(state, end.rest) : [state, []]
  const where = end.cutCharacter ? ', in the middle of a character' : ''
  const cut = failure('network', `The connection ended before the reply was complete${where}`)
  const [closed, closing] = fail(last, cut)
  return [closed, [...events, ...closing]]
}

/** State of a reply that is read from bytes as they arrive. */
interface ByteState {
  readonly sse: SseState
  readonly stream: StreamState
}

type ByteStep = readonly [ByteState, readonly ReplyEvent[]]

export const byteStart: ByteState = { sse: sseStart, stream: streamStart }

export function fromBytes(state: ByteState, chunk: Uint8Array): ByteStep {
  const [sse, frames] = decodeSse(state.sse, chunk)
  const events: ReplyEvent[] = []
  let { stream } = state
  for (const frame of frames) {
    const [next, emitted] = fromFrame(stream, frame)
    stream = next
    events.push(...emitted)
  }
  return [{ sse, stream }, events]
}

/** Closes the reply, once. `cause`: what ended it, if it was not the end of the bytes. */
export function endBytes(state: ByteState, cause?: Failure): ByteStep {
  const [stream, events] =
    cause === undefined ? endReply(state.stream, endSse(state.sse)) : fail(state.stream, cause)
  return [{ sse: state.sse, stream }, events]
}

// Deltas of a block.

type ReadDelta = (delta: JsonObject, text: string) => BlockDelta | null

const DELTAS: ReadonlyMap<unknown, ReadDelta> = new Map<string, ReadDelta>([
  ['text_delta', ({ text }) => (typeof text === 'string' ? { kind: 'text', text } : null)],
  ['thinking_delta', readThinking],
  [
    'signature_delta',
    ({ signature }) => (typeof signature === 'string' ? { kind: 'signature', signature } : null),
  ],
  [
    'input_json_delta',
    ({ partial_json: json }) => (typeof json === 'string' ? { kind: 'input', json } : null),
  ],
  ['citations_delta', readCitation],
  ['compaction_delta', ({ type: _, ...fields }) => ({ kind: 'fields', fields })],
])

function readDelta(delta: JsonObject, text: string): BlockDelta {
  return DELTAS.get(delta.type)?.(delta, text) ?? { kind: 'other', value: delta }
}

function readThinking({ thinking: text, estimated_tokens: estimate }: JsonObject): BlockDelta | null {
  if (typeof text !== 'string') return null
  return { kind: 'thinking', text, ...(typeof estimate === 'number' ? { estimatedTokens: estimate } : {}) }
}

function readCitation({ citation }: JsonObject, text: string): BlockDelta | null {
  if (citation === undefined) return null
  const delta = rawMember(text, 'delta')
  const raw = delta === undefined ? undefined : rawMember(delta, 'citation')
  return { kind: 'citation', citation, ...given({ raw }) }
}

/** The exact text of a member, only if parsing and stringifying would change it. */
function rawMember(text: string, key: string): string | undefined {
  if (survives(text)) return undefined
  const member = memberOf(text, key)
  return member === undefined ? undefined : rawUnlessSurvives(member)
}

// A block after its last delta: the parsed value, and its exact text if parsing and stringifying would change it.

function finishBlock(open: OpenBlock): BlockEnded {
  const { index } = open
  const hasInput = open.input.trim() !== ''
  const input = hasInput ? readJson(open.input) : undefined
  const block = input === undefined ? open.block : { ...open.block, input }
  const raw = rawOf(open, block, input === undefined ? undefined : open.input)
  return {
    type: 'block-ended',
    index,
    block,
    ...given({ raw, cutInput: hasInput && input === undefined ? open.input : undefined }),
  }
}

function rawOf(open: OpenBlock, block: Block, input: string | undefined): string | undefined {
  const plain = open.raw === undefined && open.citations.every(survives)
  if (plain && (input === undefined || survives(input))) return undefined
  const written = membersOf(JSON.stringify(block))
  let members = open.raw === undefined ? written : grown(membersOf(open.raw), written)
  if (input !== undefined) members = withMember(members, 'input', input)
  if (open.citations.length > 0) members = withMember(members, 'citations', citationsText(open))
  return rawUnlessSurvives(objectText(members))
}

/** The members as first announced, except those that deltas changed or added. */
function grown(announced: readonly Member[], written: readonly Member[]): readonly Member[] {
  return written.reduce((all, { key, text }) => {
    const before = all.findLast((member) => member.key === key)
    const same = before !== undefined && JSON.stringify(readJson(before.text)) === text
    return same ? all : withMember(all, key, text)
  }, announced)
}

function citationsText({ raw, block, citations }: OpenBlock): string {
  const text = raw === undefined ? undefined : memberOf(raw, 'citations')
  if (text?.startsWith('[')) return arrayText([...elementsOf(text), ...citations])
  const all = Array.isArray(block.citations) ? block.citations : []
  const announced = all.slice(0, all.length - citations.length).map((each) => JSON.stringify(each))
  return arrayText([...announced, ...citations])
}
