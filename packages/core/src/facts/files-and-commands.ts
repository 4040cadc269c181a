/**
 * The work that tool calls did. Files: what was done to each, and its last known state; a file has one entry, even if
 * its path was written in several ways. Commands: which were run, and which still fail.
 */
import { removeControlCharacters, sliceWholeCharacters, toOneLine } from '../text/truncate-text.ts'
import {
  type FileChange,
  isReadOnlyCommand,
  listChangesToKnownFiles,
  normalizeCommand,
  toCommandKey,
  toSingleLineCommand,
} from './shell-commands.ts'
import { type FileTouch, normalizePath } from './tool-calls.ts'
import { isFailedStatus, splitHeaderFromOutput, type ToolRun, type ToolRunStatus } from './tool-runs.ts'

export interface TouchedFile {
  /** The path as in the log; absolute if any call gave the absolute path. */
  readonly path: string
  /** The same text for every spelling of the path. */
  readonly key: string
  /** Number of successful edits. */
  readonly edits: number
  /** Number of edits that the user refused; they also make the file part of the work. */
  readonly refusedEdits: number
  readonly reads: number
  /** True if a call created the file. `isDeleted`: true if the newest change by a call deleted it. */
  readonly isNew: boolean
  readonly isDeleted: boolean
  /** The record of the newest tool call that read or edited the file, and its time. */
  readonly uuid: string
  readonly time: string
  /** The beginning of the text that the newest edit inserted; null if no tool call contains it. */
  readonly newestText: string | null
  /** Names that the texts written to the file define, newest first. */
  readonly names: readonly string[]
  /** Number of lines in the newest successful read; null if there was none. */
  readonly linesRead: number | null
  /** What a shell command did to the file since the last call that read or edited it, in words; empty if nothing. */
  readonly fate: string
  /**
   * Which of both, if `fate` says that edits were (or may have been) undone or stashed; stashed edits may come back. Else
   * null.
   */
  readonly editsLost: 'undone' | 'stashed' | null
  /** True if a commit since the last edit may contain it. */
  readonly isCommitted: boolean
  /** The path that the file had before a shell command moved it; null if none did. */
  readonly movedFrom: string | null
  /** True if the working directory of a call was not above the file. */
  readonly isOutside: boolean
}

/** The folders in which a session worked. */
export interface ProjectFolders {
  /** The folder of the project: the first working directory, or a later one above it. Null if none is known. */
  readonly base: string | null
  /** The working directory at the start. */
  readonly start: string | null
}

interface FileTracker {
  /** Sets the working directory of the next calls. */
  setFolder(cwd: string): void
  /** Adds a tool call with its result. Returns the keys of the files that it changed. */
  add(run: ToolRun, time: string): readonly string[]
  /** Lists the files, the one that was touched last first. */
  list(): readonly TouchedFile[]
  readFolders(): ProjectFolders
}

const MOST_TEXT_CHARACTERS = 4_000
/** A folder with fewer parts, such as `/home`, is not the folder of a project. */
const LEAST_FOLDER_PARTS = 3

const NO_TOUCHES: Omit<TouchedFile, 'path' | 'key'> = {
  edits: 0,
  refusedEdits: 0,
  reads: 0,
  isNew: false,
  isDeleted: false,
  uuid: '',
  time: '',
  newestText: null,
  names: [],
  linesRead: null,
  fate: '',
  editsLost: null,
  isCommitted: false,
  movedFrom: null,
  isOutside: false,
}

/** Keeps what was done to files, call by call. `clean` removes credentials from every text. */
export function createFileTracker(clean: (text: string) => string): FileTracker {
  // By key. The file that was touched last is the last one.
  const files = new Map<string, TouchedFile>()
  /** Cleaned paths, because cleaning a path takes much longer than finding it here. */
  const cleaned = new Map<string, string>()
  let cwd: string | null = null
  let base: string | null = null
  let start: string | null = null

  function addTouch(run: ToolRun, touch: FileTouch, time: string): string | null {
    const given = cleaned.get(touch.path) ?? clean(touch.path)
    cleaned.set(touch.path, given)
    const key = normalizePath(given, cwd)
    const before = files.get(key)
    const path = before !== undefined && isAbsolute(before.path) ? before.path : given
    const isOutside = before?.isOutside === true || (cwd !== null && !key.startsWith(`${cwd}/`))
    const file = { ...(before ?? NO_TOUCHES), key, path, isOutside, time }
    files.delete(key)
    files.set(key, withTouch(file, touch, run, clean))
    return touch.action !== 'read' && !run.failed ? key : null
  }

  return {
    setFolder(given) {
      cwd = normalizePath(given)
      start ??= cwd
      // If a later folder is above the first one, it takes its place, so that all paths are relative to one folder.
      const isAbove = base?.startsWith(`${cwd}/`) === true && cwd.split('/').length > LEAST_FOLDER_PARTS
      if (base === null || isAbove) base = cwd
    },
    add(run, time) {
      const touched = run.touches.flatMap((touch) => addTouch(run, touch, time) ?? [])
      return [...touched, ...applyFileChanges(files, { ...run, cwd: run.cwd ?? cwd }, { time, clean })]
    },
    list: () => [...files.values()].reverse(),
    readFolders: () => ({ base, start }),
  }
}

/** Checks whether a file was edited or moved, or an edit of it was refused. */
export function hasEditAttempt({ edits, refusedEdits, movedFrom }: TouchedFile): boolean {
  return edits + refusedEdits > 0 || movedFrom !== null
}

/** Checks whether a file was changed since the start of the session, by a call or a command. */
export function isFileChanged({ edits, movedFrom, fate }: TouchedFile): boolean {
  return edits > 0 || movedFrom !== null || fate !== ''
}

function isAbsolute(path: string): boolean {
  return /^(?:[A-Za-z]:)?[\\/]/.test(path)
}

/** Returns a file with one more touch by a tool call. */
function withTouch(
  file: TouchedFile,
  { action, newText, isDeletion = false }: FileTouch,
  run: ToolRun,
  clean: (text: string) => string,
): TouchedFile {
  // A read shows that the file exists, but not that undone or stashed edits are back.
  const keepsFate = run.failed || (action === 'read' && file.editsLost !== null)
  const fate = keepsFate ? {} : { fate: '', editsLost: null }
  const touched = { ...file, uuid: run.uuid, ...fate }
  if (action === 'read')
    return {
      ...touched,
      reads: file.reads + 1,
      linesRead: run.failed ? file.linesRead : countLines(run.result),
    }
  if (run.failed) return { ...touched, refusedEdits: file.refusedEdits + 1 }
  return {
    ...touched,
    edits: file.edits + 1,
    isNew: file.isNew || (action === 'write' && isCreation(run)),
    isDeleted: isDeletion,
    isCommitted: false,
    newestText:
      newText === null ? file.newestText : clean(sliceWholeCharacters(newText, 0, MOST_TEXT_CHARACTERS)),
    names: [...new Set([...findDefinitions(newText), ...file.names])].slice(0, MOST_NAMES),
  }
}

/** Checks by its result whether a call that wrote a whole file created the file. */
function isCreation({ result, touches }: ToolRun): boolean {
  return touches.length > 1 || !/has been updated|overwr|replaced/i.test(result.slice(0, 300))
}

function countLines(text: string): number {
  let lines = text === '' || text.endsWith('\n') ? 0 : 1
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}

const MOST_NAMES = 6
const NAMES_IN_CHARACTERS = 20_000
/** Matches the definition of a function or a type. */
const DEFINITION =
  /^[ \t]*(?:(?:export|default|public|private|protected|static|async|abstract|pub(?:\([a-z]+\))?|unsafe)[ \t]+)*(?:function\*?|class|interface|def|fn|func(?:[ \t]*\([^)\n]*\))?|struct|enum|trait|type)[ \t]+([A-Za-z_$][\w$]{2,60})/gm

function findDefinitions(text: string | null): readonly string[] {
  if (text === null) return []
  return [...text.slice(0, NAMES_IN_CHARACTERS).matchAll(DEFINITION)].flatMap(([, name]) => name ?? [])
}

/**
 * Applies what a shell command did to known files: removed, moved or restored files are no longer as their last edit
 * left them. Returns the keys of the changed files.
 */
function applyFileChanges(
  files: Map<string, TouchedFile>,
  run: ToolRun,
  { time, clean }: { readonly time: string; readonly clean: (text: string) => string },
): readonly string[] {
  if (run.command === null || run.status !== 'ok') return []
  return listChangesToKnownFiles(run.command, files.keys(), run.cwd).flatMap((change) => {
    const file = files.get(change.path)
    if (file === undefined) return []
    if (change.kind === 'committed') files.set(change.path, { ...file, isCommitted: true })
    const fate = describeFate(change, file)
    if (fate === null) return []
    files.set(change.path, { ...file, fate: clean(fate), editsLost: EDITS_LOST[change.kind] ?? null })
    const { to } = change
    if (to === null) return [change.path]
    const { newestText, linesRead, isOutside } = file
    const known = { newestText, linesRead, isOutside, movedFrom: file.path }
    const place = { key: to, path: clean(to), uuid: run.uuid, time }
    files.delete(to)
    files.set(to, { ...NO_TOUCHES, ...known, ...place })
    return [change.path, to]
  })
}

const EDITS_LOST: Partial<Record<FileChange['kind'], TouchedFile['editsLost']>> = {
  undone: 'undone',
  'perhaps-undone': 'undone',
  stashed: 'stashed',
  'perhaps-stashed': 'stashed',
}

/** Describes what a command did to a file; null if nothing needs saying, as when it undid edits but the file has none. */
function describeFate({ kind, to, by }: FileChange, file: TouchedFile): string | null {
  const command = `\`${by}\``
  if (kind === 'removed') return `deleted by ${command}`
  if (kind === 'moved') return `moved to ${to} by ${command}`
  if (file.edits === 0 || kind === 'committed') return null
  if (kind === 'returned') return file.editsLost === 'stashed' ? '' : null
  const isCertain = (kind === 'undone' || kind === 'stashed') && !file.isCommitted
  return `${isCertain ? '' : 'perhaps '}undone by ${command}`
}

// Commands: the status of each when it last ran, what failed and whether it has succeeded since, and the tests that
// failed in the newest run. Also other tool calls that failed or that the user refused.

/** A command, by its text without differences of white space. */
export interface CommandFact {
  /** Name of the tool that ran it last. */
  readonly tool: string
  /** The command on one line, whole unless it is very long. */
  readonly line: string
  /** The command without a leading `cd` and a trailing `| tail`, by which its variants are recognized. */
  readonly variant: string
  readonly status: ToolRunStatus
  readonly runs: number
  readonly failures: number
  /** Index in the history of the record with the newest call. */
  readonly place: number
  /** Index in the history of the record with the newest result, or of the call if it has none. */
  readonly resultPlace: number
  /** The end of the newest output. */
  readonly output: string
  /** The line in which the output of a command that ended well reports a failure; empty if there is none. */
  readonly reported: string
}

/** A command that has failed, with all of its variants. A command that the user refused or interrupted has not failed. */
export interface FailedCommand {
  readonly command: string
  /** The end of the command's output when it last failed. */
  readonly error: string
  readonly failures: number
  /** Index of the call that first succeeded after the last failure; null if none did. */
  readonly settledAt: number | null
  readonly isSettled: boolean
  /** Files edited between the command's last failure and its next success. */
  readonly editedSince: readonly string[]
  /** uuid of the record with the result of the last failure. */
  readonly uuid: string
}

/** The newest command that printed the result of a test. */
export interface NewestTestRun {
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
  readonly uuid: string
}

interface Failure extends Omit<FailedCommand, 'editedSince' | 'isSettled'> {
  /** Number of edits in the session when the command last failed. */
  readonly editsBefore: number
  /** Number of edits when it next succeeded; null if it has not. */
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
  #tests: NewestTestRun = { failed: [], by: '', place: -1, passedSince: '' }

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

  /** Lists the commands by their newest result, newest first. Of commands that never failed, only the newest are kept. */
  listCommands(): readonly CommandFact[] {
    return [...this.#failed.values(), ...this.#passed.values()].toSorted(
      (one, other) => other.resultPlace - one.resultPlace || other.place - one.place,
    )
  }

  /** Lists the commands that have failed, newest failure first. */
  listFailures(): readonly FailedCommand[] {
    return [...this.#failures.values()].reverse().map(({ editsBefore, editsAfter, ...failure }) => ({
      ...failure,
      isSettled: failure.settledAt !== null,
      // Each file once, at the place of its last edit.
      editedSince: [...new Set(this.#edits.slice(editsBefore, editsAfter ?? undefined).reverse())].reverse(),
    }))
  }

  /** Lists the calls without a later one of the same tool on the same target that succeeded, newest first. */
  listFailedCalls(): readonly FailedCall[] {
    return [...this.#failedCalls.values()].reverse()
  }

  readTests(): NewestTestRun {
    return this.#tests
  }

  #addCommand(command: string, run: ToolRun): void {
    const key = toCommandKey(command)
    const before = this.#failed.get(key) ?? this.#passed.get(key)
    if (before !== undefined && run.callIndex < before.place) return
    const { status } = run
    const line = before?.line ?? this.#clean(toSingleLineCommand(command))
    const fact: CommandFact = {
      tool: run.name,
      line,
      variant:
        before?.variant ?? normalizeCommand(key === toSingleLineCommand(command) ? line : this.#clean(key)),
      status,
      // The end of a command that was still running is not counted as another run.
      runs: (before?.runs ?? 0) + (before?.place === run.callIndex ? 0 : 1),
      failures: (before?.failures ?? 0) + (isFailedStatus(status) ? 1 : 0),
      place: run.callIndex,
      resultPlace: run.resultIndex ?? run.callIndex,
      output: readOutputEnd(run.result, this.#clean),
      reported:
        status === 'ok' && !isReadOnlyCommand(key) ? readReportedFailure(run.result, this.#clean) : '',
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
    if (isFailedStatus(status)) {
      this.#failures.delete(variant)
      this.#failures.set(variant, {
        command: variant,
        error: output,
        failures: (before?.failures ?? 0) + 1,
        settledAt: null,
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
      by: this.#clean(toSingleLineCommand(command)),
      place: callIndex,
      passedSince: '',
    }
  }

  #addCall(run: ToolRun): void {
    const target = run.command ?? run.touches[0]?.path ?? ''
    const key = `${run.name} ${target}`
    this.#failedCalls.delete(key)
    if (!run.failed || (run.command !== null && !run.refused)) return
    // More is cleaned than is shown, so that a secret that begins in what is shown is recognized as a whole.
    const beginning = this.#clean(sliceWholeCharacters(run.result.trim(), 0, 10 * CALL_ERROR_CHARACTERS))
    this.#failedCalls.set(key, {
      tool: run.name,
      target: this.#clean(target),
      error: sliceWholeCharacters(beginning, 0, CALL_ERROR_CHARACTERS),
      isRefused: run.refused,
      uuid: run.resultUuid ?? run.uuid,
    })
  }
}

const ERROR_END_CHARACTERS = 600
/** Characters at the end of a long result that are cleaned when only its end is shown. */
const CLEANED_CHARACTERS = 20_000

/** Cleans the end of a text. Less than half of that end is shown, so a secret that begins before it is not shown either. */
function cleanTextEnd(text: string, clean: (text: string) => string): string {
  return clean(text.length <= CLEANED_CHARACTERS ? text : sliceWholeCharacters(text, -CLEANED_CHARACTERS))
}

/** Returns the end of a command's output, without what the program that ran it put before. */
function readOutputEnd(result: string, clean: (text: string) => string): string {
  return sliceWholeCharacters(
    cleanTextEnd(splitHeaderFromOutput(result)[1].trimEnd(), clean),
    -ERROR_END_CHARACTERS,
  ).trim()
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
/** A failed test in a line where a time may follow the name: tests and packages of Go, files of vitest and jest. */
const TIMED_TEST_LINE = /^(?:--- FAIL:|FAIL)\s+(.+)$/
/** A test of vitest or jest. Linters begin lines with a cross too, so it counts only if the output has a number of tests. */
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
