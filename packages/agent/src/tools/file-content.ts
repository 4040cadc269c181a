/** Reads files of the user's project safely: only regular files, with a version, and text in common encodings. */
import { createHash } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, open, readdir, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { formatBytes } from '@tidemark/terminal/render/format-numbers'
import { isObject } from '../json-value.ts'
import type { FileVersion } from './seen-files.ts'
import { resolveRealPath, resolveToolPath } from './tool-access.ts'
import { ToolError } from './tool-definition.ts'

/** Larger files are neither hashed nor edited, and only the requested part of them is read. */
export const MAX_WHOLE_FILE_BYTES = 32_000_000

/** Calls `use` with a regular file. Throws a `ToolError` that says what is wrong if there is none at the path. */
export async function withRegularFile<Value>(
  path: string,
  use: (file: FileHandle, facts: Stats) => Promise<Value>,
): Promise<Value> {
  // Pipes are never opened, not even without blocking, because their writer would notice.
  requireRegularFile(path, await stat(path).catch((error) => throwMissing(path, error)))
  // The file may since have been replaced by a pipe. Without O_NONBLOCK, opening a pipe would wait for a writer.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const facts = await file.stat()
    requireRegularFile(path, facts)
    return await use(file, facts)
  } finally {
    await file.close()
  }
}

function requireRegularFile(path: string, facts: Stats): void {
  if (facts.isDirectory())
    throw new ToolError(`${path} is a directory, not a file. Use Glob to list the files in it.`)
  if (!facts.isFile()) throw new ToolError(`${path} is a device, a pipe or a socket, which cannot be read.`)
}

async function throwMissing(path: string, error: unknown): Promise<never> {
  if (!hasErrorCode(error, 'ENOENT', 'ENOTDIR')) throw error
  const near = await findNearNames(path)
  const hint = near.length === 0 ? '' : ` The folder has files with similar names: ${near.join(', ')}.`
  throw new ToolError(`There is no file ${path}.${hint}`)
}

/** Returns true if an error has one of these codes, such as `ENOENT`. */
export function hasErrorCode(error: unknown, ...codes: readonly string[]): boolean {
  return isObject(error) && codes.includes(String(error.code))
}

const MAX_NEAR_NAMES = 3

/** Returns similar names in the same folder. */
async function findNearNames(path: string): Promise<readonly string[]> {
  return pickSimilarNames(basename(path), await readdir(dirname(path)).catch(() => []))
}

/** Returns up to three names that are similar to the wanted name, most similar first. */
export function pickSimilarNames(name: string, names: readonly string[]): readonly string[] {
  const wanted = name.toLowerCase()
  return names
    .map((each) => ({ name: each, distance: measureNameDistance(wanted, each.toLowerCase()) }))
    .filter(({ distance }) => distance <= Math.max(2, wanted.length / 3))
    .sort((one, other) => one.distance - other.distance)
    .slice(0, MAX_NEAR_NAMES)
    .map((found) => found.name)
}

/** Returns the number of inserted, deleted or replaced characters between two names; 1 if only the extension differs. */
function measureNameDistance(one: string, other: string): number {
  const withoutExtension = (name: string): string => name.replace(/(?<=.)\.[^.]*$/, '')
  if (withoutExtension(one) === withoutExtension(other)) return 1
  if (Math.abs(one.length - other.length) > one.length) return Number.POSITIVE_INFINITY
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let at = 1; at <= one.length; at += 1) {
    const next = [at]
    for (let to = 1; to <= other.length; to += 1) {
      const replaced = (row[to - 1] ?? 0) + (one[at - 1] === other[to - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}

export interface FileContent {
  /** The path without symbolic links. */
  readonly realPath: string
  readonly bytes: Buffer
  readonly version: FileVersion
  /** Permission bits. */
  readonly mode: number
}

/** Reads a whole file; null if it does not exist. Throws a `ToolError` if it is not regular or over `MAX_WHOLE_FILE_BYTES`. */
export async function readWholeFile(path: string): Promise<FileContent | null> {
  const realPath = resolveRealPath(path)
  try {
    await stat(realPath)
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return null
    throw error
  }
  return await withRegularFile(realPath, async (file, facts) => {
    if (facts.size > MAX_WHOLE_FILE_BYTES)
      throw new ToolError(`${path} has ${formatBytes(facts.size)}, which is too large to edit.`)
    const bytes = await readAllBytes(file, path)
    return { realPath, bytes, version: toFileVersion(bytes), mode: facts.mode & 0o7777 }
  })
}

/**
 * Reads an open file whole. Throws a `ToolError` that names `path` if more than `MAX_WHOLE_FILE_BYTES` bytes were read. The
 * stated size is not used: files of /proc state 0 and may have no end.
 */
export async function readAllBytes(file: FileHandle, path: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  // The caller closes the file.
  for await (const chunk of file.createReadStream({ autoClose: false, start: 0 })) {
    size += (chunk as Buffer).length
    if (size > MAX_WHOLE_FILE_BYTES)
      throw new ToolError(
        `${path} has more than ${formatBytes(MAX_WHOLE_FILE_BYTES)} and does not state its size.`,
      )
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}

/** Returns the version of a file with this content: its hash. */
export function toFileVersion(bytes: Uint8Array): FileVersion {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

/** Returns the version of a file that is too large to hash: its size and modification time. */
export function toLargeFileVersion({ size, mtimeMs }: Stats): FileVersion {
  return `size:${size} modified:${mtimeMs}`
}

export interface DecodedText {
  /** The text without a byte order mark; line ends as in the file. */
  readonly text: string
  readonly encoding: 'utf8' | 'utf16le' | 'latin1'
  readonly hasMark: boolean
}

const BYTE_ORDER_MARK = '\uFEFF'
/** Control characters that do not occur in text files. Tab, line feed, form feed, carriage return and escape may occur. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the purpose.
const BINARY_CHARACTER = /[\0-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f-\x9f]/

/** Decodes the text of a file: UTF-8, little-endian UTF-16 with a byte order mark, else Latin-1. Returns null if the bytes are not text. */
export function decodeFileText(bytes: Buffer): DecodedText | null {
  if (bytes[0] === 0xff && bytes[1] === 0xfe)
    return { text: bytes.subarray(2).toString('utf16le'), encoding: 'utf16le', hasMark: true }
  if (bytes.includes(0)) return null
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    const hasMark = text.startsWith(BYTE_ORDER_MARK)
    return { text: hasMark ? text.slice(1) : text, encoding: 'utf8', hasMark }
  } catch {
    const text = bytes.toString('latin1')
    return BINARY_CHARACTER.test(text) ? null : { text, encoding: 'latin1', hasMark: false }
  }
}

/** Encodes a changed text in the encoding of the file. A Latin-1 file becomes UTF-8 if a character requires it. */
export function encodeFileText(text: string, { encoding, hasMark }: Omit<DecodedText, 'text'>): Buffer {
  const isBeyondLatin1 = encoding === 'latin1' && /[^\0-\xff]/.test(text)
  return Buffer.from((hasMark ? BYTE_ORDER_MARK : '') + text, isBeyondLatin1 ? 'utf8' : encoding)
}

/** Returns the real path of a `file_path` in a tool input. Throws a `ToolError` if it is empty. */
export function resolveFilePathInput(path: string, cwd: string): string {
  if (path.trim() === '') throw new ToolError('file_path is empty.')
  return resolveRealPath(resolveToolPath(path, cwd))
}
