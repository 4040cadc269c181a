/**
 * The file operations that the journal and the blob store need. Expected results, such as a missing file, are return
 * values; other failures throw the system's error with its `code`. `nodeFileSystem` is the implementation;
 * `tidemark/testing` has another that simulates crashes.
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
import { TidemarkError } from '@tidemark/core/errors'

export interface FileFacts {
  readonly kind: 'file' | 'directory' | 'other'
  readonly sizeBytes: number
  readonly modifiedMs: number
  /** Identifies the file independently of its name. A rename does not change it. */
  readonly identity: string
}

export interface DirectoryEntry {
  readonly name: string
  readonly kind: FileFacts['kind']
}

export interface OpenFile {
  /** Reads bytes at offset `position` into the buffer `into`. Returns the number of bytes read; 0 at the end. */
  read(into: Uint8Array, position: number): Promise<number>
  /** Writes at the end of the file. Returns the number of bytes written, which may be fewer than given. */
  append(bytes: Uint8Array): Promise<number>
  /**
   * Writes the file's content to disk. To keep a new file's name after a crash, its directory needs a sync as well: see
   * `syncDirectory`.
   */
  sync(): Promise<void>
  facts(): Promise<FileFacts>
  close(): Promise<void>
}

/** How to open a file. `create` makes a new file that only its owner can read, and opens it for appending. */
export type OpenMode = 'read' | 'append' | 'create'

export interface FileSystem {
  /** Opens a file; null if it is missing or, for `create`, if the path exists. Never follows a symbolic link. */
  open(path: string, purpose: OpenMode): Promise<OpenFile | null>
  /**
   * Returns kind, size, modification time and identity of a path; null if nothing exists there. A symbolic link is not
   * followed: its kind is `other`.
   */
  facts(path: string): Promise<FileFacts | null>
  /** Renames a file and atomically replaces any file at `to`. */
  rename(from: string, to: string): Promise<void>
  /** Adds a second name (hard link) to a file. Returns false if `to` exists. */
  link(from: string, to: string): Promise<boolean>
  /** Deletes a file. Returns false if there was no such file. */
  remove(path: string): Promise<boolean>
  /** Creates one directory that only its owner can enter. Returns false if it exists. The parent directory must exist. */
  makeDirectory(path: string): Promise<boolean>
  /** Writes the names of the directory's files to disk, so that new and renamed files survive a crash. */
  syncDirectory(path: string): Promise<void>
  /** Returns the entries of a directory in no particular order; empty if the directory does not exist. */
  list(path: string): Promise<readonly DirectoryEntry[]>
  /** Sets the modification time of a file. */
  touch(path: string, atMs: number): Promise<void>
  /** Deletes the file when the process exits, if it still has `content`. Returns a function that cancels the deletion. */
  removeAtExit(path: string, content: string): () => void
}

/** Returns the `code` of a system error, such as `ENOENT`, or an empty string for any other value. */
export function readErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Files to delete when the process exits, with their expected content. A process that is killed leaves them behind. */
const removals = new Map<string, string>()

/** Registers a file for deletion at exit. One exit listener serves all files, since many sessions may be open. */
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
      // The file is already gone or cannot be accessed. At process exit nothing can be done about it.
    }
}

// Windows does not have these two flags for opening files.
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0
const NON_BLOCKING = constants.O_NONBLOCK ?? 0

const FLAGS: Readonly<Record<OpenMode, number>> = {
  // Without O_NONBLOCK, opening a path that is a named pipe would block.
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
    // A `datasync` is sufficient, because it also makes the file's new size durable.
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
    // Some network file systems cannot sync a directory and return EINVAL.
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

/** Returns the result of the promise, or null if it was rejected with the error code `code`. */
async function nullOn<T>(code: string, outcome: Promise<T>): Promise<T | null> {
  try {
    return await outcome
  } catch (error) {
    if (readErrorCode(error) === code) return null
    throw error
  }
}

/** Creates a directory and its missing parents, accessible only by their owner, and syncs their names to disk. */
export async function ensureDirectory(files: FileSystem, path: string): Promise<void> {
  if (await makeWithParents(files, path)) await files.syncDirectory(dirname(path))
}

async function makeWithParents(files: FileSystem, path: string): Promise<boolean> {
  try {
    return await files.makeDirectory(path)
  } catch (error) {
    if (readErrorCode(error) !== 'ENOENT' || dirname(path) === path) throw error
    await ensureDirectory(files, dirname(path))
    return await files.makeDirectory(path)
  }
}

/**
 * Writes the names of `path` and of its parents up to `top` to disk, by a sync of the directories that contain them. An
 * earlier process may have created these and died before its own sync. Directories without read permission are skipped.
 */
export async function syncDirectoryNames(files: FileSystem, path: string, top: string): Promise<void> {
  const parent = dirname(path)
  if (path !== top && parent !== path) await syncDirectoryNames(files, parent, top)
  await files.syncDirectory(parent).catch((error: unknown) => {
    if (readErrorCode(error) !== 'EACCES' && readErrorCode(error) !== 'EPERM') throw error
  })
}

/**
 * Returns an `io-failed` error with the operation and the system's reason, or `cause` itself if it is a
 * `TidemarkError`.
 */
export function ioError(
  what: string,
  cause: unknown,
  details: Readonly<Record<string, unknown>>,
): TidemarkError {
  if (cause instanceof TidemarkError) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new TidemarkError('io-failed', `Could not ${what}: ${reason}`, { cause, details })
}
