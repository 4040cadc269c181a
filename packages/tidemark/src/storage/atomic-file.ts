/**
 * Writes files that are either complete or absent (except new files on a file system without hard links). A file is
 * written under a draft name in the same folder, then linked or renamed to its final name. A killed process leaves its
 * draft file behind; later writers remove draft files that are more than a day old.
 */

import { randomUUID } from 'node:crypto'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { TidemarkError } from '@tidemark/core/errors'
import {
  ensureDirectory,
  type FileFacts,
  type FileSystem,
  ioError,
  nodeFileSystem,
  type OpenFile,
  readErrorCode,
} from './file-system.ts'

interface FileSnapshot {
  readonly bytes: Uint8Array
  /** Size, identity and modification time of the file that was read, even if another file has its path by now. */
  readonly facts: FileFacts
}

/** Reads a whole file. Returns null if the file does not exist. */
export async function readFileSnapshot(files: FileSystem, path: string): Promise<FileSnapshot | null> {
  const file = await files.open(path, 'read')
  if (file === null) return null
  try {
    const facts = await file.facts()
    return { bytes: await readByteRange(file, 0, facts.sizeBytes), facts }
  } finally {
    await file.close()
  }
}

/** Returns the bytes of the file from offset `from` up to `to`; fewer if the file is shorter. */
export async function readByteRange(file: OpenFile, from: number, to: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(to - from)
  let filled = 0
  while (filled < bytes.length) {
    const count = await file.read(bytes.subarray(filled), from + filled)
    if (count === 0) break
    filled += count
  }
  return bytes.subarray(0, filled)
}

/**
 * Creates a file with content `bytes`. Returns false if the path exists. If several processes call this at once, only
 * one gets true.
 */
export async function createFileAtomic(files: FileSystem, path: string, bytes: Uint8Array): Promise<boolean> {
  const draft = await writeDraft(files, path, bytes)
  await draft.file.close()
  try {
    return await linkOr(files, draft.path, path, () => createInPlace(files, path, bytes))
  } finally {
    await files.remove(draft.path)
  }
}

/**
 * Creates a file directly under its final name, for file systems without hard links. Readers may see the file while it
 * is empty.
 */
async function createInPlace(files: FileSystem, path: string, bytes: Uint8Array): Promise<boolean> {
  const file = await files.open(path, 'create')
  if (file === null) return false
  try {
    await appendAllBytes(file, bytes)
  } finally {
    await file.close()
  }
  return true
}

/** Writes `bytes` to `path` and replaces any existing file. With `durable`, the bytes are on disk before the rename. */
export async function replaceFileAtomic(
  files: FileSystem,
  path: string,
  { bytes, durable }: { readonly bytes: Uint8Array; readonly durable: boolean },
): Promise<void> {
  const draft = await writeDraft(files, path, bytes)
  try {
    if (durable) await draft.file.sync()
    await draft.file.close()
    await files.rename(draft.path, path)
  } catch (error) {
    await files.remove(draft.path).catch(() => false)
    throw error
  }
}

/**
 * Writes a text file, and its folder if it is missing, so that others find the old file or the new one, never a part. By
 * default the text is on disk when the promise resolves.
 *
 * @example await writeFileAtomic(join(folder, 'state.json'), JSON.stringify(state))
 */
export async function writeFileAtomic(
  path: string,
  text: string,
  { durable = true }: { readonly durable?: boolean } = {},
): Promise<void> {
  await ensureDirectory(nodeFileSystem, dirname(path))
  await replaceFileAtomic(nodeFileSystem, path, { bytes: Buffer.from(text), durable })
}

/** A new file that is written in parts. It appears under its final name only when it is complete. */
export interface DraftFile {
  write(text: string): Promise<void>
  /** Syncs the file and gives it its final name. Returns false if a file with that name exists. */
  commit(): Promise<boolean>
  /** Deletes the draft file. After `commit`, the final file is kept. */
  discard(): Promise<void>
}

/** Starts a new file at `path` and never replaces an existing one. The content is compressed if `path` ends in `.gz`. */
export async function createDraftFile(files: FileSystem, path: string): Promise<DraftFile> {
  const draft = createDraftPath(path)
  const fail = (error: unknown): never => {
    throw ioError(`write ${path}`, withoutDraftName(error, draft, path), { path })
  }
  const file = await openDraft(files, draft).catch(fail)
  let isOpen = true
  async function close(): Promise<void> {
    if (isOpen) await file.close()
    isOpen = false
  }
  async function giveName(): Promise<boolean> {
    await file.sync()
    await close()
    const isNamed = await linkOr(files, draft, path, async () => {
      if ((await files.facts(path)) !== null) return false
      await files.rename(draft, path)
      return true
    })
    if (isNamed) await files.syncDirectory(dirname(path))
    return isNamed
  }
  return {
    async write(text) {
      if (text === '') return
      await appendAllBytes(file, path.endsWith('.gz') ? gzipSync(text) : Buffer.from(text)).catch(fail)
    },
    commit: () => giveName().catch(fail),
    async discard() {
      await close()
      await files.remove(draft)
    },
  }
}

/** Replaces the path of the draft file in a system error by the final path, which is the one that the user knows. */
function withoutDraftName(error: unknown, draft: string, path: string): unknown {
  if (!(error instanceof Error) || error instanceof TidemarkError) return error
  return new Error(error.message.replaceAll(draft, path), { cause: error })
}

/** Writes all of `bytes`, with several writes if the system accepts only part at a time. */
export async function appendAllBytes(file: OpenFile, bytes: Uint8Array): Promise<void> {
  let rest = bytes
  while (rest.length > 0) {
    const taken = await file.append(rest)
    if (taken <= 0) throw new Error('the system took no bytes')
    rest = rest.subarray(taken)
  }
}

/** Error codes that `link` gives on file systems without hard links. */
const LINKLESS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

/**
 * Gives a draft file its final name by a hard link. Calls `otherwise` on a file system without hard links. Returns
 * false if a file with the final name exists.
 */
async function linkOr(
  files: FileSystem,
  draft: string,
  path: string,
  otherwise: () => Promise<boolean>,
): Promise<boolean> {
  try {
    return await files.link(draft, path)
  } catch (error) {
    if (!LINKLESS.has(readErrorCode(error))) throw error
    return await otherwise()
  }
}

async function writeDraft(
  files: FileSystem,
  path: string,
  bytes: Uint8Array,
): Promise<{ readonly path: string; readonly file: OpenFile }> {
  const draft = createDraftPath(path)
  const file = await openDraft(files, draft)
  try {
    await appendAllBytes(file, bytes)
    return { path: draft, file }
  } catch (error) {
    await file.close()
    await files.remove(draft).catch(() => false)
    throw error
  }
}

async function openDraft(files: FileSystem, draft: string): Promise<OpenFile> {
  const file = await files.open(draft, 'create')
  if (file === null) throw new Error(`${draft} exists already`)
  return file
}

/** Returns a unique draft path in the same folder as `path`. */
export function createDraftPath(path: string): string {
  return join(dirname(path), `.draft-${randomUUID()}`)
}

const DRAFT_NAME = /^\.draft-[0-9a-f-]{36}$/
/** Age in milliseconds after which a draft file counts as abandoned. A draft in use is only milliseconds old. */
const STALE_DRAFT_MS = 86_400_000
/** Largest number of draft files to remove at once; the next writer removes more. */
const MAX_REMOVED_DRAFTS = 100

/** Removes old draft files that killed processes left in `folder`. Never throws, since a leftover draft does no harm. */
export async function removeStaleDrafts(files: FileSystem, folder: string, nowMs: number): Promise<void> {
  try {
    const entries = await files.list(folder)
    const drafts = entries.filter(({ kind, name }) => kind === 'file' && DRAFT_NAME.test(name))
    for (const { name } of drafts.slice(0, MAX_REMOVED_DRAFTS)) {
      const path = join(folder, name)
      const facts = await files.facts(path)
      if (facts !== null && nowMs - facts.modifiedMs > STALE_DRAFT_MS) await files.remove(path)
    }
  } catch {
    // Removing old draft files is optional. If it fails, the write that follows must still succeed.
  }
}
