/** The tab What if: what the session would have cost under other policies, as dollars side by side and as the curve of each. */
import {
  formatCount,
  formatDollars,
  formatTokenLimit,
  formatWholePercent,
} from '@tidemark/terminal/render/format-numbers'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { PagePolicyReplay, PageSessionReport, SessionPageData } from 'tidemark/report'
import {
  computeComparableCost,
  findCheaperPolicy,
  formatPolicyVerdict,
  type NamedPolicyResult,
} from '../chart/policy-verdict.ts'
import { listRequestTicks, listTokenTicks } from '../chart/tide-layout.ts'
import type { PageSource, ReplayAnswer } from '../data/page-source.ts'
import { Notice } from './notice.tsx'
import { useElementWidth } from './tide-chart.tsx'

interface WhatIfViewProps {
  readonly source: PageSource
  readonly page: SessionPageData
  readonly replays: PolicyReplays
}

/** The policies by name, with a description of each. */
const POLICIES: readonly { readonly name: string; readonly title: string; readonly about: string }[] = [
  {
    name: 'default',
    title: 'Tidemark',
    about:
      'clears old tool results and compacts with notes when that should pay; at the latest near the limit',
  },
  {
    name: 'economy',
    title: 'Economy',
    about: 'compacts earlier and keeps less: cheaper, but more lines have to be read again',
  },
  {
    name: 'claude-code-like',
    title: 'Like Claude Code',
    about: 'clears old tool results, and compacts only when the window is nearly full',
  },
  { name: 'nothing', title: 'Nothing', about: 'clears and compacts nothing, in a window without end' },
]

type Outcome = ReplayAnswer | 'running'

/** The replays of a session under several policies. They are kept while the user looks at other tabs. */
export interface PolicyReplays {
  readonly chosen: ReadonlySet<string>
  readonly outcomes: ReadonlyMap<string, Outcome>
  toggle(name: string): void
  /** Replays the session under each chosen policy, one after the other. Each takes seconds. */
  run(): Promise<void>
}

export function usePolicyReplays(source: PageSource, id: string): PolicyReplays {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(
    new Set(['default', 'economy', 'claude-code-like']),
  )
  const [outcomes, setOutcomes] = useState<ReadonlyMap<string, Outcome>>(new Map())
  const isOpen = useRef(true)
  useEffect(
    () => () => {
      isOpen.current = false
    },
    [],
  )
  const set = (name: string, outcome: Outcome): void =>
    setOutcomes((before) => new Map([...before, [name, outcome]]))
  const run = async (): Promise<void> => {
    // One after the other, because a replay occupies a core for seconds. Each result is shown as soon as it is there.
    for (const { name } of POLICIES.filter((policy) => chosen.has(policy.name))) {
      if (!isOpen.current) return
      set(name, 'running')
      set(name, await source.loadReplay(id, name).catch((error: Error) => ({ error: error.message })))
    }
  }
  return { chosen, outcomes, run, toggle: (name) => setChosen((before) => toggle(before, name)) }
}

export function WhatIfView({ source, page, replays }: WhatIfViewProps) {
  const { chosen, outcomes } = replays
  const running = POLICIES.find(({ name }) => outcomes.get(name) === 'running')
  return (
    <section aria-label="What if">
      {source.isExported ? (
        <Notice text="Policies are replayed by tidemark ui, and are not part of this file." />
      ) : (
        <form
          class="card policies"
          onSubmit={(event) => {
            event.preventDefault()
            replays.run()
          }}
        >
          <p>
            What each policy would have sent at every call of this session, and what that would have cost.
            Nothing is sent to a provider.
          </p>
          {POLICIES.map(({ name, title, about }) => (
            <label key={name} class="check">
              <input type="checkbox" checked={chosen.has(name)} onChange={() => replays.toggle(name)} />
              <span>
                <b>{title}</b>: {about}
              </span>
            </label>
          ))}
          <button type="submit" class="main" disabled={running !== undefined || chosen.size === 0}>
            {running === undefined ? 'Replay this session' : `Replaying ${running.title} …`}
          </button>
        </form>
      )}
      <Results report={page.report} outcomes={outcomes} isRunning={running !== undefined} />
    </section>
  )
}

function toggle(names: ReadonlySet<string>, name: string): ReadonlySet<string> {
  const next = new Set(names)
  if (!next.delete(name)) next.add(name)
  return next
}

function Results({
  report,
  outcomes,
  isRunning,
}: {
  readonly report: PageSessionReport
  readonly outcomes: ReadonlyMap<string, Outcome>
  readonly isRunning: boolean
}) {
  const done = POLICIES.flatMap(({ name, title }) => {
    const outcome = outcomes.get(name)
    return outcome === undefined || outcome === 'running' || 'error' in outcome ? [] : [{ ...outcome, title }]
  })
  const errors = [...outcomes.values()].flatMap((outcome) =>
    outcome !== 'running' && 'error' in outcome ? [outcome.error] : [],
  )
  return (
    <>
      {[...new Set(errors)].map((error) => (
        <Notice key={error} text={error} isError />
      ))}
      {done.length === 0 ? null : (
        <>
          <p class="headline" role="status">
            {isRunning ? 'The other policies are being replayed …' : formatPolicyVerdict(report, done)}
          </p>
          <Curves report={report} results={done} />
          <OutcomeBars report={report} results={done} />
          <HowToUse report={report} results={done} />
        </>
      )}
    </>
  )
}

/** What the figures leave out, and how to use a policy that would have been cheaper. */
function HowToUse({ report, results }: CurvesProps) {
  const best = findCheaperPolicy(report, results)
  return (
    <div class="card how-to">
      <p>
        These are estimates: the replies are those of the recording, whatever a policy would have shown the
        model.
      </p>
      {best === undefined ? null : (
        <p>
          To use {best.title}: <code>tidemark watch --policy {best.name}</code> in front of your agent, or{' '}
          <code>{`"policy": "${best.name}"`}</code> in the settings of <code>tidemark chat</code>.
        </p>
      )}
    </div>
  )
}

/** Bars with the recorded dollars, the part of them that replays can be compared with, and the dollars of each policy. */
function OutcomeBars({
  report,
  results,
}: {
  readonly report: PageSessionReport
  readonly results: readonly NamedPolicyResult[]
}) {
  const recorded = report.costUsd
  const comparable = computeComparableCost(report, results)
  const most = Math.max(recorded ?? 0, ...results.map(({ usd }) => usd), 0.000_001)
  return (
    <div class="card bars outcomes">
      <Bar kind="recorded" title="As recorded" usd={recorded} most={most} detail={describeRecorded(report)} />
      {recorded === null || comparable === null || recorded - comparable < 0.005 ? null : (
        <Bar
          kind="recorded"
          title="Its comparable part"
          usd={comparable}
          most={most}
          detail={`as recorded, without ${formatDollars(recorded - comparable)} for cache breaks by changed tools, settings or the server, which are not replayed`}
        />
      )}
      {results.map((result, index) => (
        <Bar
          key={result.name}
          kind={`policy-${index}`}
          title={result.title}
          usd={result.usd}
          most={most}
          detail={describeResult(result, comparable)}
        />
      ))}
    </div>
  )
}

function formatSight({ seen, used }: PagePolicyReplay['anchors']): string {
  return formatWholePercent(seen / used)
}

function describeRecorded({ compactions, clearings, money }: PageSessionReport): string {
  const lost = money.lostToBreaks ?? 0
  const breaks = lost < 0.005 ? '' : ` · ${formatDollars(lost)} of it lost to cache breaks`
  const byHand = compactions.filter(({ trigger }) => trigger === 'manual').length
  const asked = byHand === 0 ? '' : ` (${byHand} by hand)`
  return `${formatCount(compactions.length, 'compaction')}${asked}, ${formatCount(clearings.length, 'clearing')}${breaks}`
}

function describeResult(
  { usd, compactions, clearings, anchors, refused }: PagePolicyReplay,
  recorded: number | null,
): string {
  const change = recorded === null || recorded === 0 ? '' : `${formatChange(usd / recorded - 1)} · `
  const view =
    anchors.used === 0
      ? 'no edits of lines shown before'
      : `${formatSight(anchors)} of edits still saw the lines they change`
  const unmade = refused === 0 ? '' : ` · ${formatCount(refused, 'call')} not made: too long for the window`
  return `${change}${formatCount(compactions, 'compaction')}, ${formatCount(clearings, 'clearing')} · ${view}${unmade}`
}

function formatChange(share: number): string {
  const percent = Math.round(100 * share)
  return `${percent > 0 ? '+' : percent < 0 ? '−' : '±'}${Math.abs(percent)}%`
}

interface BarProps {
  readonly kind: string
  readonly title: string
  readonly usd: number | null
  readonly most: number
  readonly detail: string
}

function Bar({ kind, title, usd, most, detail }: BarProps) {
  return (
    <div>
      <span>
        <i class={`swatch line-${kind}`} /> {title}
      </span>
      <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect class={`line-${kind}`} width={Math.max(0.6, (100 * (usd ?? 0)) / most)} height="8" />
      </svg>
      <span class="number">{usd === null ? '?' : formatDollars(usd)}</span>
      <small class="detail">{detail}</small>
    </div>
  )
}

const HEIGHT = 260
const AXIS_HEIGHT = 20

interface CurvesProps {
  readonly report: PageSessionReport
  readonly results: readonly NamedPolicyResult[]
}

/** Curves with the size of each request, as recorded and under each policy. */
function Curves({ report, results }: CurvesProps) {
  const [box, width] = useElementWidth()
  const recorded = report.requests.map(({ tokens }) => tokens)
  const lines = [recorded, ...results.map(({ points }) => points.map(({ tokens }) => tokens))]
  const highest = lines.flat().reduce((most, tokens) => Math.max(most, tokens), 1)
  const size = { width, height: HEIGHT, most: highest * 1.05 }
  return (
    <div class="chart curves" ref={box}>
      <svg
        width={width}
        height={HEIGHT + AXIS_HEIGHT}
        role="img"
        aria-label="Tokens of each request, as recorded and under each policy"
      >
        <CurveAxes size={size} count={recorded.length} />
        {width === 0
          ? null
          : lines.map((values, index) => (
              <path
                key={index === 0 ? 'recorded' : results[index - 1]?.name}
                class={`line-${index === 0 ? 'recorded' : `policy-${index - 1}`}`}
                d={drawCurve(values, size)}
              />
            ))}
      </svg>
      <p class="where">Tokens of each request</p>
    </div>
  )
}

function CurveAxes({ size, count }: { readonly size: CurveSize; readonly count: number }) {
  const { width, height, most } = size
  return (
    <g class="axes">
      {listTokenTicks(most).map((tokens) => (
        <g key={tokens}>
          <line
            class="grid"
            x2={width}
            y1={height - (height * tokens) / most}
            y2={height - (height * tokens) / most}
          />
          <text x={4} y={height - (height * tokens) / most - 4}>
            {formatTokenLimit(tokens)}
          </text>
        </g>
      ))}
      {listRequestTicks(0, count, width).map((request) => (
        <text
          key={request}
          x={(width * (request + 0.5)) / Math.max(1, count)}
          y={height + 14}
          text-anchor="middle"
        >
          {request + 1}
        </text>
      ))}
    </g>
  )
}

interface CurveSize {
  readonly width: number
  readonly height: number
  /** The value at the upper edge of the drawing. */
  readonly most: number
}

const COLUMN_PIXELS = 2

/** Returns a curve as path data. If there are more values than pixels, each column shows its largest value. */
function drawCurve(values: readonly number[], { width, height, most }: CurveSize): string {
  const size = Math.max(1, Math.ceil(values.length / Math.max(1, Math.floor(width / COLUMN_PIXELS))))
  const vertices: string[] = []
  for (let start = 0; start < values.length; start += size) {
    const highest = Math.max(...values.slice(start, start + size))
    const x = (width * (start + 0.5)) / Math.max(1, values.length)
    const y = height - (height * highest) / most
    vertices.push(`${x.toFixed(1)} ${y.toFixed(1)}`)
  }
  return vertices.length === 0 ? '' : `M${vertices.join('L')}`
}
