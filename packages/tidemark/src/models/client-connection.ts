/**
 * Sends the engine's own calls, such as those for summaries, as the client would send them: to the address of its
 * request, with the credentials of its request, through its `fetch`.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ProviderCodec, RouteKind } from '@tidemark/wire/providers/provider-codec'

/** What calls of the engine take over from a client's request. */
export interface ClientConnection {
  /** The protocol of the request. */
  readonly codec: ProviderCodec
  /** Address of the request. */
  readonly url: string
  readonly headers: Headers
  readonly send: typeof globalThis.fetch
}

/** The client's request for which the running code works, also in the background; undefined outside of such work. */
export const currentClientConnection = new AsyncLocalStorage<ClientConnection>()

/**
 * Sends a call of a model without an address of its own. While a client's request in the same protocol is answered, it goes
 * through the client's `fetch`, to the client's address with its credentials; otherwise through the global `fetch`.
 */
export const fetchAsClient: typeof globalThis.fetch = (input, init) => {
  const connection = currentClientConnection.getStore()
  return connection === undefined || findKind(connection, readUrl(input)) === null
    ? globalThis.fetch(input, init)
    : sendAsClient(connection, input, init)
}

/** Sends a call of the engine to the client's address, with the client's headers and credentials, through its `fetch`. */
export function sendAsClient(
  connection: ClientConnection,
  input: Parameters<typeof globalThis.fetch>[0],
  init: RequestInit = {},
): Promise<Response> {
  const headers = mergeHeaders(connection, new Headers(init.headers))
  return connection.send(findAddress(connection, readUrl(input)), { ...init, headers })
}

function readUrl(input: Parameters<typeof globalThis.fetch>[0]): string {
  return input instanceof Request ? input.url : String(input)
}

function findKind({ codec }: ClientConnection, url: string): RouteKind | null {
  return URL.canParse(url) ? codec.client.findRouteKind(new URL(url).pathname) : null
}

/** Returns the client's address for the kind of call that the engine makes, such as counting tokens. */
function findAddress(connection: ClientConnection, engine: string): string {
  const { url, codec } = connection
  const [own, asked] = [findKind(connection, url), findKind(connection, engine)]
  const [from, to] = [own, asked].map((kind) => (kind === null ? undefined : codec.paths[kind]))
  if (own === asked || from === undefined || to === undefined) return url
  const address = new URL(url)
  if (address.pathname.endsWith(from)) address.pathname = address.pathname.slice(0, -from.length) + to
  return address.href
}

/** Headers of the client's request that must not be copied to another request. */
const OWN_HEADERS = [
  'content-length',
  'content-encoding',
  'idempotency-key',
  'x-stainless-retry-count',
  'host',
]

/** Returns the client's headers, with the headers about the body taken from the engine's call. */
function mergeHeaders({ headers, codec }: ClientConnection, engine: Headers): Headers {
  const merged = new Headers(headers)
  for (const name of OWN_HEADERS) merged.delete(name)
  for (const name of codec.client.bodyHeaders) {
    const value = engine.get(name)
    if (value === null) merged.delete(name)
    else merged.set(name, value)
  }
  return merged
}
