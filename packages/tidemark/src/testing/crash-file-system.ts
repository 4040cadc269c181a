/**
 * An in-memory file system for tests, which tracks what was written and what was synced. In a simulated crash, unsynced
 * content is lost or cut at any byte. File names are lost if their directory was not synced.
 */

import { basename, dirname } from 'node:path'
import type { DirectoryEntry, FileFacts, FileSystem } from '../storage/file-system.ts'
import {
  createFileNode,
  createSystemError,
  dropUnsyncedWrites,
  type FileFaultInjector,
  type FileNode,
  type FileOperationKind,
  FileOperationTracker,
  openFileNode,
  readFileFacts,
  type UnsyncedWrite,
} from './crash-file-node.ts'

export interface CrashFileSystem extends FileSystem {
  /** Number of times that each kind of operation was started. */
  readonly counts: Readonly<Record<FileOperationKind, number>>
  /**
   * Sets a function that is called before every file operation and may return a fault for it. Null removes the
   * function.
   */
  interfere(interference: FileFaultInjector | null): void
  /**
   * Simulates a crash and a restart. Only synced data and the unsynced writes that `kept` selects survive. Open files
   * can no longer be used.
   */
  crash(kept?: SurvivingWrites): void
}

/** Selects which unsynced writes and name changes survive a crash. By default, none survive. */
export interface SurvivingWrites {
  /** Returns how many bytes of an unsynced write survive, counted from its first byte; true for all bytes. */
  write?(write: UnsyncedWrite): number | boolean
  name?(change: NameChange): boolean
}

interface CrashFileSystemOptions {
  /** Directories that exist from the beginning; `/` always does. */
  readonly directories?: readonly string[]
  /** Returns the modification time that a changed file gets. Default: the system clock. */
  readonly now?: () => number
}

export function createCrashFileSystem({
  directories = [],
  now = Date.now,
}: CrashFileSystemOptions = {}): CrashFileSystem {
  const operations = new FileOperationTracker()
  const names = new CrashFileNames(['/', ...directories])
  return {
    counts: operations.counts,
    interfere: (interference) => operations.interfere(interference),
    crash(kept = {}) {
      operations.restart()
      names.crash((change) => kept.name?.(change) ?? false)
      for (const [path, node] of names.files())
        dropUnsyncedWrites(node, (write) => kept.write?.({ ...write, path }) ?? false)
    },
    async open(path, purpose) {
      operations.begin('open', path)
      const node = purpose === 'create' ? names.create(path, now()) : names.node(path)
      return node === null ? null : openFileNode(node, { path, purpose, now, operations })
    },
    async facts(path) {
      operations.begin('facts', path)
      return names.facts(path)
    },
    async rename(from, to) {
      operations.begin('rename', from)
      names.rename(from, to)
    },
    async link(from, to) {
      operations.begin('link', to)
      return names.link(from, to)
    },
    async remove(path) {
      operations.begin('remove', path)
      return names.remove(path)
    },
    async makeDirectory(path) {
      operations.begin('makeDirectory', path)
      return names.makeDirectory(path, now())
    },
    async syncDirectory(path) {
      operations.begin('syncDirectory', path)
      names.sync(path)
    },
    async list(path) {
      operations.begin('list', path)
      return names.within(path)
    },
    async touch(path, atMs) {
      operations.begin('touch', path)
      const node = names.node(path)
      if (node === null) throw createSystemError('ENOENT', path)
      node.modifiedMs = atMs
    },
    removeAtExit: () => () => {},
  }
}

// File names of the in-memory file system: which file each name refers to now, and which names are on disk.

/** A change of a file name that a crash may lose, because its directory has not been synced. */
interface NameChange {
  readonly kind: 'create' | 'link' | 'rename' | 'remove' | 'makeDirectory'
  readonly path: string
}

interface Change extends NameChange {
  /** The file that the name refers to after the change; null if the name was removed. */
  readonly node: FileNode | null
  /** The old name that a rename removed; null for other changes. */
  readonly from: string | null
}

type Names = Map<string, FileNode>

class CrashFileNames {
  #now: Names
  #durable: Names
  #changes: Change[] = []

  constructor(directories: readonly string[]) {
    this.#now = new Map(directories.map((path) => [path, createFileNode('directory', 0)]))
    this.#durable = new Map(this.#now)
  }

  node(path: string): FileNode | null {
    return this.#now.get(path) ?? null
  }

  files(): readonly (readonly [string, FileNode])[] {
    return [...this.#now].filter(([, { kind }]) => kind === 'file')
  }

  facts(path: string): FileFacts | null {
    const node = this.node(path)
    return node === null ? null : readFileFacts(node)
  }

  within(directory: string): readonly DirectoryEntry[] {
    return [...this.#now]
      .filter(([path]) => dirname(path) === directory && path !== directory)
      .map(([path, { kind }]) => ({ name: basename(path), kind }))
  }

  create(path: string, atMs: number): FileNode | null {
    return this.#add('create', path, createFileNode('file', atMs))
  }

  makeDirectory(path: string, atMs: number): boolean {
    return this.#add('makeDirectory', path, createFileNode('directory', atMs)) !== null
  }

  link(from: string, to: string): boolean {
    return this.#add('link', to, this.#there(from)) !== null
  }

  rename(from: string, to: string): void {
    this.#change({ kind: 'rename', path: to, node: this.#there(from), from })
  }

  remove(path: string): boolean {
    if (this.node(path) === null) return false
    this.#change({ kind: 'remove', path, node: null, from: null })
    return true
  }

  sync(directory: string): void {
    this.#there(directory)
    const due = this.#changes.filter(({ path }) => dirname(path) === directory)
    this.#changes = this.#changes.filter((change) => !due.includes(change))
    for (const change of due) apply(this.#durable, change)
  }

  crash(keep: (change: NameChange) => boolean): void {
    for (const change of this.#changes.filter(keep)) apply(this.#durable, change)
    this.#changes = []
    for (const path of this.#durable.keys()) if (!this.#isReachable(path)) this.#durable.delete(path)
    this.#now = new Map(this.#durable)
  }

  #isReachable(path: string): boolean {
    const above = dirname(path)
    return this.#durable.has(path) && (above === path || this.#isReachable(above))
  }

  #add(kind: NameChange['kind'], path: string, node: FileNode): FileNode | null {
    this.#there(dirname(path))
    if (this.#now.has(path)) return null
    this.#change({ kind, path, node, from: null })
    return node
  }

  #there(path: string): FileNode {
    const node = this.node(path)
    if (node === null) throw createSystemError('ENOENT', path)
    return node
  }

  #change(change: Change): void {
    this.#there(dirname(change.path))
    apply(this.#now, change)
    this.#changes.push(change)
  }
}

function apply(names: Names, { path, node, from }: Change): void {
  if (from !== null) names.delete(from)
  if (node === null) names.delete(path)
  else names.set(path, node)
}
