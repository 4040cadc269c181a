/** Shows a session whose log is being written: the newest, or the one that the user chose. The chart follows the log. */
import { formatCost } from '@tidemark/terminal/render/format-numbers'
import { useState } from 'preact/hooks'
import type { ListedSession } from 'tidemark/report'
import type { PageSource } from '../data/page-source.ts'
import { useLoaded, useSessionChanges } from '../data/use-loaded.ts'
import { nameSession } from './display-names.ts'
import { Notice } from './notice.tsx'
import { useDocumentTitle } from './routes.ts'
import { SessionView } from './session-view.tsx'

export function LiveView({ source }: { readonly source: PageSource }) {
  const { value, error, reload } = useLoaded('list', source.loadList)
  const [chosen, setChosen] = useState<string | null>(null)
  useSessionChanges(source, null, reload)
  useDocumentTitle('Live')
  if (error !== null) return <Notice text={error} isError />
  if (value === null) return <Notice text="Looking for sessions …" />
  const live = value.sessions.filter(({ isLive }) => isLive)
  const shown = live.find(({ id }) => id === chosen) ?? live[0]
  if (shown === undefined)
    return (
      <Notice text="No session was written to in the last two minutes. The next one that is will be shown here." />
    )
  return (
    <>
      {live.length < 2 ? null : <SessionChoice sessions={live} chosen={shown.id} onChoose={setChosen} />}
      <SessionView key={shown.id} source={source} id={shown.id} tab="tide" request={null} />
    </>
  )
}

interface SessionChoiceProps {
  readonly sessions: readonly ListedSession[]
  readonly chosen: string
  readonly onChoose: (id: string) => void
}

function SessionChoice({ sessions, chosen, onChoose }: SessionChoiceProps) {
  return (
    <label class="choose">
      <span>{sessions.length} live sessions</span>
      <select value={chosen} onChange={(event) => onChoose(event.currentTarget.value)}>
        {sessions.map((session) => (
          <option key={session.id} value={session.id}>
            {formatCost(session.costUsd, session.money.pricedUsd)} · {nameSession(session)}
          </option>
        ))}
      </select>
    </label>
  )
}
