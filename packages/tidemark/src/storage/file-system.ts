/**
 * The file operations that the journal and the blobs need. `nodeFileSystem` implements them with Node; `tidemark/testing` has
 * an implementation that loses what was not synced. Expected results (no such file, name taken) are values; anything
 * else throws the system's error with its `code`.
 */
import { type BigIntStats, constants, type Dirent, readFileSync, unlinkSync } from 'node:fs'
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

export interface FileFacts {
  readonly kind: 'file' | 'directory' | 'other'
  readonly sizeBytes: number
  readonly modifiedMs: number
  /** Stays the same while it is the same file, under any name. */
  readonly identity: string
}

export interface DirectoryEntry {
  readonly name: string
  readonly kind: FileFacts['kind']
}

export interface OpenFile {
  /** Reads from `position` into `into`. Returns how many bytes were read; 0 at the end. */
  read(into: Uint8Array, position: number): Promise<number>
  /** Writes after the last byte. Returns how many bytes were written, perhaps fewer than given. */
  append(bytes: Uint8Array): Promise<number>
  /** When it returns, the content is on disk. The name may not be: see `syncDirectory`. */
  sync(): Promise<void>
  facts(): Promise<FileFacts>
  close(): Promise<void>
}

/** `create` makes a new file that only its owner can read, and opens it for appending. */
export type OpenMode = 'read' | 'append' | 'create'

export interface FileSystem {
  /** Null if there is no such file; for `create`, if the name is taken. Never follows a symbolic link. */
  open(path: string, purpose: OpenMode): Promise<OpenFile | null>
  /** Facts about the name itself: a symbolic link is `other`. Null if there is none. */
  facts(path: string): Promise<FileFacts | null>
  /** Replaces `to` atomically. */
  rename(from: string, to: string): Promise<void>
  /** Adds a second name to a file. False if `to` is taken. */
  link(from: string, to: string): Promise<boolean>
  /** False if there was no such file. */
  remove(path: string): Promise<boolean>
  /** Makes one directory that only its owner can enter. False if it exists. The parent must exist. */
  makeDirectory(path: string): Promise<boolean>
  /** When it returns, the names in the directory are on disk. */
  syncDirectory(path: string): Promise<void>
  /** In no particular order; empty if there is no such directory. */
  list(path: string): Promise<readonly DirectoryEntry[]>
  /** Sets the modification time. */
  touch(path: string, atMs: number): Promise<void>
  /** When the process exits, removes the file if it still has `content`. Returns a function that cancels this. */
  removeAtExit(path: string, content: string): () => void
}

/** The `code` of a system error, or an empty string. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Files to remove when the process exits. A killed process leaves them; readers must recognize that. */
const removals = new Map<string, string>()

/** Uses one exit listener for all files: many sessions may be open at once. */
function removeAtExit(path: string, content: string): () => void {
  if (removals.size === 0) process.on('exit', removeRemaining)
  removals.set(path, content)
  return () => {
    if (removals.get(path) === content) removals.delete(path)
    if (removals.size === 0) process.off('exit', removeRemaining)
  }
}

function removeRemaining(): void {
  for (const [path, content] of removals)
    try {
      if (readFileSync(path, 'utf8') === content) unlinkSync(path)
    } catch {
      // Removed already or not accessible; at exit nothing can be done about it.
    }
}

// Windows does not have these flags.
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0
const NON_BLOCKING = constants.O_NONBLOCK ?? 0

const FLAGS: Readonly<Record<OpenMode, number>> = {
  // Without O_NONBLOCK, a pipe in place of a log would hang the reader.
  read: constants.O_RDONLY | NO_FOLLOW | NON_BLOCKING,
  append: constants.O_WRONLY | constants.O_APPEND | NO_FOLLOW | NON_BLOCKING,
  create: constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW,
}

const PRIVATE_FILE = 0o600
const PRIVATE_DIRECTORY = 0o700

export const nodeFileSystem: FileSystem = {
  async open(path, purpose) {
    const expected = purpose === 'create' ? 'EEXIST' : 'ENOENT'
    const handle = await nullOn(expected, openFile(path, FLAGS[purpose], PRIVATE_FILE))
    return handle === null ? null : toOpenFile(handle)
  },
  async facts(path) {
    const stats = await nullOn('ENOENT', lstat(path, { bigint: true }))
    return stats === null ? null : toFacts(stats)
  },
  rename,
  link: async (from, to) => (await nullOn('EEXIST', link(from, to))) !== null,
  remove: async (path) => (await nullOn('ENOENT', unlink(path))) !== null,
  makeDirectory: async (path) => (await nullOn('EEXIST', mkdir(path, PRIVATE_DIRECTORY))) !== null,
  syncDirectory,
  async list(path) {
    const entries = await nullOn('ENOENT', readdir(path, { withFileTypes: true }))
    return entries === null
      ? []
      : entries.map((entry): DirectoryEntry => ({ name: entry.name, kind: fileKind(entry) }))
  },
  touch: (path, atMs) => utimes(path, atMs / 1000, atMs / 1000),
  removeAtExit,
}

function toOpenFile(handle: FileHandle): OpenFile {
  return {
    read: async (into, position) => (await handle.read(into, 0, into.length, position)).bytesRead,
    append: async (bytes) => (await handle.write(bytes)).bytesWritten,
    // Sufficient: it makes the new size durable too.
    sync: () => handle.datasync(),
    facts: async () => toFacts(await handle.stat({ bigint: true })),
    close: () => handle.close(),
  }
}

async function syncDirectory(path: string): Promise<void> {
  // Windows cannot open a directory and does not need to sync one.
  if (process.platform === 'win32') return
  const handle = await openFile(path, constants.O_RDONLY)
  try {
    // Some network file systems do not support it.
    await nullOn('EINVAL', handle.sync())
  } finally {
    await handle.close()
  }
}

function toFacts(stats: BigIntStats): FileFacts {
  return {
    kind: fileKind(stats),
    sizeBytes: Number(stats.size),
    modifiedMs: Number(stats.mtimeMs),
    identity: `${stats.dev}-${stats.ino}`,
  }
}

function fileKind(entry: Pick<Dirent, 'isFile' | 'isDirectory'>): FileFacts['kind'] {
  if (entry.isFile()) return 'file'
  return entry.isDirectory() ? 'directory' : 'other'
}

/** The outcome, or null if it failed with `code`. */
async function nullOn<T>(code: string, outcome: Promise<T>): Promise<T | null> {
  try {
    return await outcome
  } catch (error) {
    if (errorCode(error) === code) return null
    throw error
  }
}

/** Makes the directory and its parents, for their owner alone, with durable names. */
export async function ensureDirectory(files: FileSystem, path: string): Promise<void> {
  if (await makeWithParents(files, path)) await files.syncDirectory(dirname(path))
}

async function makeWithParents(files: FileSystem, path: string): Promise<boolean> {
  try {
    return await files.makeDirectory(path)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' || dirname(path) === path) throw error
    await ensureDirectory(files, dirname(path))
    return await files.makeDirectory(path)
  }
}

/**
 * Makes the names of `path` and of its parents up to `top` durable: an earlier process may have made them and died
 * before it synced. A directory that we may not read is skipped.
 */
export async function syncDirectoryNames(files: FileSystem, path: string, top: string): Promise<void> {
  const parent = dirname(path)
  if (path !== top && parent !== path) await syncDirectoryNames(files, parent, top)
  await files.syncDirectory(parent).catch((error: unknown) => {
    if (errorCode(error) !== 'EACCES' && errorCode(error) !== 'EPERM') throw error
  })
}

/** An `io-failed` error: what was being done, to what, and the system's message. A `TidemarkError` is returned as it is. */
export function ioError(
  what: string,
  cause: unknown,
  details: Readonly<Record<string, unknown>>,
): TidemarkError {
  if (cause instanceof TidemarkError) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new TidemarkError('io-failed', `Could not ${what}: ${reason}`, { cause, details })
}
