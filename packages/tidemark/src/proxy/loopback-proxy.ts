/**
 * A proxy on this machine for clients that can only set a base URL. Requests for messages go through
 * sessions, as with `tidemark.fetch`; everything else is passed on. A token in the address keeps other users out.
 */
import { isUtf8 } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import { isObject } from '@tidemark/core/log/json'
import type { Steps } from '@tidemark/core/log/work-steps'
import {
  type ChatServer,
  type ClientTidemark,
  type ClientTidemarkOptions,
  createClientTidemark,
} from '../library/client-tidemark.ts'
import { type ClientRoute, findRouteByPath, PROVIDERS } from '../models/providers.ts'
import { describeRedirect, NO_REDIRECTS } from '../models/redirects.ts'
import { badOptionError } from '../platform/argument-errors.ts'
import { runWithPauses } from '../platform/node-ports.ts'

interface LoopbackProxyOptions extends ClientTidemarkOptions {
  /** Address of the Messages API, without `/v1`. */
  readonly upstream: string
  /** Address of OpenAI's APIs, without `/v1`. Default: OpenAI's own. */
  readonly upstreamOpenai?: string
  /** The server behind `upstreamOpenai`, if it speaks Chat Completions and is not OpenAI. */
  readonly chatServer?: ChatServer
  /** The first part of the path of every request; a request without it is refused. */
  readonly token: string
  /** Default: one that is free. */
  readonly port?: number
  /** Most bytes of a request; a larger one is refused with 413, as by the API. Default: 32,000,000. */
  readonly maxBodyBytes?: number
  /** Called for an answer with an error, of the provider or of the proxy itself. */
  readonly onError?: (status: number, message: string) => void
}

export interface LoopbackProxy {
  /** The base URL for clients. */
  readonly url: string
  /** Answers that are being sent. */
  readonly running: number
  /** Undoes a compaction or clearing of a session that is open here; null if it is not. */
  undo: ClientTidemark['undo']
  /** Takes no more requests, waits for running answers, at most for a moment, and closes the sessions. */
  close(): Promise<void>
}

export async function serveLoopbackProxy(options: LoopbackProxyOptions): Promise<LoopbackProxy> {
  const { token, port = 0, maxBodyBytes = 32_000_000, onError = () => {}, ...rest } = options
  const { upstream, upstreamOpenai = OPENAI_UPSTREAM, chatServer, ...own } = rest
  const tide = createClientTidemark(own, chatServer)
  const interimMs = (own.pingSeconds ?? DEFAULT_INTERIM_SECONDS) * 1000
  const providersByToken = new Map<string, string>()
  let running = 0
  const server = createServer((request, response) => {
    running += 1
    response.on('close', () => {
      running -= 1
    })
    const services = {
      tide,
      upstream,
      upstreamOpenai,
      providersByToken,
      token,
      onError,
      interimMs,
      maxBodyBytes,
    }
    answerClient(request, response, services).catch((thrown: unknown) =>
      refuseClient(request, response, services, 502, describeFault(thrown)),
    )
  })
  await listen(server, port)
  const address = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${address.port}/${token}`,
    get running() {
      return running
    },
    undo: tide.undo,
    async close() {
      await closeServer(server)
      await tide.close()
    },
  }
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening').catch((cause: Error) => {
    throw badOptionError(
      'port',
      `The proxy cannot listen on 127.0.0.1:${port} (${cause.message}). Choose another port, or 0 for any that is free.`,
    )
  })
}

/** Milliseconds that running answers get to end. */
const DRAIN_MS = 10_000

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  const late = setTimeout(() => server.closeAllConnections(), DRAIN_MS)
  await closed
  clearTimeout(late)
}

const DEFAULT_INTERIM_SECONDS = 5

interface ProxyServices {
  /** Milliseconds without a response after which a client gets an interim response. */
  readonly interimMs: number
  readonly tide: ClientTidemark
  readonly upstream: string
  readonly upstreamOpenai: string
  /** The provider to which each token was sent, by the path of its request. */
  readonly providersByToken: Map<string, string>
  readonly token: string
  readonly maxBodyBytes: number
  readonly onError: (status: number, message: string) => void
}

async function answerClient(
  request: IncomingMessage,
  response: ServerResponse,
  services: ProxyServices,
): Promise<void> {
  const { tide, token, interimMs, maxBodyBytes } = services
  const [, given = '', ...path] = (request.url ?? '').split('/')
  if (!isSameText(given, token))
    return refuseClient(
      request,
      response,
      services,
      404,
      'The address lacks the token that tidemark printed.',
    )
  const foreign = findForeignCaller(request.headers)
  if (foreign !== null) return refuseClient(request, response, services, 403, foreign)
  const stop = new AbortController()
  response.on('close', () => {
    if (!response.writableFinished) stop.abort()
  })
  const body = await readBody(request, maxBodyBytes)
  if (body === null) {
    // The rest of the body is not read, so the connection cannot be used again.
    response.setHeader('connection', 'close')
    return refuseClient(request, response, services, 413, 'Request exceeds the maximum size')
  }
  const init: RequestInit = {
    method: request.method ?? 'GET',
    headers: readHeaders(request),
    signal: stop.signal,
    ...NO_REDIRECTS,
    ...(body.length === 0 ? {} : { body }),
  }
  const interim = takesInterimResponses(request)
    ? setInterval(() => sendInterimResponse(response), interimMs)
    : undefined
  try {
    const rest = `/${path.join('/')}`
    const answer = await tide.answer(
      `${findUpstream(rest, request.headers, services)}${rest}`,
      init,
      sendUpstream,
    )
    clearInterval(interim)
    const redirect = describeRedirect(answer)
    if (redirect !== null) return refuseClient(request, response, services, 502, redirect)
    if (answer.status >= 400) await reportError(answer, services)
    await sendAnswer(answer, response)
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown
    response.destroy()
  } finally {
    clearInterval(interim)
  }
}

/** Tokens that are remembered. A machine has few. */
const MOST_KNOWN_TOKENS = 100
const OPENAI_UPSTREAM = 'https://api.openai.com'

/**
 * Returns the provider that a request is for: by its path, or, for paths that both have, such as that of the models, by its
 * headers. A token that came with a path of one provider belongs to it.
 */
function findUpstream(
  path: string,
  headers: IncomingHttpHeaders,
  { upstream, upstreamOpenai, providersByToken }: ProxyServices,
): string {
  const { authorization = '' } = headers
  const toAddress = (provider: ClientRoute['provider']): string =>
    provider === PROVIDERS[0] ? upstream : upstreamOpenai
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

/** Sends a request. `fetch` would make the bytes of a large text in one piece, and then copy them twice. */
const sendUpstream: typeof globalThis.fetch = async (input, init) => {
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

function isSameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
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

/**
 * Returns an error text for a request of a web page: its `Origin` is no address of this proxy, or its `Host` is a name
 * that the page's own DNS points to this machine. Clients that are no browsers name the address and no origin.
 */
function findForeignCaller({ host = '', origin }: IncomingHttpHeaders): string | null {
  const { hostname } = URL.parse(`http://${host}`) ?? { hostname: '' }
  if (!OWN_HOSTS.has(hostname)) return `Host ${host}: expected 127.0.0.1 or localhost.`
  if (origin === undefined || origin === `http://${host}`) return null
  return `Origin ${origin}: pages of other sites are not answered.`
}

const OWN_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])

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
async function reportError(answer: Response, { onError }: ProxyServices): Promise<void> {
  onError(answer.status, readErrorMessage(await answer.clone().text()) ?? answer.statusText)
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
    if (!response.write(chunk)) await Promise.race([once(response, 'drain'), once(response, 'close')])
  }
  response.end()
}

/** Answers with an error in the format of the API. Once the answer has begun, the connection is cut instead. */
function refuseClient(
  { url = '' }: IncomingMessage,
  response: ServerResponse,
  { onError }: ProxyServices,
  status: number,
  message: string,
): void {
  onError(status, message)
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.writeHead(status, { 'content-type': 'application/json' })
  const [path = ''] = url.split('?')
  const { codec } = findRouteByPath(path)?.provider ?? PROVIDERS[0]
  response.end(JSON.stringify(codec.client.refuse(status, message)))
}

function describeFault(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  return thrown.cause instanceof Error ? `${thrown.message}: ${thrown.cause.message}` : thrown.message
}
