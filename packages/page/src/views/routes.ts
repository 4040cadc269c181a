/** The addresses of the views, in the part behind `#`, and their titles. */
import { useEffect } from 'preact/hooks'

const TABS = ['tide', 'content', 'left', 'if', 'cache'] as const
export type Tab = (typeof TABS)[number]

export type Route =
  /** The first view: the spending of a team, or the list of sessions if there is no team. */
  | { readonly view: 'home' }
  | { readonly view: 'sessions' }
  | { readonly view: 'live' }
  | {
      readonly view: 'session'
      readonly id: string
      readonly tab: Tab
      /** The request to show on the chart, as an index; null for the newest. */
      readonly request: number | null
    }

/** Parses the `hash` of a location. An unknown address is `home`, an unknown tab the tide chart. */
export function parseRoute(hash: string): Route {
  if (hash === '#/live') return { view: 'live' }
  const [, id, tab, number] = /^#\/s\/([0-9a-f]+)(?:\/(\w+)(?:\/(\d+))?)?$/.exec(hash) ?? []
  if (id === undefined) return { view: hash === '#/sessions' ? 'sessions' : 'home' }
  const request = number === undefined ? null : Number(number) - 1
  return { view: 'session', id, tab: TABS.find((each) => each === tab) ?? 'tide', request }
}

export function toSessionAddress(id: string, tab: Tab = 'tide'): string {
  return `#/s/${id}/${tab}`
}

/** Returns the address of a request on the tide chart or, with the tab `left`, of the rewrite before it. `request`: its index. */
export function toRequestAddress(id: string, request: number, tab: Tab = 'tide'): string {
  return `${toSessionAddress(id, tab)}/${request + 1}`
}

/** Sets the title of the document, which the tab of the browser, its history and screen readers show. */
export function useDocumentTitle(...parts: readonly string[]): void {
  const title = [...parts, 'Tidemark'].join(' · ')
  useEffect(() => {
    document.title = title
  }, [title])
}
