/** Pairs tool calls with their results, record by record or for a whole history. */

import { isToolResult, isToolUse, type ToolResultBlock, toBlocks } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { isSyntheticError, type KnownRecord } from '../log/record.ts'
import { sliceText } from '../text/well-formed-text.ts'
import {
  isUndone,
  type RunStatus,
  readRunningSession,
  readRunStatus,
  splitOutputHead,
} from './command-status.ts'
import { listPrintedFiles, type PrintedFile } from './shell-commands.ts'
import {
  describeToolCall,
  type FileToolNames,
  readToolName,
  readToolResultText,
  type ToolCallFacts,
} from './tool-calls.ts'

/** A tool call together with its result. */
export interface ToolRun extends ToolCallFacts {
  readonly id: string
  readonly name: string
  readonly input: unknown
  /** uuid of the record that contains the tool call. */
  readonly uuid: string
  /**
   * Index in the history of the record with the tool call. `resultIndex` is the index of the record with its result, or
   * null.
   */
  readonly callIndex: number
  readonly resultIndex: number | null
  readonly resultUuid: string | null
  /** The working directory of the record with the tool call; null if it is not known. */
  readonly cwd: string | null
  readonly result: string
  readonly status: RunStatus
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
export function listPrintedByCall({
  command,
  input,
}: Pick<ToolRun, 'command' | 'input'>): readonly PrintedFile[] {
  if (command === null) return []
  const fields = isObject(input) ? input : {}
  const folder = FOLDER_FIELDS.map((field) => fields[field]).find((value) => typeof value === 'string')
  return listPrintedFiles(command, folder ?? null)
}

/** Pairs calls with results while records are added, in the order of the branch. Holds only the calls without a result. */
interface ToolRunTracker {
  /** Returns the tool calls that begin in the record, and those whose result it has. `place`: its index in the history. */
  add(record: KnownRecord, place: number): ToolRunChanges
}

interface ToolRunChanges {
  readonly started: readonly ToolRun[]
  readonly finished: readonly ToolRun[]
  /** Commands that were finished before as `running`, with what a call that continues them added. */
  readonly continued: readonly ToolRun[]
}

const NO_CHANGES: ToolRunChanges = { started: [], finished: [], continued: [] }

export function createToolRunTracker(tools: FileToolNames = {}): ToolRunTracker {
  const seen = new Set<string>()
  const open = new Map<string, ToolRun>()
  const running = createRunningCommands()
  return {
    add(record, place) {
      if ((record.type !== 'assistant' && record.type !== 'user') || isSyntheticError(record))
        return NO_CHANGES
      const blocks = toBlocks(record.message.content)
      if (record.type === 'assistant') {
        const started = blocks.flatMap((block) => {
          if (!isToolUse(block) || seen.has(block.id)) return []
          const { id, input } = block
          const name = readToolName(block)
          const facts = describeToolCall(name, input, tools)
          const cwd = typeof record.cwd === 'string' && record.cwd !== '' ? record.cwd : null
          const run = { ...NO_RESULT, id, name, input, uuid: record.uuid, cwd, ...facts, callIndex: place }
          seen.add(id)
          open.set(id, run)
          return [run]
        })
        return { ...NO_CHANGES, started }
      }
      const continued: ToolRun[] = []
      const finished = blocks.flatMap((block) => {
        const call = isToolResult(block) ? open.get(block.tool_use_id) : undefined
        if (call === undefined || !isToolResult(block)) return []
        open.delete(call.id)
        const run = withResult(call, block, { record, place })
        const longer = running.follow(run, (before) => withResult(before, block, { record, place }))
        if (longer !== null) continued.push(longer)
        return [run]
      })
      return { started: [], finished, continued }
    },
  }
}

const NO_RESULT = {
  resultIndex: null,
  resultUuid: null,
  result: '',
  status: 'waiting',
  failed: false,
  refused: false,
} as const

/** Where a result stands: its record, and the index of that in the history. */
interface ResultPlace {
  readonly record: KnownRecord
  readonly place: number
}

function withResult(call: ToolRun, block: ToolResultBlock, { record, place }: ResultPlace): ToolRun {
  const status = readRunStatus(call, block, record)
  return {
    ...call,
    resultIndex: place,
    resultUuid: record.uuid,
    result: readToolResultText(block.content),
    status,
    failed: isUndone(status),
    refused: status === 'refused',
  }
}

const MOST_RUNNING = 50
const MOST_OUTPUT_CHARACTERS = 40_000

interface RunningCommands {
  /**
   * Returns the command that a call continues, with all of its output so far; null if it continues none. `judge` gives a
   * command the result of the call.
   */
  follow(run: ToolRun, judge: (before: ToolRun) => ToolRun): ToolRun | null
}

/**
 * Follows commands of Codex that had not ended when their first result was written. Later calls of `write_stdin`, which
 * name the session of such a command, have the rest of its output and its exit code.
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
  const [head, output] = splitOutputHead(newest)
  return `${head}${sliceText(`${splitOutputHead(before)[1]}${output}`, -MOST_OUTPUT_CHARACTERS)}`
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
    for (const run of [...started, ...finished, ...continued]) runs.set(run.id, run)
  })
  return [...runs.values()]
}
