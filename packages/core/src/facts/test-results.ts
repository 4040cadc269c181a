/** Reads which tests failed from the output of common test runners. docs/notes-exam.md has the rules. */
import { removeControlCharacters } from '../text/well-formed-text.ts'

/** Time at the end of a line of vitest, jest or Go: `12ms`, `(5 ms)`, `(0.00s)`. */
const TEST_TIME = /\s*\(?\b\d+(?:\.\d+)?\s?(?:ms|s|m)\)?$/

/** Patterns of lines that name a failed test, with the name as their first group. */
const FAILED_TEST_LINES: readonly RegExp[] = [
  // pytest
  /^FAILED\s+(\S+::.*?)(?: - .*)?$/,
  // TAP
  /^not ok \d+ - (.+)$/,
  // Rust
  /^test (\S.*) \.\.\. FAILED$/,
]
/** The same for lines in which a time may follow the name: tests of Go; packages of Go, files of vitest and jest. */
const TIMED_TEST_LINE = /^(?:--- FAIL:|FAIL)\s+(.+)$/
/** A test of vitest or jest. Linters begin lines with a cross too, so it counts only beside a number of tests. */
const CROSSED_TEST_LINE = /^[✕✗×]\s+(.+)$/
const TEST_COUNT = /\b\d+ (?:passed|failed)\b/
/** Matches what a test runner prints whether or not a test failed. The last form is a package of Go that passed. */
const TEST_RESULT =
  /^[ \t]*(?:FAIL(?:ED)?(?:\s|$)|ok \d+ - |test result:|--- PASS:|ok[ \t]+\S+[ \t]+(?:\d[\d.]*s\b|\(cached\)))/m
/** A cheap test that runs before the output is looked at, since most results are not of a test run. */
const TEST_CUE = /FAIL|passed|failed|\bok\b|test result:|--- PASS:/

/**
 * Returns the names of the tests that failed, in order and each once; an empty list if the output has results and none
 * failed; null if the output has no result of a test.
 */
export function readFailedTests(output: string): readonly string[] | null {
  if (!TEST_CUE.test(output)) return null
  const text = removeControlCharacters(output)
  const hasCount = TEST_COUNT.test(text)
  const names = new Set(text.split('\n').map((line) => readFailedTest(line.trim(), hasCount)))
  names.delete('')
  return names.size > 0 || hasCount || TEST_RESULT.test(text) ? [...names] : null
}

/** Returns the name of the failed test in a line; empty if there is none. */
function readFailedTest(line: string, hasCount: boolean): string {
  for (const pattern of FAILED_TEST_LINES) {
    const name = pattern.exec(line)?.[1]
    if (name !== undefined) return name.trim()
  }
  const timed = TIMED_TEST_LINE.exec(line) ?? (hasCount ? CROSSED_TEST_LINE.exec(line) : null)
  return timed?.[1]?.replace(TEST_TIME, '').trim() ?? ''
}
