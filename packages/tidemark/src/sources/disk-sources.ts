/**
 * Context sources that read files: recently used files, the plan and instruction files. Nothing is cached; files are
 * read again on each use.
 */
import { constants, type FileHandle, open, readFile, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { omitUndefined } from '@tidemark/core/log/json'
import { type FileText, instructionsSource, planSource } from '@tidemark/core/sources/builtin-sources'
import type { ContextSource } from '@tidemark/core/sources/context-source'
import {
  type FileReader,
  type FileReadResult,
  type FilesSourceOptions,
  filesSource,
} from '@tidemark/core/sources/file-source'
import { readErrorCode } from '../storage/file-system.ts'

export interface DiskSourcesOptions extends Pick<FilesSourceOptions, 'recent' | 'isStub'> {
  /** Folder that relative paths start from. Default: the working directory. */
  readonly folder?: string
  /** Returns the path of the current plan file, or null if there is no plan. Default: the plan is read from the log. */
  readonly planFile?: () => string | null
  /** Returns the paths of the instruction files that apply now, in order. A missing file is skipped. */
  readonly standing?: () => readonly string[]
  /** Path of the session's log, which is never attached to the context. */
  readonly transcript?: string
  /** Returns the paths of further files that are never attached to the context. */
  readonly never?: () => readonly string[]
  /**
   * Returns false for a recently used file that must not be read. Called with the path without symbolic links, because
   * a path in a tool call may lead elsewhere by now. Default: every file may be read.
   */
  readonly isPermitted?: (realPath: string) => boolean
}

/** Returns the context sources for instruction files, recently used files and the plan, for the option `carriers`. */
export function diskSources(options: DiskSourcesOptions = {}): readonly ContextSource[] {
  const { folder = process.cwd(), planFile, standing, transcript, never } = options
  const { recent, isStub, isPermitted } = options
  const listExcluded = (): readonly string[] => [
    ...(transcript === undefined ? [] : [transcript]),
    ...[planFile?.() ?? []].flat(),
    ...(standing?.() ?? []),
    ...(never?.() ?? []),
  ]
  return [
    instructionsSource(async () => {
      const texts = await Promise.all((standing?.() ?? []).map((path) => readIfPresent(folder, path)))
      return texts.filter((text) => text !== null)
    }),
    filesSource({
      reader: createDiskFileReader(folder, isPermitted),
      folder,
      never: listExcluded,
      ...omitUndefined({ recent, isStub }),
    }),
    planFile === undefined
      ? planSource()
      : planSource(async () => {
          const path = planFile()
          return path === null ? null : readIfPresent(folder, path)
        }),
  ]
}

/** Reads a text file. Returns null if the file is missing or blank. Throws any other error. */
async function readIfPresent(folder: string, path: string): Promise<FileText | null> {
  try {
    const text = await readFile(resolve(folder, path), 'utf8')
    return text.trim() === '' ? null : { path, text }
  } catch (error) {
    if (readErrorCode(error) === 'ENOENT') return null
    throw error
  }
}

/**
 * Creates a reader for text files on the disk. It follows symbolic links; relative paths start from `folder`. A file
 * that cannot or must not be read is a result with the reason. `isPermitted`: asked with the path without links.
 */
export function createDiskFileReader(
  folder: string = process.cwd(),
  isPermitted: (realPath: string) => boolean = () => true,
): FileReader {
  return { read: (path, limitBytes) => readText(resolve(folder, path), limitBytes, isPermitted) }
}

async function readText(
  path: string,
  limitBytes: number,
  isPermitted: (realPath: string) => boolean,
): Promise<FileReadResult> {
  try {
    const realPath = await realpath(path)
    if (!isPermitted(realPath)) return { ok: false, why: 'it may not be read without a question' }
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0)
    const file = await open(realPath, flags)
    try {
      return await readOpenFile(file, realPath, limitBytes)
    } finally {
      await file.close()
    }
  } catch (error) {
    return { ok: false, why: describeError(error) }
  }
}

async function readOpenFile(file: FileHandle, realPath: string, limitBytes: number): Promise<FileReadResult> {
  // As plain numbers, large file ids would be rounded, and two files could count as one.
  const facts = await file.stat({ bigint: true })
  if (!facts.isFile()) return { ok: false, why: 'it is no file' }
  const size = Number(facts.size)
  const bytes = await readUpTo(file, Math.min(size, Math.floor(limitBytes)))
  const isWhole = bytes.length >= size
  const text = decodeText(bytes, isWhole)
  if (text === null) return { ok: false, why: 'it is no text' }
  return { ok: true, text, bytes: size, isWhole, realPath, fileId: `${facts.dev}:${facts.ino}` }
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

/**
 * Decodes UTF-8. Returns null if the bytes are not text. Keeps a byte order mark, so that the text equals the file.
 * Drops an incomplete character at the end, where the size limit may have cut the file.
 */
function decodeText(bytes: Uint8Array, isWhole: boolean): string | null {
  if (bytes.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !isWhole })
  } catch {
    return null
  }
}

function describeError(error: unknown): string {
  const code = readErrorCode(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such file'
  if (code === 'EACCES' || code === 'EPERM') return 'it may not be read'
  return error instanceof Error ? error.message : String(error)
}
