/**
 * A vitest reporter that ends the run with one plain line, `N passed, N failed`, for whoever reads it by program. Before it,
 * one line if the machine has no Postgres for the tests that need one.
 */
import type { Reporter, TestModule } from 'vitest/node'
import { explainMissingPostgres } from '../test/support/postgres-server.ts'

interface Totals {
  readonly passed: number
  readonly failed: number
}

/** A file that could not be loaded, a hook that broke and an error nobody caught are failures too: no test stands for them. */
export function totalsOf(modules: readonly TestModule[], strayErrors: number): Totals {
  let passed = 0
  let failed = strayErrors
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === 'passed') passed += 1
      if (state === 'failed') failed += 1
    }
    failed += module.errors().length
    for (const suite of module.children.allSuites()) failed += suite.errors().length
  }
  return { passed, failed }
}

export default class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], strayErrors: readonly unknown[]): void {
    const { passed, failed } = totalsOf(modules, strayErrors.length)
    const missing = explainMissingPostgres()
    if (missing !== null) console.log(missing)
    console.log(`${passed} passed, ${failed} failed`)
  }
}
