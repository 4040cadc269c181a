/**
 * Sends the engine's own calls, such as summaries, in the way of the client whose request they are made for: to its
 * address, with its credentials, through its `fetch`.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** A request of a client, as far as another call needs it. */
export interface ClientConnection {
  /** Address of the messages of the API. */
  readonly url: string
  readonly headers: Headers
  readonly send: typeof globalThis.fetch
}

/** The request that a client is being answered, in everything that runs for it, also in the background. */
export const clientConnections = new AsyncLocalStorage<ClientConnection>()

/** A `fetch` for a model without an address of its own: that of the client, if a request of one is being answered. */
export const fetchAsClient: typeof globalThis.fetch = (input, init) => {
  const connection = clientConnections.getStore()
  return connection === undefined ? globalThis.fetch(input, init) : sendAsClient(connection, input, init)
}

/** Sends a call of the engine with the address and the credentials of a client. */
export function sendAsClient(
  { url, headers, send }: ClientConnection,
  input: Parameters<typeof globalThis.fetch>[0],
  init: RequestInit = {},
): Promise<Response> {
  const path = input instanceof Request ? input.url : String(input)
  const address = path.endsWith(COUNT_PATH) ? url.replace(MESSAGES_END, COUNT_PATH) : url
  return send(address, { ...init, headers: mergeHeaders(headers, new Headers(init.headers)) })
}

const COUNT_PATH = '/v1/messages/count_tokens'
const MESSAGES_END = /\/v1\/messages(?=$|\?)/

/** Headers of the client's request that do not hold for another request. */
const OWN_HEADERS = [
  'content-length',
  'content-encoding',
  'idempotency-key',
  'x-stainless-retry-count',
  'host',
]

/** Returns the client's headers with those of the engine's call that are about its body. */
function mergeHeaders(client: Headers, engine: Headers): Headers {
  const merged = new Headers(client)
  for (const name of OWN_HEADERS) merged.delete(name)
  for (const name of ['content-type', 'accept', 'anthropic-beta']) {
    const value = engine.get(name)
    if (value === null) merged.delete(name)
    else merged.set(name, value)
  }
  return merged
}
