/** How a shell command ended, as its result in the log tells. docs/notes-exam.md has the rules. */
import { isObject } from '../log/json.ts'
import type { KnownRecord } from '../log/record.ts'
import { REFUSED_PATCH, type ToolRun } from '../log/tool-runs.ts'
import { sliceText } from '../log/well-formed-text.ts'
import { cutErrorEnd, removeControlCharacters } from '../summary/session-facts.ts'
import { cleanNoteText, cleanTextEnd, toNoteLine } from './note-text.ts'

/**
 * `background`: started or moved there. `running`: had not ended when its result was written. `refused` and
 * `interrupted`: by the user. `stopped`: at a time limit.
 */
export type CommandStatus = 'ok' | 'failed' | 'background' | 'running' | 'refused' | 'interrupted' | 'stopped'

const EXIT_CODE = /(?:\bexit code:?|\bexited with code|"exit_code"[ \t]*:)[ \t]*(-?\d+)/gi
const TIME_LIMIT = /^(?:Error: )?command timed out after /im
const INTERRUPTED = /^\s*\[Request interrupted by user/
const IN_BACKGROUND = /^Command (?:running in|was manually) background/m
/** Matches the line of Codex about a command that has not ended. */
const STILL_RUNNING = /^Process running with session ID[ \t]*(\S*)/m
/** Codex puts up to four lines about a call, the exit code among them, before its output. */
const FIRST_LINES = 5
const LAST_LINES = 3

/** Returns how a command ended. `record`: the record with its result; `isError`: its result is marked as an error. */
export function readCommandStatus(run: ToolRun, record: KnownRecord, isError: boolean): CommandStatus {
  if (run.refused) return 'refused'
  if (isObject(run.input) && run.input.run_in_background === true) return 'background'
  const { toolUseResult: logged } = record as { readonly toolUseResult?: unknown }
  if (INTERRUPTED.test(run.result) || (isObject(logged) && logged.interrupted === true)) return 'interrupted'
  const ends = readOuterLines(run.result)
  const isMoved = isObject(logged) && typeof logged.backgroundTaskId === 'string'
  if (isMoved || IN_BACKGROUND.test(ends)) return 'background'
  if (STILL_RUNNING.test(ends)) return 'running'
  if (TIME_LIMIT.test(ends)) return 'stopped'
  return isError || REFUSED_PATCH.test(ends) || hasFailingCode(ends) ? 'failed' : 'ok'
}

/** Returns the lines at the beginning and end of a text that may have an exit code, without colours. */
function readOuterLines(text: string): string {
  const lines = text.trim().split('\n')
  const isShort = lines.length <= FIRST_LINES + LAST_LINES
  const outer = isShort ? lines : [...lines.slice(0, FIRST_LINES), ...lines.slice(-LAST_LINES)]
  return removeControlCharacters(outer.join('\n'))
}

function hasFailingCode(text: string): boolean {
  return [...text.matchAll(EXIT_CODE)].some(([, code]) => Number(code) !== 0)
}

/** What the status is called in the line of a command. */
export const STATUS_TEXTS: Readonly<Record<CommandStatus, string>> = {
  ok: 'ok',
  failed: 'failed',
  background: 'started in the background',
  running: 'still running',
  refused: 'refused by the user',
  interrupted: 'interrupted by the user',
  stopped: 'stopped at its time limit',
}

const COMMAND_CHARACTERS = 120
const SHELL_PREFIX = /^bash -lc /
/** Longer commands are told apart by their ends and their length, so that the keeper holds no scripts. */
const KEY_CHARACTERS = 1_000

/** Returns the text by which two calls count as the same command. */
export function toCommandKey(command: string): string {
  const line = toNoteLine(command.replace(SHELL_PREFIX, ''))
  if (line.length <= KEY_CHARACTERS) return line
  return `${line.slice(0, KEY_CHARACTERS / 2)} ${line.length} ${line.slice(-KEY_CHARACTERS / 2)}`
}

/** Returns a command as the notes show it, in backquotes, cut to `most` characters. */
export function formatCommand(command: string, most: number = COMMAND_CHARACTERS): string {
  const line = toNoteLine(cleanNoteText(command.replace(SHELL_PREFIX, '')))
  return `\`${toNoteLine(line.replaceAll('`', "'"), most)}\``
}

/** Lines about a call that Codex puts before its output. */
const OUTPUT_HEAD =
  /^(?:(?:Command|Chunk ID|Wall time|Process (?:exited|running)|Exit code|Original token count|Total output lines)\b[^\n]*\n)+Output:\n?/

/** Returns the end of a command's output, without what the program that ran it put before. */
export function readOutputEnd(result: string): string {
  const text = cutErrorEnd(cleanTextEnd(result.replace(OUTPUT_HEAD, '')))
  return text.replace(/\r\n?/g, '\n').trim()
}

/** Matches a line with which a program reports that it failed, also after a name in brackets: `[test] ERROR task failed`. */
const FAILURE_LINE = /^(?:\[[^\]]*\] ?)?(?:FAIL(?:ED|URE)?|ERROR|Error|error|\d+ failed)\b/
const FAILURE_LINES = 8
const FAILURE_CHARACTERS = 80

/**
 * Returns the last line near the end of an output that reports a failure; empty if there is none. The status of a command
 * such as `npm test | tail` is that of `tail`.
 */
export function readReportedFailure(result: string): string {
  const lines = cleanTextEnd(result.trimEnd()).split('\n').slice(-FAILURE_LINES)
  const found = lines.findLast((line) => FAILURE_LINE.test(line.trim()))
  return toNoteLine(found ?? '', FAILURE_CHARACTERS)
}

const MOST_RUNNING = 50
const MOST_OUTPUT_CHARACTERS = 40_000

/**
 * Follows commands of Codex that had not ended when their first result was written. Later calls of `write_stdin`, which
 * name the session of such a command, have the rest of its output and its exit code.
 */
export function createRunningCommands(): { follow(run: ToolRun): ToolRun } {
  const running = new Map<string, ToolRun>()
  return {
    /** Returns the call as it is, or, if it continues a command, the call of that command with all of its output so far. */
    follow(run) {
      const { session_id: session } = isObject(run.input) ? run.input : {}
      const before = run.name === 'write_stdin' ? running.get(String(session)) : undefined
      const whole = before === undefined ? run : { ...before, result: joinOutputs(before.result, run.result) }
      if (before !== undefined) running.delete(String(session))
      const id = whole.command === null ? undefined : STILL_RUNNING.exec(readOuterLines(run.result))?.[1]
      if (id === undefined || id === '') return whole
      running.set(id, { ...whole, input: null, edits: [], touches: [] })
      const [oldest] = running.keys()
      if (running.size > MOST_RUNNING && oldest !== undefined) running.delete(oldest)
      return whole
    },
  }
}

/** Puts the output so far between the lines about the newest call and its output. */
function joinOutputs(before: string, newest: string): string {
  const head = OUTPUT_HEAD.exec(newest)?.[0] ?? ''
  const output = `${before.replace(OUTPUT_HEAD, '')}${newest.slice(head.length)}`
  return `${head}${sliceText(output, -MOST_OUTPUT_CHARACTERS)}`
}
