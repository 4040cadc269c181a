/** A client that caches by itself and runs past its window, in four ways: what it pays, and what its last request still has. */
import {
  type KeptCount,
  LONG_RUN,
  LONG_WAYS,
  LONG_WORKS,
  type LongRun,
  type LongWay,
  type LongWork,
  runLongClient,
} from '../../test/drop-in/long-clients.ts'

/** The same task in each of the ways. */
export interface LongRuns {
  readonly work: LongWork
  readonly steps: number
  readonly runs: readonly LongRun[]
}

const LENGTHS = [100, 300, 800]

/** Tokens of a tool result, so that each kind of work adds about as many with a step. */
const RESULT_TOKENS = { queries: LONG_RUN.resultTokens, rereads: 1_600, edits: 2_600 }

export async function runLongLengths(report: (line: string) => void): Promise<readonly LongRuns[]> {
  const lengths: LongRuns[] = []
  for (const work of LONG_WORKS)
    for (const steps of LENGTHS) {
      const runs: LongRun[] = []
      for (const way of LONG_WAYS) {
        report(`${work}, ${steps} steps, ${way}`)
        runs.push(await runLongClient({ ...LONG_RUN, work, resultTokens: RESULT_TOKENS[work], way, steps }))
      }
      lengths.push({ work, steps, runs })
    }
  return lengths
}

const KINDS = ['words', 'reasons', 'files', 'findings'] as const

/** Returns where Tidemark is dearer than direct, or than the provider's compaction, or keeps less than it. */
export function findLongHarm({ work, steps, runs }: LongRuns): readonly string[] {
  const find = (way: LongWay) => runs.find((run) => run.way === way)
  const [direct, beta, managed] = [find('direct'), find('compaction beta'), find('Tidemark')]
  if (direct === undefined || beta === undefined || managed === undefined) return []
  const harm: string[] = []
  if (managed.error !== null || managed.steps < steps)
    harm.push(`ended after ${managed.steps} steps: ${managed.error}`)
  if (direct.error === null && managed.dollars > direct.dollars) harm.push('dearer than direct')
  if (direct.error !== null && managed.dollars >= beta.dollars) harm.push('not cheaper than the beta')
  for (const kind of KINDS)
    if (managed[kind].kept < beta[kind].kept) harm.push(`keeps less than the beta: ${kind}`)
  return harm.map((text) => `${work}, ${steps} steps: ${text}`)
}

export function formatLongRuns(lengths: readonly LongRuns[]): string {
  const head = [
    'work',
    'steps',
    'way',
    'cost',
    'reached',
    'rewrites',
    'prompts',
    'reasons',
    'files',
    'findings',
  ]
  const rule = ['---', '---:', '---', ...head.slice(3).map(() => '---:')]
  const rows = lengths.flatMap(({ work, steps, runs }) =>
    runs.map((run, index) => [
      index === 0 ? work : '',
      index === 0 ? String(steps) : '',
      run.way,
      `$${run.dollars.toFixed(2)}`,
      run.error === null ? 'the end' : `step ${run.steps}`,
      run.firstRewrite === null ? '0' : `${run.rewrites}, first at ${run.firstRewrite}`,
      ...KINDS.map((kind) => formatKept(run[kind])),
    ]),
  )
  return [head, rule, ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

function formatKept({ kept, all }: KeptCount): string {
  return all === 0 ? '–' : `${kept} of ${all}`
}
