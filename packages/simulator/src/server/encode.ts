/** A reply as an answer: one body of JSON, or a stream with its pauses. */
import type { ReplyEvent, Reply as WireReply } from '@tidemark/core'
import { encodeFrame, eventsOf, every, toFrames, toResponse } from '@tidemark/wire'
import type { Delays } from '../script/script.ts'
import type { Answer, AnswerPiece } from './answer.ts'
import { jsonAnswer } from './answer.ts'

export interface Encoding {
  readonly stream: boolean
  readonly deltaSize: number
  readonly delays: Delays
  readonly headers: Answer['headers']
}

export function encodeReply(reply: WireReply, encoding: Encoding): Answer {
  return encoding.stream ? streamAnswer(reply, encoding) : bodyAnswer(reply, encoding)
}

function streamAnswer(reply: WireReply, { deltaSize, delays, headers }: Encoding): Answer {
  const [head, ...rest] = eventsOf(reply, every(deltaSize))
  const events: readonly ReplyEvent[] = head === undefined ? [] : [head, { type: 'reply-alive' }, ...rest]
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', ...headers },
    pieces: events.map((event) => ({ bytes: bytesOf(event), delayMs: delayBefore(event, delays) })),
    ending: 'close',
  }
}

function bytesOf(event: ReplyEvent): AnswerPiece['bytes'] {
  return toFrames(event).map(encodeFrame).join('')
}

function delayBefore(event: ReplyEvent, delays: Delays): number {
  switch (event.type) {
    case 'reply-started':
      return delays.startMs ?? 0
    case 'block-started':
      return event.index === 0 ? 0 : (delays.blockMs ?? 0)
    case 'block-grew':
      return delays.pieceMs ?? 0
    default:
      return 0
  }
}

/** A body is sent when the last of it has been written. */
function bodyAnswer(reply: WireReply, encoding: Encoding): Answer {
  const { blockMs = 0, pieceMs = 0, startMs = 0 } = encoding.delays
  const slow = blockMs + pieceMs > 0
  const delayMs = slow
    ? streamAnswer(reply, encoding).pieces.reduce((sum, piece) => sum + piece.delayMs, 0)
    : startMs
  const answer = jsonAnswer(200, toResponse(reply), encoding.headers)
  return { ...answer, pieces: answer.pieces.map((piece) => ({ ...piece, delayMs })) }
}
