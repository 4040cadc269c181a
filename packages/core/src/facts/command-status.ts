/**
 * How a tool call ended, as its result in the log tells: the one rule for summaries, notes and sources. What the program
 * that ran the call states counts before anything in the output, which may be the log of another failure.
 */

import type { ToolResultBlock } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { KnownRecord } from '../log/record.ts'
import { removeControlCharacters } from '../text/well-formed-text.ts'
import { INTERRUPTION_START } from './host-texts.ts'
import { isRefusedCall, readToolResultText, type ToolCallFacts } from './tool-calls.ts'

/**
 * `waiting`: no result yet. `refused` and `interrupted`: by the user. `stopped`: at a time limit. `empty`: ended with a
 * code other than 0 and printed nothing, as a search without matches does. `background`: started or moved there.
 * `running`: had not ended when its result was written.
 */
export type RunStatus =
  | 'waiting'
  | 'ok'
  | 'failed'
  | 'refused'
  | 'interrupted'
  | 'stopped'
  | 'empty'
  | 'background'
  | 'running'

/** Checks whether a call failed by itself. A call that the user refused or interrupted has not. */
export function isFailure(status: RunStatus): boolean {
  return status === 'failed' || status === 'stopped'
}

/** Checks whether a call did not do its work, for whatever reason. */
export function isUndone(status: RunStatus): boolean {
  return isFailure(status) || status === 'refused' || status === 'interrupted'
}

const EXIT_CODE = /(?:\bexit code:?|\bexited with code|"exit_code"[ \t]*:)[ \t]*(-?\d+)/gi
const TIME_LIMIT = /^(?:Error: )?command timed out after /im
const IN_BACKGROUND = /^Command (?:running in|was manually) background/m
/** Matches the line of Codex about a command that has not ended. */
const STILL_RUNNING = /^Process running with session ID[ \t]*(\S*)/m
/** Matches the result of a patch that was not applied, as Codex writes it. */
const REFUSED_PATCH = /^apply_patch verification failed/
/** Lines about a call that a program puts before its output, as Codex does. */
const OUTPUT_HEAD =
  /^(?:(?:Command|Chunk ID|Wall time|Process (?:exited|running)|Exit code|Original token count|Total output lines)\b[^\n]*\n)+Output:(?:\n|$)/
/** A result that is JSON, with the exit code beside the output. */
const JSON_RESULT = /^\{"output":\s*("")?[\s\S]*("exit_code":\s*-?\d+)/
const FIRST_LINES = 5
const LAST_LINES = 3

/** Returns how a call ended. `block` and `record`: its result, and the record that has it. */
export function readRunStatus(call: CallWithInput, block: ToolResultBlock, record: KnownRecord): RunStatus {
  if (record.type === 'user' && isRefusedCall(record, block, call.name)) return 'refused'
  const result = readToolResultText(block.content)
  const isCommand = call.kind === 'run'
  const ends = isCommand ? readOuterLines(result) : ''
  const unfinished = isCommand ? readUnfinished(call, { result, ends, record }) : null
  if (unfinished !== null) return unfinished
  if (block.is_error === true) return TIME_LIMIT.test(ends) ? 'stopped' : 'failed'
  if (block.is_error === false || !CHANGING_KINDS.has(call.kind)) return 'ok'
  if (REFUSED_PATCH.test(result)) return 'failed'
  const status = readUnmarkedStatus(result, ends)
  // A patch that ends so was not applied.
  return status === 'empty' && call.touches.length > 0 ? 'failed' : status
}

type CallWithInput = Pick<ToolCallFacts, 'kind' | 'touches'> & {
  readonly name: string
  readonly input: unknown
}

/** Kinds of calls whose results may state a failure in their text alone. */
const CHANGING_KINDS: ReadonlySet<ToolCallFacts['kind']> = new Set(['run', 'edit', 'write'])

interface CommandResult {
  readonly result: string
  readonly ends: string
  readonly record: KnownRecord
}

/** Returns the status of a command that has not ended, or was stopped by the user; null for any other. */
function readUnfinished({ input }: CallWithInput, { result, ends, record }: CommandResult): RunStatus | null {
  if (isObject(input) && input.run_in_background === true) return 'background'
  const { toolUseResult: logged } = record as { readonly toolUseResult?: unknown }
  if (INTERRUPTION_START.test(result) || (isObject(logged) && logged.interrupted === true))
    return 'interrupted'
  const isMoved = isObject(logged) && typeof logged.backgroundTaskId === 'string'
  if (isMoved || IN_BACKGROUND.test(ends)) return 'background'
  return STILL_RUNNING.test(ends) ? 'running' : null
}

/** Reads a result that nothing marks as an error or as none: by the lines above the output, else by the output's ends. */
function readUnmarkedStatus(result: string, ends: string): RunStatus {
  const head = OUTPUT_HEAD.exec(result)?.[0]
  const json = JSON_RESULT.exec(result)
  if (head === undefined && TIME_LIMIT.test(ends)) return 'stopped'
  const stated = head ?? json?.[2] ?? ends
  if (![...stated.matchAll(EXIT_CODE)].some(([, code]) => Number(code) !== 0)) return 'ok'
  const isEmpty = head === undefined ? json?.[1] !== undefined : result.slice(head.length).trim() === ''
  return isEmpty ? 'empty' : 'failed'
}

/** Returns the lines at the beginning and end of a text that may have an exit code, without colours. */
function readOuterLines(text: string): string {
  const lines = text.trim().split('\n')
  const isShort = lines.length <= FIRST_LINES + LAST_LINES
  const outer = isShort ? lines : [...lines.slice(0, FIRST_LINES), ...lines.slice(-LAST_LINES)]
  return removeControlCharacters(outer.join('\n'))
}

/** Returns the session in which Codex keeps a command that has not ended; null if the result names none. */
export function readRunningSession(result: string): string | null {
  return STILL_RUNNING.exec(readOuterLines(result))?.[1] || null
}

/** Splits a result into what the program that ran the call put before the output, and the output. */
export function splitOutputHead(result: string): readonly [head: string, output: string] {
  const head = OUTPUT_HEAD.exec(result)?.[0] ?? ''
  return [head, result.slice(head.length)]
}
