/**
 * A server of Chat Completions reports the usage of a stream only if it is asked to, in a frame without a choice. The gateway asks
 * for it always, and takes the frame out again where the client did not: clients read the first choice of every frame.
 */
import { isObject, parseJson } from '@tidemark/core/log/json'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { copyHead, isEventStream } from 'tidemark/internal'

const CHAT_PATH = '/chat/completions'

/** Returns a request that asks for the usage of its stream. */
export function withUsageAsked(init: RequestInit, { paths }: ProviderCodec, body: unknown): RequestInit {
  if (paths.reply !== CHAT_PATH || !isObject(body) || body.stream !== true) return init
  const options = isObject(body.stream_options) ? body.stream_options : {}
  if (options.include_usage === true) return init
  return { ...init, body: JSON.stringify({ ...body, stream_options: { ...options, include_usage: true } }) }
}

/** Returns the answer to a client without usage that it did not ask for. `sent` is the request as the client sent it. */
export function withoutAddedUsage(answer: Response, { paths }: ProviderCodec, sent: RequestInit): Response {
  const hasAsked = typeof sent.body === 'string' && /"include_usage"\s*:\s*true/.test(sent.body)
  if (paths.reply !== CHAT_PATH || hasAsked || answer.body === null || !isEventStream(answer)) return answer
  return new Response(answer.body.pipeThrough(createUsageFilter()), copyHead(answer))
}

/** Takes out frames with usage and without a choice. A frame that is not complete waits for the next chunk. */
function createUsageFilter(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder()
  let rest = ''
  return new TransformStream({
    transform(chunk, controller) {
      const frames = (rest + decoder.decode(chunk, { stream: true })).split(/(?<=\n\r?\n)/)
      rest = /\n\r?\n$/.test(frames.at(-1) ?? '') ? '' : (frames.pop() ?? '')
      const kept = frames.filter((frame) => !isUsageFrame(frame)).join('')
      if (kept !== '') controller.enqueue(Buffer.from(kept))
    },
    flush(controller) {
      if (rest !== '') controller.enqueue(Buffer.from(rest))
    },
  })
}

function isUsageFrame(frame: string): boolean {
  if (!frame.startsWith('data:') || !frame.includes('"usage"')) return false
  const data = parseJson(frame.slice('data:'.length))
  return isObject(data) && Array.isArray(data.choices) && data.choices.length === 0 && isObject(data.usage)
}
