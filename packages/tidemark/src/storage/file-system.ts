import { constants, readFileSync, unlinkSync } from 'node:fs'
import {
  type FileHandle,
  link,
  lstat,
  mkdir,
  open as openFile,
  readdir,
  rename,
  unlink,
  utimes,
} from 'node:fs/promises'
import { dirname } from 'node:path'
import { TidemarkError } from '@tidemark/core'

/**
 * The few calls on files that the journal and the blobs need, as a plain interface: the real one is Node's,
 * and `tidemark/testing` has one that forgets what was not synced. What is expected (there is no such file,
 * there is one already) is a value; anything else throws the system's error with its `code`.
 */
export interface FileFacts {
  readonly kind: 'file' | 'directory' | 'other'
  readonly sizeBytes: number
  readonly modifiedMs: number
  /** The same for as long as it is the same file, under whatever name. */
  readonly identity: string
}

export interface DirectoryEntry {
  readonly name: string
  readonly kind: FileFacts['kind']
}

export interface OpenFile {
  /** Fills `into` with the bytes from `position` on; tells how many there were, 0 at the end. */
  read(into: Uint8Array, position: number): Promise<number>
  /** Writes behind the last byte; tells how many bytes were taken, perhaps fewer than given. */
  append(bytes: Uint8Array): Promise<number>
  /** When it returns, the content is on the disk. Its name need not be: see `syncDirectory`. */
  sync(): Promise<void>
  facts(): Promise<FileFacts>
  close(): Promise<void>
}

/** `create` makes a new file, readable by its owner alone, and opens it to append. */
export type OpenPurpose = 'read' | 'append' | 'create'

export interface FilePort {
  /** Null where there is no such file; for `create`, where the name is taken. Never follows a symbolic link. */
  open(path: string, purpose: OpenPurpose): Promise<OpenFile | null>
  /** Of the name itself: a symbolic link is `other`. Null where there is none. */
  facts(path: string): Promise<FileFacts | null>
  /** Replaces what has the name `to`, in one step. */
  rename(from: string, to: string): Promise<void>
  /** A second name for a file; false where `to` is taken. */
  link(from: string, to: string): Promise<boolean>
  /** False where there was no such file. */
  remove(path: string): Promise<boolean>
  /** One directory, for its owner alone; false where there is one. The directory above it must be there. */
  makeDirectory(path: string): Promise<boolean>
  /** When it returns, the names in the directory are on the disk. */
  syncDirectory(path: string): Promise<void>
  /** In no order; empty where there is no such directory. */
  list(path: string): Promise<readonly DirectoryEntry[]>
  /** Sets the time of the last change. */
  touch(path: string, atMs: number): Promise<void>
  /** When the process ends, removes the file if it still holds `content`. The answer takes that back. */
  removeAtExit(path: string, content: string): () => void
}

/** The `code` of a system error, or an empty string. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

// Files that must not outlive the process. A killed process leaves them; whoever reads them has to see that.

const contents = new Map<string, string>()

/** One listener for all: many sessions may be open at once. */
export function removeAtExit(path: string, content: string): () => void {
  if (contents.size === 0) process.on('exit', removeAll)
  contents.set(path, content)
  return () => {
    if (contents.get(path) === content) contents.delete(path)
    if (contents.size === 0) process.off('exit', removeAll)
  }
}

function removeAll(): void {
  for (const [path, content] of contents) removeIfOurs(path, content)
}

function removeIfOurs(path: string, content: string): void {
  try {
    if (readFileSync(path, 'utf8') === content) unlinkSync(path)
  } catch {
    // Gone already, or out of reach: nobody is left to tell.
  }
}

// The file port of Node.

// Absent on Windows, where a file is opened without them.
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0
const NO_WAITING = constants.O_NONBLOCK ?? 0

const FLAGS: Readonly<Record<OpenPurpose, number>> = {
  // A pipe in a log's place must not hang the reader.
  read: constants.O_RDONLY | NO_FOLLOW | NO_WAITING,
  append: constants.O_WRONLY | constants.O_APPEND | NO_FOLLOW | NO_WAITING,
  create: constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW,
}

const PRIVATE_FILE = 0o600
const PRIVATE_DIRECTORY = 0o700

export const nodeFiles: FilePort = {
  async open(path, purpose) {
    const missing = purpose === 'create' ? 'EEXIST' : 'ENOENT'
    const handle = await unless(missing, openFile(path, FLAGS[purpose], PRIVATE_FILE))
    return handle === null ? null : opened(handle)
  },
  async facts(path) {
    const stats = await unless('ENOENT', lstat(path, { bigint: true }))
    return stats === null ? null : factsOf(stats)
  },
  rename,
  link: async (from, to) => (await unless('EEXIST', link(from, to))) !== null,
  remove: async (path) => (await unless('ENOENT', unlink(path))) !== null,
  makeDirectory: async (path) => (await unless('EEXIST', mkdir(path, PRIVATE_DIRECTORY))) !== null,
  syncDirectory,
  async list(path) {
    const entries = await unless('ENOENT', readdir(path, { withFileTypes: true }))
    return entries === null
      ? []
      : entries.map((entry): DirectoryEntry => ({ name: entry.name, kind: kindOf(entry) }))
  },
  touch: (path, atMs) => utimes(path, atMs / 1000, atMs / 1000),
  removeAtExit,
}

function opened(handle: FileHandle): OpenFile {
  return {
    read: async (into, position) => (await handle.read(into, 0, into.length, position)).bytesRead,
    append: async (bytes) => (await handle.write(bytes)).bytesWritten,
    // Enough: it also makes the new size durable.
    sync: () => handle.datasync(),
    facts: async () => factsOf(await handle.stat({ bigint: true })),
    close: () => handle.close(),
  }
}

async function syncDirectory(path: string): Promise<void> {
  // Windows cannot open a directory, and needs no sync of one.
  if (process.platform === 'win32') return
  const handle = await openFile(path, constants.O_RDONLY)
  try {
    // Some network file systems have no such call.
    await unless('EINVAL', handle.sync())
  } finally {
    await handle.close()
  }
}

interface Stats extends Kind {
  readonly size: bigint
  readonly mtimeMs: bigint
  readonly dev: bigint
  readonly ino: bigint
}

interface Kind {
  isFile(): boolean
  isDirectory(): boolean
}

function factsOf(stats: Stats): FileFacts {
  return {
    kind: kindOf(stats),
    sizeBytes: Number(stats.size),
    modifiedMs: Number(stats.mtimeMs),
    identity: `${stats.dev}-${stats.ino}`,
  }
}

function kindOf(entry: Kind): FileFacts['kind'] {
  if (entry.isFile()) return 'file'
  return entry.isDirectory() ? 'directory' : 'other'
}

/** The outcome, or null where it failed with `code`. */
async function unless<T>(code: string, outcome: Promise<T>): Promise<T | null> {
  try {
    return await outcome
  } catch (error) {
    if (errorCode(error) === code) return null
    throw error
  }
}

// Directories that are there and stay there: made for their owner alone, their names on the disk.

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

/** Broken I/O, in one line: what was being done, to what, and what the system said. */
export function ioFailed(
  what: string,
  cause: unknown,
  details: Readonly<Record<string, unknown>>,
): TidemarkError {
  if (cause instanceof TidemarkError) return cause
  const said = cause instanceof Error ? cause.message : String(cause)
  return new TidemarkError('io-failed', `Could not ${what}: ${said}`, { cause, details })
}
