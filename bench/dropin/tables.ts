/** The tables of the bench as Markdown, and the judgement whether Tidemark did any harm. */
import type { ClientRun } from './run-client.ts'

/** The same client on the same task and window, direct and with Tidemark. */
export interface Pair {
  readonly direct: ClientRun
  readonly managed: ClientRun
  /** True if the client sets cache markers without Tidemark. */
  readonly caches: boolean
  /** The final answer of the direct client in a window in which the task fits. */
  readonly expectedAnswer: string | null
  /** Number of steps of the task. */
  readonly steps: number
}

/** Share of the direct cost by which a client that caches may be dearer. */
const COST_TOLERANCE = 0.01

/** Returns what Tidemark made worse; an empty list if nothing. */
export function findHarm({ direct, managed, caches, expectedAnswer, steps }: Pair): readonly string[] {
  const harm: string[] = []
  if (managed.error !== null && direct.error === null) harm.push(`failed: ${managed.error}`)
  if (managed.error === null && managed.answer !== expectedAnswer) harm.push('another final answer')
  if (managed.error === null && managed.steps < steps) harm.push(`${steps - managed.steps} steps lost`)
  if (managed.refused > direct.refused) harm.push(`${managed.refused} requests refused`)
  const allowed = direct.cost * (caches ? 1 + COST_TOLERANCE : 1)
  if (direct.error === null && managed.cost > allowed) harm.push(`dearer: ${formatChange(direct, managed)}`)
  return [...harm, ...new Set(managed.changes)]
}

const HEAD = [
  'client',
  'way',
  'requests',
  'refused',
  'cache read',
  'cache written',
  'not cached',
  'cost',
  'compactions',
  'clearings',
  'steps',
  'end',
]

/** One table per window. */
export function formatPairs(pairs: readonly Pair[]): string {
  const windows = [...new Set(pairs.map(({ direct }) => direct.window))]
  return windows
    .map((window) => {
      const rows = pairs.filter(({ direct }) => direct.window === window).flatMap(formatPair)
      return `Window of ${formatNumber(window)} tokens, ${pairs[0]?.steps} steps:\n\n${formatTable(HEAD, rows)}`
    })
    .join('\n\n')
}

function formatPair(pair: Pair): readonly (readonly string[])[] {
  const { direct, managed } = pair
  return [
    [direct.client, 'direct', ...formatRun(direct, pair), formatEnd(direct, pair)],
    ['', 'Tidemark', ...formatRun(managed, pair), formatEnd(managed, pair)],
  ]
}

function formatRun(run: ClientRun, { direct, steps }: Pair): readonly string[] {
  const change = run.isManaged && direct.error === null ? ` (${formatChange(direct, run)})` : ''
  return [
    ...[run.requests, run.refused, run.cacheRead, run.cacheWritten, run.fresh].map(formatNumber),
    `$${run.cost.toFixed(3)}${change}`,
    String(run.isManaged ? run.door.compactions : run.ownSummaries),
    String(run.door.clearings),
    `${run.steps} of ${steps}`,
  ]
}

function formatEnd(run: ClientRun, { expectedAnswer }: Pair): string {
  if (run.error !== null)
    return /prompt is too long/.test(run.error) ? 'failed: prompt is too long' : run.error
  return run.answer === expectedAnswer ? 'same answer' : 'another answer'
}

function formatChange(direct: ClientRun, managed: ClientRun): string {
  const change = managed.cost / direct.cost - 1
  return `${change < 0 ? '−' : '+'}${(Math.abs(change) * 100).toFixed(1)} %`
}

/** The same client with tasks of several lengths, because a rewrite of the context costs first, and pays for itself later. */
export function formatLengths(pairs: readonly Pair[]): string {
  const rows = pairs.map(({ direct, managed, steps }) => [
    String(steps),
    `$${direct.cost.toFixed(3)}${direct.error === null ? '' : ` (${direct.steps} steps)`}`,
    `$${managed.cost.toFixed(3)}`,
    direct.error === null ? formatChange(direct, managed) : 'direct failed',
    String(managed.door.clearings),
    String(managed.door.compactions),
  ])
  return formatTable(['steps', 'direct', 'Tidemark', 'change', 'clearings', 'compactions'], rows)
}

/** What the way itself added to a request, without the time of the provider. */
export function formatDelays(runs: readonly ClientRun[]): string {
  const rows = ['function', 'proxy'].flatMap((kind) =>
    [false, true].map((isManaged) => {
      const chosen = runs.filter((run) => run.isManaged === isManaged && run.isProcess === (kind === 'proxy'))
      const delays = chosen.flatMap(({ door }) => door.delays).toSorted((one, other) => one - other)
      const way = `${kind === 'proxy' ? 'proxy' : '`fetch`'}, ${isManaged ? 'Tidemark' : 'passes everything on'}`
      return [way, formatNumber(delays.length), ...[0.5, 0.99].map((share) => formatMs(pick(delays, share)))]
    }),
  )
  const head = ['way', 'requests', 'p50', 'p99']
  return formatTable(
    head,
    rows.filter(([, count]) => count !== '0'),
  )
}

/** Returns the value below which the given share of sorted values lies. */
function pick(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function formatMs(ms: number): string {
  return `${ms < 1 ? ms.toFixed(2) : ms.toFixed(0)} ms`
}

function formatNumber(value: number): string {
  return value.toLocaleString('en')
}

function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, column) => (column < 2 || column === HEAD.length - 1 ? '---' : '---:'))
  return [head, rule, ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}
