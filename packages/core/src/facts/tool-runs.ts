/** Pairs tool calls with their results, record by record or for a whole history, and determines how each call ended. */

import { isToolResult, isToolUse, type ToolResultBlock, type ToolUseBlock, toBlocks } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { UserRecord } from '../log/record.ts'
import { isSyntheticError, type KnownRecord } from '../log/record.ts'
import { removeControlCharacters, sliceWholeCharacters } from '../text/truncate-text.ts'
import { INTERRUPTION_START } from './host-texts.ts'
import { listPrintedFileLines, type PrintedFileLines } from './shell-commands.ts'
import {
  describeToolCall,
  type FileToolNames,
  hasServerPrefix,
  readRefusalFromResult,
  readToolName,
  readToolResultText,
  type ToolCallFacts,
} from './tool-calls.ts'

/** A tool call together with its result. */
export interface ToolRun extends ToolCallFacts {
  /** The id that the model gave. Some providers give one id to several calls; `key` is unique in a history. */
  readonly id: string
  readonly key: string
  readonly name: string
  readonly input: unknown
  /** uuid of the record that contains the tool call. */
  readonly uuid: string
  /** `message.id` of the response with the call. */
  readonly response: string
  /**
   * Index in the history of the record with the tool call. `resultIndex` is the index of the record with its result, or
   * null.
   */
  readonly callIndex: number
  readonly resultIndex: number | null
  readonly resultUuid: string | null
  /** The working directory of the record with the tool call; null if it is not known. */
  readonly cwd: string | null
  /** Text of the result; empty while there is none. */
  readonly result: string
  readonly status: ToolRunStatus
  /** True if the tool call did not do its work: it failed, or the user refused or stopped it. */
  readonly failed: boolean
  /** True if the user refused the tool call, so that it never ran. */
  readonly refused: boolean
}

/** Returns true if the tool call has a result and that result does not report a failure. */
export function hasToolRunSucceeded({ resultIndex, failed }: ToolRun): boolean {
  return resultIndex !== null && !failed
}

/** Input fields in which tools that run commands are given the folder. */
const FOLDER_FIELDS = ['workdir', 'cwd', 'working_directory']

/** Returns the files that a call printed by a shell command, if it printed nothing else. */
export function listFilesPrintedByCall({
  command,
  input,
}: Pick<ToolRun, 'command' | 'input'>): readonly PrintedFileLines[] {
  if (command === null) return []
  const fields = isObject(input) ? input : {}
  const folder = FOLDER_FIELDS.map((field) => fields[field]).find((value) => typeof value === 'string')
  return listPrintedFileLines(command, folder ?? null)
}

/**
 * Pairs calls with results while records are added, in the order of the branch. If several calls have one id, a result
 * belongs to the newest response with that id; within one response, results belong to the calls in order. Holds the
 * calls without a result, and those of the newest response.
 */
interface ToolRunTracker {
  /** Adds a record. Returns the calls that begin in it, and those whose result is in it. `place`: its index in the history. */
  add(record: KnownRecord, place: number): ToolRunChanges
}

interface ToolRunChanges {
  readonly started: readonly ToolRun[]
  readonly finished: readonly ToolRun[]
  /** Commands that were reported as `running` before, with the output that a continuing call added. */
  readonly continued: readonly ToolRun[]
}

const NO_CHANGES: ToolRunChanges = { started: [], finished: [], continued: [] }

export function createToolRunTracker(tools: FileToolNames = {}): ToolRunTracker {
  const open = new Map<string, readonly ToolRun[]>()
  let newest = { response: '', calls: new Map<string, readonly ToolUseBlock[]>() }
  const isCopy = (call: ToolUseBlock, response: string): boolean => {
    if (newest.response !== response) newest = { response, calls: new Map() }
    const others = newest.calls.get(call.id) ?? []
    newest.calls.set(call.id, [...others, call])
    return others.some(({ name, input }) => name === call.name && isSameInput(input, call.input))
  }
  const running = createRunningCommands()
  return {
    add(record, place) {
      if ((record.type !== 'assistant' && record.type !== 'user') || isSyntheticError(record))
        return NO_CHANGES
      const blocks = toBlocks(record.message.content)
      if (record.type === 'assistant') {
        const response = record.message.id
        const started = blocks.flatMap((block, index) => {
          if (!isToolUse(block) || isCopy(block, response)) return []
          const { id, input } = block
          const name = readToolName(block)
          const facts = describeToolCall(name, input, tools)
          const cwd = typeof record.cwd === 'string' && record.cwd !== '' ? record.cwd : null
          const key = `${record.uuid} ${index}`
          const run = { ...NO_RESULT, id, key, response, name, input, uuid: record.uuid, cwd, ...facts }
          const before = (open.get(id) ?? []).filter((one) => one.response === response)
          open.set(id, [...before, { ...run, callIndex: place }])
          return [{ ...run, callIndex: place }]
        })
        return { ...NO_CHANGES, started }
      }
      const continued: ToolRun[] = []
      const finished = blocks.flatMap((block) => {
        const [call, ...others] = isToolResult(block) ? (open.get(block.tool_use_id) ?? []) : []
        if (call === undefined || !isToolResult(block)) return []
        if (others.length === 0) open.delete(call.id)
        else open.set(call.id, others)
        const run = withResult(call, block, { record, place })
        const longer = running.follow(run, (before) => withResult(before, block, { record, place }))
        if (longer !== null) continued.push(longer)
        return [run]
      })
      return { started: [], finished, continued }
    },
  }
}

function isSameInput(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

const NO_RESULT = {
  resultIndex: null,
  resultUuid: null,
  result: '',
  status: 'waiting',
  failed: false,
  refused: false,
} as const

/** The place of a result: its record, and the index of that record in the history. */
interface ResultPlace {
  readonly record: KnownRecord
  readonly place: number
}

function withResult(call: ToolRun, block: ToolResultBlock, { record, place }: ResultPlace): ToolRun {
  const status = readToolRunStatus(call, block, record)
  return {
    ...call,
    resultIndex: place,
    resultUuid: record.uuid,
    result: readToolResultText(block.content),
    status,
    failed: isUnsuccessfulStatus(status),
    refused: status === 'refused',
  }
}

const MOST_RUNNING = 50
const MOST_OUTPUT_CHARACTERS = 40_000

interface RunningCommands {
  /**
   * Returns the command that a call continues, with all of its output so far; null if it continues none. `judge`
   * returns that command with its new status, from the result of the call.
   */
  follow(run: ToolRun, judge: (before: ToolRun) => ToolRun): ToolRun | null
}

/**
 * Follows commands of Codex that had not ended when their first result was written. Later calls of `write_stdin` name
 * the session of such a command; their results have the rest of its output and its exit code.
 */
function createRunningCommands(): RunningCommands {
  const running = new Map<string, ToolRun>()
  return {
    follow(run, judge) {
      const { session_id: session } = isObject(run.input) ? run.input : {}
      const before = run.name === 'write_stdin' ? running.get(String(session)) : undefined
      if (before !== undefined) running.delete(String(session))
      const judged = before === undefined ? run : judge(before)
      const whole =
        before === undefined ? run : { ...judged, result: joinOutputs(before.result, judged.result) }
      const id = whole.status === 'running' ? readRunningSession(run.result) : null
      if (id !== null) running.set(id, whole)
      const [oldest] = running.keys()
      if (running.size > MOST_RUNNING && oldest !== undefined) running.delete(oldest)
      return before === undefined ? null : whole
    },
  }
}

/** Puts the output so far between the lines about the newest call and its output. */
function joinOutputs(before: string, newest: string): string {
  const [head, output] = splitHeaderFromOutput(newest)
  return `${head}${sliceWholeCharacters(`${splitHeaderFromOutput(before)[1]}${output}`, -MOST_OUTPUT_CHARACTERS)}`
}

/**
 * Returns the tool calls of a history with their results, in the order of the calls. A result whose call is not in
 * `history` is left out; indices count from the first record of `history`.
 */
export function listToolRuns(history: readonly KnownRecord[], tools: FileToolNames = {}): readonly ToolRun[] {
  const tracker = createToolRunTracker(tools)
  const runs = new Map<string, ToolRun>()
  history.forEach((record, place) => {
    const { started, finished, continued } = tracker.add(record, place)
    for (const run of [...started, ...finished, ...continued]) runs.set(run.key, run)
  })
  return [...runs.values()]
}

// How a tool call ended, read from its result by one rule for summaries, notes and sources. What the program that ran
// the call states counts more than anything in the output, which may be the log of another failure.

/**
 * `waiting`: no result yet. `refused` and `interrupted`: by the user. `stopped`: at a time limit. `empty`: ended with a
 * code other than 0 and printed nothing, as a search without matches does. `background`: started in the background or
 * moved there. `running`: had not ended when its result was written.
 */
export type ToolRunStatus =
  | 'waiting'
  | 'ok'
  | 'failed'
  | 'refused'
  | 'interrupted'
  | 'stopped'
  | 'empty'
  | 'background'
  | 'running'

/** Checks whether a call failed by itself or at a time limit. One that the user refused or interrupted has not failed. */
export function isFailedStatus(status: ToolRunStatus): boolean {
  return status === 'failed' || status === 'stopped'
}

/** Checks whether a call did not do its work: it failed, or the user refused or interrupted it. */
export function isUnsuccessfulStatus(status: ToolRunStatus): boolean {
  return isFailedStatus(status) || status === 'refused' || status === 'interrupted'
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

/** Returns how a call ended. `block`: its result. `record`: the record with that result. */
export function readToolRunStatus(
  call: CallWithInput,
  block: ToolResultBlock,
  record: KnownRecord,
): ToolRunStatus {
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
  // A command that applies a patch, fails and prints nothing did not apply the patch.
  return status === 'empty' && call.touches.length > 0 ? 'failed' : status
}

/** Checks whether the user refused the call of the tool `name`, whose result the block of a record is. */
function isRefusedCall({ userInputs }: UserRecord, block: ToolResultBlock, name: string): boolean {
  if (userInputs === undefined) return !hasServerPrefix(name) && readRefusalFromResult(block) !== null
  return userInputs.some(({ kind, toolUseId }) => kind === 'refusal' && toolUseId === block.tool_use_id)
}

type CallWithInput = Pick<ToolCallFacts, 'kind' | 'touches'> & {
  readonly name: string
  readonly input: unknown
}

/** Kinds of calls whose results may report a failure only in their text, without an error mark. */
const CHANGING_KINDS: ReadonlySet<ToolCallFacts['kind']> = new Set(['run', 'edit', 'write'])

interface CommandResult {
  readonly result: string
  readonly ends: string
  readonly record: KnownRecord
}

/** Returns the status of a command that has not ended, or was stopped by the user; null for any other. */
function readUnfinished(
  { input }: CallWithInput,
  { result, ends, record }: CommandResult,
): ToolRunStatus | null {
  if (isObject(input) && input.run_in_background === true) return 'background'
  const { toolUseResult: logged } = record as { readonly toolUseResult?: unknown }
  if (INTERRUPTION_START.test(result) || (isObject(logged) && logged.interrupted === true))
    return 'interrupted'
  const isMoved = isObject(logged) && typeof logged.backgroundTaskId === 'string'
  if (isMoved || IN_BACKGROUND.test(ends)) return 'background'
  return STILL_RUNNING.test(ends) ? 'running' : null
}

/** Judges a result that is marked neither as error nor as success, by the lines above its output, else by the output's ends. */
function readUnmarkedStatus(result: string, ends: string): ToolRunStatus {
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
function readRunningSession(result: string): string | null {
  return STILL_RUNNING.exec(readOuterLines(result))?.[1] || null
}

/** Splits a result into the lines about the call that the agent program put before the output, and the output. */
export function splitHeaderFromOutput(result: string): readonly [head: string, output: string] {
  const head = OUTPUT_HEAD.exec(result)?.[0] ?? ''
  return [head, result.slice(head.length)]
}
