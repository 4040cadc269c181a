/**
 * Serves the page on loopback. The token of the address is exchanged for a cookie that scripts cannot read; requests with
 * another Host or Origin are refused, so that neither another site nor a rebound name can ask. Nothing is loaded from
 * elsewhere.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readPageFile } from './page-files.ts'
import { answerPageRequest, type PageAnswer } from './page-routes.ts'
import type { SessionStore } from './session-store.ts'

export interface PageServerOptions {
  readonly store: SessionStore
  /** Default: one that is free. */
  readonly port?: number
}

export interface PageServer {
  /** The address with the token, for the user. */
  readonly url: string
  /** Returns an address that can be used once: other users of the machine see the arguments of the program that opens it. */
  createLink(): string
  close(): Promise<void>
}

const HOST = '127.0.0.1'
const COOKIE = 'tidemark_page'

/** Everything is the page's own; inline scripts and styles do not run. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

export async function servePage({ store, port = 0 }: PageServerOptions): Promise<PageServer> {
  const secrets = { token: createSecret(), cookie: createSecret(), links: new Set<string>() }
  const server = createServer((request, response) => {
    answer(request, response, { store, server, secrets }).catch((error: unknown) => {
      if (response.headersSent) response.destroy()
      else send(response, { status: 500, json: { error: describeFailure(error) } })
    })
  })
  server.listen(port, HOST)
  await once(server, 'listening')
  return {
    url: `http://${HOST}:${readPort(server)}/?token=${secrets.token}`,
    createLink() {
      const token = createSecret()
      secrets.links.add(token)
      return `http://${HOST}:${readPort(server)}/?token=${token}`
    },
    close: async () => {
      server.close()
      server.closeAllConnections()
      await store.close()
    },
  }
}

interface ServerState {
  readonly store: SessionStore
  readonly server: Server
  readonly secrets: { readonly token: string; readonly cookie: string; readonly links: Set<string> }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { store, server, secrets }: ServerState,
): Promise<void> {
  const port = readPort(server)
  const refusal = findRefusal(request, port)
  if (refusal !== null) return send(response, { status: 403, json: { error: refusal } })
  const url = new URL(request.url ?? '/', `http://${HOST}:${port}`)
  const token = url.searchParams.get('token')
  if (
    url.pathname === '/' &&
    token !== null &&
    (isEqual(token, secrets.token) || secrets.links.delete(token))
  ) {
    const cookie = `${COOKIE}_${port}=${secrets.cookie}; HttpOnly; SameSite=Strict; Path=/`
    response.writeHead(303, { ...HEADERS, location: '/', 'set-cookie': cookie }).end()
    return
  }
  if (!isEqual(readCookie(request, `${COOKIE}_${port}`), secrets.cookie))
    return send(response, { status: 401, text: 'Open the address that tidemark printed.\n' })
  if (url.pathname === '/api/events') return sendEvents(request, response, store)
  const file = request.method === 'GET' ? await readPageFile(url.pathname) : null
  if (file !== null) return send(response, { status: 200, type: file.type, text: file.content })
  const body = request.method === 'POST' ? await readBody(request) : ''
  send(response, await answerPageRequest(store, { method: request.method ?? '', url, body }))
}

/** Returns why a request is refused before its cookie is looked at; null if it comes from this page or from the user. */
function findRefusal({ headers, method }: IncomingMessage, port: number): string | null {
  const hosts = [`${HOST}:${port}`, `localhost:${port}`]
  if (!hosts.includes(headers.host ?? '')) return 'The request names another host.'
  const { origin } = headers
  if (origin !== undefined && origin !== `http://${headers.host}`)
    return 'The request comes from another site.'
  if (method === 'POST' && origin === undefined) return 'A change must come from the page.'
  if (method !== 'GET' && method !== 'POST') return 'Only GET and POST are answered.'
  const site = headers['sec-fetch-site']
  const isOwn = site === undefined || site === 'same-origin' || site === 'none'
  // A link to the address with the token, such as one in a terminal in the browser, comes from another site.
  const isOpened = headers['sec-fetch-mode'] === 'navigate' && method === 'GET'
  return isOwn || isOpened ? null : 'The request comes from another site.'
}

function createSecret(): string {
  return randomBytes(24).toString('base64url')
}

function isEqual(given: string, secret: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(secret)]
  return one.length === other.length && timingSafeEqual(one, other)
}

function readCookie({ headers }: IncomingMessage, name: string): string {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim().split('='))
  return pairs.find(([key]) => key === name)?.[1] ?? ''
}

const MAX_BODY_BYTES = 10_000

async function readBody(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request) {
    body += String(chunk)
    if (body.length > MAX_BODY_BYTES) throw new Error('The request is too long.')
  }
  return body
}

function send(response: ServerResponse, { status, json, text, type, fileName }: PageAnswer): void {
  const content = json === undefined ? (text ?? '') : JSON.stringify(json)
  const kind = type ?? (json === undefined ? 'text/plain; charset=utf-8' : 'application/json')
  response.writeHead(status, {
    ...HEADERS,
    'content-type': kind,
    ...(fileName === undefined ? {} : { 'content-disposition': `attachment; filename="${fileName}"` }),
  })
  response.end(content)
}

/** Sends an event for each change until the page is closed. */
function sendEvents(request: IncomingMessage, response: ServerResponse, store: SessionStore): void {
  response.writeHead(200, { ...HEADERS, 'content-type': 'text/event-stream' })
  response.write(': open\n\n')
  const end = store.listen((event) => response.write(`data: ${JSON.stringify(event)}\n\n`))
  request.on('close', end)
}

function readPort(server: Server): number {
  return (server.address() as AddressInfo).port
}

function describeFailure(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
