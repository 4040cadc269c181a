/** Runs one case: always so many attempts, and the median of all of them counts, since machines are noisy. */
import { type BenchCase, type Bound, meets } from './bench-case.ts'
import { type Effort, type Measured, measure, median, type Stopwatch, USUAL_EFFORT } from './measure.ts'

/** The figures are medians of the attempts. */
export interface CaseResult extends Measured {
  readonly name: string
  readonly compares: string
  readonly bound: Bound
  readonly ok: boolean
  /** The ratio of every attempt. */
  readonly ratios: readonly number[]
  /** What went wrong, where the case did not run to its end. */
  readonly error: string | null
}

/** The same whatever the first attempts give: stopping at a good one would report the best instead of the usual. */
export const ATTEMPTS = 3

export async function runCase(
  benchCase: BenchCase,
  watch: Stopwatch,
  usual: Effort = USUAL_EFFORT,
): Promise<CaseResult> {
  const { name, compares, bound } = benchCase
  const effort = { ...usual, rounds: benchCase.rounds ?? usual.rounds }
  const attempts: Measured[] = []
  let error: string | null = null
  try {
    while (attempts.length < ATTEMPTS) attempts.push(await attempt(benchCase, effort, watch))
  } catch (thrown) {
    error = messageOf(thrown)
  }
  const ratios = attempts.map(({ ratio }) => ratio)
  const ratio = median(ratios)
  const subjectMs = median(attempts.map((each) => each.subjectMs))
  const baselineMs = median(attempts.map((each) => each.baselineMs))
  const ok = error === null && meets(ratio, bound)
  return { name, compares, bound, ratio, subjectMs, baselineMs, ok, ratios, error }
}

async function attempt(benchCase: BenchCase, effort: Effort, watch: Stopwatch): Promise<Measured> {
  const contest = await benchCase.prepare()
  try {
    return await measure(contest, effort, watch)
  } finally {
    await contest.close?.()
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
