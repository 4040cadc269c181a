/**
 * The event stream of the Messages API to neutral events: `(state, frame) → [state, events]`, each kind of
 * frame by its own function. What is not known is passed on, not dropped.
 */
import { type Failure, isObject, type JsonObject, readJson } from '@tidemark/core'
import { failure } from '../failure/classify.ts'
import { decodeSse, endSse, type Frame, type SseEnd, type SseState, sseStart } from '../sse.ts'
import { takeBlockDelta, takeBlockStart, takeBlockStop } from './block-events.ts'
import { takeError, takeMessageDelta, takeMessageStart, takeMessageStop, takePing } from './message-events.ts'
import { emit, fail, failBadly, type Step, type StreamState, streamStart } from './stream-state.ts'

const TAKE: ReadonlyMap<string, (state: StreamState, data: JsonObject, text: string) => Step> = new Map([
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
  if (name === 'error') return takeError(state, frame.data)
  if (name === 'ping') return takePing(state)
  const take = TAKE.get(name)
  if (take === undefined) return emit(state, [{ type: 'reply-other', name, text: frame.data }])
  return isObject(data) ? take(state, data, frame.data) : failBadly(state, `${name} without readable data`)
}

/** The name on the frame and the type in its data are the same; some servers send only one of them. */
function nameOf(frame: Frame, data: unknown): string {
  if (frame.event === 'error') return 'error'
  return isObject(data) && typeof data.type === 'string' ? data.type : (frame.event ?? '')
}

/** The bytes have ended. Yields the closing event if the stream did not; a last frame that is whole still counts. */
export function endReply(state: StreamState, end: SseEnd = { rest: null, cutCharacter: false }): Step {
  const isWhole = end.rest !== null && isObject(readJson(end.rest.data))
  const [last, events] = end.rest !== null && isWhole ? fromFrame(state, end.rest) : [state, []]
  const where = end.cutCharacter ? ', in the middle of a character' : ''
  const cut = failure('network', `The connection ended before the reply was complete${where}`)
  const [closed, closing] = fail(last, cut)
  return [closed, [...events, ...closing]]
}

/** A reply read from bytes as they come. */
export interface ByteState {
  readonly sse: SseState
  readonly stream: StreamState
}

export type ByteStep = readonly [ByteState, Step[1]]

export const byteStart: ByteState = { sse: sseStart, stream: streamStart }

export function fromBytes(state: ByteState, chunk: Uint8Array): ByteStep {
  const [sse, frames] = decodeSse(state.sse, chunk)
  const events: Step[1][number][] = []
  let { stream } = state
  for (const frame of frames) {
    const [next, news] = fromFrame(stream, frame)
    stream = next
    events.push(...news)
  }
  return [{ sse, stream }, events]
}

/** Closes the reply, once; `cause` where something other than the end of the bytes ended it. */
export function endBytes(state: ByteState, cause?: Failure): ByteStep {
  const [stream, events] =
    cause === undefined ? endReply(state.stream, endSse(state.sse)) : fail(state.stream, cause)
  return [{ sse: state.sse, stream }, events]
}
