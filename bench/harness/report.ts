/** What the bench prints: a table for people, one JSON value for programs. */
import { table } from '../../scripts/table.ts'
import type { Bound } from './bench-case.ts'
import type { CaseResult } from './run-case.ts'

export function benchTable(results: readonly CaseResult[]): string {
  const rows = results.map((result) => [
    result.name,
    result.ratios.length === 0 ? '–' : ratioText(result.ratio),
    result.ratios.map(ratioText).join(', '),
    boundText(result.bound),
    timeText(result.subjectMs),
    timeText(result.baselineMs),
    verdictOf(result),
    result.compares,
  ])
  return table(['case', 'ratio', 'attempts', 'bound', 'subject', 'baseline', 'verdict', 'compares'], rows)
}

export function benchJson(results: readonly CaseResult[]): string {
  return JSON.stringify({ ok: results.every(({ ok }) => ok), cases: results }, null, 2)
}

function verdictOf({ ok, error }: CaseResult): string {
  if (error !== null) return `broke: ${error}`
  return ok ? 'ok' : 'MISSED'
}

function ratioText(ratio: number): string {
  return ratio.toFixed(2)
}

function boundText(bound: Bound): string {
  return 'atMost' in bound ? `≤ ${ratioText(bound.atMost)}` : `≥ ${ratioText(bound.atLeast)}`
}

function timeText(ms: number): string {
  if (Number.isNaN(ms)) return '–'
  if (ms >= 1) return `${ms.toFixed(2)} ms`
  return ms >= 0.001 ? `${(ms * 1_000).toFixed(2)} µs` : `${(ms * 1_000_000).toFixed(0)} ns`
}
