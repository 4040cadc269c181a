/** Walks folders for logs. Links are followed, each file and folder is visited once, so a circle ends. */
import type { Dirent, Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { FindProblem } from './found-log.ts'
import { refuse, refuseForError } from './refusal.ts'

export interface FoundFile {
  readonly path: string
  readonly modifiedMs: number
  readonly sizeBytes: number
  /** Named by the caller, and not merely found in a folder. */
  readonly isNamed: boolean
}

export interface Walked {
  readonly files: readonly FoundFile[]
  readonly problems: readonly FindProblem[]
}

const LOG_NAME = /\.jsonl(?:\.gz|\.zst)?$/i

interface Walk {
  readonly named: ReadonlySet<string>
  readonly files: FoundFile[]
  readonly problems: FindProblem[]
  readonly seen: Set<string>
  readonly folders: string[]
}

export async function walk(paths: readonly string[], signal?: AbortSignal): Promise<Walked> {
  const under: Walk = { named: new Set(paths), files: [], problems: [], seen: new Set(), folders: [] }
  for (const path of paths) await visit(under, path, true)
  for (let folder = under.folders.pop(); folder !== undefined; folder = under.folders.pop()) {
    signal?.throwIfAborted()
    await visitFolder(under, folder)
  }
  return under
}

async function visitFolder(under: Walk, folder: string): Promise<void> {
  const entries = await attempt(under, folder, () => readdir(folder, { withFileTypes: true }))
  for (const entry of entries ?? [])
    if (mayHoldLogs(entry)) await visit(under, join(folder, entry.name), false)
}

function mayHoldLogs(entry: Dirent): boolean {
  return entry.isDirectory() || entry.isSymbolicLink() || LOG_NAME.test(entry.name)
}

async function visit(under: Walk, path: string, isNamed: boolean): Promise<void> {
  const stats = await attempt(under, path, () => stat(path))
  if (stats === null || isSeen(under, stats)) return
  if (stats.isDirectory()) under.folders.push(path)
  else if (!stats.isFile()) {
    if (isNamed) under.problems.push(refuse(path, 'not-a-file', 'is no regular file'))
  } else if (isNamed || LOG_NAME.test(path))
    under.files.push({ path, modifiedMs: stats.mtimeMs, sizeBytes: stats.size, isNamed })
}

function isSeen(under: Walk, { dev, ino }: Stats): boolean {
  const identity = `${dev}-${ino}`
  const isSeen = under.seen.has(identity)
  under.seen.add(identity)
  return isSeen
}

/** What is gone when it is looked at, or is a link to nothing, is a problem only to whoever named it. */
async function attempt<T>(under: Walk, path: string, look: () => Promise<T>): Promise<T | null> {
  try {
    return await look()
  } catch (error) {
    const { reason, message } = refuseForError(path, error)
    if (reason !== 'missing' || under.named.has(path)) under.problems.push({ path, message })
    return null
  }
}

/** Those of the folders that are there, or of which nobody can say: a walk then tells why. */
export async function existing(folders: readonly string[]): Promise<readonly string[]> {
  const there = await Promise.all(folders.map(mayBeFolder))
  return folders.filter((_, index) => there[index])
}

function mayBeFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    (error: unknown) => refuseForError(path, error).reason !== 'missing',
  )
}
