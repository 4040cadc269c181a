/**
 * Notes about commands: the last result of each, those that still fail with their errors, what fixed the others, and the
 * tests that failed in the newest run.
 */
import { isFailure, type RunStatus, splitOutputHead } from '../facts/command-status.ts'
import { cutErrorEnd } from '../facts/session-facts.ts'
import {
  isLookingCommand,
  isPassingCommand,
  normalizeCommand,
  toCommandKey,
  toCommandLine,
} from '../facts/shell-commands.ts'
import { readFailedTests } from '../facts/test-results.ts'
import type { ToolRun } from '../facts/tool-runs.ts'
import { quoteCode } from '../summary/summary-pieces.ts'
import { truncateStart } from '../text/truncate-text.ts'
import type { NoteGroup, NoteItem } from './fit-notes.ts'
import { cleanNoteText, cleanTextEnd, createNewestList, toNoteLine } from './note-text.ts'

interface KnownCommand {
  /** Name of the tool that ran it last. */
  readonly tool: string
  /** The command as the notes show it, and as they show it beside another one with the same beginning. */
  readonly shown: string
  readonly longer: string
  /** The command without a leading `cd` and a trailing `| tail`, by which its variants are recognized. */
  readonly variant: string
  readonly status: RunStatus
  readonly runs: number
  readonly failures: number
  /** Index in the history of the newest call. */
  readonly place: number
  /** The end of the newest output. */
  readonly output: string
  /** The end of the output when the command last failed; empty if it has succeeded since. */
  readonly error: string
  /** The line in which the output of a command that ended well reports a failure; empty if there is none. */
  readonly reported: string
  /** Number of edits in the session when the command last failed. */
  readonly editsBefore: number
}

/** A command that failed and has succeeded since. */
interface FixedCommand {
  readonly shown: string
  readonly error: string
  readonly edited: readonly string[]
}

/** The newest command that printed the result of a test. */
interface TestRun {
  readonly failed: readonly string[]
  /** The command that ran the tests. */
  readonly by: string
  readonly place: number
  /** A command with the word "test" that has succeeded since without naming any test; empty for none. */
  readonly passedSince: string
}

const MOST_PASSED = 300
const MOST_FIXED = 60
const MOST_EDITS = 64
const MOST_NAMED_EDITS = 3
/** Number of commands of each tool that are placed before all older ones. */
const NEWEST_COMMANDS = 20
const OUTPUT_CHARACTERS = 100
const LONGER_CHARACTERS = 1_000
const ERROR_CHARACTERS = 240

export class CommandNotes {
  // Both maps have the command with the newest call last. Commands that succeeded may be forgotten, others never.
  readonly #failing = new Map<string, KnownCommand>()
  readonly #passed = new Map<string, KnownCommand>()
  /** Index of the newest call that succeeded, by variant. */
  readonly #passedVariants = new Map<string, number>()
  readonly #fixed = createNewestList<FixedCommand>(MOST_FIXED)
  readonly #edits = createNewestList<string>(MOST_EDITS)
  #editCount = 0
  /** Index of the first call of the segment: since the newest compaction. */
  #segmentStart = 0
  #tests: TestRun = { failed: [], by: '', place: -1, passedSince: '' }

  /** Adds a tool call with its result, if it is a command. */
  add(run: ToolRun): void {
    if (run.command === null || run.kind !== 'run') return
    this.#addTests(run.command, run)
    this.#addCommand(run.command, run)
  }

  /** Ends a segment. Of the commands before `place` the notes have the status alone, without the end of the output. */
  endSegment(place: number): void {
    this.#segmentStart = place
  }

  /** Adds the names of the files that a call changed. */
  addEdits(names: readonly string[]): void {
    this.#editCount += names.length
    for (const name of names) this.#edits.add(name)
  }

  listWorkflow(): readonly NoteGroup[] {
    const counts = new Map<string, number>()
    const items = this.#listNewest(this.#passed).map((one) => {
      const newer = counts.get(one.tool) ?? 0
      counts.set(one.tool, newer + 1)
      return toCommandItem(one, { isNew: newer < NEWEST_COMMANDS, hasEnd: one.place >= this.#segmentStart })
    })
    return [{ title: 'Commands, newest first:', items }]
  }

  /**
   * Lists commands, newest first. Of those that begin alike, the newest is listed, unless one of them failed and another
   * did not: these are shown at greater length, so that they can be told apart.
   */
  #listNewest(commands: ReadonlyMap<string, KnownCommand>): readonly KnownCommand[] {
    const others = commands === this.#failing ? this.#passed : this.#failing
    const beginnings = new Set([...others.values()].map(({ shown }) => shown))
    const listed = new Map<string, KnownCommand>()
    for (const one of [...commands.values()].toReversed()) {
      const shown = beginnings.has(one.shown) ? one.longer : one.shown
      if (!listed.has(shown)) listed.set(shown, { ...one, shown })
    }
    return [...listed.values()]
  }

  listFailingTests(): readonly NoteGroup[] {
    const { failed, by } = this.#tests
    return [
      {
        title: `Failing tests in the newest run that names tests, ${by}${formatPassedSince(this.#tests)}:`,
        items: failed.map((name) => ({ full: `- failing test: ${name}`, rank: 2 })),
      },
    ]
  }

  listFailing(): readonly NoteGroup[] {
    const all = this.#listNewest(this.#failing)
    const hasPassed = ({ variant, place }: KnownCommand): boolean =>
      (this.#passedVariants.get(variant) ?? -1) > place
    return [
      {
        title: 'Commands that failed when last run, newest first:',
        items: all
          .filter((one) => !hasPassed(one))
          .map((one) => toFailingItem(one, this.#listEditsSince(one.editsBefore))),
      },
      {
        title: 'Failed as well, but a variant of the command has succeeded since:',
        items: all.filter(hasPassed).map((one) => toFailingItem(one, [])),
      },
    ]
  }

  listFixed(): readonly NoteGroup[] {
    const items = this.#fixed.list().map(({ shown, error, edited }) => {
      const after = edited.length === 0 ? '' : ` after changes to ${edited.join(', ')}`
      return {
        full: `- fixed: ${shown} had failed (${cutOutput(error)}); ok${after}`,
        ...withWholeError(`- fixed: ${shown} had failed; ok${after}`, error),
        rank: 4,
      }
    })
    return [{ title: 'Errors that were fixed, newest first:', items, dropped: this.#fixed.countDropped() }]
  }

  #listEditsSince(count: number): readonly string[] {
    return [...new Set(this.#edits.list().slice(0, this.#editCount - count))]
  }

  #addTests(command: string, { callIndex, result }: ToolRun): void {
    const failed = callIndex < this.#tests.place ? null : readFailedTests(result)
    if (failed === null) return
    this.#tests = {
      failed: failed.map((name) => toNoteLine(cleanNoteText(name))),
      by: formatCommand(command),
      place: callIndex,
      passedSince: '',
    }
  }

  #addCommand(command: string, run: ToolRun): void {
    const { status } = run
    const hasFailed = isFailure(status)
    const key = toCommandKey(command)
    const before = this.#failing.get(key) ?? this.#passed.get(key)
    if (before !== undefined && run.callIndex < before.place) return
    const output = readOutputEnd(run.result)
    const lastError = hasFailed ? output : (before?.error ?? '')
    const known: KnownCommand = {
      tool: run.name,
      shown: before?.shown ?? formatCommand(command),
      longer: before?.longer ?? formatLongerCommand(command),
      variant: before?.variant ?? normalizeCommand(key),
      status,
      // A command that was still running is no other run when its end is known.
      runs: (before?.runs ?? 0) + (before?.place === run.callIndex ? 0 : 1),
      failures: (before?.failures ?? 0) + (hasFailed ? 1 : 0),
      place: run.callIndex,
      output,
      error: status === 'ok' ? '' : lastError,
      reported: status === 'ok' && !isLookingCommand(key) ? readReportedFailure(run.result) : '',
      editsBefore: hasFailed ? this.#editCount : (before?.editsBefore ?? 0),
    }
    this.#failing.delete(key)
    this.#passed.delete(key)
    if (hasFailed) this.#failing.set(key, known)
    else setNewest(this.#passed, key, known, MOST_PASSED)
    if (status === 'ok' && known.reported === '') this.#addSuccess(known, before)
  }

  #addSuccess({ shown, variant, place }: KnownCommand, before: KnownCommand | undefined): void {
    setNewest(this.#passedVariants, variant, place, 2 * MOST_PASSED)
    if (/\btests?\b/.test(variant) && place > this.#tests.place)
      this.#tests = { ...this.#tests, passedSince: shown }
    if (before === undefined || before.error === '') return
    const edited = this.#listEditsSince(before.editsBefore).slice(0, MOST_NAMED_EDITS)
    this.#fixed.add({ shown, error: before.error, edited })
  }
}

function formatPassedSince({ passedSince }: TestRun): string {
  return passedSince === '' ? '' : ` (${passedSince} has succeeded since)`
}

/** What the status is called in the line of a command. */
const STATUS_TEXTS: Readonly<Record<RunStatus, string>> = {
  waiting: 'no result yet',
  ok: 'ok',
  failed: 'failed',
  empty: 'printed nothing, with an exit code other than 0',
  background: 'started in the background',
  running: 'still running',
  refused: 'refused by the user',
  interrupted: 'interrupted by the user',
  stopped: 'stopped at its time limit',
}

const COMMAND_CHARACTERS = 120

/** Returns a command as the notes show it, in backquotes, cut to `most` characters. */
export function formatCommand(command: string, most: number = COMMAND_CHARACTERS): string {
  const line = cleanNoteText(toCommandLine(command))
  return `\`${toNoteLine(line.replaceAll('`', "'"), most)}\``
}

/** Returns the whole command, unless it is too long to show it. */
function formatLongerCommand(command: string): string {
  const whole = formatCommand(command, Number.POSITIVE_INFINITY)
  return whole.length <= LONGER_CHARACTERS ? whole : formatCommand(command)
}

/** Sets an entry as the newest one of a map, and removes the oldest if there are more than `most`. */
function setNewest<Value>(map: Map<string, Value>, key: string, value: Value, most: number): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > most && oldest !== undefined) map.delete(oldest)
}

function toCommandItem(
  command: KnownCommand,
  { isNew, hasEnd }: { readonly isNew: boolean; readonly hasEnd: boolean },
): NoteItem {
  const { shown, variant, status, runs, output, reported } = command
  const but = reported === '' ? '' : `, but its output says "${reported}"`
  const line = `- ${shown} → ${STATUS_TEXTS[status]}${but}`
  // What a command printed that only looks around is a part of a file or a list: its end says nothing.
  const saysEnd = hasEnd && status === 'ok' && !isLookingCommand(variant)
  const end = saysEnd ? truncateStart(toNoteLine(output), OUTPUT_CHARACTERS) : ''
  const more = [runs === 1 ? '' : `${runs} runs`, end === '' ? '' : `output ends: ${end}`]
  const detail = more.filter((part) => part !== '').join('; ')
  const rank = isNew ? 1 : isPassingCommand(variant) ? 4 : runs > 1 ? 2 : 3
  return detail === '' ? { full: line, rank } : { full: `${line} (${detail})`, short: line, rank }
}

function toFailingItem(
  { shown, status, failures, output }: KnownCommand,
  editedSince: readonly string[],
): NoteItem {
  const line = `- ${shown} → ${STATUS_TEXTS[status]}`
  const often = failures > 1 ? ` (${failures} times)` : ''
  const named = editedSince.slice(0, MOST_NAMED_EDITS).join(', ')
  const changed = named === '' ? '' : `; changed since: ${named}`
  return {
    full: `${line}${often}: ${cutOutput(output)}${changed}`,
    short: line,
    ...withWholeError(`${line}${often}${changed}`, output),
    rank: 0,
  }
}

/** Returns the end of a command's output, without what the program that ran it put before. */
function readOutputEnd(result: string): string {
  return cutErrorEnd(cleanTextEnd(splitOutputHead(result)[1]))
    .replace(/\r\n?/g, '\n')
    .trim()
}

/** Matches a line with which a program reports that it failed, also after a name in brackets: `[test] ERROR task failed`. */
const FAILURE_LINE = /^(?:\[[^\]]*\] ?)?(?:FAIL(?:ED|URE)?|ERROR|Error|error|\d+ failed)\b/
const FAILURE_LINES = 8
const FAILURE_CHARACTERS = 80

/**
 * Returns the last line near the end of an output that reports a failure; empty if there is none. The status of a command
 * such as `npm test | tail` is that of `tail`.
 */
function readReportedFailure(result: string): string {
  const lines = cleanTextEnd(result.trimEnd()).split('\n').slice(-FAILURE_LINES)
  const found = lines.findLast((line) => FAILURE_LINE.test(line.trim()))
  return toNoteLine(found ?? '', FAILURE_CHARACTERS)
}

function cutOutput(output: string): string {
  return output === '' ? 'no output' : truncateStart(toNoteLine(output), ERROR_CHARACTERS)
}

/** Returns the longer form of an item, with the error letter for letter; none if its one line has it all. */
function withWholeError(line: string, error: string): Pick<NoteItem, 'longer'> {
  return cutOutput(error) === error || error === ''
    ? {}
    : { longer: `${line}. Its output ended:\n${quoteCode(error)}` }
}
