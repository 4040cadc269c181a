/** The page of one session: what it cost in a sentence, its figures, and one of its tabs. */
import { formatDuration } from '@tidemark/terminal/render/format-numbers'
import type { PageSessionReport, SessionPageData } from 'tidemark/report'
import { formatCostOfCalls, listKeyFigures, listUnpricedModels } from '../chart/headline.ts'
import { PROGRAM_NAMES } from '../chart/programs.ts'
import { formatSpendingParts, listSpendingParts } from '../chart/spending-parts.ts'
import type { PageSource } from '../data/page-source.ts'
import { useLoaded, useSessionChanges } from '../data/use-loaded.ts'
import { CacheView } from './cache-view.tsx'
import { ContentView } from './content-view.tsx'
import { DeparturesView } from './departures-view.tsx'
import { formatDateTime, formatSessionOrigin, nameSession } from './display-names.ts'
import { Notice } from './notice.tsx'
import { type Tab, toSessionAddress, useDocumentTitle } from './routes.ts'
import { SpendingBar } from './spending-bar.tsx'
import { TideView } from './tide-view.tsx'
import { type PolicyReplays, usePolicyReplays, WhatIfView } from './what-if-view.tsx'

interface SessionViewProps {
  readonly source: PageSource
  readonly id: string
  readonly tab: Tab
  /** The request to show on the chart, as an index; null for the newest. */
  readonly request: number | null
}

const TAB_TITLES: Readonly<Record<Tab, string>> = {
  tide: 'Tide',
  content: 'What filled it',
  left: 'What left',
  if: 'What if',
  cache: 'Cache',
}

export function SessionView({ source, id, tab, request }: SessionViewProps) {
  const { value, error, reload } = useLoaded(id, () => source.loadSession(id))
  useSessionChanges(source, id, reload)
  useDocumentTitle(...(value === null ? [] : [nameSession(value.report)]), TAB_TITLES[tab])
  const replays = usePolicyReplays(source, id)
  if (error !== null) return <Notice text={error} isError />
  if (value === null) return <Notice text="Reading the session …" />
  const { report } = value
  return (
    <article class="session">
      <p class="where">
        {[
          ...(value.owner === undefined
            ? [PROGRAM_NAMES[report.format]]
            : [value.owner.key, value.owner.team ?? '']),
          report.models.join(', '),
          formatSessionOrigin({ ...report, ...value }),
          formatDateTime(report.startedAt),
          report.durationMs === null ? '' : formatDuration(report.durationMs),
        ]
          .filter((part) => part !== '')
          .join(' · ')}
        {value.isLive ? <span class="live-dot">live</span> : null}
      </p>
      <h1>{nameSession(report)}</h1>
      <Headline id={id} report={report} />
      {report.brokenOff === null ? null : (
        <Notice text={`Figures are partial: ${report.brokenOff}`} isError />
      )}
      <Figures report={report} />
      <div class="tabs">
        <nav class="links" aria-label="Views of this session">
          {(Object.keys(TAB_TITLES) as Tab[]).map((each) => (
            <a key={each} href={toSessionAddress(id, each)} aria-current={each === tab ? 'page' : undefined}>
              {TAB_TITLES[each]}
            </a>
          ))}
        </nav>
        {source.isExported ? null : <ExportLinks id={id} />}
      </div>
      <TabView
        source={source}
        page={value}
        tab={tab}
        request={request}
        replays={replays}
        onChanged={reload}
      />
    </article>
  )
}

/** What the session cost and where the money went, in one sentence and one bar. */
function Headline({ id, report }: { readonly id: string; readonly report: PageSessionReport }) {
  const parts = listSpendingParts([report])
  const told = formatSpendingParts(parts)
  const unpriced = listUnpricedModels(report)
  return (
    <>
      <p class="headline">
        {formatCostOfCalls(report)}
        {told === '' ? '' : `: ${told}`}.
        {unpriced.length === 0 ? '' : ` No prices are known of ${unpriced.join(', ')}.`}
      </p>
      <SpendingBar
        parts={parts}
        addresses={{
          carried: toSessionAddress(id, 'content'),
          added: toSessionAddress(id, 'content'),
          breaks: toSessionAddress(id, 'cache'),
          clearings: toSessionAddress(id, 'cache'),
        }}
      />
    </>
  )
}

const SHARED = 'To show to others: without texts, paths and names.'

/** Links to files that can be shared. Neither file contains a text of the session. */
function ExportLinks({ id }: { readonly id: string }) {
  return (
    <p class="export">
      <a class="button" href={`/api/session/${id}/html`} download title={SHARED}>
        Save as one file
      </a>
      <a class="button" href={`/api/session/${id}/card`} download title={SHARED}>
        Save the picture
      </a>
    </p>
  )
}

interface TabViewProps {
  readonly source: PageSource
  readonly page: SessionPageData
  readonly tab: Tab
  readonly request: number | null
  readonly replays: PolicyReplays
  readonly onChanged: () => void
}

function TabView({ source, page, tab, request, replays, onChanged }: TabViewProps) {
  if (tab === 'left')
    return <DeparturesView source={source} page={page} request={request} onChanged={onChanged} />
  if (tab === 'content') return <ContentView id={page.id} report={page.report} />
  if (tab === 'if') return <WhatIfView source={source} page={page} replays={replays} />
  if (tab === 'cache') return <CacheView id={page.id} report={page.report} />
  return <TideView key={request ?? 'newest'} source={source} page={page} request={request} />
}

function Figures({ report }: { readonly report: PageSessionReport }) {
  return (
    <dl class="figures">
      {listKeyFigures(report).map(({ name, text, tone }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={tone ?? ''}>{text}</dd>
        </div>
      ))}
    </dl>
  )
}
