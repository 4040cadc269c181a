/**
 * Serves clients over HTTP for a host that decides which of them are answered: `tidemark watch` on loopback, or the gateway.
 * Reads a request, has it answered, and passes the response on as it comes.
 */
import { isUtf8 } from 'node:buffer'
import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { isObject } from '@tidemark/core/log/json'
import type { Steps } from '@tidemark/core/log/work-steps'
import { type ClientRoute, findRouteByPath, PROVIDERS } from '../models/providers.ts'
import { describeRedirect, NO_REDIRECTS } from '../models/redirects.ts'
import { badOptionError } from '../platform/argument-errors.ts'
import { runWithPauses } from '../platform/node-ports.ts'

export interface ClientHostOptions {
  /** Decides, before the body is read, whether a request is answered, and by whom. */
  admit(request: IncomingMessage, headers: Headers): Promise<AdmittedRequest | RefusedRequest>
  /** Most bytes of a request; a larger one is refused with 413, as by the API. Default: 32,000,000. */
  readonly maxBodyBytes?: number
  /** Seconds without a response after which a client gets an interim response, and between two of them. Default: 5. */
  readonly interimSeconds?: number
  /** Called for an answer with an error, of the provider or of the host itself. */
  readonly onError?: (status: number, message: string) => void
}

export interface AdmittedRequest {
  readonly ok: true
  /** Where the request goes, with its query. */
  readonly url: string
  /** The headers to send. */
  readonly headers: Headers
  answer(url: string, init: RequestInit): Promise<Response>
}

/** A request that is answered with an error in the format of its API. */
export interface RefusedRequest {
  readonly ok: false
  readonly status: number
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
}

interface ClientHost {
  /** Answers that are being sent. */
  readonly running: number
  /** Answers one request. Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
}

const DEFAULT_MAX_BODY_BYTES = 32_000_000
const DEFAULT_INTERIM_SECONDS = 5

export function createClientHost(options: ClientHostOptions): ClientHost {
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
      await answerClient(request, response, options).catch((thrown: unknown) =>
        refuseClient(request, response, options, refuse(502, describeFault(thrown))),
      )
    },
  }
}

/** Milliseconds that running answers get to end. */
const DRAIN_MS = 10_000

/** Takes no more requests, and waits for running answers, at most for a moment. */
export async function closeServer(server: Server, drainMs = DRAIN_MS): Promise<void> {
  const closed = once(server, 'close')
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
  options: ClientHostOptions,
): Promise<void> {
  const admitted = await options.admit(request, readHeaders(request))
  if (!admitted.ok) return refuseClient(request, response, options, admitted)
  const stop = new AbortController()
  response.on('close', () => {
    if (!response.writableFinished) stop.abort()
  })
  const body = await readBody(request, options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES)
  if (body === null) {
    // The rest of the body is not read, so the connection cannot be used again.
    response.setHeader('connection', 'close')
    return refuseClient(request, response, options, refuse(413, 'Request exceeds the maximum size'))
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
    if (answer.status >= 400) await reportError(answer, options)
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

/** Addresses of the providers themselves. */
export const PROVIDER_UPSTREAMS: Upstreams = {
  anthropic: 'https://api.anthropic.com',
  openai: 'https://api.openai.com',
}

/** Tokens that are remembered. A machine has few. */
const MOST_KNOWN_TOKENS = 100

/**
 * Returns a function that finds the provider that a request is for: by its path, or, for paths that both have, such as that
 * of the models, by its headers. A token that came with a path of one provider belongs to it.
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
    return toAddress(PROVIDERS.find(({ codec }) => codec.client.knowsClient(reader)) ?? PROVIDERS[0])
  }
}

/** Sends a request. `fetch` would make the bytes of a large text in one piece, and then copy them twice. */
export const sendUpstream: typeof globalThis.fetch = async (input, init) => {
  const body = init?.body
  if (typeof body !== 'string' || body.length < PIECE) return globalThis.fetch(input, init)
  return globalThis.fetch(input, { ...init, body: await runWithPauses(encodeInPieces(body)) })
}

/** Characters that are made bytes in one step. */
const PIECE = 50_000

/** Returns the bytes of a text as a blob, which `fetch` reads piece by piece and whose length it knows. */
function* encodeInPieces(text: string): Steps<Blob> {
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
 * Clients that wait for the status of a response while a compaction runs may give up. The official ones for JavaScript and
 * Python take interim responses (102), which restart their timers; other HTTP clients may take one for the answer.
 */
function takesInterimResponses({ headers }: IncomingMessage): boolean {
  return headers['x-stainless-lang'] === 'js' || headers['x-stainless-lang'] === 'python'
}

function sendInterimResponse(response: ServerResponse): void {
  if (!response.headersSent && !response.destroyed) response.writeProcessing()
}

/**
 * Returns the body as text if that keeps every byte, otherwise the bytes; null if it is larger than allowed, when the rest is
 * neither read nor kept. Text is decoded as it comes, so that a large one does not hold up other requests.
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
  // The decoder puts U+FFFD in the place of bytes that are no text.
  if (!pieces.some((piece) => piece.includes('\ufffd'))) return pieces.join('')
  const bytes = Buffer.concat(chunks)
  return isUtf8(bytes) ? pieces.join('') : new Uint8Array(bytes)
}

/** Headers of one connection, which are not passed on. */
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
async function reportError(answer: Response, { onError }: ClientHostOptions): Promise<void> {
  onError?.(answer.status, readErrorMessage(await answer.clone().text()) ?? answer.statusText)
}

/** Returns the message of an error response; null for another text, such as the page of a gateway. */
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
  // A client learns that its request was accepted before the first byte of a slow answer.
  response.flushHeaders()
  for await (const chunk of answer.body ?? []) {
    if (response.destroyed) return
    if (!response.write(chunk)) await waitForRoom(response)
  }
  response.end()
}

/** Resolves when the client has read what waits for it, or has gone. */
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
  { onError }: ClientHostOptions,
  { status, message, headers }: RefusedRequest,
): void {
  onError?.(status, message)
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.writeHead(status, { ...headers, 'content-type': 'application/json' })
  const [path = ''] = url.split('?')
  const { codec } = findRouteByPath(path)?.provider ?? PROVIDERS[0]
  response.end(JSON.stringify(codec.client.refuse(status, message)))
}

function describeFault(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  return thrown.cause instanceof Error ? `${thrown.message}: ${thrown.cause.message}` : thrown.message
}
