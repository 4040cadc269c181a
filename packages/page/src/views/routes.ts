/** The addresses of the views, in the part behind `#`. */

export const TABS = ['tide', 'left', 'if', 'cache'] as const
export type Tab = (typeof TABS)[number]

export type Route =
  | { readonly view: 'sessions' }
  | { readonly view: 'live' }
  | { readonly view: 'session'; readonly id: string; readonly tab: Tab }

export function parseRoute(hash: string): Route {
  if (hash === '#/live') return { view: 'live' }
  const [, id, tab] = /^#\/s\/([0-9a-f]+)(?:\/(\w+))?$/.exec(hash) ?? []
  if (id === undefined) return { view: 'sessions' }
  return { view: 'session', id, tab: TABS.find((each) => each === tab) ?? 'tide' }
}

export function toSessionAddress(id: string, tab: Tab = 'tide'): string {
  return `#/s/${id}/${tab}`
}
