/**
 * Commands: the status of each when it last ran, what failed and whether it has succeeded since, and the tests that
 * failed in the newest run. Also other tool calls that failed or that the user refused.
 */
import { removeControlCharacters, sliceText, toOneLine } from '../text/truncate-text.ts'
import { isLookingCommand, normalizeCommand, toCommandKey, toCommandLine } from './shell-commands.ts'
import { isFailure, type RunStatus, splitOutputHead, type ToolRun } from './tool-runs.ts'

/** A command, by its text without differences of white space. */
export interface CommandFact {
  /** Name of the tool that ran it last. */
  readonly tool: string
  /** The command on one line, whole unless it is very long. */
  readonly line: string
  /** The command without a leading `cd` and a trailing `| tail`, by which its variants are recognized. */
  readonly variant: string
  readonly status: RunStatus
  readonly runs: number
  readonly failures: number
  /** Index in the history of the newest call, and of the record with its newest result. */
  readonly place: number
  readonly resultPlace: number
  /** The end of the newest output. */
  readonly output: string
  /** The line in which the output of a command that ended well reports a failure; empty if there is none. */
  readonly reported: string
}

/** A command that has failed, with all of its variants. One that the user refused or interrupted has not. */
export interface FailingCommand {
  readonly command: string
  /** The end of the command's output when it last failed. */
  readonly error: string
  readonly failures: number
  /** Index of the call that first succeeded after the last failure; null if none did. */
  readonly settledAt: number | null
  readonly isSettled: boolean
  /** Files edited between the command's last failure and its next success. */
  readonly editedSince: readonly string[]
  /** Index of the newest call that failed. */
  readonly place: number
  /** uuid of the record with the result of the last failure. */
  readonly uuid: string
}

/** The newest command that printed the result of a test. */
export interface TestRun {
  readonly failed: readonly string[]
  /** The command that ran the tests; empty if none did. */
  readonly by: string
  readonly place: number
  /** A command with the word "test" that has succeeded since without naming any test; empty for none. */
  readonly passedSince: string
}

/**
 * A failed tool call that is not a command, such as an edit that found nothing to replace or a read of a missing file;
 * or any tool call that the user refused.
 */
export interface FailedCall {
  readonly tool: string
  readonly target: string
  readonly error: string
  /** True if the user refused the call. It did not fail, and `error` only says that it was refused. */
  readonly isRefused: boolean
  readonly place: number
  readonly uuid: string
}

interface Failure extends Omit<FailingCommand, 'editedSince' | 'isSettled'> {
  /** Number of edits in the session when it last failed, and when it next succeeded. */
  readonly editsBefore: number
  readonly editsAfter: number | null
}

/** Commands that never failed may be forgotten, others never. */
const MOST_PASSED = 300
const CALL_ERROR_CHARACTERS = 300

/** Keeps the commands of a session, call by call. `clean` removes credentials from every text. */
export class CommandTracker {
  // By key: commands that never failed, the one with the newest call last, and the others. `#failures` is by variant.
  readonly #passed = new Map<string, CommandFact>()
  readonly #failed = new Map<string, CommandFact>()
  readonly #failures = new Map<string, Failure>()
  readonly #failedCalls = new Map<string, FailedCall>()
  readonly #edits: string[] = []
  readonly #clean: (text: string) => string
  #tests: TestRun = { failed: [], by: '', place: -1, passedSince: '' }

  constructor(clean: (text: string) => string) {
    this.#clean = clean
  }

  /** Adds a tool call with its result. */
  add(run: ToolRun): void {
    if (run.command !== null && run.kind === 'run') {
      this.#addTests(run.command, run)
      this.#addCommand(run.command, run)
    }
    this.#addCall(run)
  }

  /** Adds the files that a call changed. */
  addEdits(paths: readonly string[]): void {
    this.#edits.push(...paths)
  }

  /** Lists the commands by their newest result, newest first. Of those that never failed, only the newest are kept. */
  listCommands(): readonly CommandFact[] {
    return [...this.#failed.values(), ...this.#passed.values()].toSorted(
      (one, other) => other.resultPlace - one.resultPlace || other.place - one.place,
    )
  }

  /** Lists the commands that have failed, newest failure first. */
  listFailures(): readonly FailingCommand[] {
    return [...this.#failures.values()].reverse().map(({ editsBefore, editsAfter, ...failure }) => ({
      ...failure,
      isSettled: failure.settledAt !== null,
      // Each file once, where it was edited last.
      editedSince: [...new Set(this.#edits.slice(editsBefore, editsAfter ?? undefined).reverse())].reverse(),
    }))
  }

  /** Lists the calls without a later one of the same tool on the same target that succeeded, newest first. */
  listFailedCalls(): readonly FailedCall[] {
    return [...this.#failedCalls.values()].reverse()
  }

  readTests(): TestRun {
    return this.#tests
  }

  #addCommand(command: string, run: ToolRun): void {
    const key = toCommandKey(command)
    const before = this.#failed.get(key) ?? this.#passed.get(key)
    if (before !== undefined && run.callIndex < before.place) return
    const { status } = run
    const line = before?.line ?? this.#clean(toCommandLine(command))
    const fact: CommandFact = {
      tool: run.name,
      line,
      variant: before?.variant ?? normalizeCommand(key === toCommandLine(command) ? line : this.#clean(key)),
      status,
      // A command that was still running is no other run when its end is known.
      runs: (before?.runs ?? 0) + (before?.place === run.callIndex ? 0 : 1),
      failures: (before?.failures ?? 0) + (isFailure(status) ? 1 : 0),
      place: run.callIndex,
      resultPlace: run.resultIndex ?? run.callIndex,
      output: readOutputEnd(run.result, this.#clean),
      reported: status === 'ok' && !isLookingCommand(key) ? readReportedFailure(run.result, this.#clean) : '',
    }
    this.#passed.delete(key)
    if (fact.failures > 0) this.#failed.set(key, fact)
    else this.#passed.set(key, fact)
    const [oldest] = this.#passed.keys()
    if (this.#passed.size > MOST_PASSED && oldest !== undefined) this.#passed.delete(oldest)
    this.#addOutcome(fact, run)
  }

  #addOutcome({ variant, status, place, output, reported, line }: CommandFact, run: ToolRun): void {
    const before = this.#failures.get(variant)
    if (isFailure(status)) {
      this.#failures.delete(variant)
      this.#failures.set(variant, {
        command: variant,
        error: output,
        failures: (before?.failures ?? 0) + 1,
        settledAt: null,
        place,
        uuid: run.resultUuid ?? run.uuid,
        editsBefore: this.#edits.length,
        editsAfter: null,
      })
    } else if (status === 'ok' && reported === '') {
      if (before?.settledAt === null)
        this.#failures.set(variant, { ...before, settledAt: place, editsAfter: this.#edits.length })
      if (/\btests?\b/.test(variant) && place > this.#tests.place)
        this.#tests = { ...this.#tests, passedSince: line }
    }
  }

  #addTests(command: string, { callIndex, result }: ToolRun): void {
    const names = callIndex < this.#tests.place ? null : readFailedTests(result)
    if (names === null) return
    this.#tests = {
      failed: names.map((name) => toOneLine(this.#clean(name))),
      by: this.#clean(toCommandLine(command)),
      place: callIndex,
      passedSince: '',
    }
  }

  #addCall(run: ToolRun): void {
    const target = run.command ?? run.touches[0]?.path ?? ''
    const key = `${run.name} ${target}`
    this.#failedCalls.delete(key)
    if (!run.failed || (run.command !== null && !run.refused)) return
    // A secret that begins in what is shown is whole in what is cleaned.
    const beginning = this.#clean(sliceText(run.result.trim(), 0, 10 * CALL_ERROR_CHARACTERS))
    this.#failedCalls.set(key, {
      tool: run.name,
      target: this.#clean(target),
      error: sliceText(beginning, 0, CALL_ERROR_CHARACTERS),
      isRefused: run.refused,
      place: run.callIndex,
      uuid: run.resultUuid ?? run.uuid,
    })
  }
}

const ERROR_END_CHARACTERS = 600
/** Characters at the end of a long result that are cleaned when only its end is shown. */
const CLEANED_CHARACTERS = 20_000

/** Cleans the end of a text, of which less than half is shown: a secret that begins before it is then not shown either. */
function cleanTextEnd(text: string, clean: (text: string) => string): string {
  return clean(text.length <= CLEANED_CHARACTERS ? text : sliceText(text, -CLEANED_CHARACTERS))
}

/** Returns the end of a command's output, without what the program that ran it put before. */
function readOutputEnd(result: string, clean: (text: string) => string): string {
  return sliceText(cleanTextEnd(splitOutputHead(result)[1].trimEnd(), clean), -ERROR_END_CHARACTERS).trim()
}

/** Matches a line with which a program reports that it failed, also after a name in brackets: `[test] ERROR task failed`. */
const FAILURE_LINE = /^(?:\[[^\]]*\] ?)?(?:FAIL(?:ED|URE)?|ERROR|Error|error|\d+ failed)\b/
const FAILURE_LINES = 8
const FAILURE_CHARACTERS = 80

/**
 * Returns the last line near the end of an output that reports a failure; empty if there is none. The status of a command
 * such as `npm test | tail` is that of `tail`.
 */
function readReportedFailure(result: string, clean: (text: string) => string): string {
  const lines = cleanTextEnd(result.trimEnd(), clean).split('\n').slice(-FAILURE_LINES)
  const found = lines.findLast((line) => FAILURE_LINE.test(line.trim()))
  return toOneLine(found ?? '', FAILURE_CHARACTERS)
}

// Which tests failed, from the output of common test runners. docs/notes-exam.md has the rules.

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
function readFailedTests(output: string): readonly string[] | null {
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
