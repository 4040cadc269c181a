/**
 * The page of `tidemark ui` for a team, read-only, served by the gateway to everyone with a key. A viewer key sees all sessions
 * or those of its team; any other key its own. Each request checks its cookie in the database, so a revoked key sees nothing.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describeThrown } from '@tidemark/core/errors'
import { isObject, parseJson } from '@tidemark/core/log/json'
import { readPageFile } from '@tidemark/page/server/page-files'
import {
  BODY_TOO_LONG_ANSWER,
  findRequestRefusal,
  formatPageCookie,
  readPageBody,
  readPageCookie,
  readPageUrl,
  sendPageAnswer,
  sendPageEvents,
} from '@tidemark/page/server/page-http'
import {
  answerApiRequest,
  NOT_FOUND_ANSWER,
  type PageAnswer,
  type PageEvent,
} from '@tidemark/page/server/page-routes'
import type { TeamViewer } from 'tidemark/internal'
import type { Database } from '../database/database.ts'
import type { ObjectStore } from '../database/object-store.ts'
import { readTeamFigures } from './team-figures.ts'
import { createViewerSessions, type SessionRevision, type ViewerSessions } from './viewer-sessions.ts'
import { findViewer, type PageViewer, SIGN_IN_SECONDS, signIn, signOut } from './viewers.ts'

interface TeamPageOptions {
  readonly database: Database
  /** Where large lines of logs are; null for the database. */
  readonly objects: ObjectStore | null
  /** The address at which browsers on other machines reach the page; null for this machine only. */
  readonly pageUrl: string | null
  readonly onError: (message: string) => void
}

export interface TeamPage {
  /** Answers a request for the page. Returns false for other requests. `port`: the port of the gateway. */
  answer(request: IncomingMessage, response: ServerResponse, port: number): boolean
  close(): Promise<void>
}

/** Milliseconds between two checks for changes, for each open page. */
const FOLLOW_MS = 3_000

interface PageState {
  readonly database: Database
  readonly reports: ViewerSessions
  readonly streams: Set<ServerResponse>
}

/** Creates the page. `onError`: called for errors that no viewer sees. */
export function createTeamPage({ database, objects, pageUrl, onError }: TeamPageOptions): TeamPage {
  const state: PageState = {
    database,
    reports: createViewerSessions({ pool: database, objects }, onError),
    streams: new Set(),
  }
  const outside = pageUrl === null ? null : new URL(pageUrl).origin
  return {
    answer(request, response, port) {
      const path = (request.url ?? '').split('?')[0] ?? ''
      if (!/^\/(?:page\.(?:js|css)|api\/.*)?$/.test(path)) return false
      const origins = ['127.0.0.1', 'localhost', '[::1]'].map((name) => `http://${name}:${port}`)
      if (outside !== null) origins.push(outside)
      const refusal = findRequestRefusal(request, origins)
      if (refusal !== null) {
        sendPageAnswer(response, { status: 403, json: { error: `${refusal} ${HOST_HELP}` } })
        return true
      }
      const cookie = nameCookie(
        outside !== null && request.headers.host === new URL(outside).host,
        outside,
        port,
      )
      answerAdmitted(request, response, state, cookie).catch((thrown: unknown) => {
        onError(describeThrown(thrown))
        if (response.headersSent) response.destroy()
        else sendPageAnswer(response, { status: 503, json: { error: 'The gateway cannot answer now.' } })
      })
      return true
    },
    async close() {
      for (const stream of state.streams) stream.end()
      await state.reports.close()
    },
  }
}

const HOST_HELP = 'Open the address that is given to the gateway as --page-url.'

interface PageCookie {
  readonly name: string
  readonly attributes: readonly string[]
}

/** Without TLS, the name has the port, because browsers send cookies to all ports. `__Host-` binds it to host and TLS. */
function nameCookie(isOutside: boolean, outside: string | null, port: number): PageCookie {
  const isSecure = isOutside && outside?.startsWith('https:') === true
  return isSecure
    ? { name: '__Host-tidemark_team', attributes: ['Secure'] }
    : { name: `tidemark_team_${port}`, attributes: [] }
}

async function answerAdmitted(
  request: IncomingMessage,
  response: ServerResponse,
  state: PageState,
  cookie: PageCookie,
): Promise<void> {
  const { method = '' } = request
  const url = readPageUrl(request)
  if (url === null) return sendPageAnswer(response, NOT_FOUND_ANSWER)
  // The page's own files contain no data of sessions.
  const file = method === 'GET' ? await readPageFile(url.pathname, 'team') : null
  if (file !== null) return sendPageAnswer(response, { status: 200, type: file.type, text: file.content })
  const body = method === 'POST' ? await readPageBody(request) : ''
  if (body === null) return sendPageAnswer(response, BODY_TOO_LONG_ANSWER)
  if (method === 'POST' && url.pathname === '/api/sign-in') return answerSignIn(response, state, cookie, body)
  const secret = readPageCookie(request, cookie.name)
  const viewer = await findViewer(state.database, secret)
  // This request also comes before signing in, where the answer is no viewer and not an error.
  if (method === 'GET' && url.pathname === '/api/viewer')
    return sendPageAnswer(response, { status: 200, json: viewer === null ? null : describeViewer(viewer) })
  if (viewer === null)
    return sendPageAnswer(response, { status: 401, json: { error: 'Sign in with a key.' } })
  if (method === 'POST' && url.pathname === '/api/sign-out') {
    await signOut(state.database, secret)
    const ended = formatPageCookie(cookie.name, '', [...cookie.attributes, 'Max-Age=0'])
    return sendPageAnswer(response, { status: 200, json: {} }, { 'set-cookie': ended })
  }
  if (url.pathname === '/api/events') return followSessions(request, response, state, secret)
  sendPageAnswer(response, await answerViewer(state, viewer, { method, url, body }))
}

async function answerSignIn(
  response: ServerResponse,
  { database }: PageState,
  { name, attributes }: PageCookie,
  body: string,
): Promise<void> {
  const given = parseJson(body)
  const key = isObject(given) && typeof given.key === 'string' ? given.key.trim() : ''
  const signed = await signIn(database, key)
  if (signed === null) {
    const error = 'This key is unknown or revoked.'
    return sendPageAnswer(response, { status: 401, json: { error } })
  }
  const cookie = formatPageCookie(name, signed.cookie, [...attributes, `Max-Age=${SIGN_IN_SECONDS}`])
  sendPageAnswer(response, { status: 200, json: describeViewer(signed.viewer) }, { 'set-cookie': cookie })
}

function describeViewer({ name, team, sees }: PageViewer): TeamViewer {
  return { name, team, sees }
}

interface ViewerRequest {
  readonly method: string
  readonly url: URL
  readonly body: string
}

async function answerViewer(
  { database, reports }: PageState,
  viewer: PageViewer,
  request: ViewerRequest,
): Promise<PageAnswer> {
  const { method, url } = request
  const sessions = reports.open(viewer)
  if (method !== 'GET' || url.pathname !== '/api/team') return answerApiRequest(sessions, request)
  const days = Number(url.searchParams.get('days'))
  const isCount = Number.isInteger(days) && days > 0 && days <= 3_660
  return { status: 200, json: await readTeamFigures(database, viewer, isCount ? days : null) }
}

/** Sends events when sessions change, until the page is closed, its cookie ends or its key is revoked. */
function followSessions(
  request: IncomingMessage,
  response: ServerResponse,
  { database, reports, streams }: PageState,
  secret: string,
): void {
  streams.add(response)
  let timer: NodeJS.Timeout | undefined
  const finish = (): void => {
    clearTimeout(timer)
    streams.delete(response)
  }
  response.on('close', finish)
  sendPageEvents(request, response, (listener) => {
    let before: ReadonlyMap<string, SessionRevision> | null = null
    const look = async (): Promise<void> => {
      const viewer = await findViewer(database, secret)
      if (viewer === null) return void response.end()
      const now = await reports.refreshRevisions(viewer)
      for (const event of before === null ? [] : compareSessions(before, now)) listener(event)
      before = now
    }
    const again = (): void => {
      if (streams.has(response)) timer = setTimeout(follow, FOLLOW_MS)
    }
    const follow = (): void => {
      look()
        .catch(() => {})
        .then(again)
    }
    follow()
    return finish
  })
}

function compareSessions(
  before: ReadonlyMap<string, SessionRevision>,
  now: ReadonlyMap<string, SessionRevision>,
): readonly PageEvent[] {
  const events: PageEvent[] = []
  let isOther = before.size !== now.size
  for (const [id, { lines, reportAt }] of now) {
    const known = before.get(id)
    if (known === undefined || known.reportAt !== reportAt) isOther = true
    else if (known.lines !== lines) events.push({ type: 'changed', id })
  }
  return isOther ? [...events, { type: 'list' }] : events
}
