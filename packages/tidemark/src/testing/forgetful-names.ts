/** The names of the forgetful port: what stands under which name now, and which of it the disk has. */
import { basename, dirname } from 'node:path'
import type { DirectoryEntry, FileFacts } from '../files/file-port.ts'
import { systemError } from './file-operations.ts'
import { type FileNode, factsOf, newNode } from './forgetful-node.ts'

/** A change of names that no sync of its directory has made durable. */
export interface NameChange {
  readonly kind: 'create' | 'link' | 'rename' | 'remove' | 'makeDirectory'
  readonly path: string
}

interface Change extends NameChange {
  /** Null where nothing has the name any longer. */
  readonly node: FileNode | null
  /** The name that a rename took away. */
  readonly from: string | null
}

type Names = Map<string, FileNode>

export class ForgetfulNames {
  #now: Names
  #durable: Names
  #changes: Change[] = []

  constructor(directories: readonly string[]) {
    this.#now = new Map(directories.map((path) => [path, newNode('directory', 0)]))
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
    return node === null ? null : factsOf(node)
  }

  within(directory: string): readonly DirectoryEntry[] {
    return [...this.#now]
      .filter(([path]) => dirname(path) === directory && path !== directory)
      .map(([path, { kind }]) => ({ name: basename(path), kind }))
  }

  create(path: string, atMs: number): FileNode | null {
    return this.#add('create', path, newNode('file', atMs))
  }

  makeDirectory(path: string, atMs: number): boolean {
    return this.#add('makeDirectory', path, newNode('directory', atMs)) !== null
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
    if (node === null) throw systemError('ENOENT', path)
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
