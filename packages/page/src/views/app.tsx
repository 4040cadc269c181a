/** The frame of the page: header, the view that the address names, and the choice of colours. */
import { useEffect, useState } from 'preact/hooks'
import type { PageSource } from '../data/page-source.ts'
import { LiveView } from './live-view.tsx'
import { parseRoute, type Route } from './routes.ts'
import { SessionView } from './session-view.tsx'
import { SessionsView } from './sessions-view.tsx'

export function App({ source }: { readonly source: PageSource }) {
  const [route, setRoute] = useState<Route>(() => parseRoute(location.hash))
  useEffect(() => {
    const follow = (): void => setRoute(parseRoute(location.hash))
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  return (
    <>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="#/" aria-label="Tidemark: all sessions">
          <Wave />
          <span>tidemark</span>
        </a>
        <nav class="links" aria-label="Main">
          {source.isExported ? null : (
            <>
              <a href="#/" aria-current={route.view === 'sessions' ? 'page' : undefined}>
                Sessions
              </a>
              <a href="#/live" aria-current={route.view === 'live' ? 'page' : undefined}>
                Live
              </a>
            </>
          )}
        </nav>
        <ThemeButton />
      </header>
      <main id="content" tabIndex={-1}>
        <RoutedView source={source} route={route} />
      </main>
    </>
  )
}

function RoutedView({ source, route }: { readonly source: PageSource; readonly route: Route }) {
  // An exported file has one session, whatever the address says.
  if (source.isExported)
    return route.view === 'session' ? (
      <SessionView source={source} id="0" tab={route.tab} request={route.request} />
    ) : (
      <SessionView source={source} id="0" tab="tide" request={null} />
    )
  if (route.view === 'live') return <LiveView source={source} />
  if (route.view === 'session')
    return <SessionView source={source} id={route.id} tab={route.tab} request={route.request} />
  return <SessionsView source={source} />
}

function Wave() {
  return (
    <svg width="28" height="18" viewBox="0 0 28 18" aria-hidden="true">
      <path
        d="M1 13c4 0 4-5 8-5s4 5 8 5 4-9 10-11"
        fill="none"
        stroke="currentColor"
        stroke-width="2.4"
        stroke-linecap="round"
      />
      <path
        d="M1 17c4 0 4-3 8-3s4 3 8 3 4-3 10-4"
        fill="none"
        stroke="currentColor"
        stroke-width="1.6"
        stroke-linecap="round"
        opacity=".5"
      />
    </svg>
  )
}

type Theme = 'auto' | 'light' | 'dark'
const NEXT_THEME: Readonly<Record<Theme, Theme>> = { auto: 'light', light: 'dark', dark: 'auto' }

/** Goes through the system's colours, light and dark. */
function ThemeButton() {
  const [theme, setTheme] = useState<Theme>('auto')
  useEffect(() => {
    if (theme === 'auto') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = theme
  }, [theme])
  return (
    <button
      type="button"
      class="quiet theme"
      aria-label={`Colours: ${theme}`}
      onClick={() => setTheme(NEXT_THEME[theme])}
    >
      <span aria-hidden="true">◐</span> {theme}
    </button>
  )
}
