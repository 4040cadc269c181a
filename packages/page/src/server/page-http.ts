/**
 * The HTTP rules of the page, for each host that serves it: which requests are refused before their sender is checked, the headers of all
 * responses, cookies and events. Nothing is loaded from other servers.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { PageAnswer, PageEvent } from './page-routes.ts'

/** The page loads only its own files. Inline scripts and styles are blocked. */
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

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

/**
 * Returns why a request is refused before its cookie is checked; null if it comes from this page or from the user. `origins`: the addresses
 * at which the page is served, such as `http://127.0.0.1:8788`.
 */
export function findRequestRefusal(
  { headers, method }: IncomingMessage,
  origins: readonly string[],
): string | null {
  const own = origins.filter((origin) => new URL(origin).host === headers.host)
  if (own.length === 0) return 'The request names another host.'
  const { origin } = headers
  if (origin !== undefined && !own.includes(origin)) return 'The request comes from another site.'
  if (method === 'POST' && origin === undefined) return 'A change must come from the page.'
  if (method !== 'GET' && method !== 'POST') return 'Only GET and POST are answered.'
  const site = headers['sec-fetch-site']
  const isOwn = site === undefined || site === 'same-origin' || site === 'none'
  // A link to the address with the token, for example in a terminal in the browser, is a navigation from another site.
  const isOpened = headers['sec-fetch-mode'] === 'navigate' && method === 'GET'
  return isOwn || isOpened ? null : 'The request comes from another site.'
}

/** Returns the address that a request asks for; null for an invalid one, such as `//`. Only its path and query have a meaning. */
export function readPageUrl({ url }: IncomingMessage): URL | null {
  return URL.parse(url ?? '/', 'http://page')
}

export function createPageSecret(): string {
  return randomBytes(24).toString('base64url')
}

/** Returns a cookie that scripts cannot read and other sites do not send. */
export function formatPageCookie(name: string, value: string, attributes: readonly string[] = []): string {
  return [`${name}=${value}`, 'HttpOnly', 'SameSite=Strict', 'Path=/', ...attributes].join('; ')
}

/** Returns the value of a cookie; empty if the request has none of this name. */
export function readPageCookie({ headers }: IncomingMessage, name: string): string {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim().split('='))
  return pairs.find(([key]) => key === name)?.[1] ?? ''
}

const MAX_BODY_BYTES = 10_000

/** Returns the body of a request; null if it has more characters than the page ever sends. The rest is then dropped. */
export async function readPageBody(request: IncomingMessage): Promise<string | null> {
  let body = ''
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    body += String(chunk)
    if (body.length > MAX_BODY_BYTES) {
      request.resume()
      return null
    }
  }
  return body
}

export const BODY_TOO_LONG_ANSWER: PageAnswer = { status: 413, json: { error: 'The request is too long.' } }

export function sendPageAnswer(
  response: ServerResponse,
  { status, json, text, type, fileName }: PageAnswer,
  headers: Readonly<Record<string, string>> = {},
): void {
  const content = json === undefined ? (text ?? '') : JSON.stringify(json)
  const kind = type ?? (json === undefined ? 'text/plain; charset=utf-8' : 'application/json')
  response.writeHead(status, {
    ...PAGE_HEADERS,
    ...headers,
    'content-type': kind,
    ...(fileName === undefined ? {} : { 'content-disposition': `attachment; filename="${fileName}"` }),
  })
  response.end(content)
}

/** Sends an event for each change until the page is closed. `listen` adds a listener, and returns a function that removes it. */
export function sendPageEvents(
  request: IncomingMessage,
  response: ServerResponse,
  listen: (listener: (event: PageEvent) => void) => () => void,
): void {
  response.writeHead(200, { ...PAGE_HEADERS, 'content-type': 'text/event-stream' })
  response.write(': open\n\n')
  const end = listen((event) => response.write(`data: ${JSON.stringify(event)}\n\n`))
  request.on('close', end)
}
