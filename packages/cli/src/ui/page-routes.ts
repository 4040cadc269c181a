/** What the page can ask for: the list of sessions, a report, a request with its texts. All of it is JSON. */
import { presets } from '@tidemark/core/policy/presets'
import {
  findDepartedText,
  isPresetName,
  listDepartures,
  readRequestDetail,
  replayLog,
  searchDepartures,
} from 'tidemark/internal'
import type { LogContents } from 'tidemark/logs'
import { createExportedPage } from './html-export.ts'
import { drawPictureCard } from './picture-card.ts'
import type { SessionStore } from './session-store.ts'

export interface PageRequest {
  readonly method: string
  readonly url: URL
  readonly body: string
}

export interface PageAnswer {
  readonly status: number
  readonly json?: unknown
  readonly text?: string
  readonly type?: string
  /** Given, the browser saves the answer under this name. */
  readonly fileName?: string
}

const NOT_FOUND: PageAnswer = { status: 404, json: { error: 'There is no such page.' } }
const NO_SESSION: PageAnswer = { status: 404, json: { error: 'There is no such session.' } }

interface RouteInput {
  readonly store: SessionStore
  readonly id: string
  readonly rest: string
  readonly query: URLSearchParams
}

type Route = (input: RouteInput) => Promise<PageAnswer>

/** Answers with what `make` makes of the contents of the log; 404 if that is null. */
function answerFromLog(
  make: (log: LogContents, input: RouteInput) => unknown,
): (input: RouteInput) => Promise<PageAnswer> {
  return async (input) => {
    const log = await input.store.readContents(input.id)
    const json = log === null ? null : await make(log, input)
    return json === null ? NO_SESSION : { status: 200, json }
  }
}

/** Answers to GET, by the part of the address behind the session. */
const PARTS: Readonly<Record<string, Route>> = {
  '': async ({ store, id }) => {
    const page = await store.readPage(id)
    return page === null ? NO_SESSION : { status: 200, json: page }
  },
  request: answerFromLog((log, { rest }) => readRequestDetail(log, Number(rest))),
  left: answerFromLog((log) => listDepartures(log)),
  gone: answerFromLog((log, { query }) => {
    const text = findDepartedText(log, query.get('key') ?? '')
    return text === null ? null : { text }
  }),
  search: answerFromLog((log, { query }) => searchDepartures(log, query.get('text') ?? '')),
  replay: answerReplay,
  html: answerExport,
  card: answerCard,
}

async function answerReplay({ store, id, query }: RouteInput): Promise<PageAnswer> {
  const name = query.get('policy') ?? ''
  const log = await store.readContents(id)
  if (log === null || !isPresetName(name)) return NO_SESSION
  const replay = await replayLog(log, { policies: [{ name, policy: presets[name] }], withPoints: true })
  if (replay.ok) return { status: 200, json: replay.policies[0] }
  return { status: 422, json: { error: `This session cannot be replayed: ${replay.why}.` } }
}

/** The file never has texts: with them it is made by `inspect --html --with-text`, where the user says so. */
async function answerExport({ store, id }: RouteInput): Promise<PageAnswer> {
  const [page, log] = [await store.readPage(id), await store.readContents(id)]
  if (page === null || log === null) return NO_SESSION
  const text = await createExportedPage({ page, departures: listDepartures(log), texts: null })
  return { status: 200, type: 'text/html; charset=utf-8', text, fileName: 'tidemark-session.html' }
}

async function answerCard({ store, id }: RouteInput): Promise<PageAnswer> {
  const page = await store.readPage(id)
  if (page === null) return NO_SESSION
  const text = drawPictureCard(page.report)
  return { status: 200, type: 'image/svg+xml', text, fileName: 'tidemark-session.svg' }
}

const ADDRESS = /^\/api\/session\/([0-9a-f]{12})(?:\/(\w+)(?:\/(\w+))?)?$/

export async function answerPageRequest(
  store: SessionStore,
  { method, url, body }: PageRequest,
): Promise<PageAnswer> {
  if (url.pathname === '/api/sessions' && method === 'GET') return { status: 200, json: store.list() }
  const [, id, part = '', rest = ''] = ADDRESS.exec(url.pathname) ?? []
  if (id === undefined) return NOT_FOUND
  if (method === 'POST') return part === 'undo' ? answerUndo(store, id, body) : NOT_FOUND
  const route = Object.hasOwn(PARTS, part) ? PARTS[part] : undefined
  return route === undefined ? NOT_FOUND : route({ store, id, rest, query: url.searchParams })
}

async function answerUndo(store: SessionStore, id: string, body: string): Promise<PageAnswer> {
  const { target }: { readonly target?: unknown } = JSON.parse(body)
  if (typeof target !== 'string') return NOT_FOUND
  const outcome = await store.undo(id, target)
  return outcome === null ? NO_SESSION : { status: 200, json: outcome }
}
