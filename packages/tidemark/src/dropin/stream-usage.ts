/**
 * A server of Chat Completions reports the usage of a stream only on request, in a frame without a choice. Managed requests ask
 * for it. If the client did not ask, the frame is removed from the response, because clients read the first choice of every
 * frame.
 */
import { isObject, type JsonObject, parseJson } from '@tidemark/core/log/json'
import type { ClientRequest } from '@tidemark/wire/providers/client-request'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { copyResponseHead, isEventStream } from './client-response.ts'

const CHAT_PATH = '/chat/completions'

/** Adds to a client's stream request the field that asks for usage, if the protocol needs it and the client did not set it. */
export function withUsageRequested(init: RequestInit, codec: ProviderCodec, body: unknown): RequestInit {
  if (!isObject(body) || body.stream !== true || !lacksUsage(codec, body)) return init
  return { ...init, body: JSON.stringify({ ...body, ...askUsage(body as JsonObject) }) }
}

/** The same for the client's parsed request, from whose own fields the engine's request is made. */
export function withEngineUsageRequested(request: ClientRequest, codec: ProviderCodec): ClientRequest {
  const { isStream, ownFields } = request
  if (!isStream || !lacksUsage(codec, ownFields)) return request
  return { ...request, ownFields: { ...ownFields, ...askUsage(ownFields) } }
}

function lacksUsage({ paths }: ProviderCodec, { stream_options: options }: UsageFields): boolean {
  return paths.reply === CHAT_PATH && !(isObject(options) && options.include_usage === true)
}

interface UsageFields {
  readonly stream_options?: unknown
}

function askUsage({ stream_options: options }: JsonObject): JsonObject {
  return { stream_options: { ...(isObject(options) ? (options as JsonObject) : {}), include_usage: true } }
}

/** Returns the response without usage that the client did not ask for. `sent`: the usage fields of the client's request. */
export function withoutAddedUsage(answer: Response, codec: ProviderCodec, sent: UsageFields): Response {
  if (!lacksUsage(codec, sent) || answer.body === null || !isEventStream(answer)) return answer
  return new Response(answer.body.pipeThrough(createUsageFilter()), copyResponseHead(answer))
}

/** Removes frames of the stream that have usage and no choice. An incomplete frame is held until the next chunk. */
function createUsageFilter(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
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
