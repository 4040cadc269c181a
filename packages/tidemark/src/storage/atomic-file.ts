/** Small files that are there whole or not at all: written beside their place under a name of their own, then put into it. */

import { randomUUID } from 'node:crypto'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { TidemarkError } from '@tidemark/core'
import { errorCode, type FileFacts, type FilePort, ioFailed, type OpenFile } from './file-system.ts'

export interface WholeFile {
  readonly bytes: Uint8Array
  /** Of the very file the bytes are from, though another may have its name by now. */
  readonly facts: FileFacts
}

/** Null where there is none. */
export async function readWhole(files: FilePort, path: string): Promise<WholeFile | null> {
  const file = await files.open(path, 'read')
  if (file === null) return null
  try {
    const facts = await file.facts()
    return { bytes: await readAll(file, facts.sizeBytes), facts }
  } finally {
    await file.close()
  }
}

/** Puts `bytes` at `path`; false where the name is taken. */
export async function createWhole(files: FilePort, path: string, bytes: Uint8Array): Promise<boolean> {
  const draft = await writeDraft(files, path, bytes)
  await draft.file.close()
  try {
    return await files.link(draft.path, path)
  } catch (error) {
    if (!LINKLESS.has(errorCode(error))) throw error
    return await createInPlace(files, path, bytes)
  } finally {
    await files.remove(draft.path)
  }
}

/** Puts `bytes` at `path` whatever is there. `durable`: they are on the disk before they have the name. */
export async function replaceWhole(
  files: FilePort,
  path: string,
  content: { readonly bytes: Uint8Array; readonly durable: boolean },
): Promise<void> {
  const draft = await writeDraft(files, path, content.bytes)
  try {
    if (content.durable) await draft.file.sync()
    await draft.file.close()
    await files.rename(draft.path, path)
  } catch (error) {
    await files.remove(draft.path).catch(() => false)
    throw error
  }
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

/** File systems without hard links: a reader may then see the file before its content is there. */
const LINKLESS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

async function createInPlace(files: FilePort, path: string, bytes: Uint8Array): Promise<boolean> {
  const file = await files.open(path, 'create')
  if (file === null) return false
  try {
    await appendAll(file, bytes)
  } finally {
    await file.close()
  }
  return true
}

async function writeDraft(
  files: FilePort,
  path: string,
  bytes: Uint8Array,
): Promise<{ readonly path: string; readonly file: OpenFile }> {
  const draft = draftBeside(path)
  const file = await files.open(draft, 'create')
  if (file === null) throw new Error(`${draft} is there already`)
  try {
    await appendAll(file, bytes)
    return { path: draft, file }
  } catch (error) {
    await file.close()
    await files.remove(draft).catch(() => false)
    throw error
  }
}

async function readAll(file: OpenFile, sizeBytes: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(sizeBytes)
  let filled = 0
  while (filled < bytes.length) {
    const count = await file.read(bytes.subarray(filled), filled)
    if (count === 0) break
    filled += count
  }
  return bytes.subarray(0, filled)
}

// Files on their way into place, under names of their own. A process that is killed leaves its draft behind;
// whoever opens the folder for writing next removes what has been lying there for long.

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

// A file that is there whole or not at all, and never in the place of another: written aside, then given its name.

export interface NewFile {
  write(text: string): Promise<void>
  /** Gives it its name; false where that is taken. */
  commit(): Promise<boolean>
  /** Leaves nothing behind. Harmless after `commit`. */
  discard(): Promise<void>
}

/** A name that ends in `.gz` gets a packed file. */
export async function createNewFile(files: FilePort, path: string): Promise<NewFile> {
  const draft = join(dirname(path), `.draft-${randomUUID()}`)
  const failed = (error: unknown): never => {
    throw ioFailed(`write ${path}`, renamed(error, draft, path), { path })
  }
  const file =
    (await files.open(draft, 'create').catch(failed)) ?? failed(new Error(`${draft} is there already`))
  let isOpen = true
  async function close(): Promise<void> {
    if (isOpen) await file.close()
    isOpen = false
  }
  return {
    write: (text) => append(file, path, text).catch(failed),
    async commit() {
      await file.sync().then(close).catch(failed)
      return await named(files, draft, path).catch(failed)
    },
    async discard() {
      await close()
      await files.remove(draft)
    },
  }
}

/** Nobody knows the draft: what the system says of it is said of the file that was asked for. */
function renamed(error: unknown, draft: string, path: string): unknown {
  if (!(error instanceof Error) || error instanceof TidemarkError) return error
  return new Error(error.message.replaceAll(draft, path), { cause: error })
}

async function append(file: OpenFile, path: string, text: string): Promise<void> {
  if (text !== '') await appendAll(file, path.endsWith('.gz') ? gzipSync(text) : Buffer.from(text))
}

/** File systems without hard links. */
const LINKLESS_NEW_FILE = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

async function named(files: FilePort, draft: string, path: string): Promise<boolean> {
  try {
    if (!(await files.link(draft, path))) return false
  } catch (error) {
    if (!LINKLESS_NEW_FILE.has(errorCode(error))) throw error
    if ((await files.facts(path)) !== null) return false
    await files.rename(draft, path)
  }
  await files.syncDirectory(dirname(path))
  return true
}
