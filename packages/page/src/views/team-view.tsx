/** The first view of a gateway's page: what was spent by day, key, team and model, and what was lost by cause of cache breaks. */
import {
  formatCount,
  formatDollars,
  formatTokens,
  formatWholePercent,
} from '@tidemark/terminal/render/format-numbers'
import { useState } from 'preact/hooks'
import type { SpendingRow, TeamFigures, TeamKeySpending, TeamViewer } from 'tidemark/report'
import type { PageSource, TeamSource } from '../data/page-source.ts'
import { useLoaded, useSessionChanges } from '../data/use-loaded.ts'
import { BreakCauseBars } from './cache-view.tsx'
import { DailyCostBars } from './daily-cost-bars.tsx'
import { formatModelName } from './display-names.ts'
import { Notice } from './notice.tsx'
import { useDocumentTitle } from './routes.ts'

interface TeamViewProps {
  readonly source: PageSource
  readonly team: TeamSource
  readonly viewer: TeamViewer
}

const RANGES: readonly { readonly label: string; readonly days: number | null }[] = [
  { label: 'Today', days: 1 },
  { label: '7 days', days: 7 },
  { label: '30 days', days: 30 },
  { label: '90 days', days: 90 },
  { label: 'All', days: null },
]

export function TeamView({ source, team, viewer }: TeamViewProps) {
  const [days, setDays] = useState<number | null>(30)
  const { value, error, reload } = useLoaded(`team/${days}`, () => team.loadFigures(days))
  useSessionChanges(source, null, reload)
  useDocumentTitle('Costs')
  return (
    <section aria-label="Costs">
      <div class="head">
        <h1>{nameScope(viewer)}</h1>
        <fieldset class="ranges">
          <legend class="unseen">Days, in UTC</legend>
          {RANGES.map((range) => (
            <button
              key={range.label}
              type="button"
              aria-pressed={range.days === days}
              onClick={() => setDays(range.days)}
            >
              {range.label}
            </button>
          ))}
        </fieldset>
      </div>
      {error !== null ? <Notice text={error} isError /> : null}
      {value === null ? (
        error === null && <Notice text="Adding up …" />
      ) : (
        <TeamSums figures={value} viewer={viewer} />
      )}
    </section>
  )
}

function nameScope({ sees, name, team }: TeamViewer): string {
  if (sees === 'own') return `Costs of ${name}`
  return sees === 'team' ? `Costs of ${team}` : 'Costs of all teams'
}

interface TeamSumsProps {
  readonly figures: TeamFigures
  readonly viewer: TeamViewer
}

function TeamSums({ figures, viewer }: TeamSumsProps) {
  const { keys, teams, models, total } = figures
  const users = keys.filter(({ calls, isRevoked }) => calls > 0 || !isRevoked)
  return (
    <>
      <p class="headline" role="status">
        {writeTotal(figures)}
      </p>
      <Tiles figures={figures} />
      {figures.days.length === 0 ? null : <DailyCostBars days={figures.days} since={figures.since} />}
      <Losses figures={figures} />
      {users.length === 0 ? <Notice text="No key yet: tidemark gateway keys add NAME." /> : null}
      {users.length > 0 ? <KeyTable keys={users} total={total.usd} /> : null}
      {viewer.sees === 'all' && teams.some(({ name }) => name !== null) ? (
        <ShareTable title="Teams" rows={teams} total={total.usd} show={(name) => name ?? 'no team'} />
      ) : null}
      {models.length > 0 ? (
        <ShareTable
          title="Models"
          rows={models}
          total={total.usd}
          show={(name) => formatModelName(name ?? '')}
        />
      ) : null}
    </>
  )
}

function writeTotal({ total, keys, runningUsd }: TeamFigures): string {
  if (total.calls === 0 && runningUsd === 0) return 'No call in these days.'
  const users = keys.filter(({ calls }) => calls > 0).length
  const who = keys.length > 1 ? ` of ${formatCount(users, 'key')}` : ''
  const running = runningUsd > 0 ? `, and ${formatDollars(runningUsd)} reserved for calls that run` : ''
  return `${formatDollars(total.usd)} for ${formatCount(total.calls, 'call')}${who}${running}.`
}

function Tiles({ figures: { total, losses, sessions } }: { readonly figures: TeamFigures }) {
  const prompt = total.input + total.cacheRead + total.cacheWrite
  const lost = losses.reduce((sum, { usd }) => sum + usd, 0)
  const tiles = [
    { name: 'Sessions', text: String(sessions) },
    { name: 'Prompt tokens', text: formatTokens(prompt) },
    { name: 'Read from cache', text: prompt === 0 ? '–' : formatWholePercent(total.cacheRead / prompt) },
    { name: 'Output tokens', text: formatTokens(total.output) },
    { name: 'Lost to cache breaks', text: formatDollars(lost), tone: lost >= 0.005 ? 'bad' : '' },
    { name: 'Not reported, estimated', text: formatDollars(total.estimatedUsd) },
  ]
  return (
    <dl class="figures">
      {tiles.map(({ name, text, tone = '' }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={tone}>{text}</dd>
        </div>
      ))}
    </dl>
  )
}

function Losses({ figures: { losses, sessions, unread } }: { readonly figures: TeamFigures }) {
  const unpriced = losses.reduce((sum, loss) => sum + loss.unpriced, 0)
  return (
    <>
      <h2 class="part">Losses by cause</h2>
      <p class="lead">
        {losses.length === 0
          ? 'No cache break in what was read.'
          : 'Content that had been in the cache and was processed again.'}{' '}
        {unread > 0 ? `${formatCount(unread, 'session')} of ${sessions} still to be read.` : ''}
        {unpriced > 0 ? ` ${formatCount(unpriced, 'break')} without a known price.` : ''}
      </p>
      {losses.length === 0 ? null : (
        <BreakCauseBars causes={losses.map(({ cause, breaks, usd }) => ({ cause, count: breaks, usd }))} />
      )}
    </>
  )
}

const PERIODS: Readonly<Record<string, string>> = {
  day: 'today',
  week: 'this week',
  month: 'this month',
  total: 'in total',
}

function KeyTable({ keys, total }: { readonly keys: readonly TeamKeySpending[]; readonly total: number }) {
  return (
    <>
      <h2 class="part">Keys</h2>
      <div class="scroll">
        <table class="stacks">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Team</th>
              <NumberHeads titles={['Calls', 'Cost', 'Share']} />
              <th scope="col" class="number">
                Budget
              </th>
            </tr>
          </thead>
          <tbody>
            {keys.map((key) => (
              <tr key={key.name}>
                <td class="first">
                  <b>{key.key}</b>{' '}
                  <small>
                    {key.hint}…{key.isRevoked ? ' revoked' : ''}
                  </small>
                </td>
                <td data-title="Team">{key.team ?? '–'}</td>
                <RowNumbers row={key} total={total} />
                <td class="number whole" data-title="Budget">
                  <Budget budgeted={key} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function Budget({ budgeted: { budget, spent, reserved, period } }: { readonly budgeted: TeamKeySpending }) {
  const when = PERIODS[period] ?? ''
  if (budget === null) return <small>{`${formatDollars(spent)} ${when}, no limit`}</small>
  const share = Math.min(1, (spent + reserved) / budget)
  return (
    <span class={share >= 0.8 ? 'share bad' : 'share'}>
      <meter min={0} max={1} value={share} aria-hidden="true" />
      {`${formatDollars(spent)} of ${formatDollars(budget)} ${when}`}
    </span>
  )
}

interface ShareTableProps {
  readonly title: string
  readonly rows: readonly SpendingRow[]
  readonly total: number
  readonly show: (name: string | null) => string
}

function ShareTable({ title, rows, total, show }: ShareTableProps) {
  return (
    <>
      <h2 class="part">{title}</h2>
      <div class="scroll">
        <table class="stacks">
          <thead>
            <tr>
              <th scope="col">{title.slice(0, -1)}</th>
              <NumberHeads titles={['Calls', 'Cost', 'Share', 'Prompt', 'Cached', 'Output']} />
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => {
              const prompt = row.input + row.cacheRead + row.cacheWrite
              return (
                <tr key={row.name}>
                  <td class="first">
                    <b>{show(row.name)}</b>
                  </td>
                  <RowNumbers row={row} total={total} />
                  <td class="number" data-title="Prompt">
                    {formatTokens(prompt)}
                  </td>
                  <td class="number" data-title="Cached">
                    {prompt === 0 ? '–' : formatWholePercent(row.cacheRead / prompt)}
                  </td>
                  <td class="number" data-title="Output">
                    {formatTokens(row.output)}
                  </td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </>
  )
}

function NumberHeads({ titles }: { readonly titles: readonly string[] }) {
  return (
    <>
      {titles.map((title) => (
        <th key={title} scope="col" class="number">
          {title}
        </th>
      ))}
    </>
  )
}

function RowNumbers({ row, total }: { readonly row: SpendingRow; readonly total: number }) {
  return (
    <>
      <td class="number" data-title="Calls">
        {row.calls}
      </td>
      <td class="number" data-title="Cost">
        {formatDollars(row.usd)}
      </td>
      <td class="number" data-title="Share">
        {total === 0 ? '–' : formatWholePercent(row.usd / total)}
      </td>
    </>
  )
}
