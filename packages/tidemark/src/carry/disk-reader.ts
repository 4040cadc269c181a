/** Files of the person's project, read again as they are now: text only, bounded, links followed. */
import { constants, type FileHandle, open, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { FileRead, FileReader } from '@tidemark/core'
import { errorCode } from '../files/file-port.ts'

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
