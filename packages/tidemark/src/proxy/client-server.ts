/**
 * Serves clients over HTTP for a host that decides which clients are admitted: `tidemark watch` on loopback, or the
 * gateway. Reads a request, lets the host answer it, and streams the response to the client.
 */
import { isUtf8 } from 'node:buffer'
import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { isObject } from '@tidemark/core/log/json'
import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import { type ClientRoute, findRouteByPath, PROVIDERS } from '../models/providers.ts'
import { describeRedirect, NO_REDIRECTS } from '../models/redirects.ts'
import { badOptionError } from '../platform/argument-errors.ts'
import { runWithPauses } from '../platform/node-ports.ts'

export interface ClientServerOptions {
  /** Decides, before the body is read, whether a request is admitted, and what answers it. */
  admit(request: IncomingMessage, headers: Headers): Promise<AdmittedRequest | RefusedRequest>
  /** Maximum bytes of a request; a larger one is refused with 413, as by the API. Default: 32,000,000. */
  readonly maxBodyBytes?: number
  /** Seconds without a response until a client gets an interim response, and between two of these. Default: 5. */
  readonly interimSeconds?: number
  /** Called for each error that a client gets, from the provider or from the host itself. */
  readonly onError?: (status: number, message: string, caller?: string) => void
}

export interface AdmittedRequest {
  readonly ok: true
  /** Name of the caller for `onError`, such as that of a key. */
  readonly caller?: string
  /** Where the request goes, with its query. */
  readonly url: string
  /** The headers to send. */
  readonly headers: Headers
  answer(url: string, init: RequestInit): Promise<Response>
}

/** A request that is answered with an error in the format of its API. */
export interface RefusedRequest {
  readonly ok: false
  readonly caller?: string
  readonly status: number
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
}

interface ClientHost {
  /** Number of responses that are being sent. */
  readonly running: number
  /** Answers one request. Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
}

const DEFAULT_MAX_BODY_BYTES = 32_000_000
const DEFAULT_INTERIM_SECONDS = 5

export function createClientServer(options: ClientServerOptions): ClientHost {
  let running = 0
  return {
    get running() {
      return running
    },
    async handle(request, response) {
      running += 1
      response.on('close', () => {
        running -= 1
      })
      await answerClient(request, response, options).catch((thrown: unknown) => {
        // If the client has closed the connection, nothing has failed and nothing can be sent.
        if (response.destroyed) return
        refuseClient(request, response, options, refuse(502, describeFault(thrown)))
      })
    },
  }
}

/** Milliseconds that running responses get to end. */
const DRAIN_MS = 10_000

/**
 * Accepts no more connections, and waits up to `drainMs` for running responses, then closes their connections. What still comes on an open connection is
 * answered, and the connection ends with that answer: a proxy in front sends its next request to another process, and a client
 * that asks again and again does not hold this one.
 */
export async function closeServer(server: Server, drainMs = DRAIN_MS): Promise<void> {
  const closed = once(server, 'close')
  server.prependListener('request', (_request, response) => response.setHeader('connection', 'close'))
  server.close()
  server.closeIdleConnections()
  const late = setTimeout(() => server.closeAllConnections(), drainMs)
  await closed
  clearTimeout(late)
}

export async function listenOn(server: Server, host: string, port: number): Promise<void> {
  server.listen(port, host)
  await once(server, 'listening').catch((cause: Error) => {
    throw badOptionError(
      'port',
      `The proxy cannot listen on ${host}:${port} (${cause.message}). Choose another port, or 0 for any that is free.`,
    )
  })
}

function refuse(status: number, message: string): RefusedRequest {
  return { ok: false, status, message }
}

async function answerClient(
  request: IncomingMessage,
  response: ServerResponse,
  options: ClientServerOptions,
): Promise<void> {
  const admitted = await options.admit(request, readHeaders(request))
  if (!admitted.ok) return refuseClient(request, response, options, admitted)
  const stop = new AbortController()
  response.on('close', () => {
    if (!response.writableFinished) stop.abort()
  })
  const body = await readBody(request, options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES)
  if (body === null) {
    // The rest of the body is received and dropped, because many clients read no response before they have sent all,
    // and fail if they cannot.
    request.resume()
    return refuseClient(request, response, options, {
      ...refuse(413, 'Request exceeds the maximum size'),
      ...(admitted.caller === undefined ? {} : { caller: admitted.caller }),
    })
  }
  const init: RequestInit = {
    method: request.method ?? 'GET',
    headers: admitted.headers,
    signal: stop.signal,
    ...NO_REDIRECTS,
    ...(body.length === 0 ? {} : { body }),
  }
  const interimMs = (options.interimSeconds ?? DEFAULT_INTERIM_SECONDS) * 1000
  const interim = takesInterimResponses(request)
    ? setInterval(() => sendInterimResponse(response), interimMs)
    : undefined
  try {
    const answer = await admitted.answer(admitted.url, init)
    clearInterval(interim)
    const redirect = describeRedirect(answer)
    if (redirect !== null) return refuseClient(request, response, options, refuse(502, redirect))
    if (answer.status >= 400) await reportError(answer, options, admitted.caller)
    await sendAnswer(answer, response)
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown
    response.destroy()
  } finally {
    clearInterval(interim)
  }
}

/** Addresses of the providers, without `/v1`. */
interface Upstreams {
  readonly anthropic: string
  readonly openai: string
}

/** The providers' own addresses. */
export const PROVIDER_UPSTREAMS: Upstreams = {
  anthropic: 'https://api.anthropic.com',
  openai: 'https://api.openai.com',
}

/** Maximum number of tokens that are remembered. One machine uses few. */
const MOST_KNOWN_TOKENS = 100

/**
 * Returns a function that finds the provider of a request: by its path, or by its headers if both providers have the path, such
 * as that of the model list. A token that came with a path of only one provider identifies that provider later.
 */
export function createUpstreamFinder(
  upstreams: Upstreams,
): (path: string, headers: IncomingHttpHeaders) => string {
  const providersByToken = new Map<string, string>()
  const toAddress = (provider: ClientRoute['provider']): string =>
    provider === PROVIDERS[0] ? upstreams.anthropic : upstreams.openai
  return (path, headers) => {
    const { authorization = '' } = headers
    const route = findRouteByPath(path.split('?')[0] ?? path)
    if (route !== null) {
      const found = toAddress(route.provider)
      if (authorization !== '' && providersByToken.size < MOST_KNOWN_TOKENS)
        providersByToken.set(authorization, found)
      return found
    }
    const known = providersByToken.get(authorization)
    if (known !== undefined) return known
    const reader = { get: (name: string) => headers[name]?.toString() ?? null }
    return toAddress(PROVIDERS.find(({ codec }) => codec.client.isOwnClient(reader)) ?? PROVIDERS[0])
  }
}

/** Sends a request with its body in pieces. From a large text, `fetch` would create all bytes at once and copy them twice. */
export const sendUpstream: typeof globalThis.fetch = async (input, init) => {
  const body = init?.body
  if (typeof body !== 'string' || body.length < PIECE) return globalThis.fetch(input, init)
  return globalThis.fetch(input, { ...init, body: await runWithPauses(encodeInPieces(body)) })
}

/** Characters that are converted to bytes in one step. */
const PIECE = 50_000

/** Returns the bytes of a text as a blob, which `fetch` reads piece by piece and whose length it knows. */
function* encodeInPieces(text: string): WorkInSteps<Blob> {
  const pieces: Blob[] = []
  for (let from = 0; from < text.length; ) {
    const isPairCut = (text.codePointAt(from + PIECE - 1) ?? 0) > 0xffff
    const to = from + PIECE + (isPairCut ? 1 : 0)
    pieces.push(new Blob([text.slice(from, to)]))
    yield to - from
    from = to
  }
  return new Blob(pieces)
}

/**
 * True for clients that accept interim responses (102). While a compaction runs, a client that waits for the status may time out.
 * Interim responses restart the timer of the official SDKs for JavaScript and Python; other clients may misread them.
 */
function takesInterimResponses({ headers }: IncomingMessage): boolean {
  return headers['x-stainless-lang'] === 'js' || headers['x-stainless-lang'] === 'python'
}

function sendInterimResponse(response: ServerResponse): void {
  if (!response.headersSent && !response.destroyed) response.writeProcessing()
}

/**
 * Returns the body as text if the text keeps every byte, else as bytes. Null if it exceeds the limit; the rest is then
 * left to the caller. Decoded as it arrives, so that a large body does not block other requests.
 */
async function readBody(
  request: IncomingMessage,
  maxBytes: number,
): Promise<string | Uint8Array<ArrayBuffer> | null> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return null
  const decoder = new StringDecoder('utf8')
  const chunks: Buffer[] = []
  const pieces: string[] = []
  let length = 0
  const data: AsyncIterable<Buffer> = request.iterator({ destroyOnReturn: false })
  for await (const chunk of data) {
    length += chunk.length
    if (length > maxBytes) return null
    chunks.push(chunk)
    pieces.push(decoder.write(chunk))
  }
  pieces.push(decoder.end())
  // The decoder replaces invalid bytes by U+FFFD.
  if (!pieces.some((piece) => piece.includes('\ufffd'))) return pieces.join('')
  const bytes = Buffer.concat(chunks)
  return isUtf8(bytes) ? pieces.join('') : new Uint8Array(bytes)
}

/** Headers that concern one connection only. They are not passed on. */
const HOP_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

function readHeaders({ headers }: IncomingMessage): Headers {
  const kept = new Headers()
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !HOP_HEADERS.has(name))
      kept.set(name, Array.isArray(value) ? value.join(', ') : value)
  return kept
}

/** Reports an error of the provider, with its message. The answer can still be sent. */
async function reportError(
  answer: Response,
  { onError }: ClientServerOptions,
  caller: string | undefined,
): Promise<void> {
  onError?.(answer.status, readErrorMessage(await answer.clone().text()) ?? answer.statusText, caller)
}

/** Returns the message of an error response; null for other text, such as an HTML page. */
function readErrorMessage(text: string): string | null {
  try {
    const body: unknown = JSON.parse(text)
    const error = isObject(body) ? (body.error ?? body) : null
    return isObject(error) && typeof error.message === 'string' ? error.message : null
  } catch {
    return null
  }
}

async function sendAnswer(answer: Response, response: ServerResponse): Promise<void> {
  const headers = [...answer.headers].filter(
    ([name]) => !HOP_HEADERS.has(name) && name !== 'content-encoding',
  )
  response.writeHead(answer.status, Object.fromEntries(headers))
  // The status is sent before the first byte of the body, so that the client learns early that its request was accepted.
  response.flushHeaders()
  for await (const chunk of answer.body ?? []) {
    if (response.destroyed) return
    if (!response.write(chunk)) await waitForRoom(response)
  }
  response.end()
}

/** Resolves when the client has read what was sent, or has closed the connection. */
function waitForRoom(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      response.off('drain', end).off('close', end)
      resolve()
    }
    response.on('drain', end).on('close', end)
  })
}

/** Answers with an error in the format of the API. Once the answer has begun, the connection is cut instead. */
function refuseClient(
  { url = '' }: IncomingMessage,
  response: ServerResponse,
  { onError }: ClientServerOptions,
  { status, message, headers, caller }: RefusedRequest,
): void {
  onError?.(status, message, caller)
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.writeHead(status, { ...headers, 'content-type': 'application/json' })
  const [path = ''] = url.split('?')
  const { codec } = findRouteByPath(path)?.provider ?? PROVIDERS[0]
  response.end(JSON.stringify(codec.client.createErrorBody(status, message)))
}

function describeFault(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  return thrown.cause instanceof Error ? `${thrown.message}: ${thrown.cause.message}` : thrown.message
}
