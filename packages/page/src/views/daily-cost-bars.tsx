/** Bars with the dollars of each day, including days without a call. The same figures are in a table for screen readers. */
import { formatCount, formatDollars } from '@tidemark/terminal/render/format-numbers'
import type { SpendingRow } from 'tidemark/report'

interface DayBarsProps {
  /** Days with calls, in order. */
  readonly days: readonly SpendingRow[]
  /** The first day to show; null for the first with calls. */
  readonly since: string | null
}

const DAY_MS = 86_400_000
const [WIDTH, HEIGHT] = [1000, 150]
/** Maximum number of days; only the last ones are shown. */
const MOST_DAYS = 366

export function DailyCostBars({ days, since }: DayBarsProps) {
  const known = new Map(days.map((day) => [day.name, day]))
  const names = listDays(since ?? days[0]?.name ?? '', new Date().toISOString().slice(0, 10))
  const most = Math.max(...days.map(({ usd }) => usd), 0.000_001)
  const step = WIDTH / names.length
  const gap = names.length > 120 ? 0 : Math.min(step * 0.25, 8)
  return (
    <figure class="card days">
      <figcaption>
        <b>Dollars a day</b> <small>UTC, at most {formatDollars(most)}</small>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {names.map((name, index) => {
          const { usd = 0, calls = 0 } = known.get(name) ?? {}
          const height = usd === 0 ? 0 : Math.max(2, (HEIGHT * usd) / most)
          return (
            <g key={name}>
              <title>{`${name}: ${formatDollars(usd)}, ${formatCount(calls, 'call')}`}</title>
              <rect class="day-ground" x={index * step} y={0} width={step} height={HEIGHT} />
              <rect
                class="day-bar"
                x={index * step + gap / 2}
                y={HEIGHT - height}
                width={Math.max(0.5, Math.min(step - gap, 90))}
                height={height}
              />
            </g>
          )
        })}
      </svg>
      <p class="day-ends" aria-hidden="true">
        <span>{names[0]}</span>
        {names.length > 1 ? <span>{names.at(-1)}</span> : null}
      </p>
      <DayTable days={days} />
    </figure>
  )
}

function DayTable({ days }: Pick<DayBarsProps, 'days'>) {
  return (
    <details>
      <summary>Days as a table</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col" class="number">
              Calls
            </th>
            <th scope="col" class="number">
              Cost
            </th>
          </tr>
        </thead>
        <tbody>
          {days.toReversed().map(({ name, calls, usd }) => (
            <tr key={name}>
              <td>{name}</td>
              <td class="number">{calls}</td>
              <td class="number">{formatDollars(usd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  )
}

function listDays(from: string, to: string): readonly string[] {
  const last = Date.parse(to)
  const first = Math.max(Date.parse(from) || last, last - (MOST_DAYS - 1) * DAY_MS)
  const count = Math.max(1, Math.round((last - first) / DAY_MS) + 1)
  return Array.from({ length: count }, (_, index) =>
    new Date(first + index * DAY_MS).toISOString().slice(0, 10),
  )
}
