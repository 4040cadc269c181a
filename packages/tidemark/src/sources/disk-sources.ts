/** Carriers whose source of truth lies on the disk: files in use, the plan, standing instructions. Read anew each time. */
import { constants, type FileHandle, open, readFile, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import {
  type Carrier,
  type FileRead,
  type FileReader,
  type FilesOptions,
  filesCarrier,
  planCarrier,
  type StandingText,
  standingCarrier,
} from '@tidemark/core'
import { errorCode } from '../storage/file-system.ts'

export interface DiskCarriersOptions extends Pick<FilesOptions, 'recent' | 'isStub'> {
  /** What relative paths start from; the process's own folder unless given. */
  readonly folder?: string
  /** The plan file, as it is named at the time; null where there is none. */
  readonly planFile?: () => string | null
  /** Memory files in force, in order. One that is not there is left out. */
  readonly standing?: () => readonly string[]
  /** The session's own log, which is never brought back. */
  readonly transcript?: string
  /** More files that are never brought back. */
  readonly never?: () => readonly string[]
}

/** The files touched last, the plan and the standing instructions. */
export function diskCarriers(options: DiskCarriersOptions = {}): readonly Carrier[] {
  const {
    folder = process.cwd(),
    planFile = () => null,
    standing,
    transcript,
    never,
    recent,
    isStub,
  } = options
  const apart = (): readonly string[] => [
    ...(transcript === undefined ? [] : [transcript]),
    ...[planFile() ?? []].flat(),
    ...(standing?.() ?? []),
    ...(never?.() ?? []),
  ]
  return [
    standingCarrier(async () => presentTexts(folder, standing?.() ?? [])),
    filesCarrier({
      ...{ reader: createDiskReader(folder), folder, never: apart },
      ...(recent === undefined ? {} : { recent }),
      ...(isStub === undefined ? {} : { isStub }),
    }),
    planCarrier(async () => {
      const path = planFile()
      return path === null ? null : presentText(folder, path)
    }),
  ]
}

async function presentTexts(folder: string, paths: readonly string[]): Promise<readonly StandingText[]> {
  const texts = await Promise.all(paths.map((path) => presentText(folder, path)))
  return texts.filter((text) => text !== null)
}

/** Null where there is no such file, or nothing in it. Any other fault is the carrier's to report. */
async function presentText(folder: string, path: string): Promise<StandingText | null> {
  try {
    const text = await readFile(resolve(folder, path), 'utf8')
    return text.trim() === '' ? null : { path, text }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

// Files of the person's project, read again as they are now: text only, bounded, links followed.

/** `folder`: what relative paths start from; the process's own unless given. */
export function createDiskReader(folder: string = process.cwd()): FileReader {
  return { read: (path, limitBytes) => readText(resolve(folder, path), limitBytes) }
}

async function readText(path: string, limitBytes: number): Promise<FileRead> {
  try {
    const realPath = await realpath(path)
    // A pipe opened to be read would wait for somebody to write to it.
    const file = await open(realPath, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      return await readFrom(file, realPath, limitBytes)
    } finally {
      await file.close()
    }
  } catch (error) {
    return { ok: false, why: whyNot(error) }
  }
}

async function readFrom(file: FileHandle, realPath: string, limitBytes: number): Promise<FileRead> {
  const facts = await file.stat()
  if (!facts.isFile()) return { ok: false, why: 'it is no file' }
  const bytes = await readUpTo(file, Math.min(facts.size, Math.floor(limitBytes)))
  const isWhole = bytes.length >= facts.size
  const text = textOf(bytes, isWhole)
  if (text === null) return { ok: false, why: 'it is no text' }
  return { ok: true, text, bytes: facts.size, isWhole, realPath }
}

async function readUpTo(file: FileHandle, length: number): Promise<Uint8Array> {
  const into = new Uint8Array(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await file.read(into, filled, length - filled, filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return into.subarray(0, filled)
}

/** A byte order mark stays: the text is to be the file's, byte for byte. A character cut at the limit is left off. */
function textOf(bytes: Uint8Array, isWhole: boolean): string | null {
  if (bytes.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !isWhole })
  } catch {
    return null
  }
}

function whyNot(error: unknown): string {
  const code = errorCode(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such file'
  if (code === 'EACCES' || code === 'EPERM') return 'it may not be read'
  return error instanceof Error ? error.message : String(error)
}
