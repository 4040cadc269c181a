/** Frames about the message as a whole: its head, what is known only at the end, the end, an error. */
import { isBlock, isObject, type JsonObject, type ReplyEvent } from '@tidemark/core'
import { blockEnds } from './block-events.ts'
import { toFailure } from './failure.ts'
import { readHead } from './message-head.ts'
import { close, emit, fail, failBadly, type Step, type StreamState } from './stream-state.ts'

export function takeMessageStart(state: StreamState, data: JsonObject): Step {
  if (state.assembly.message !== null) return failBadly(state, 'the message began twice')
  const head = readHead(data.message)
  if (head === null) return failBadly(state, 'a message without id or model')
  const begun: ReplyEvent = { type: 'reply-started', message: head.message }
  const partial = Object.keys(head.figures).length > 0
  const figures: readonly ReplyEvent[] = partial
    ? [{ type: 'reply-updated', fields: {}, usage: head.figures }]
    : []
  return emit(state, [begun, ...figures, ...announcedBlocks(data.message)])
}

/** The fields of `delta` and those beside it are all fields of the message. */
export function takeMessageDelta(state: StreamState, data: JsonObject): Step {
  if (state.assembly.message === null) return failBadly(state, 'the end of a message before its beginning')
  const { type: _, delta, usage, ...beside } = data
  const fields = { ...(isObject(delta) ? delta : {}), ...beside }
  return emit(state, [{ type: 'reply-updated', fields, ...(isObject(usage) ? { usage } : {}) }])
}

export function takeMessageStop(state: StreamState): Step {
  const [ended, ends] = emit(state, blockEnds(state))
  const [closed, last] = close(ended)
  return [closed, [...ends, ...last]]
}

export function takePing(state: StreamState): Step {
  return emit(state, [{ type: 'reply-alive' }])
}

export function takeError(state: StreamState, text: string): Step {
  return fail(state, toFailure({ body: text }))
}

/** Blocks that stand in the head already; the API sends none, others may. */
function announcedBlocks(message: unknown): readonly ReplyEvent[] {
  const content = isObject(message) && Array.isArray(message.content) ? message.content : []
  return content.filter(isBlock).flatMap((block, index): readonly ReplyEvent[] => [
    { type: 'block-started', index, block },
    { type: 'block-ended', index, block },
  ])
}
