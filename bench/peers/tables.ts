/** What people read of the contests, and what programs do. */
import { table } from '../../scripts/table.ts'
import { type Row, TURNS } from './contests.ts'

export interface SizeResult {
  readonly steps: number
  readonly living: readonly Row[]
  readonly whole: readonly Row[]
}

export function peersTables(results: readonly SizeResult[]): string {
  return results.flatMap(tablesOf).join('\n\n')
}

export function peersJson(results: readonly SizeResult[]): string {
  return JSON.stringify({ ok: results.every(isWell), turns: TURNS, sizes: results }, null, 2)
}

/** Nothing broke, and what we would send is valid. How a peer fares is a finding and no fault of the run. */
export function isWell({ living, whole }: SizeResult): boolean {
  return [...living, ...whole].every(
    ({ name, error, left, after }) =>
      error === null &&
      (!name.startsWith('Tidemark') || (left?.refused === null && (after?.refused ?? 0) === 0)),
  )
}

function tablesOf({ steps, living, whole }: SizeResult): readonly string[] {
  const size = steps.toLocaleString('en')
  return [
    `A session that has lived through ${size} steps: one more request, then ${TURNS} turns\n\n${table(
      [...FIGURES, 'worst', 'rewrites', 'request'],
      living.map((row) => [...figuresOf(row), ...turnsOf(row), row.name]),
    )}`,
    `A conversation of ${size} steps handed over whole\n\n${table(
      [...FIGURES, 'valid', 'request'],
      whole.map((row) => [...figuresOf(row), validity(row), row.name]),
    )}`,
  ]
}

const FIGURES = ['time', 'ratio', 'characters', 'results']

function figuresOf({ ms, ratio, left }: Row): readonly string[] {
  return [
    timeText(ms),
    Number.isNaN(ratio)
      ? '–'
      : `${ratio >= 100 ? Math.round(ratio).toLocaleString('en') : ratio.toFixed(2)} ×`,
    left?.characters.toLocaleString('en') ?? '–',
    left?.results.toLocaleString('en') ?? '–',
  ]
}

function turnsOf(row: Row): readonly string[] {
  const { after } = row
  if (after === null) return ['–', validity(row)]
  return [timeText(after.worstMs), `${after.rewrites} of ${TURNS}`]
}

function validity({ left, error }: Row): string {
  if (error !== null) return `broke: ${error}`
  return left?.refused ?? 'yes'
}

function timeText(ms: number): string {
  if (Number.isNaN(ms)) return '–'
  return ms >= 100 ? `${Math.round(ms).toLocaleString('en')} ms` : `${ms.toFixed(2)} ms`
}
