/**
 * How likely each name is to be needed next. In records of people's and programs' work the need for a thing falls
 * as one over the time since it was met, and adds up over the times it was met; that is all the model there is. Its
 * three constants lie on a wide plateau: half or twice of any moves the recall of recorded sessions by a few points.
 */
import type { Mention } from './mention.ts'
import { fileName } from './names.ts'
import type { FileTouch } from './tool-kind.ts'

/** What a tool gave back was met, but not yet used. */
const RESULT_WEIGHT = 0.5
/** A text with many names says less about each: weight goes by the fourth root of how many. */
const DILUTION = 0.25
/** Calls: what the newest two did is about equally near. */
const NEAR = 2

export interface WeighedFile {
  readonly path: string
  readonly weight: number
  readonly edits: number
  readonly reads: number
}

export interface WeighedName {
  readonly name: string
  readonly weight: number
  /** The file it was last met in, where that is known. */
  readonly file: string | null
  /** The record it was last met in. */
  readonly uuid: string
}

export interface WeighedNames {
  readonly files: readonly WeighedFile[]
  readonly identifiers: readonly WeighedName[]
}

export function weighNames(mentions: readonly Mention[]): WeighedNames {
  const wholePath = wholePaths(mentions)
  const files = new Map<string, WeighedFile>()
  const identifiers = new Map<string, WeighedName>()
  for (const mention of mentions) {
    const share = shareOf(mention)
    const whole = mention.about === null ? null : wholePath(mention.about)
    const named = new Set([...mention.names.files, ...mention.touches.map(({ path }) => path)])
    for (const path of new Set([...named].map(wholePath))) enterFile(files, path, share)
    for (const touch of mention.touches) countTouch(files, wholePath(touch.path), touch)
    for (const name of mention.names.identifiers) {
      const before = identifiers.get(name)
      const weight = (before?.weight ?? 0) + share
      identifiers.set(name, { name, weight, file: whole ?? before?.file ?? null, uuid: mention.uuid })
    }
  }
  return { files: [...files.values()], identifiers: [...identifiers.values()] }
}

function shareOf({ by, age, names }: Mention): number {
  const count = Math.max(1, names.files.size + names.identifiers.size)
  return (by === 'result' ? RESULT_WEIGHT : 1) / (age + NEAR) / count ** DILUTION
}

function enterFile(files: Map<string, WeighedFile>, path: string, share: number): void {
  const before = files.get(path) ?? { path, weight: 0, edits: 0, reads: 0 }
  files.set(path, { ...before, weight: before.weight + share })
}

function countTouch(files: Map<string, WeighedFile>, path: string, { act }: FileTouch): void {
  const file = files.get(path)
  if (file === undefined) return
  const isRead = act === 'read'
  files.set(path, { ...file, edits: file.edits + (isRead ? 0 : 1), reads: file.reads + (isRead ? 1 : 0) })
}

type WholePath = (path: string) => string

/** A file is named in full, from a folder, or bare: all of them mean the newest full path that ends so. */
function wholePaths(mentions: readonly Mention[]): WholePath {
  const byBase = new Map<string, Set<string>>()
  for (const { names, touches } of mentions) {
    for (const path of [...names.files, ...touches.map((touch) => touch.path)]) {
      if (!path.startsWith('/')) continue
      const known = byBase.get(fileName(path)) ?? new Set()
      byBase.set(fileName(path), known.add(path))
    }
  }
  return (path) => {
    if (path.startsWith('/')) return path
    // Diffs put a letter in front of both sides.
    const tail = `/${path.replace(/^(?:(?:\.|[ab])\/)+/, '')}`
    return [...(byBase.get(fileName(path)) ?? [])].findLast((known) => known.endsWith(tail)) ?? path
  }
}
