/** The frame of the page: header, the view that the address names, and the choice of colours. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { TeamViewer } from 'tidemark/report'
import type { PageSource, TeamSource } from '../data/page-source.ts'
import { LiveView } from './live-view.tsx'
import { parseRoute, type Route } from './routes.ts'
import { SessionView } from './session-view.tsx'
import { DEFAULT_LIST_CHOICE, type ListChoice, SessionsView } from './sessions-view.tsx'
import { SignInView } from './sign-in-view.tsx'
import { TeamView } from './team-view.tsx'

export function App({ source }: { readonly source: PageSource }) {
  const [route, setRoute] = useState<Route>(() => parseRoute(location.hash))
  useEffect(() => {
    const follow = (): void => setRoute(parseRoute(location.hash))
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  const main = useRef<HTMLElement>(null)
  const place = route.view === 'session' ? route.id : route.view
  const former = useRef(place)
  useEffect(() => {
    // If the focused link disappears with its view, nothing would have the focus.
    if (former.current !== place && document.activeElement === document.body)
      main.current?.focus({ preventScroll: true })
    former.current = place
  }, [place])
  const { team } = source
  const [viewer, setViewer] = useViewer(team)
  const isHidden = team !== null && viewer === null
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class="top">
        <a class="brand" href="#/" aria-label={team === null ? 'Tidemark: all sessions' : 'Tidemark: costs'}>
          <Wave />
          <span>tidemark</span>
        </a>
        <nav class="links" aria-label="Main">
          {source.isExported || isHidden ? null : <MainLinks view={route.view} hasTeam={team !== null} />}
        </nav>
        {team === null || viewer == null ? null : (
          <SignedIn viewer={viewer} onEnd={() => team.signOut().then(() => setViewer(null))} />
        )}
        <ThemeButton />
      </header>
      <main tabIndex={-1} ref={main}>
        {isHidden && team !== null ? (
          <SignInView team={team} onSignedIn={setViewer} />
        ) : team !== null && viewer === undefined ? null : (
          <RoutedView source={source} route={route} viewer={viewer ?? null} />
        )}
      </main>
    </>
  )
}

/** Loads who is signed in to the page of a gateway: undefined until that is known, null if a key is needed. */
function useViewer(team: TeamSource | null) {
  const [viewer, setViewer] = useState<TeamViewer | null | undefined>(undefined)
  useEffect(() => {
    if (team === null) return
    team.loadViewer().then(setViewer, () => setViewer(null))
    return team.onSignedOut(() => setViewer(null))
  }, [team])
  return [viewer, setViewer] as const
}

function MainLinks({ view, hasTeam }: { readonly view: Route['view']; readonly hasTeam: boolean }) {
  const sessions = hasTeam ? '#/sessions' : '#/'
  const isList = view === 'sessions' || (view === 'home' && !hasTeam)
  return (
    <>
      {hasTeam ? (
        <a href="#/" aria-current={view === 'home' ? 'page' : undefined}>
          Costs
        </a>
      ) : null}
      <a href={sessions} aria-current={isList ? 'page' : undefined}>
        Sessions
      </a>
      <a href="#/live" aria-current={view === 'live' ? 'page' : undefined}>
        Live
      </a>
    </>
  )
}

function SignedIn({ viewer, onEnd }: { readonly viewer: TeamViewer; readonly onEnd: () => void }) {
  return (
    <span class="signed-in">
      <span class="viewer-name" title={`Signed in with the key ${viewer.name}`}>
        {viewer.name}
      </span>
      <button type="button" class="quiet" onClick={onEnd}>
        Sign out
      </button>
    </span>
  )
}

interface RoutedViewProps {
  readonly source: PageSource
  readonly route: Route
  readonly viewer: TeamViewer | null
}

function RoutedView({ source, route, viewer }: RoutedViewProps) {
  // What is chosen in the list stays while a session is open.
  const [choice, setChoice] = useState<ListChoice>(DEFAULT_LIST_CHOICE)
  // An exported file has one session, whatever the address says.
  if (source.isExported)
    return route.view === 'session' ? (
      <SessionView source={source} id="0" tab={route.tab} request={route.request} />
    ) : (
      <SessionView source={source} id="0" tab="tide" request={null} />
    )
  if (route.view === 'live') return <LiveView source={source} />
  if (route.view === 'session')
    return (
      <SessionView key={route.id} source={source} id={route.id} tab={route.tab} request={route.request} />
    )
  if (route.view === 'home' && source.team !== null && viewer !== null)
    return <TeamView source={source} team={source.team} viewer={viewer} />
  return <SessionsView source={source} choice={choice} onChoice={setChoice} />
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

/** Switches between the system's theme, light and dark. */
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
