/** The file port of Node. */
import { constants } from 'node:fs'
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
import { removeAtExit } from './exit-removal.ts'
import {
  type DirectoryEntry,
  errorCode,
  type FileFacts,
  type FilePort,
  type OpenFile,
  type OpenPurpose,
} from './file-port.ts'

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
