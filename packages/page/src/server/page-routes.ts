/**
 * The routes below `/api` of the page: the list of sessions, a report, a request with its texts, a replay, an undo, and the files
 * to save. The host of the page decides which sessions it may show and where their logs are.
 */
import { isObject, parseJson } from '@tidemark/core/log/json'
import { presets } from '@tidemark/core/policy/presets'
import {
  findRemovedBlockText,
  isPresetName,
  type ListedSession,
  listContextRemovals,
  type PageUndoOutcome,
  readRequestDetail,
  replayLog,
  type SessionList,
  type SessionPageData,
  searchRemovedBlocks,
} from 'tidemark/internal'
import type { LogContents, SessionReport } from 'tidemark/logs'
import { createExportedPage } from './html-export.ts'
import { drawPictureCard } from './picture-card.ts'

interface PageRequest {
  readonly method: string
  readonly url: URL
  readonly body: string
}

export interface PageAnswer {
  readonly status: number
  readonly json?: unknown
  readonly text?: string
  readonly type?: string
  /** If given, the browser saves the answer as a file of this name. */
  readonly fileName?: string
}

/** An event for an open page. `list`: reports were made, or a session began. `changed`: the log of a session has changed. */
export type PageEvent = { readonly type: 'list' } | { readonly type: 'changed'; readonly id: string }

/** The sessions that a page may show. For any other id, the answer is that it does not exist. */
export interface PageSessions {
  list(): Promise<SessionList>
  /** Answers a question about one session; null if it does not exist. */
  answer(id: string, question: SessionApiRequest): Promise<PageAnswer | null>
  /** Undoes a compaction or clearing; null if the session does not exist. Absent if the page cannot undo anything. */
  undo?(id: string, target: string): Promise<PageUndoOutcome | null>
}

/** What is asked about a session: the address after the session's id, as in `request/12` or `search?text=a`. */
export interface SessionApiRequest {
  readonly part: string
  readonly rest: string
  /** The query of the address. */
  readonly query: string
}

/** A session that can be read. Both functions return null if reading fails. */
interface ReadableSession {
  readPage(): Promise<SessionPageData | null>
  readContents(): Promise<LogContents | null>
}

export const NOT_FOUND_ANSWER: PageAnswer = { status: 404, json: { error: 'There is no such page.' } }
const NO_SESSION: PageAnswer = { status: 404, json: { error: 'There is no such session.' } }

interface RouteInput {
  readonly session: ReadableSession
  readonly rest: string
  readonly query: URLSearchParams
}

type Route = (input: RouteInput) => Promise<PageAnswer>

/** Creates a route that answers with what `make` returns for the log; with 404 if that is null or the log cannot be read. */
function answerFromLog(
  make: (log: LogContents, input: RouteInput) => unknown,
): (input: RouteInput) => Promise<PageAnswer> {
  return async (input) => {
    const log = await input.session.readContents()
    const json = log === null ? null : await make(log, input)
    return json === null ? NO_SESSION : { status: 200, json }
  }
}

/** Handlers of GET requests, by the part of the address after the session's id. */
const PARTS: Readonly<Record<string, Route>> = {
  '': async ({ session }) => {
    const page = await session.readPage()
    return page === null ? NO_SESSION : { status: 200, json: page }
  },
  request: answerFromLog((log, { rest }) => readRequestDetail(log, Number(rest))),
  left: answerFromLog((log) => listContextRemovals(log)),
  gone: answerFromLog((log, { query }) => {
    const text = findRemovedBlockText(log, query.get('key') ?? '')
    return text === null ? null : { text }
  }),
  search: answerFromLog((log, { query }) => searchRemovedBlocks(log, query.get('text') ?? '')),
  replay: answerReplay,
  html: answerExport,
  card: answerCard,
}

async function answerReplay({ session, query }: RouteInput): Promise<PageAnswer> {
  const name = query.get('policy') ?? ''
  const log = await session.readContents()
  if (log === null || !isPresetName(name)) return NO_SESSION
  const replay = await replayLog(log, { policies: [{ name, policy: presets[name] }], withPoints: true })
  if (replay.ok) return { status: 200, json: { ...replay.policies[0], breaksUsd: replay.recorded.breaksUsd } }
  return { status: 200, json: { error: `This session cannot be replayed: ${replay.why}.` } }
}

/** This export never has texts. `inspect --html --with-text`, an explicit request of the user, creates the file with texts. */
async function answerExport({ session }: RouteInput): Promise<PageAnswer> {
  const [page, log] = [await session.readPage(), await session.readContents()]
  if (page === null || log === null) return NO_SESSION
  const text = await createExportedPage({ page, departures: listContextRemovals(log), texts: null })
  return { status: 200, type: 'text/html; charset=utf-8', text, fileName: 'tidemark-session.html' }
}

async function answerCard({ session }: RouteInput): Promise<PageAnswer> {
  const page = await session.readPage()
  if (page === null) return NO_SESSION
  const text = drawPictureCard(page.report)
  return { status: 200, type: 'image/svg+xml', text, fileName: 'tidemark-session.svg' }
}

/** Answers what is asked about a session; 404 if the part is unknown. The time grows with the length of the log. */
export async function answerSessionApiRequest(
  session: ReadableSession,
  { part, rest, query }: SessionApiRequest,
): Promise<PageAnswer> {
  const route = Object.hasOwn(PARTS, part) ? PARTS[part] : undefined
  return route === undefined ? NOT_FOUND_ANSWER : route({ session, rest, query: new URLSearchParams(query) })
}

const ADDRESS = /^\/api\/session\/([0-9a-f]{12,64})(?:\/(\w+)(?:\/(\w+))?)?$/

export async function answerApiRequest(
  sessions: PageSessions,
  { method, url, body }: PageRequest,
): Promise<PageAnswer> {
  if (url.pathname === '/api/sessions' && method === 'GET')
    return { status: 200, json: await sessions.list() }
  const [, id, part = '', rest = ''] = ADDRESS.exec(url.pathname) ?? []
  if (id === undefined) return NOT_FOUND_ANSWER
  if (method === 'POST') return part === 'undo' ? answerUndo(sessions, id, body) : NOT_FOUND_ANSWER
  return (await sessions.answer(id, { part, rest, query: url.search })) ?? NO_SESSION
}

async function answerUndo(sessions: PageSessions, id: string, body: string): Promise<PageAnswer> {
  const given = parseJson(body)
  const target = isObject(given) ? given.target : null
  if (typeof target !== 'string' || sessions.undo === undefined) return NOT_FOUND_ANSWER
  const outcome = await sessions.undo(id, target)
  return outcome === null ? NO_SESSION : { status: 200, json: outcome }
}

/** Returns the part of a report that the list of sessions shows: everything but requests and contents. */
export function toListedSession(id: string, report: SessionReport, isLive: boolean): ListedSession {
  const { requests, context, largest, byTool, duplicateReads, ...listed } = report
  return { ...listed, id, isLive }
}
