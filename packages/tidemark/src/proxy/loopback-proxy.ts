/**
 * A proxy on this machine for clients of the Messages API that can only set a base URL. Requests for messages go through
 * sessions, as with `tidemark.fetch`; everything else is passed on. A token in the address keeps other users out.
 */
import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHostTidemark, type HostTidemark, type HostTidemarkOptions } from '../session/host-tidemark.ts'

export interface LoopbackProxyOptions extends HostTidemarkOptions {
  /** Address of the API, without `/v1`. */
  readonly upstream: string
  /** The first part of the path of every request; a request without it is refused. */
  readonly token: string
  /** Default: one that is free. */
  readonly port?: number
}

export interface LoopbackProxy {
  /** The base URL for clients. */
  readonly url: string
  /** Ends the connections and closes the sessions. */
  close(): Promise<void>
}

export async function serveLoopbackProxy(options: LoopbackProxyOptions): Promise<LoopbackProxy> {
  const { upstream, token, port = 0, ...own } = options
  const host = createHostTidemark(own)
  const server = createServer((request, response) => {
    answerClient(request, response, { host, upstream, token }).catch((thrown: unknown) =>
      refuseClient(response, 502, 'api_error', describeFault(thrown)),
    )
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${address.port}/${token}`,
    async close() {
      await closeServer(server)
      await host.close()
    },
  }
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

interface ProxyServices {
  readonly host: HostTidemark
  readonly upstream: string
  readonly token: string
}

async function answerClient(
  request: IncomingMessage,
  response: ServerResponse,
  { host, upstream, token }: ProxyServices,
): Promise<void> {
  const [, given = '', ...path] = (request.url ?? '').split('/')
  if (!isSameText(given, token))
    return refuseClient(
      response,
      404,
      'not_found_error',
      'The address lacks the token that tidemark printed.',
    )
  const stop = new AbortController()
  response.on('close', () => {
    if (!response.writableFinished) stop.abort()
  })
  const bytes = await readBody(request)
  const init: RequestInit = {
    method: request.method ?? 'GET',
    headers: readHeaders(request),
    signal: stop.signal,
    redirect: 'manual',
    ...(bytes.length === 0 ? {} : { body: toBody(bytes) }),
  }
  try {
    const answer = await host.answer(`${upstream}/${path.join('/')}`, init, globalThis.fetch)
    await sendAnswer(answer, response)
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown
    response.destroy()
  }
}

function isSameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** Returns the body as text if that keeps every byte, so that it can be read; otherwise the bytes. */
function toBody(bytes: Buffer): string | Uint8Array<ArrayBuffer> {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? text : new Uint8Array(bytes)
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
function refuseClient(response: ServerResponse, status: number, type: string, message: string): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ type: 'error', error: { type, message } }))
}

function describeFault(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  return thrown.cause instanceof Error ? `${thrown.message}: ${thrown.cause.message}` : thrown.message
}
