/** Encodes a reply as an answer, and sends an answer with its delays and its ending. */

import type { ReplyEvent, Reply as WireReply } from '@tidemark/core'
import { encodeFrame, eventsOf, every, toFrames, toResponse } from '@tidemark/wire'
import { type Answer, type AnswerPiece, jsonAnswer } from '../protocol/answer.ts'
import type { Clock } from '../protocol/clock-and-ids.ts'
import type { Delays } from '../scripts/script.ts'

/** The socket of a request, for answers that end with a reset. */
export interface Connection {
  reset(): void
  /** Resolves when the client has received what was written. */
  waitUntilReceived(): Promise<void>
}

interface Sending {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Called when the first byte of a successful answer is sent. */
  begin(): void
  /** Null without a server, where there is no socket to reset. */
  readonly connection: Connection | null
}

/** A connection that broke before an answer. Its message is that of `fetch` in this case. */
export class BrokenConnection extends TypeError {}

function broken(): BrokenConnection {
  return new BrokenConnection('fetch failed', {
    cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
  })
}

/** Resolves when the answer begins. Rejects with a `BrokenConnection` if the connection breaks before that. */
export async function send(answer: Answer, sending: Sending): Promise<Response> {
  const chunks = merged(answer.chunks)
  const [first, ...rest] = chunks
  if (first === undefined) return sendNothing(answer, sending)
  if (first.delayMs > 0) await sending.clock.sleep(first.delayMs, sending.signal)
  if (answer.status === 200) sending.begin()
  const head = { status: answer.status, headers: answer.headers }
  if (rest.length === 0 && answer.ending === 'close') return new Response(first.bytes, head)
  return new Response(streamOf([{ ...first, delayMs: 0 }, ...rest], answer.ending, sending), head)
}

async function sendNothing(answer: Answer, sending: Sending): Promise<Response> {
  if (answer.ending === 'close') return new Response(null, { status: answer.status, headers: answer.headers })
  if (answer.ending === 'hang') await aborted(sending.signal)
  sending.connection?.reset()
  throw broken()
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Joins chunks that have no delay between them. */
function merged(chunks: readonly AnswerPiece[]): readonly AnswerPiece[] {
  const groups: { bytes: (string | Uint8Array<ArrayBuffer>)[]; delayMs: number }[] = []
  for (const { bytes, delayMs } of chunks) {
    const last = groups.at(-1)
    if (last === undefined || delayMs > 0) groups.push({ bytes: [bytes], delayMs })
    else last.bytes.push(bytes)
  }
  return groups.map(({ bytes, delayMs }) => ({ bytes: joined(bytes), delayMs }))
}

function joined(parts: readonly (string | Uint8Array<ArrayBuffer>)[]): string | Uint8Array<ArrayBuffer> {
  const [only] = parts
  if (parts.length === 1 && only !== undefined) return only
  if (parts.every((part) => typeof part === 'string')) return parts.join('')
  return Buffer.concat(parts.map((part) => Buffer.from(part)))
}

function streamOf(
  chunks: readonly AnswerPiece[],
  ending: Answer['ending'],
  { clock, signal, connection }: Sending,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const cancelled = new AbortController()
  const either = AbortSignal.any([signal, cancelled.signal])
  let next = 0
  return new ReadableStream({
    async pull(controller) {
      const chunk = chunks[next]
      if (chunk === undefined) return end(controller)
      next += 1
      if (chunk.delayMs > 0) await clock.sleep(chunk.delayMs, either)
      if (either.aborted) return
      controller.enqueue(typeof chunk.bytes === 'string' ? encoder.encode(chunk.bytes) : chunk.bytes)
    },
    cancel: () => cancelled.abort(),
  })

  async function end(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (ending === 'close') return controller.close()
    if (ending === 'hang') return aborted(either)
    if (connection === null) return controller.error(broken())
    await connection.waitUntilReceived()
    connection.reset()
  }
}

interface Encoding {
  readonly stream: boolean
  readonly deltaSize: number
  readonly delays: Delays
  readonly headers: Answer['headers']
}

/** The reply as one JSON body, or as an event stream with its delays. */
export function encodeReply(reply: WireReply, encoding: Encoding): Answer {
  return encoding.stream ? streamAnswer(reply, encoding) : bodyAnswer(reply, encoding)
}

function streamAnswer(reply: WireReply, { deltaSize, delays, headers }: Encoding): Answer {
  const [head, ...rest] = eventsOf(reply, every(deltaSize))
  const events: readonly ReplyEvent[] = head === undefined ? [] : [head, { type: 'reply-alive' }, ...rest]
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', ...headers },
    chunks: events.map((event) => ({
      bytes: toFrames(event).map(encodeFrame).join(''),
      delayMs: delayBefore(event, delays),
    })),
    ending: 'close',
  }
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

/** A JSON body is sent when the whole reply has been generated, so its delay is the sum of all. */
function bodyAnswer(reply: WireReply, encoding: Encoding): Answer {
  const { blockMs = 0, pieceMs = 0, startMs = 0 } = encoding.delays
  const slow = blockMs + pieceMs > 0
  const delayMs = slow
    ? streamAnswer(reply, encoding).chunks.reduce((sum, chunk) => sum + chunk.delayMs, 0)
    : startMs
  const answer = jsonAnswer(200, toResponse(reply), encoding.headers)
  return { ...answer, chunks: answer.chunks.map((chunk) => ({ ...chunk, delayMs })) }
}
