/** Directories that are there and stay there: made for their owner alone, their names on the disk. */
import { dirname } from 'node:path'
import { errorCode, type FilePort } from './file-port.ts'

export async function ensureDirectory(files: FilePort, path: string): Promise<void> {
  if (await madeWithParents(files, path)) await files.syncDirectory(dirname(path))
}

/**
 * Makes the names of `path` and of the directories above it up to `top` durable, also where an earlier
 * process made them and went down before it did. A directory that we may not read is its owner's business.
 */
export async function syncNames(files: FilePort, path: string, top: string): Promise<void> {
  const above = dirname(path)
  if (path !== top && above !== path) await syncNames(files, above, top)
  await files.syncDirectory(above).catch((error: unknown) => {
    if (errorCode(error) !== 'EACCES' && errorCode(error) !== 'EPERM') throw error
  })
}

async function madeWithParents(files: FilePort, path: string): Promise<boolean> {
  try {
    return await files.makeDirectory(path)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' || dirname(path) === path) throw error
    await ensureDirectory(files, dirname(path))
    return await files.makeDirectory(path)
  }
}
