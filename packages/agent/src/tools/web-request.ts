/**
 * Sends a request for a web page to addresses that were already checked. The host name is not resolved again, so that its DNS server cannot
 * give another address after the check.
 */
import { type IncomingMessage, request as requestByHttp } from 'node:http'
import { request as requestByHttps } from 'node:https'
import { pipeline, Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { createFixedLookup } from '../sandbox/domain-proxy.ts'

/** Sends a GET request for `url` to one of `addresses`. Redirects are not followed. */
export type SendWebRequest = (
  url: URL,
  addresses: readonly string[],
  signal: AbortSignal,
) => Promise<Response>

const HEADERS = {
  accept: 'text/html, text/plain, */*;q=0.5',
  'accept-encoding': 'gzip, deflate, br',
  'user-agent': 'tidemark',
}

/** Sends the request over the network. With `NODE_USE_ENV_PROXY=1`, the user's proxy resolves the host, not `addresses`. */
export const sendWebRequest: SendWebRequest = (url, addresses, signal) => {
  // A proxy that the user has configured for Node resolves names itself, without the check.
  if (process.env.NODE_USE_ENV_PROXY === '1')
    return fetch(url, { redirect: 'manual', signal, headers: HEADERS })
  const send = url.protocol === 'https:' ? requestByHttps : requestByHttp
  return new Promise((resolve, reject) => {
    // Without an agent, each request opens its own connection. A pooled connection may belong to another check.
    const sent = send(url, { agent: false, signal, headers: HEADERS, lookup: createFixedLookup(addresses) })
    sent.on('error', reject)
    sent.on('response', (message) => resolve(toResponse(message)))
    sent.end()
  })
}

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** Statuses of responses without a body. */
const EMPTY_STATUSES: readonly number[] = [101, 204, 205, 304]

function toResponse(message: IncomingMessage): Response {
  const { statusCode: status = 502, statusMessage: statusText = '' } = message
  const decoder = DECODERS[message.headers['content-encoding']?.trim().toLowerCase() ?? '']?.()
  // The reader of the stream gets errors of the decoder.
  const body = decoder === undefined ? message : pipeline(message, decoder, () => undefined)
  const headers = new Headers()
  for (const name of ['content-type', 'content-length', 'location'] as const) {
    const value = message.headers[name]
    if (value !== undefined) headers.set(name, value)
  }
  const isEmpty = EMPTY_STATUSES.includes(status)
  if (isEmpty) message.resume()
  return new Response(isEmpty ? null : (Readable.toWeb(body) as ReadableStream<Uint8Array>), {
    status,
    statusText: statusText.replace(/[^\t\x20-\x7e]/g, ''),
    headers,
  })
}
