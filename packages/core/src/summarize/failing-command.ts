/** Commands that failed: the last error of each, whether it has since succeeded, and what was changed in between. */
import type { ToolRun } from './tool-run.ts'

export interface FailingCommand {
  readonly command: string
  /** The end of what it said when it last failed. */
  readonly error: string
  readonly failures: number
  /** The same command has succeeded since. */
  readonly isSettled: boolean
  /** Files changed since it last failed; up to its success, where it has succeeded. */
  readonly editedSince: readonly string[]
  readonly place: number
  /** Record of the result. */
  readonly uuid: string
}

const ERROR_END = 600
const LEADING_CD = /\s*cd\s+[^&;|\n]*&&\s*/y
const CUTTING = /^\|\s*(?:head|tail)\b[^&;\n]*$/

/** A command as it is told from others: where it was run and how much of its output was looked at do not count. */
export function plainCommand(command: string): string {
  let start = 0
  LEADING_CD.lastIndex = 0
  while (LEADING_CD.test(command)) start = LEADING_CD.lastIndex
  let end = command.trimEnd().length
  for (;;) {
    const pipe = command.lastIndexOf('|', end - 1)
    if (pipe <= start || !CUTTING.test(command.slice(pipe, end))) break
    end = command.slice(0, pipe).trimEnd().length
  }
  return command.slice(start, end).trim()
}

/** Newest failure first. */
export function failingCommandsOf(
  runs: readonly ToolRun[],
  clean: (text: string) => string,
): readonly FailingCommand[] {
  const failing = new Map<string, FailingCommand>()
  for (const run of runs) {
    if (run.command !== null && run.answeredAt !== null) enter(failing, plainCommand(run.command), run)
    else if (!run.failed) noteEdits(failing, run)
  }
  const cleaned = [...failing.values()].map((item) => ({
    ...item,
    command: clean(item.command),
    error: clean(item.error),
    editedSince: item.editedSince.map(clean),
  }))
  return cleaned.toSorted((one, other) => other.place - one.place)
}

function enter(failing: Map<string, FailingCommand>, command: string, run: ToolRun): void {
  const before = failing.get(command)
  if (!run.failed) {
    if (before !== undefined) failing.set(command, { ...before, isSettled: true })
    noteEdits(failing, run)
    return
  }
  failing.set(command, {
    command,
    error: endOf(run.result),
    failures: (before?.failures ?? 0) + 1,
    isSettled: false,
    editedSince: [],
    place: run.place,
    uuid: run.resultUuid ?? run.uuid,
  })
}

/** White space at the very end comes on top, so that the end is there however it is counted. */
function endOf(text: string): string {
  return text.slice(-(ERROR_END + text.length - text.trimEnd().length))
}

function noteEdits(failing: Map<string, FailingCommand>, run: ToolRun): void {
  const edited = run.touches.flatMap(({ act, path }) => (act === 'read' ? [] : [path]))
  if (edited.length === 0) return
  for (const [command, item] of failing) {
    if (item.isSettled) continue
    failing.set(command, { ...item, editedSince: [...new Set([...item.editedSince, ...edited])] })
  }
}

/** A call of another kind that failed: an edit that found nothing to replace, a file that is not there. */
export interface FailedCall {
  readonly tool: string
  readonly target: string
  readonly error: string
  readonly place: number
  readonly uuid: string
}

const CALL_ERROR = 300

/** Newest first; those on a file that a later call of the same tool did without trouble are settled and left out. */
export function failedCallsOf(
  runs: readonly ToolRun[],
  clean: (text: string) => string,
): readonly FailedCall[] {
  const failed = new Map<string, FailedCall>()
  for (const run of runs) {
    if (run.command !== null) continue
    const target = run.touches[0]?.path ?? ''
    const key = `${run.name} ${target}`
    failed.delete(key)
    if (!run.failed) continue
    const error = clean(run.result.trim().slice(0, CALL_ERROR))
    failed.set(key, {
      tool: run.name,
      target: clean(target),
      error,
      place: run.place,
      uuid: run.resultUuid ?? run.uuid,
    })
  }
  return [...failed.values()].toReversed()
}
