/**
 * Finds the sessions whose logs end with certain texts, such as the id of a tool call. Reads only the ends of the
 * newest logs, at most 25 MB; of the other logs only the modification time.
 */
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isSessionId, LOG_EXTENSION, sessionsFolder } from './home-paths.ts'

/** `logs`: number of the newest logs that are searched. `bytes`: how much of the end of each is read. */
const LIMITS = { logs: 50, bytes: 512 * 1024 }

/**
 * Returns the ids of the sessions whose logs have one of the texts in their last 512 KB, the newest first. The texts
 * are written as in JSON. A log that cannot be read is skipped.
 */
export async function findRecentSessionsWithText(
  home: string,
  texts: readonly string[],
): Promise<readonly string[]> {
  if (texts.length === 0) return []
  const logs = await listNewestLogs(sessionsFolder(home))
  const found = await Promise.all(
    logs.map(async ({ id, path, size }) => {
      const end = await readEnd(path, size).catch(() => '')
      return texts.some((text) => end.includes(text)) ? [id] : []
    }),
  )
  return found.flat()
}

async function listNewestLogs(folder: string) {
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(LOG_EXTENSION))
  const logs = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name)
      const found = await stat(path).catch(() => null)
      const id = name.slice(0, -LOG_EXTENSION.length)
      return found === null || !isSessionId(id) ? [] : [{ id, path, size: found.size, at: found.mtimeMs }]
    }),
  )
  return logs
    .flat()
    .toSorted((one, other) => other.at - one.at)
    .slice(0, LIMITS.logs)
}

async function readEnd(path: string, size: number): Promise<string> {
  const file = await open(path)
  try {
    const length = Math.min(size, LIMITS.bytes)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}
