/** Pairs tool calls with their results, record by record or for a whole history. */

import { isToolResult, isToolUse, toBlocks } from './block.ts'
import { isSyntheticError, type KnownRecord } from './record.ts'
import {
  describeToolCall,
  type FileToolNames,
  readRefusal,
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
  readonly result: string
  /** True if the tool call did not do its work: it failed, or the user refused it. */
  readonly failed: boolean
  /** True if the user refused the tool call, so that it never ran. */
  readonly refused: boolean
}

/** Returns true if the tool call has a result and that result does not report a failure. */
export function hasToolRunSucceeded({ resultIndex, failed }: ToolRun): boolean {
  return resultIndex !== null && !failed
}

/** Pairs calls with results while records are added, in the order of the branch. Holds only the calls without a result. */
export interface ToolRunTracker {
  /** Returns the tool calls that begin in the record, and those whose result it has. `place`: its index in the history. */
  add(record: KnownRecord, place: number): ToolRunChanges
}

interface ToolRunChanges {
  readonly started: readonly ToolRun[]
  readonly finished: readonly ToolRun[]
}

const NO_CHANGES: ToolRunChanges = { started: [], finished: [] }

export function createToolRunTracker(tools: FileToolNames = {}): ToolRunTracker {
  const seen = new Set<string>()
  const open = new Map<string, ToolRun>()
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
          const run = { ...NO_RESULT, id, name, input, uuid: record.uuid, ...facts, callIndex: place }
          seen.add(id)
          open.set(id, run)
          return [run]
        })
        return { started, finished: [] }
      }
      const finished = blocks.flatMap((block) => {
        const run = isToolResult(block) ? open.get(block.tool_use_id) : undefined
        if (run === undefined || !isToolResult(block)) return []
        open.delete(run.id)
        const result = readToolResultText(block.content)
        const refused = readRefusal(block) !== null
        const failed = refused || block.is_error === true || hasReportedFailure(run, result)
        return [{ ...run, resultIndex: place, resultUuid: record.uuid, result, failed, refused }]
      })
      return { started: [], finished }
    },
  }
}

const NO_RESULT = { resultIndex: null, resultUuid: null, result: '', failed: false, refused: false } as const

/**
 * Returns the tool calls of a history with their results, in the order of the calls. `history` must begin with the
 * first record of the branch.
 */
export function listToolRuns(history: readonly KnownRecord[], tools: FileToolNames = {}): readonly ToolRun[] {
  const tracker = createToolRunTracker(tools)
  const runs = new Map<string, ToolRun>()
  history.forEach((record, place) => {
    const { started, finished } = tracker.add(record, place)
    for (const run of [...started, ...finished]) runs.set(run.id, run)
  })
  return [...runs.values()]
}

/** Matches the exit code in a command's result. Some programs print it above the output instead of setting `is_error`. */
const EXIT_CODE = /^(?:Exit code:|Process exited with code) (-?\d+)$/m
/** Matches a command result without output, for example of a search without matches. It does not count as a failure. */
const NO_OUTPUT = /(?:^|\n)Output:\s*$/
/** Matches the result of a patch that was not applied, as Codex writes it. */
export const REFUSED_PATCH: RegExp = /^apply_patch verification failed/
/** Matches the exit code after the output of a patch, in a result that is JSON. */
const JSON_EXIT_CODE = /^\{"output":[\s\S]*"exit_code":\s*(-?\d+)/

/** Checks whether the text of a result says that a command, or a patch that a program applies, has failed. */
function hasReportedFailure({ kind }: ToolRun, result: string): boolean {
  const code = Number(EXIT_CODE.exec(result.slice(0, 400))?.[1] ?? 0)
  if (kind === 'run') return REFUSED_PATCH.test(result) || (code !== 0 && !NO_OUTPUT.test(result.slice(-200)))
  if (kind !== 'edit' && kind !== 'write') return false
  return REFUSED_PATCH.test(result) || code !== 0 || Number(JSON_EXIT_CODE.exec(result)?.[1] ?? 0) !== 0
}
