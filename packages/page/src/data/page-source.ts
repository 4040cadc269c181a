/**
 * Where the page gets its data: the server of `tidemark ui`, a gateway after signing in, or the document itself if it is an
 * exported file. All sources return the same values. What cannot be loaded is rejected with a sentence for the user.
 */
import type {
  ContextRemoval,
  PagePolicyReplay,
  PageUndoOutcome,
  RemovedBlockMatch,
  RequestContents,
  SessionList,
  SessionPageData,
  TeamFigures,
  TeamViewer,
} from 'tidemark/report'

export interface PageSource {
  /** True for an exported file, which cannot load, follow or change anything. */
  readonly isExported: boolean
  /** Signing in to a gateway, and its figures; null on the page for the sessions of this machine. */
  readonly team: TeamSource | null
  /** False for a file that was exported without the texts of its session. */
  readonly hasTexts: boolean
  loadList(): Promise<SessionList>
  loadSession(id: string): Promise<SessionPageData>
  loadRequest(id: string, index: number): Promise<RequestContents>
  loadDepartures(id: string): Promise<readonly ContextRemoval[]>
  loadDepartedText(id: string, key: string): Promise<{ readonly text: string }>
  searchDepartures(id: string, text: string): Promise<readonly RemovedBlockMatch[]>
  loadReplay(id: string, policy: string): Promise<ReplayAnswer>
  /** Undoes a compaction or clearing. A refusal is an outcome; rejects only if the server cannot be reached. */
  undo(id: string, target: string): Promise<PageUndoOutcome>
  /** Calls `listener` with the id of a changed session, or with null if the list has changed. Returns a stop function. */
  listen(listener: (id: string | null) => void): () => void
}

/** The outcome of a replay under one policy, or why the session cannot be replayed. */
export type ReplayAnswer = PagePolicyReplay | { readonly error: string }

export interface TeamSource {
  /** Returns whom the cookie signs in; null if nobody: a key is needed first. */
  loadViewer(): Promise<TeamViewer | null>
  /** Exchanges a key for a cookie. Rejects if the key is not accepted. */
  signIn(key: string): Promise<TeamViewer>
  signOut(): Promise<void>
  /** `days`: number of days up to today; null for all. */
  loadFigures(days: number | null): Promise<TeamFigures>
  /** Calls `listener` when the server no longer accepts the viewer. Returns a function that stops this. */
  onSignedOut(listener: () => void): () => void
}

/** The data in an exported document. */
interface ExportedData {
  readonly page: SessionPageData
  readonly departures: readonly ContextRemoval[]
  /** Texts of the blocks that left the context, by block key; null in a file without texts. */
  readonly texts: Readonly<Record<string, string>> | null
}

const DATA_ELEMENT = 'tidemark-data'

export function createPageSource(): PageSource {
  const element = document.getElementById(DATA_ELEMENT)
  if (element !== null) return createExportedSource(JSON.parse(element.textContent ?? '{}'))
  const host = document.querySelector('meta[name="tidemark-host"]')?.getAttribute('content')
  return createServedSource(host === 'team' ? createTeamSource() : null)
}

/** Emits an event when the server no longer accepts the viewer. */
const signedOut = new EventTarget()

function createTeamSource(): TeamSource {
  const post = (path: string, value: object): Promise<TeamViewer> =>
    load(path, { method: 'POST', body: JSON.stringify(value) })
  return {
    loadViewer: () => load('/api/viewer'),
    signIn: (key) => post('/api/sign-in', { key }),
    signOut: async () => void (await post('/api/sign-out', {})),
    loadFigures: (days) => load(days === null ? '/api/team' : `/api/team?days=${days}`),
    onSignedOut(listener) {
      signedOut.addEventListener('end', listener)
      return () => signedOut.removeEventListener('end', listener)
    },
  }
}

function createServedSource(team: TeamSource | null): PageSource {
  return {
    isExported: false,
    team,
    hasTexts: true,
    loadList: () => load('/api/sessions'),
    loadSession: (id) => load(`/api/session/${id}`),
    loadRequest: (id, index) => load(`/api/session/${id}/request/${index}`),
    loadDepartures: (id) => load(`/api/session/${id}/left`),
    loadDepartedText: (id, key) => load(`/api/session/${id}/gone?key=${encodeURIComponent(key)}`),
    searchDepartures: (id, text) => load(`/api/session/${id}/search?text=${encodeURIComponent(text)}`),
    loadReplay: (id, policy) => load(`/api/session/${id}/replay?policy=${encodeURIComponent(policy)}`),
    undo: (id, target) =>
      load(`/api/session/${id}/undo`, { method: 'POST', body: JSON.stringify({ target }) }),
    listen(listener) {
      const events = new EventSource('/api/events')
      events.onmessage = ({ data }) => {
        const event: { readonly type: string; readonly id?: string } = JSON.parse(data)
        listener(event.id ?? null)
      }
      events.onerror = async () => {
        // The browser reconnects to a server that is down, but not to one that refuses.
        if (events.readyState !== EventSource.CLOSED || team === null) return
        const viewer = await team.loadViewer().catch(() => undefined)
        if (viewer === null) signedOut.dispatchEvent(new Event('end'))
      }
      return () => events.close()
    },
  }
}

async function load<T>(path: string, request: RequestInit = {}): Promise<T> {
  const response = await fetch(path, request).catch(() => null)
  if (response === null) throw new Error('The page is no longer served: start it again.')
  const value = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }))
  if (response.status === 401) signedOut.dispatchEvent(new Event('end'))
  if (!response.ok) throw new Error(value.error)
  return value
}

function createExportedSource({ page, departures, texts }: ExportedData): PageSource {
  const leftOut = async (): Promise<never> => {
    throw new Error('Texts are not part of this file.')
  }
  return {
    isExported: true,
    team: null,
    hasTexts: texts !== null,
    loadList: leftOut,
    loadSession: async () => page,
    loadRequest: leftOut,
    loadDepartures: async () => departures,
    loadDepartedText: async (_id, key) => {
      const text = texts?.[key]
      return text === undefined ? leftOut() : { text }
    },
    searchDepartures: async (_id, sought) => searchTexts(texts ?? {}, sought),
    loadReplay: leftOut,
    undo: leftOut,
    listen: () => () => {},
  }
}

/** Searches like the server: ignores case, with at most one match per block. */
function searchTexts(texts: Readonly<Record<string, string>>, sought: string): readonly RemovedBlockMatch[] {
  return Object.entries(texts).flatMap(([key, text]) => {
    const at = text.toLowerCase().indexOf(sought.toLowerCase())
    if (at === -1) return []
    const excerpt = text.slice(Math.max(0, at - 60), at + sought.length + 140).replace(/\s+/g, ' ')
    return [{ id: key, key, excerpt }]
  })
}
