/** Short ways to write the frames of a stream, and to decode them. */
import type { ReplyEvent } from '@tidemark/core/engine/reply'
import { decodeReplyFrame, finishReply, initialStreamState } from '../src/anthropic/decode-stream.ts'
import type { SseFrame } from '../src/http/sse.ts'

export function frame(data: object): SseFrame {
  return { event: String(Reflect.get(data, 'type')), data: JSON.stringify(data) }
}

export function decode(frames: readonly SseFrame[]): readonly ReplyEvent[] {
  let state = initialStreamState
  const events: ReplyEvent[] = []
  for (const each of frames) {
    const [next, news] = decodeReplyFrame(state, each)
    state = next
    events.push(...news)
  }
  return [...events, ...finishReply(state)[1]]
}

export const head = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-x',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: {
    input_tokens: 10,
    cache_read_input_tokens: 5,
    cache_creation: { ephemeral_5m_input_tokens: 3 },
    output_tokens: 1,
  },
}
export const START = frame({ type: 'message_start', message: head })
export const STOP = frame({ type: 'message_stop' })
export const PING = frame({ type: 'ping' })

export function start(index: number, block: object): SseFrame {
  return frame({ type: 'content_block_start', index, content_block: block })
}
export function delta(index: number, change: object): SseFrame {
  return frame({ type: 'content_block_delta', index, delta: change })
}
export function stop(index: number): SseFrame {
  return frame({ type: 'content_block_stop', index })
}
export function ending(fields: object, more: object = {}): SseFrame {
  return frame({ type: 'message_delta', delta: fields, usage: { output_tokens: 42 }, ...more })
}

export const TOOL = { type: 'tool_use', id: 'toolu_1', name: 'read', input: {} }
