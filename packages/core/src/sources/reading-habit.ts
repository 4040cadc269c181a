/**
 * Whether a model that comes back to a file it has in view edits it, or reads it again first. Of a file that is read again,
 * text that was attached is of no use.
 */
import { isCompactBoundary, type KnownRecord } from '../log/record.ts'
import { type FileToolNames, normalizePath } from '../log/tool-calls.ts'
import { hasToolRunSucceeded, listToolRuns, type ToolRun } from '../log/tool-runs.ts'

/** Tool calls after which the next use of a file counts as coming back to it. */
const PAUSE_CALLS = 20

/** Number of newest returns that are looked at, and the least that show a habit. */
const [NEWEST_RETURNS, LEAST_RETURNS] = [20, 5]

/**
 * Returns the percentage of files that the model read again when it came back to them, of the newest ones; null if there
 * were too few. What it did with files that a compaction attached counts alone, once there were enough of them; before, it
 * is what it did with files that it had used at least 20 calls before in the same context.
 *
 * @param history All records of the branch.
 */
export function measureRereading(
  history: readonly KnownRecord[],
  tools: FileToolNames,
  folder: string | null = null,
): number | null {
  const runs = listToolRuns(history, tools).filter(hasToolRunSucceeded)
  const lastUse = new Map<string, number>()
  const returns: Record<'attached' | 'inView', boolean[]> = { attached: [], inView: [] }
  let [calls, next] = [0, 0]
  const addRun = (run: ToolRun | undefined): void => {
    calls += 1
    for (const { path: given, action } of run?.touches ?? []) {
      const path = normalizePath(given, folder)
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
    for (; runs[next]?.callIndex === index; next += 1) addRun(runs[next])
  }
  const isEnough = returns.attached.length >= LEAST_RETURNS
  const newest = (isEnough ? returns.attached : returns.inView).slice(-NEWEST_RETURNS)
  if (newest.length < LEAST_RETURNS) return null
  return (100 * newest.filter((isRead) => isRead).length) / newest.length
}
