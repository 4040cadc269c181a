/** The page of one session: a sentence, its figures, and one of its views. */
import { formatDuration } from '@tidemark/terminal/render/format-numbers'
import type { PageReport, SessionPage } from 'tidemark/report'
import { listFigures, writeHeadline } from '../chart/headline.ts'
import type { PageSource } from '../data/page-source.ts'
import { useChanges, useLoaded } from '../data/use-loaded.ts'
import { CacheView } from './cache-view.tsx'
import { LeftView } from './left-view.tsx'
import { Notice } from './notice.tsx'
import { type Tab, toSessionAddress } from './routes.ts'
import { formatPlace, formatWhen, nameSession, PROGRAMS } from './session-names.ts'
import { TideView } from './tide-view.tsx'
import { WhatIfView } from './what-if-view.tsx'

interface SessionViewProps {
  readonly source: PageSource
  readonly id: string
  readonly tab: Tab
}

const TAB_TITLES: Readonly<Record<Tab, string>> = {
  tide: 'Tide',
  left: 'What left',
  if: 'What if',
  cache: 'Cache',
}

export function SessionView({ source, id, tab }: SessionViewProps) {
  const { value, error, reload } = useLoaded(id, () => source.loadSession(id))
  useChanges(source, id, reload)
  if (error !== null) return <Notice text={error} isError />
  if (value === null) return <Notice text="Reading the session …" />
  const { report } = value
  return (
    <article class="session">
      <p class="where">
        {[
          PROGRAMS[report.format],
          report.models.join(', '),
          formatPlace(report),
          formatWhen(report.startedAt),
          report.durationMs === null ? '' : formatDuration(report.durationMs),
        ]
          .filter((part) => part !== '')
          .join(' · ')}
        {value.isLive ? <span class="live-dot">live</span> : null}
      </p>
      <h1>{nameSession(report)}</h1>
      <p class="headline">{writeHeadline(report)}</p>
      {report.brokenOff === null ? null : (
        <Notice text={`Figures are partial: ${report.brokenOff}`} isError />
      )}
      <Figures report={report} />
      <nav class="links tabs" aria-label="Views of this session">
        {(Object.keys(TAB_TITLES) as Tab[]).map((each) => (
          <a key={each} href={toSessionAddress(id, each)} aria-current={each === tab ? 'page' : undefined}>
            {TAB_TITLES[each]}
          </a>
        ))}
      </nav>
      {source.isExported ? null : <ExportLinks id={id} />}
      <TabView source={source} page={value} tab={tab} onChanged={reload} />
    </article>
  )
}

/** Files to share. Neither has a text of the session. */
function ExportLinks({ id }: { readonly id: string }) {
  return (
    <p class="export">
      <a class="button" href={`/api/session/${id}/html`} download>
        Save as one file
      </a>
      <a class="button" href={`/api/session/${id}/card`} download>
        Save the picture
      </a>
      <small>Without texts, paths and names: to show to others.</small>
    </p>
  )
}

interface TabViewProps {
  readonly source: PageSource
  readonly page: SessionPage
  readonly tab: Tab
  readonly onChanged: () => void
}

function TabView({ source, page, tab, onChanged }: TabViewProps) {
  if (tab === 'left') return <LeftView source={source} page={page} onChanged={onChanged} />
  if (tab === 'if') return <WhatIfView source={source} page={page} />
  if (tab === 'cache') return <CacheView report={page.report} />
  return <TideView source={source} page={page} />
}

function Figures({ report }: { readonly report: PageReport }) {
  return (
    <dl class="figures">
      {listFigures(report).map(({ name, text, tone }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={tone ?? ''}>{text}</dd>
        </div>
      ))}
    </dl>
  )
}
