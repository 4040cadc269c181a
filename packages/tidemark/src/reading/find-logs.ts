/** Finds the logs that are meant by a list of files and folders: subagents' under their session, newest first. */
import { resolve } from 'node:path'
import { withAgents } from './agent-files.ts'
import type { FindOptions, FoundLog, FoundLogs } from './found-log.ts'
import { walk } from './walk.ts'

/**
 * A file is taken whatever its name; a folder is searched for `*.jsonl`, packed or not, at any depth. A file
 * that is reached twice, by a link or by name, is found once.
 */
export async function findLogs(paths: readonly string[], options: FindOptions = {}): Promise<FoundLogs> {
  const absolute = paths.map((path) => resolve(path))
  const { files, problems } = await walk(absolute, options.signal)
  const logs = await withAgents(files, options.signal)
  return { logs: logs.toSorted(newestFirst), problems }
}

function newestFirst(one: FoundLog, other: FoundLog): number {
  return other.modifiedMs - one.modifiedMs || (one.path < other.path ? -1 : 1)
}
