/**
 * Passes the response to a client's request on as it arrives, sends pings while it is awaited, and hands the decoded
 * reply to the caller. If the response breaks off, what arrived is handed over, because the provider bills it.
 */
import type { ModelFailure, Reply } from '@tidemark/core/engine/reply'
import { createFailure } from '@tidemark/wire/failure/classify-failure'
import type { ClientCodec, ProviderCodec } from '@tidemark/wire/providers/provider-codec'

interface ResponseReader {
  readonly codec: ProviderCodec
  /** True if thinking is removed before the client gets the response. */
  readonly hidesThinking: boolean
  /** Called once, before the client has the end of the reply. */
  readonly onReply: (reply: Reply) => Promise<void>
  /** Called instead of `onReply` if the reply broke off, with what arrived of it, null if that is nothing, and the reason. */
  readonly onCut: (reply: Reply | null, cause: ModelFailure) => Promise<void>
}

/** The failure if the client stopped waiting for a response, or reading it. */
export const CLIENT_ABORTED = createFailure('aborted', 'The client no longer waits for the answer')

/** Returns the response for the client. `reader` gets the reply, decoded while the client reads the stream. */
export async function readWhilePassing(response: Response, reader: ResponseReader): Promise<Response> {
  if (isEventStream(response) && response.body !== null)
    return new Response(createReadStream(response.body, reader), copyResponseHead(response))
  const text = await response.text().catch(async (thrown: unknown) => {
    // The connection broke, but the provider has answered.
    await reader.onCut(null, createFailure('network', 'The connection broke within the answer'))
    throw thrown
  })
  const { codec } = reader
  const read = codec.decodeBody(text)
  await (read.ok ? reader.onReply(read.reply) : reader.onCut(null, read.failure))
  return withBodyText(response, reader.hidesThinking ? codec.client.removeThinking(text) : text)
}

export function isEventStream({ headers }: Response): boolean {
  return headers.get('content-type')?.includes('text/event-stream') === true
}

/** Returns a response that was read, with a text as its body, unless its status allows none. */
export function withBodyText(response: Response, text: string): Response {
  return new Response(response.body === null ? null : text, copyResponseHead(response))
}

/** Returns status and headers for a copy of a response with another body: without length and encoding of the old one. */
export function copyResponseHead({ status, statusText, headers }: Response): ResponseInit {
  const kept = new Headers(headers)
  for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) kept.delete(name)
  return { status, statusText, headers: kept }
}

/** Returns a stream that decodes the reply while the client reads. The client may also stop before it has read anything. */
function createReadStream(
  body: ReadableStream<Uint8Array>,
  reader: ResponseReader,
): ReadableStream<Uint8Array> {
  const chunks = passChunks(body, reader)
  let isBegun = false
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      isBegun = true
      const step = await chunks.next()
      if (step.done === true) controller.close()
      else controller.enqueue(step.value)
    },
    async cancel(reason: unknown) {
      if (isBegun) return void (await chunks.return(undefined))
      await reader.onCut(null, CLIENT_ABORTED)
      await body.cancel(reason)
    },
  }
  return new ReadableStream(source, { highWaterMark: 0 })
}

/** Passes the bytes of a stream on, and hands over the reply before the last bytes. */
async function* passChunks(
  body: AsyncIterable<Uint8Array>,
  { codec: { decode, client }, hidesThinking, onReply, onCut }: ResponseReader,
): AsyncGenerator<Uint8Array> {
  let state = decode.initial
  let filter = client.thinkingFilter.initial
  let isOver = false
  try {
    for await (const chunk of body) {
      const [next, events] = decode.step(state, chunk)
      state = next
      for (const event of events) {
        if (event.type !== 'reply-ended' && event.type !== 'reply-failed') continue
        isOver = true
        await (event.type === 'reply-ended' ? onReply(event.reply) : onCut(event.reply, event.failure))
      }
      if (!hidesThinking) yield chunk
      else {
        const [filtering, shown] = client.thinkingFilter.step(filter, chunk)
        filter = filtering
        yield shown
      }
    }
  } finally {
    // The client stopped reading, or the connection broke.
    for (const event of isOver ? [] : decode.finish(state))
      if (event.type === 'reply-failed') await onCut(event.reply, event.failure)
  }
}

/**
 * Returns the response when it arrives. If that takes longer than `afterMs`, for example during a compaction, a stream
 * of pings begins, so that clients do not give up; an error then comes as an event of the stream.
 */
export async function withPings(
  answer: Promise<Response>,
  client: ClientCodec,
  afterMs: number,
  everyMs: number,
): Promise<Response> {
  const first = await waitAtMost(answer, afterMs)
  if (first !== null) return first
  return new Response(ReadableStream.from(streamWithPings(answer, client, everyMs)), {
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
  })
}

async function* streamWithPings(
  answer: Promise<Response>,
  client: ClientCodec,
  everyMs: number,
): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  const settled = answer.then(
    (response) => ({ response }),
    (thrown: unknown) => ({ thrown }),
  )
  let isPassedOn = false
  try {
    for (;;) {
      yield encoder.encode(client.ping)
      const end = await waitAtMost(settled, everyMs)
      if (end === null) continue
      isPassedOn = true
      if ('thrown' in end) throw end.thrown
      const { response } = end
      if (response.ok && response.body !== null) yield* response.body
      else yield encoder.encode(client.writeErrorEvent(await response.text()))
      return
    }
  } finally {
    // The client stopped reading before the response came.
    if (!isPassedOn) answer.then(({ body }) => body?.cancel()).catch(() => {})
  }
}

/** Waits for a promise, but not longer than so many milliseconds; null if it is not settled by then. */
async function waitAtMost<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
