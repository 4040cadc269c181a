/**
 * Files that are either complete or absent: written under a draft name in the same folder, then linked or renamed into
 * place. A killed process leaves its draft; the next writer of the folder removes drafts that are a day old.
 */

import { randomUUID } from 'node:crypto'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { TidemarkError } from '@tidemark/core'
import { errorCode, type FileFacts, type FileSystem, ioError, type OpenFile } from './file-system.ts'

interface FileSnapshot {
  readonly bytes: Uint8Array
  /** Facts about the file the bytes were read from, even if another file has its name by now. */
  readonly facts: FileFacts
}

/** Null if there is no such file. */
export async function readFileAtomic(files: FileSystem, path: string): Promise<FileSnapshot | null> {
  const file = await files.open(path, 'read')
  if (file === null) return null
  try {
    const facts = await file.facts()
    return { bytes: await readRange(file, 0, facts.sizeBytes), facts }
  } finally {
    await file.close()
  }
}

/** The bytes from `from` up to `to`; fewer if the file is shorter. */
export async function readRange(file: OpenFile, from: number, to: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(to - from)
  let filled = 0
  while (filled < bytes.length) {
    const count = await file.read(bytes.subarray(filled), from + filled)
    if (count === 0) break
    filled += count
  }
  return bytes.subarray(0, filled)
}

/** Puts `bytes` at `path`. False if the name is taken; of several callers at once exactly one gets true. */
export async function createFileAtomic(files: FileSystem, path: string, bytes: Uint8Array): Promise<boolean> {
  const draft = await writeDraft(files, path, bytes)
  await draft.file.close()
  try {
    return await linkOr(files, draft.path, path, () => createInPlace(files, path, bytes))
  } finally {
    await files.remove(draft.path)
  }
}

/** Without hard links, exclusive creation decides who gets the name; a reader may then see the file without its content. */
async function createInPlace(files: FileSystem, path: string, bytes: Uint8Array): Promise<boolean> {
  const file = await files.open(path, 'create')
  if (file === null) return false
  try {
    await appendAll(file, bytes)
  } finally {
    await file.close()
  }
  return true
}

/** Puts `bytes` at `path`, replacing what is there. `durable`: the bytes are on disk before they get the name. */
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

/** A file that is written in parts. */
export interface NewFile {
  write(text: string): Promise<void>
  /** Makes the file durable and gives it its name. False if the name is taken. */
  commit(): Promise<boolean>
  /** Removes the draft. Harmless after `commit`. */
  discard(): Promise<void>
}

/** Never replaces a file. The content is compressed if `path` ends in `.gz`. */
export async function createNewFile(files: FileSystem, path: string): Promise<NewFile> {
  const draft = draftPath(path)
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
      await appendAll(file, path.endsWith('.gz') ? gzipSync(text) : Buffer.from(text)).catch(fail)
    },
    commit: () => giveName().catch(fail),
    async discard() {
      await close()
      await files.remove(draft)
    },
  }
}

/** The user does not know the draft: the system's message about it is made to name the file itself. */
function withoutDraftName(error: unknown, draft: string, path: string): unknown {
  if (!(error instanceof Error) || error instanceof TidemarkError) return error
  return new Error(error.message.replaceAll(draft, path), { cause: error })
}

/** Writes all of `bytes`, however few the system takes at a time. */
export async function appendAll(file: OpenFile, bytes: Uint8Array): Promise<void> {
  let rest = bytes
  while (rest.length > 0) {
    const taken = await file.append(rest)
    if (taken <= 0) throw new Error('the system took no bytes')
    rest = rest.subarray(taken)
  }
}

/** Error codes of file systems without hard links. */
const LINKLESS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

/** Gives the draft the name `path` by a hard link, or by `otherwise` where there are none. False if the name is taken. */
async function linkOr(
  files: FileSystem,
  draft: string,
  path: string,
  otherwise: () => Promise<boolean>,
): Promise<boolean> {
  try {
    return await files.link(draft, path)
  } catch (error) {
    if (!LINKLESS.has(errorCode(error))) throw error
    return await otherwise()
  }
}

async function writeDraft(
  files: FileSystem,
  path: string,
  bytes: Uint8Array,
): Promise<{ readonly path: string; readonly file: OpenFile }> {
  const draft = draftPath(path)
  const file = await openDraft(files, draft)
  try {
    await appendAll(file, bytes)
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

/** A new name in the folder of `path`. */
export function draftPath(path: string): string {
  return join(dirname(path), `.draft-${randomUUID()}`)
}

const DRAFT_NAME = /^\.draft-[0-9a-f-]{36}$/
/** A draft in use is milliseconds old. */
const STALE_DRAFT_MS = 86_400_000
/** At most this many drafts are removed at a time; the next writer of the folder continues. */
const MAX_REMOVED_DRAFTS = 100

/** Removes the drafts that killed processes left in `folder`. Never fails: a left draft does no harm. */
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
    // The write that follows matters; cleaning up does not.
  }
}
