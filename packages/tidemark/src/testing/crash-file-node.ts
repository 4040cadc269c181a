import type { OpenFile, OpenMode } from '../storage/file-system.ts'

/** Kinds of file operations. A test can count the operations of each kind and make one fail or write fewer bytes. */
export type FileOperationKind =
  | 'open'
  | 'read'
  | 'append'
  | 'sync'
  | 'facts'
  | 'rename'
  | 'link'
  | 'remove'
  | 'makeDirectory'
  | 'syncDirectory'
  | 'list'
  | 'touch'

interface FileOperation {
  readonly kind: FileOperationKind
  readonly path: string
  /** Number of this operation among all operations of the file system, counted from 1. */
  readonly number: number
  /** Number of bytes that an append was asked to write; 0 for other operations. */
  readonly bytes: number
}

/**
 * A fault that a test injects into a file operation. An append writes only the first `takes` bytes. If `error` is set,
 * the operation then throws it.
 */
interface Fault {
  readonly error?: Error
  readonly takes?: number
}

export type FileFaultInjector = (operation: FileOperation) => Fault | undefined

/** Counts the file operations of a simulated file system, asks the test for faults, and knows how often it was restarted. */
export class FileOperationTracker {
  readonly counts: Record<FileOperationKind, number> = {
    open: 0,
    read: 0,
    append: 0,
    sync: 0,
    facts: 0,
    rename: 0,
    link: 0,
    remove: 0,
    makeDirectory: 0,
    syncDirectory: 0,
    list: 0,
    touch: 0,
  }
  /** Number of simulated restarts so far. Files opened before the last restart can no longer be used. */
  boot = 0
  #number = 0
  #interference: FileFaultInjector | null = null

  interfere(interference: FileFaultInjector | null): void {
    this.#interference = interference
  }

  restart(): void {
    this.boot += 1
    this.#interference = null
  }

  /** Counts a file operation. Throws if the test has injected an error into it. */
  begin(kind: FileOperationKind, path: string): void {
    const fault = this.ask(kind, path)
    if (fault?.error !== undefined) throw fault.error
  }

  ask(kind: FileOperationKind, path: string, bytes = 0): Fault | undefined {
    this.counts[kind] += 1
    this.#number += 1
    return this.#interference?.({ kind, path, number: this.#number, bytes })
  }
}

/** Creates an error with a `code`, as the operating system would throw it. */
export function createSystemError(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code, path })
}

// A file of the in-memory file system: its current content, and the content that a crash leaves on disk.

export interface FileNode {
  readonly kind: 'file' | 'directory'
  readonly identity: string
  content: Uint8Array
  durable: Uint8Array
  unsynced: Write[]
  modifiedMs: number
}

interface Write {
  readonly offset: number
  readonly bytes: Uint8Array
}

/** A write that has not been synced, so a crash may lose it. */
export interface UnsyncedWrite {
  readonly path: string
  readonly offset: number
  readonly bytes: Uint8Array
}

let made = 0

export function createFileNode(kind: FileNode['kind'], modifiedMs: number): FileNode {
  made += 1
  const empty = new Uint8Array()
  return { kind, identity: `node-${made}`, content: empty, durable: empty, unsynced: [], modifiedMs }
}

interface OpenNodeOptions {
  readonly path: string
  readonly purpose: OpenMode
  readonly operations: FileOperationTracker
  now(): number
}

/** Opens a file of the simulated file system. Every operation is counted, and may fail as the test wants. */
export function openFileNode(node: FileNode, { path, purpose, operations, now }: OpenNodeOptions): OpenFile {
  const { boot } = operations
  let isOpen = true
  function check(may: boolean): void {
    if (boot !== operations.boot) throw createSystemError('EIO', `${path}: the machine went down`)
    if (!isOpen || !may) throw createSystemError('EBADF', path)
  }
  return {
    async read(into, position) {
      check(purpose === 'read')
      operations.begin('read', path)
      const bytes = node.content.subarray(position, position + into.length)
      into.set(bytes)
      return bytes.length
    },
    async append(bytes) {
      check(purpose !== 'read')
      const fault = operations.ask('append', path, bytes.length)
      const taken = fault?.takes ?? (fault?.error === undefined ? bytes.length : 0)
      appendTo(node, bytes.slice(0, taken), now())
      if (fault?.error !== undefined) throw fault.error
      return taken
    },
    async sync() {
      check(true)
      const fault = operations.ask('sync', path)
      if (fault?.error === undefined) keepUnsynced(node, () => true)
      // After a failed sync, real systems mark the unwritten data as clean. Later syncs do not write it, so it is lost
      // in a crash.
      node.unsynced = []
      if (fault?.error !== undefined) throw fault.error
    },
    async facts() {
      check(true)
      return readFileFacts(node)
    },
    async close() {
      isOpen = false
    },
  }
}

export function readFileFacts(node: FileNode): Awaited<ReturnType<OpenFile['facts']>> {
  const { kind, identity, modifiedMs, content } = node
  return { kind, identity, modifiedMs, sizeBytes: content.length }
}

/**
 * Reduces a file to what a crash leaves of it: the synced content, and of each unsynced write the bytes that `keep`
 * selects.
 */
export function dropUnsyncedWrites(node: FileNode, keep: (write: Write) => number | boolean): void {
  keepUnsynced(node, keep)
  node.unsynced = []
  node.content = node.durable
}

function appendTo(node: FileNode, bytes: Uint8Array, atMs: number): void {
  const offset = node.content.length
  node.content = put(node.content, { offset, bytes })
  node.unsynced.push({ offset, bytes })
  node.modifiedMs = atMs
}

function keepUnsynced(node: FileNode, keep: (write: Write) => number | boolean): void {
  for (const write of node.unsynced) {
    const kept = keep(write)
    const count = typeof kept === 'number' ? kept : kept ? write.bytes.length : 0
    if (count > 0) node.durable = put(node.durable, { ...write, bytes: write.bytes.slice(0, count) })
  }
}

/**
 * Writes bytes at an offset. If the content ends before the offset, because an earlier write was lost, the gap is
 * filled with NUL bytes.
 */
function put(content: Uint8Array, { offset, bytes }: Write): Uint8Array {
  const grown = new Uint8Array(Math.max(content.length, offset + bytes.length))
  grown.set(content)
  grown.set(bytes, offset)
  return grown
}
