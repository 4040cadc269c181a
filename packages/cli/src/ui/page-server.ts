/**
 * Serves the page on loopback. The token in the address is exchanged for a cookie that scripts cannot read. Requests with another Host or
 * Origin are refused, so that other sites and rebound names have no access. Nothing is loaded from other servers.
 */
import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { TidemarkError } from '@tidemark/core/errors'
import { readPageFile } from '@tidemark/page/server/page-files'
import {
  BODY_TOO_LONG_ANSWER,
  createPageSecret,
  findRequestRefusal,
  formatPageCookie,
  readPageBody,
  readPageCookie,
  readPageUrl,
  sendPageAnswer,
  sendPageEvents,
} from '@tidemark/page/server/page-http'
import { answerApiRequest, NOT_FOUND_ANSWER, type PageAnswer } from '@tidemark/page/server/page-routes'
import type { PageSessionStore } from './page-session-store.ts'

interface PageServerOptions {
  readonly store: PageSessionStore
  /** Default: one that is free. */
  readonly port?: number
}

export interface PageServer {
  /** The address with the token, for the user. It stays valid until `close`. */
  readonly url: string
  /** Returns an address that works once, because other users of the machine can see the arguments of the program that opens it. */
  createLink(): string
  close(): Promise<void>
}

const HOST = '127.0.0.1'
/** Sends the browser on to the page, without the token in the address. */
const REDIRECT: PageAnswer = { status: 303, text: '' }
/**
 * Sends the browser on after a link on another site, such as a terminal in the browser: with a redirect, it would not send the
 * `SameSite=Strict` cookie.
 */
const FORWARD: PageAnswer = {
  status: 200,
  type: 'text/html; charset=utf-8',
  text: '<!doctype html><html lang="en"><meta http-equiv="refresh" content="0;url=/"><link rel="icon" href="data:,"><title>Tidemark</title>',
}
const COOKIE = 'tidemark_page'

export async function servePage({ store, port = 0 }: PageServerOptions): Promise<PageServer> {
  const secrets = { token: createPageSecret(), cookie: createPageSecret(), links: new Set<string>() }
  const server = createServer((request, response) => {
    answer(request, response, { store, server, secrets }).catch((error: unknown) => {
      if (response.headersSent) response.destroy()
      else sendPageAnswer(response, { status: 500, json: { error: describeFailure(error) } })
    })
  })
  server.listen(port, HOST)
  await once(server, 'listening').catch((error: unknown) => {
    throw new TidemarkError(
      'io-failed',
      `The page cannot listen on ${HOST}:${port} (${describeFailure(error)}). Choose another port, or none for any that is free.`,
    )
  })
  return {
    url: `http://${HOST}:${readPort(server)}/?token=${secrets.token}`,
    createLink() {
      const token = createPageSecret()
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
  readonly store: PageSessionStore
  readonly server: Server
  readonly secrets: { readonly token: string; readonly cookie: string; readonly links: Set<string> }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { store, server, secrets }: ServerState,
): Promise<void> {
  const port = readPort(server)
  const origins = [HOST, 'localhost'].map((name) => `http://${name}:${port}`)
  const refusal = findRequestRefusal(request, origins)
  if (refusal !== null) return sendPageAnswer(response, { status: 403, json: { error: refusal } })
  const url = readPageUrl(request)
  if (url === null) return sendPageAnswer(response, NOT_FOUND_ANSWER)
  const token = url.searchParams.get('token')
  if (
    url.pathname === '/' &&
    token !== null &&
    (isEqual(token, secrets.token) || secrets.links.delete(token))
  ) {
    const cookie = formatPageCookie(`${COOKIE}_${port}`, secrets.cookie)
    const site = request.headers['sec-fetch-site'] ?? 'none'
    const forward = site === 'none' || site === 'same-origin' ? REDIRECT : FORWARD
    return sendPageAnswer(response, forward, { 'set-cookie': cookie, location: '/' })
  }
  if (!isEqual(readPageCookie(request, `${COOKIE}_${port}`), secrets.cookie))
    return sendPageAnswer(response, { status: 401, text: 'Open the address that tidemark printed.\n' })
  if (url.pathname === '/api/events')
    return sendPageEvents(request, response, (listener) => store.listen(listener))
  const file = request.method === 'GET' ? await readPageFile(url.pathname, 'machine') : null
  if (file !== null) return sendPageAnswer(response, { status: 200, type: file.type, text: file.content })
  const body = request.method === 'POST' ? await readPageBody(request) : ''
  if (body === null) return sendPageAnswer(response, BODY_TOO_LONG_ANSWER)
  sendPageAnswer(response, await answerApiRequest(store, { method: request.method ?? '', url, body }))
}

function isEqual(given: string, secret: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(secret)]
  return one.length === other.length && timingSafeEqual(one, other)
}

function readPort(server: Server): number {
  return (server.address() as AddressInfo).port
}

function describeFailure(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
