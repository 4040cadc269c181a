/** The tab Cache of a session: what cache breaks cost by cause, every break with its evidence, and what clearings cost. */
import {
  formatCount,
  formatDollars,
  formatInteger,
  formatWholePercent,
} from '@tidemark/terminal/render/format-numbers'
import { useState } from 'preact/hooks'
import type { PageBreakCause, PageSessionReport } from 'tidemark/report'
import { formatBreakCause, nameClearer } from '../chart/chart-flags.ts'
import { formatDateTime } from './display-names.ts'
import { toRequestAddress } from './routes.ts'

type PageBreak = PageSessionReport['cacheBreaks'][number]

/** The meaning of each cause, and what helps against it. */
const ADVICE: Readonly<Record<string, string>> = {
  expired: 'The pause before the request was longer than the cache keeps an entry.',
  'model-changed': 'Each model has a cache of its own. Change models at the start of a task.',
  'tools-changed': 'Tools come first in a request, so a changed tool makes everything behind it new.',
  'system-changed': 'The system prompt changed, and everything behind it is new.',
  'thinking-changed': 'Settings of thinking are part of the cached prefix.',
  'messages-changed': 'An earlier message was rewritten by the program.',
  'memory-changed': 'A file that is part of the prompt was edited.',
  'skill-loaded': 'The turn of a skill is sent with other settings, which are part of the cached prefix.',
  restarted: 'The program was started again and built its prompt anew.',
  'server-side': 'Nothing in the log explains it. Most likely the provider dropped the entry.',
  'not-streamed': 'The stream failed, and the request was repeated with other settings.',
}

interface CacheViewProps {
  readonly id: string
  readonly report: PageSessionReport
}

export function CacheView({ id, report }: CacheViewProps) {
  const { cacheBreaks, clearingCosts, money, hourWouldSave } = report
  const share = money.shareLostToBreaks
  return (
    <section aria-label="Cache">
      <p class="lead">
        {cacheBreaks.length === 0 ? (
          'No cache break: each request read what the one before had left in the cache.'
        ) : (
          <>
            {formatCount(cacheBreaks.length, 'cache break')}:{' '}
            <b class="bad">{money.lostToBreaks === null ? '$?' : formatDollars(money.lostToBreaks)}</b>
            {share === null ? '' : `, ${formatWholePercent(share)} of the cost`}.
          </>
        )}{' '}
        {hourWouldSave === null || Math.abs(hourWouldSave) < 0.005
          ? ''
          : hourWouldSave > 0
            ? `A cache lifetime of one hour would have saved ${formatDollars(hourWouldSave)}.`
            : `A cache lifetime of one hour would have cost ${formatDollars(-hourWouldSave)} more.`}
      </p>
      {cacheBreaks.length === 0 ? null : (
        <>
          <BreakCauseBars causes={sumCauses(cacheBreaks)} />
          <BreakTable id={id} report={report} />
        </>
      )}
      {clearingCosts.length === 0 ? null : <ClearingTable report={report} />}
    </section>
  )
}

function sumCauses(breaks: readonly PageBreak[]): readonly CauseSum[] {
  return [...Map.groupBy(breaks, ({ cause }) => cause)]
    .map(([cause, own]) => ({
      cause,
      count: own.length,
      usd: own.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0),
    }))
    .toSorted((one, other) => other.usd - one.usd)
}

interface CauseSum {
  readonly cause: PageBreakCause
  readonly count: number
  readonly usd: number
}

/** One bar for each cause of cache breaks, in the given order, with its number, its dollars and what helps against it. */
export function BreakCauseBars({ causes }: { readonly causes: readonly CauseSum[] }) {
  const most = Math.max(...causes.map(({ usd }) => usd), 0.000_001)
  return (
    <div class="card bars causes">
      {causes.map(({ cause, count, usd }) => (
        <div key={cause}>
          <span>
            {formatBreakCause(cause)} × {count}
          </span>
          <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
            <rect class="cost-uncached" width={Math.max(0.6, (100 * usd) / most)} height="8" />
          </svg>
          <span class="number">{formatDollars(usd)}</span>
          <small class="detail">{ADVICE[cause] ?? ''}</small>
        </div>
      ))}
    </div>
  )
}

const BREAK_COLUMNS = ['Cause', 'Request', 'Time', 'Evidence', 'Tokens again', 'Price']

const ORDERS: Readonly<Record<string, (one: PageBreak, other: PageBreak) => number>> = {
  price: (one, other) => (other.costUsd ?? 0) - (one.costUsd ?? 0),
  time: (one, other) => (one.at < other.at ? -1 : 1),
}

function BreakTable({ id, report }: CacheViewProps) {
  const [order, setOrder] = useState('price')
  const places = new Map(report.requests.map(({ line }, index) => [line, index]))
  // A file without texts has no evidence.
  const hasEvidence = report.cacheBreaks.some(({ evidence }) => evidence !== '')
  const columns = BREAK_COLUMNS.filter((title) => title !== 'Evidence' || hasEvidence)
  return (
    <>
      <label class="choose">
        <span>Order by</span>
        <select value={order} onChange={(event) => setOrder(event.currentTarget.value)}>
          <option value="price">price</option>
          <option value="time">time</option>
        </select>
      </label>
      <div class="scroll">
        <table class="breaks stacks" aria-label="Cache breaks">
          <thead>
            <tr>
              {columns.map((title) => (
                <th key={title} scope="col" class={/Request|Tokens|Price/.test(title) ? 'number' : ''}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {report.cacheBreaks.toSorted(ORDERS[order]).map((each) => (
              <tr key={`${each.agent ?? ''}${each.source ?? ''}${each.line}`}>
                <td class="first">
                  <b>{formatBreakCause(each.cause)}</b>
                </td>
                <td class="number" data-title="Request">
                  <BreakPlace id={id} each={each} places={places} />
                </td>
                <td class="when" data-title="Time">
                  {formatDateTime(each.at)}
                </td>
                {hasEvidence ? <td class="evidence first">{each.evidence}</td> : null}
                <td class="number" data-title="Tokens again">
                  {formatInteger(each.tokensRewritten)}
                </td>
                <td class="number" data-title="Price">
                  {each.costUsd === null ? '?' : formatDollars(each.costUsd)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

interface BreakPlaceProps {
  readonly id: string
  readonly each: PageBreak
  readonly places: ReadonlyMap<number, number>
}

/** Links to the request that paid for the break, on the chart. Calls of subagents and side calls have no place on the chart. */
function BreakPlace({ id, each, places }: BreakPlaceProps) {
  const { agent, source, line } = each
  if (agent !== undefined) return <>subagent</>
  const index = places.get(line)
  if (source !== undefined || index === undefined) return <>{source ?? ''}</>
  return <a href={toRequestAddress(id, index)}>{index + 1}</a>
}

const FIRST_NUMBER = 2

function ClearingTable({ report }: { readonly report: PageSessionReport }) {
  return (
    <>
      <h3>Clearings, which are made on purpose</h3>
      <div class="scroll">
        <table aria-label="Clearings">
          <thead>
            <tr>
              {['Time', 'By', 'Tokens again', 'Price', 'Pays after'].map((title, index) => (
                <th key={title} scope="col" class={index < FIRST_NUMBER ? '' : 'number'}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {report.clearingCosts.map(({ at, by, tokensRewritten, costUsd, breakEvenCalls }) => (
              <tr key={at}>
                <td>{formatDateTime(at)}</td>
                <td>{nameClearer(by, report)}</td>
                <td class="number">{formatInteger(tokensRewritten)}</td>
                <td class="number">{costUsd === null ? '?' : formatDollars(costUsd)}</td>
                <td class="number">{breakEvenCalls === null ? '?' : formatCount(breakEvenCalls, 'call')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}
