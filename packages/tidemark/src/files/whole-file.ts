/** Small files that are there whole or not at all: written beside their place under a name of their own, then put into it. */
import { draftBeside } from './drafts.ts'
import { errorCode, type FileFacts, type FilePort, type OpenFile } from './file-port.ts'

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
