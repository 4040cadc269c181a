/** All requests as a table with pages of rows, as an alternative to the chart. Closed at first. */
import { formatDollars, formatPercent, formatTokens } from '@tidemark/terminal/render/format-numbers'
import { useMemo, useState } from 'preact/hooks'
import type { PageSessionReport } from 'tidemark/report'
import { listChartFlags } from '../chart/chart-flags.ts'
import { formatTimeOfDay } from './display-names.ts'

const ROWS = 50
const COLUMNS = ['Request', 'Time', 'Tokens', 'From the cache', 'Cost', 'What happened before it']

interface RequestTableProps {
  readonly report: PageSessionReport
  /** Null if the content of requests cannot be opened. */
  readonly onOpen: ((request: number) => void) | null
}

export function RequestTable({ report, onOpen }: RequestTableProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="request-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>All requests as a table</summary>
      {isOpen ? <Rows report={report} onOpen={onOpen} /> : null}
    </details>
  )
}

function Rows({ report, onOpen }: RequestTableProps) {
  const [start, setStart] = useState(0)
  const flags = useMemo(() => Map.groupBy(listChartFlags(report), ({ request }) => request), [report])
  const { requests } = report
  const shown = requests.slice(start, start + ROWS)
  return (
    <>
      <div class="scroll">
        <table aria-label="All requests">
          <thead>
            <tr>
              {COLUMNS.map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ at, line, tokens, usage, costUsd }, offset) => (
              <tr key={line}>
                <td>
                  {onOpen === null ? (
                    start + offset + 1
                  ) : (
                    <button type="button" class="link" onClick={() => onOpen(start + offset)}>
                      {start + offset + 1}
                    </button>
                  )}
                </td>
                <td>{formatTimeOfDay(at)}</td>
                <td class="number">{formatTokens(tokens)}</td>
                <td class="number">{formatPercent(usage.cacheRead / Math.max(1, tokens))}</td>
                <td class="number">{costUsd === null ? '?' : formatDollars(costUsd)}</td>
                <td>
                  {(flags.get(start + offset) ?? [])
                    .map(({ title, detail }) => `${title}, ${detail}`)
                    .join('; ')}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <PageButtons start={start} count={requests.length} onStart={setStart} />
    </>
  )
}

interface PageButtonsProps {
  readonly start: number
  readonly count: number
  readonly onStart: (start: number) => void
}

function PageButtons({ start, count, onStart }: PageButtonsProps) {
  return (
    <div class="range">
      <button type="button" disabled={start === 0} onClick={() => onStart(Math.max(0, start - ROWS))}>
        Earlier
      </button>
      <button type="button" disabled={start + ROWS >= count} onClick={() => onStart(start + ROWS)}>
        Later
      </button>
      <span role="status">
        {start + 1} to {Math.min(start + ROWS, count)} of {count}
      </span>
    </div>
  )
}
