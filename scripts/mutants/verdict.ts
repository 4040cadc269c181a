/** What became of a mutant, judged from what the tests said. */
import type { Mutant } from './mutant.ts'

/** One run of the tests. */
export interface TestOutcome {
  /** Tests that ran, passed or not. */
  readonly ran: number
  /** Full names, `describe > it`, of the tests that failed. */
  readonly failed: readonly string[]
  /** Files that could not be loaded, and other failures that no test stands for. */
  readonly broken: readonly string[]
  readonly timedOut: boolean
}

export type VerdictKind = 'noticed' | 'survived' | 'unexpected' | 'broken' | 'hung' | 'no-tests' | 'stale'

export interface Verdict {
  readonly mutant: Mutant
  readonly kind: VerdictKind
  /** Tests that failed: those of the expected law first. */
  readonly noticedBy: readonly string[]
  /** What to do about it; empty when noticed as expected. */
  readonly advice: string
}

const ADVICE: Readonly<Record<VerdictKind, string>> = {
  noticed: '',
  survived: 'no test noticed: the law is too weak, or the wrong tests were run',
  unexpected: 'noticed, but not by the law that was expected to',
  broken: 'test files could not be loaded: make the mutant wrong, not unloadable',
  hung: 'the tests did not end: choose a mutant that ends',
  'no-tests': 'no test ran: `tests` names none',
  stale: 'the mutant no longer fits its file: renew it',
}

export function judge(mutant: Mutant, outcome: TestOutcome): Verdict {
  const law = mutant.law.toLowerCase()
  const expected = outcome.failed.filter((name) => name.toLowerCase().includes(law))
  const others = outcome.failed.filter((name) => !expected.includes(name))
  return verdict(mutant, kindOf(outcome, expected.length > 0), [...expected, ...others])
}

export function stale(mutant: Mutant, why: string): Verdict {
  return { mutant, kind: 'stale', noticedBy: [], advice: `${ADVICE.stale} (${why})` }
}

function verdict(mutant: Mutant, kind: VerdictKind, noticedBy: readonly string[]): Verdict {
  return { mutant, kind, noticedBy, advice: ADVICE[kind] }
}

function kindOf(outcome: TestOutcome, expected: boolean): VerdictKind {
  if (outcome.timedOut) return 'hung'
  if (expected) return 'noticed'
  if (outcome.broken.length > 0) return 'broken'
  if (outcome.ran === 0) return 'no-tests'
  return outcome.failed.length > 0 ? 'unexpected' : 'survived'
}
