/** What the page can ask for: the list of sessions, a report, a request with its texts. All of it is JSON. */
import { readRequestDetail } from 'tidemark/internal'
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

type Route = (store: SessionStore, id: string, rest: string) => Promise<PageAnswer>

/** Answers to GET, by the part of the address behind the session. */
const PARTS: Readonly<Record<string, Route>> = {
  '': async (store, id) => {
    const page = await store.readPage(id)
    return page === null ? NO_SESSION : { status: 200, json: page }
  },
  request: async (store, id, rest) => {
    const log = await store.readContents(id)
    const detail = log === null ? null : readRequestDetail(log, Number(rest))
    return detail === null ? NO_SESSION : { status: 200, json: detail }
  },
}

export async function answerPageRequest(
  store: SessionStore,
  { method, url }: PageRequest,
): Promise<PageAnswer> {
  if (url.pathname === '/api/sessions' && method === 'GET') return { status: 200, json: store.list() }
  const [, id, part = '', rest = ''] =
    /^\/api\/session\/([0-9a-f]{12})(?:\/(\w+)(?:\/(\w+))?)?$/.exec(url.pathname) ?? []
  const route = method === 'GET' && Object.hasOwn(PARTS, part) ? PARTS[part] : undefined
  return id === undefined || route === undefined ? NOT_FOUND : route(store, id, rest)
}
