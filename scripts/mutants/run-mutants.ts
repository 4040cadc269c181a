/** Runs a set of mutants: first the tests as they are, then each mutant in a copy, two copies at a time. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { copyRepository } from './copy.ts'
import { applyMutant, type Mutant } from './mutant.ts'
import { runTests, type TestLimits } from './run-tests.ts'
import { judge, stale, type Verdict } from './verdict.ts'

export interface MutantRun {
  readonly root: string
  readonly mutants: readonly Mutant[]
  /** A line about how far it is. */
  readonly progress: (line: string) => void
  readonly limits: TestLimits
}

export type MutantResult =
  | { readonly ok: boolean; readonly verdicts: readonly Verdict[] }
  /** The tests fail without any mutant: nothing can be said. */
  | { readonly ok: false; readonly verdicts: null; readonly failing: readonly string[] }

const COPIES = 2

export async function runMutants(run: MutantRun): Promise<MutantResult> {
  const copies = Array.from({ length: Math.min(COPIES, run.mutants.length) }, () => copyRepository(run.root))
  try {
    const failing = await unmutated(run, copies[0] ?? '')
    if (failing.length > 0) return { ok: false, verdicts: null, failing }
    const verdicts = await inParallel(run, copies)
    return { ok: verdicts.every(({ kind }) => kind === 'noticed'), verdicts }
  } finally {
    for (const copy of copies) rmSync(copy, { recursive: true, force: true })
  }
}

async function unmutated(run: MutantRun, copy: string): Promise<readonly string[]> {
  const tests = [...new Set(run.mutants.flatMap((mutant) => mutant.tests))]
  run.progress(`the tests as they are: ${tests.join(' ')}`)
  const outcome = await runTests(copy, tests, run.limits)
  return [
    ...outcome.failed,
    ...outcome.broken,
    ...(outcome.timedOut ? ['the tests did not end in time'] : []),
  ]
}

async function inParallel(run: MutantRun, copies: readonly string[]): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = []
  const queue = run.mutants.entries()
  const work = async (copy: string): Promise<void> => {
    for (const [index, mutant] of queue) {
      const verdict = await tryMutant(mutant, copy, run.limits)
      verdicts[index] = verdict
      const done = verdicts.filter((one) => one !== undefined).length
      run.progress(`${done}/${run.mutants.length} ${mutant.name}: ${verdict.kind}`)
    }
  }
  await Promise.all(copies.map(work))
  return verdicts
}

async function tryMutant(mutant: Mutant, copy: string, limits: TestLimits): Promise<Verdict> {
  const path = join(copy, mutant.file)
  if (relative(copy, path).startsWith('..') || !existsSync(path))
    return stale(mutant, `there is no file ${mutant.file}`)
  const original = readFileSync(path, 'utf8')
  const applied = applyMutant(original, mutant)
  if (!applied.ok) return stale(mutant, applied.why)
  writeFileSync(path, applied.text)
  try {
    const verdict = judge(mutant, await runTests(copy, mutant.tests, limits))
    // `npm test` runs a sample of some tests. What it misses may be noticed by `npm run test:full`.
    if (verdict.kind === 'noticed') return verdict
    return judge(mutant, await runTests(copy, [...mutant.tests, '--mode=full'], limits))
  } finally {
    writeFileSync(path, original)
  }
}
