/** Encodes a reply as an HTTP answer, and sends an HTTP answer with its delays and its ending. */

import type { ReplyEvent, Reply as WireReply } from '@tidemark/core/engine/reply'
import { encodeReplyEvent } from '@tidemark/wire/anthropic/reply-frames'
import { encodeResponseBody } from '@tidemark/wire/anthropic/response-body'
import { encodeSseFrame } from '@tidemark/wire/http/sse'
import { createReplySplitter, replyToEvents } from '@tidemark/wire/providers/reply-events'
import { type BodyChunk, createJsonAnswer, type HttpAnswer } from '../protocol/answer.ts'
import type { Clock } from '../protocol/clock-and-ids.ts'
import type { ReplyDelays } from '../scripts/script.ts'

/** Network connection of a request, for faults that reset the connection. */
export interface ClientConnection {
  reset(): void
  /** Resolves when everything that was written has been sent to the client. */
  waitUntilReceived(): Promise<void>
}

interface SendOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Called when the first byte of a successful answer is sent. */
  begin(): void
  /** Called instead of `begin` if the answer ends, or the client leaves, before the first byte. */
  abandon(): void
  /** Network connection of the request; null for a simulator in memory, which has no socket to reset. */
  readonly connection: ClientConnection | null
}

/** Thrown if the connection breaks before the answer begins. The message is the one that `fetch` uses in this case. */
export class BrokenConnectionError extends TypeError {}

function createBrokenConnection(): BrokenConnectionError {
  return new BrokenConnectionError('fetch failed', {
    cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
  })
}

/**
 * Sends an answer. Resolves with the response when the answer begins. Rejects with a `BrokenConnectionError` if the
 * connection breaks before that.
 */
export async function sendAnswer(answer: HttpAnswer, sending: SendOptions): Promise<Response> {
  const chunks = mergeChunks(answer.chunks)
  const [first, ...rest] = chunks
  if (first === undefined) return sendEmptyAnswer(answer, sending)
  if (first.delayMs > 0) await sending.clock.sleep(first.delayMs, sending.signal)
  if (sending.signal.aborted) {
    sending.abandon()
    throw createBrokenConnection()
  }
  if (answer.status === 200) sending.begin()
  const head = { status: answer.status, headers: answer.headers }
  if (rest.length === 0 && answer.ending === 'close') return new Response(first.bytes, head)
  return new Response(createBodyStream([{ ...first, delayMs: 0 }, ...rest], answer.ending, sending), head)
}

async function sendEmptyAnswer(answer: HttpAnswer, sending: SendOptions): Promise<Response> {
  if (answer.ending === 'hang') await waitForAbort(sending.signal)
  if (answer.status === 200) sending.abandon()
  if (answer.ending === 'close') return new Response(null, { status: answer.status, headers: answer.headers })
  sending.connection?.reset()
  throw createBrokenConnection()
}

function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Merges every body chunk that has no delay into the chunk before it. */
function mergeChunks(chunks: readonly BodyChunk[]): readonly BodyChunk[] {
  const groups: { bytes: (string | Uint8Array<ArrayBuffer>)[]; delayMs: number }[] = []
  for (const { bytes, delayMs } of chunks) {
    const last = groups.at(-1)
    if (last === undefined || delayMs > 0) groups.push({ bytes: [bytes], delayMs })
    else last.bytes.push(bytes)
  }
  return groups.map(({ bytes, delayMs }) => ({ bytes: joinBytes(bytes), delayMs }))
}

function joinBytes(parts: readonly (string | Uint8Array<ArrayBuffer>)[]): string | Uint8Array<ArrayBuffer> {
  const [only] = parts
  if (parts.length === 1 && only !== undefined) return only
  if (parts.every((part) => typeof part === 'string')) return parts.join('')
  return Buffer.concat(parts.map((part) => Buffer.from(part)))
}

function createBodyStream(
  chunks: readonly BodyChunk[],
  ending: HttpAnswer['ending'],
  { clock, signal, connection }: SendOptions,
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
    if (ending === 'hang') return waitForAbort(either)
    if (connection === null) return controller.error(createBrokenConnection())
    await connection.waitUntilReceived()
    connection.reset()
  }
}

interface EncodeOptions {
  readonly stream: boolean
  readonly deltaSize: number
  readonly delays: ReplyDelays
  readonly headers: HttpAnswer['headers']
}

/** Creates the answer with status 200 that contains the reply, as one JSON body or as an event stream, with its delays. */
export function createReplyAnswer(reply: WireReply, encoding: EncodeOptions): HttpAnswer {
  return encoding.stream ? encodeStream(reply, encoding) : encodeJsonBody(reply, encoding)
}

function encodeStream(reply: WireReply, { deltaSize, delays, headers }: EncodeOptions): HttpAnswer {
  const [head, ...rest] = replyToEvents(reply, createReplySplitter(deltaSize))
  const events: readonly ReplyEvent[] = head === undefined ? [] : [head, { type: 'reply-alive' }, ...rest]
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', ...headers },
    chunks: events.map((event) => ({
      bytes: encodeReplyEvent(event).map(encodeSseFrame).join(''),
      delayMs: chooseDelay(event, delays),
    })),
    ending: 'close',
  }
}

function chooseDelay(event: ReplyEvent, delays: ReplyDelays): number {
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

/**
 * Encodes the reply as one JSON body. It is sent after the whole reply has been generated, so its delay is the sum of
 * all delays.
 */
function encodeJsonBody(reply: WireReply, encoding: EncodeOptions): HttpAnswer {
  const { blockMs = 0, pieceMs = 0, startMs = 0 } = encoding.delays
  const slow = blockMs + pieceMs > 0
  const delayMs = slow
    ? encodeStream(reply, encoding).chunks.reduce((sum, chunk) => sum + chunk.delayMs, 0)
    : startMs
  const answer = createJsonAnswer(200, encodeResponseBody(reply), encoding.headers)
  return { ...answer, chunks: answer.chunks.map((chunk) => ({ ...chunk, delayMs })) }
}
