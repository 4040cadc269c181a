/**
 * How much of the text of files that a compaction attaches the model will use. A file that it does not come back to before
 * the next compaction, or that it reads again first, was attached for nothing.
 */

import { normalizePath } from '../facts/tool-calls.ts'
import { listPrintedByCall, type ToolRun } from '../facts/tool-runs.ts'
import { isCompactBoundary, type KnownRecord } from '../log/record.ts'

/** Tool calls after which the next use of a file counts as coming back to it. */
const PAUSE_CALLS = 20

/** Number of newest returns that are looked at, and the least that show a habit. */
const [NEWEST_RETURNS, LEAST_RETURNS] = [20, 5]

/** Tool calls between two compactions, about, and the number of files that a compaction would have attached first. */
const [SPAN_CALLS, FIRST_FILES] = [30, 5]

/** Number of newest calls at which it is looked what a compaction would have attached. Every tenth call is looked at. */
const [NEWEST_POINTS, POINT_CALLS] = [10, 10]

/**
 * Returns the percentage of attached files that the model is expected to use: that it comes back to them before the next
 * compaction, and does not read them again first. Null if there were too few calls to tell. `history`: all records of the
 * branch. `runs`: its tool calls that succeeded.
 */
export function measureFileUse(
  { history, runs }: { readonly history: readonly KnownRecord[]; readonly runs: readonly ToolRun[] },
  folder: string | null = null,
): number | null {
  const calls = listFileCalls(runs, folder)
  const [returned, reread] = [measureReturns(calls), measureRereading(history, calls, folder)]
  if (returned === null && reread === null) return null
  return 100 * (returned ?? 1) * (1 - (reread ?? 0))
}

interface FileCall {
  /** Index of the call's record in the history. */
  readonly index: number
  /** What the call read or wrote; nothing for most commands. */
  readonly uses: readonly { readonly path: string; readonly action: 'read' | 'edit' | 'write' }[]
}

/** Lists the calls with the files that they used; a file that a command printed counts as read. */
function listFileCalls(runs: readonly ToolRun[], folder: string | null): readonly FileCall[] {
  return runs.map((run) => {
    const read = listPrintedByCall(run).map(({ path }) => ({ path, action: 'read' as const }))
    const uses = [...run.touches, ...read]
    return {
      index: run.callIndex,
      uses: uses.map(({ path, action }) => ({ path: normalizePath(path, folder), action })),
    }
  })
}

/**
 * Returns the share of files in use that were used again: at several points of the session, of those used last in the calls
 * before it, those used in as many calls after it.
 */
function measureReturns(calls: readonly FileCall[]): number | null {
  const used = calls.map(({ uses }) => uses.map(({ path }) => path))
  const shares: number[] = []
  for (let point = calls.length - SPAN_CALLS; point > 0; point -= POINT_CALLS) {
    const files = new Set<string>()
    const recent = used
      .slice(Math.max(0, point - SPAN_CALLS), point)
      .flat()
      .reverse()
    for (const path of recent) if (files.size < FIRST_FILES) files.add(path)
    const later = new Set(used.slice(point, point + SPAN_CALLS).flat())
    if (files.size > 0) shares.push([...files].filter((path) => later.has(path)).length / files.size)
    if (shares.length === NEWEST_POINTS) break
  }
  return shares.length === 0 ? null : shares.reduce((sum, share) => sum + share, 0) / shares.length
}

/**
 * Returns the share of files that the model read again when it came back to them, of the newest ones; null if there
 * were too few. What it did with files that a compaction attached counts alone, once there were enough of them; before, it
 * is what it did with files that it had used at least 20 calls before in the same context.
 */
function measureRereading(
  history: readonly KnownRecord[],
  fileCalls: readonly FileCall[],
  folder: string | null,
): number | null {
  const lastUse = new Map<string, number>()
  const returns: Record<'attached' | 'inView', boolean[]> = { attached: [], inView: [] }
  let [calls, next] = [0, 0]
  const addCall = (uses: FileCall['uses']): void => {
    calls += 1
    for (const { path, action } of uses) {
      const pause = calls - (lastUse.get(path) ?? calls)
      const list = pause === Number.POSITIVE_INFINITY ? returns.attached : returns.inView
      if (pause > PAUSE_CALLS && action !== 'write') list.push(action === 'read')
      lastUse.set(path, calls)
    }
  }
  for (const [index, record] of history.entries()) {
    if (isCompactBoundary(record)) lastUse.clear()
    if (record.type === 'attachment' && record.attachment.type === 'file')
      lastUse.set(normalizePath(String(record.attachment.filename), folder), Number.NEGATIVE_INFINITY)
    for (; fileCalls[next]?.index === index; next += 1) addCall(fileCalls[next]?.uses ?? [])
  }
  const isEnough = returns.attached.length >= LEAST_RETURNS
  const newest = (isEnough ? returns.attached : returns.inView).slice(-NEWEST_RETURNS)
  if (newest.length < LEAST_RETURNS) return null
  return newest.filter((isRead) => isRead).length / newest.length
}
