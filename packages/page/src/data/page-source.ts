/**
 * Where the page gets its data: from the server of `tidemark ui`, or from the document itself if it was exported. Both give
 * the same values.
 */
import type { RequestDetail, SessionList, SessionPage } from 'tidemark/report'

export interface PageSource {
  /** True for an exported file: nothing can be loaded, followed or changed. */
  readonly isExported: boolean
  loadList(): Promise<SessionList>
  loadSession(id: string): Promise<SessionPage>
  loadRequest(id: string, index: number): Promise<RequestDetail>
  /** Calls `listener` with the id of a session that has changed; null if the list has. Returns what ends it. */
  listen(listener: (id: string | null) => void): () => void
}

/** The data in an exported document. */
export interface ExportedData {
  readonly list: SessionList
  readonly page: SessionPage
}

const DATA_ELEMENT = 'tidemark-data'

export function createPageSource(): PageSource {
  const element = document.getElementById(DATA_ELEMENT)
  return element === null
    ? createServedSource()
    : createExportedSource(JSON.parse(element.textContent ?? '{}'))
}

function createServedSource(): PageSource {
  return {
    isExported: false,
    loadList: () => load('/api/sessions'),
    loadSession: (id) => load(`/api/session/${id}`),
    loadRequest: (id, index) => load(`/api/session/${id}/request/${index}`),
    listen(listener) {
      const events = new EventSource('/api/events')
      events.onmessage = ({ data }) => {
        const event: { readonly type: string; readonly id?: string } = JSON.parse(data)
        listener(event.id ?? null)
      }
      return () => events.close()
    },
  }
}

async function load<T>(path: string): Promise<T> {
  const response = await fetch(path).catch(() => null)
  if (response === null) throw new Error('The page is no longer served: start tidemark ui again.')
  const value = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }))
  if (!response.ok) throw new Error(value.error)
  return value
}

function createExportedSource({ list, page }: ExportedData): PageSource {
  const leftOut = async (): Promise<never> => {
    throw new Error('Texts are not part of this file.')
  }
  return {
    isExported: true,
    loadList: async () => list,
    loadSession: async () => page,
    loadRequest: leftOut,
    listen: () => () => {},
  }
}
