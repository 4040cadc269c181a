/**
 * Files on their way into place, under names of their own. A process that is killed leaves its draft behind;
 * whoever opens the folder for writing next removes what has been lying there for long.
 */
import { randomUUID } from 'node:crypto'
import { dirname, join } from 'node:path'
import type { FilePort } from './file-port.ts'

const DRAFT_NAME = /^\.draft-[0-9a-f-]{36}$/
/** A draft is in use for a moment only. */
const STALE_MS = 86_400_000
/** At most so many are looked at: the next one to open the folder goes on. */
const MOST = 100

/** A name that nobody has, in the folder of `path`. */
export function draftBeside(path: string): string {
  return join(dirname(path), `.draft-${randomUUID()}`)
}

export async function sweepDrafts(files: FilePort, folder: string, nowMs: number): Promise<void> {
  try {
    const entries = await files.list(folder)
    const drafts = entries.filter(({ kind, name }) => kind === 'file' && DRAFT_NAME.test(name))
    for (const { name } of drafts.slice(0, MOST)) await removeIfStale(files, join(folder, name), nowMs)
  } catch {
    // What lies about does no harm: whoever came to write shall not fail for it.
  }
}

async function removeIfStale(files: FilePort, path: string, nowMs: number): Promise<void> {
  const facts = await files.facts(path)
  if (facts !== null && nowMs - facts.modifiedMs > STALE_MS) await files.remove(path)
}
