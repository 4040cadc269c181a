/** Reads a file, compressed or not, as lines in chunks, and reports progress. Also has the types of found and refused logs. */
import { Buffer, constants as bufferLimits } from 'node:buffer'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Transform } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import * as zlib from 'node:zlib'
import { ioError, readErrorCode } from '../storage/file-system.ts'
import { createLineSplitter, type SplitLine } from '../storage/split-lines.ts'

export type Compression = 'none' | 'gzip' | 'zstd'

const ZSTD_MAGIC = 0xfd2fb528

/** Detects the compression of a file from its first bytes; the file name is ignored. */
function detectCompression(firstBytes: Buffer): Compression {
  if (firstBytes.length >= 2 && firstBytes.readUInt16BE(0) === 0x1f8b) return 'gzip'
  return firstBytes.length >= 4 && firstBytes.readUInt32LE(0) === ZSTD_MAGIC ? 'zstd' : 'none'
}

interface Decompressor {
  /**
   * Decompresses bytes and resolves when all their output was delivered. Resolves to false if decompression has failed.
   */
  write(bytes: Buffer): Promise<boolean>
  end(): Promise<void>
  /** Why decompression stopped before the end of the data; null if it did not. */
  readonly fault: string | null
}

/** Creates a decompressor; null if this version of Node does not support the compression format. */
function createDecompressor(packing: Compression, deliver: (bytes: Buffer) => void): Decompressor | null {
  if (packing === 'none') return passThrough(deliver)
  // Node supports zstd from version 22.15 on.
  if (packing === 'zstd' && zlib.createZstdDecompress === undefined) return null
  const options = { chunkSize: OUTPUT_BYTES }
  return streamDecompressor(
    packing,
    packing === 'gzip' ? zlib.createGunzip(options) : zlib.createZstdDecompress(options),
    deliver,
  )
}

const OUTPUT_BYTES = 1 << 16
/** Number of compressed bytes per write. If a write fails, its output is lost, so each write is small. */
const STEP_BYTES = 1024

function passThrough(deliver: (bytes: Buffer) => void): Decompressor {
  return {
    write: async (bytes) => {
      deliver(bytes)
      return true
    },
    end: async () => {},
    fault: null,
  }
}

function streamDecompressor(
  packing: Compression,
  stream: Transform,
  deliver: (bytes: Buffer) => void,
): Decompressor {
  let fault: string | null = null
  let isOver = false
  let resume = (): void => {}
  stream.on('data', deliver)
  stream.on('error', (error: Error) => {
    const how = isOver ? 'ends early' : `is broken (${error.message})`
    fault ??= `the ${packing} data ${how}: nothing behind this could be read`
  })
  // After a failure, a stream does not call the callback of a write; it only emits `close`.
  stream.on('close', () => resume())
  async function waitFor(begin: (done: () => void) => void): Promise<void> {
    if (!stream.destroyed) {
      await new Promise<void>((done) => {
        resume = done
        begin(done)
      })
    }
  }
  return {
    async write(bytes) {
      for (let at = 0; at < bytes.length && fault === null; at += STEP_BYTES) {
        await waitFor((done) => stream.write(bytes.subarray(at, at + STEP_BYTES), done))
        // Wait until all decompressed output is delivered, because a failure of a later write would discard it.
        while (stream.readableLength > 0 && !stream.destroyed) await setImmediate()
      }
      return fault === null
    },
    async end() {
      isOver = true
      await waitFor(() => stream.end())
      stream.destroy()
    },
    get fault() {
      return fault
    },
  }
}

export interface ReadProgress {
  readonly path: string
  readonly readBytes: number
  readonly totalBytes: number
}

export interface LineReadOptions {
  /** Maximum bytes of a line. Longer lines are skipped and reported as damage. Default: 64 MB. */
  readonly maxLineBytes?: number
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: ReadProgress) => void
}

/** The lines of an open file, read chunk by chunk. `close` must be called in the end. */
export interface FileLines {
  readonly path: string
  readonly sizeBytes: number
  readonly modifiedMs: number
  readonly packing: Compression
  /** The first decompressed bytes of the file, at most 8 KB. */
  readonly head: Buffer
  /** Number of decompressed bytes of the file processed so far. */
  readonly processedBytes: number
  /** Reads the next chunk of the file and returns its lines, possibly none; null after the last chunk. */
  next(): Promise<readonly SplitLine[] | null>
  /** Returns the text after the last newline of the file. Call it after the last chunk. */
  rest(): SplitLine
  /** Why reading stopped before the end of the file; null if the file was read completely. */
  readonly fault: string | null
  close(): Promise<void>
}

export const DEFAULT_MAX_LINE_BYTES: number = 64 * 1024 * 1024
const CHUNK_BYTES = 1 << 20
/**
 * Bytes read at a time from a compressed file. The number is small because compressed bytes may expand a thousandfold.
 */
const PACKED_CHUNK_BYTES = 1 << 16
const HEAD_BYTES = 8192

// With O_NONBLOCK, opening a pipe does not wait for a writer. Windows does not define the flag.
const NON_BLOCKING = constants.O_NONBLOCK ?? 0

/**
 * Opens a file for reading by lines; returns a refusal if it cannot be read. Symbolic links are followed, because users
 * move their configuration folders.
 */
export async function openFileLines(
  path: string,
  options: LineReadOptions = {},
): Promise<FileLines | LogRefusal> {
  let handle: FileHandle | null = null
  try {
    handle = await open(path, constants.O_RDONLY | NON_BLOCKING)
    const feed = await createFileLines(handle, path, options)
    if ('ok' in feed) await handle.close()
    return feed
  } catch (error) {
    await handle?.close()
    return refuseForReadError(path, error)
  }
}

async function createFileLines(
  handle: FileHandle,
  path: string,
  options: LineReadOptions,
): Promise<FileLines | LogRefusal> {
  const stats = await handle.stat()
  if (!stats.isFile())
    return refuseLog(path, 'not-a-file', `is ${stats.isDirectory() ? 'a directory' : 'not a regular file'}`)
  const magic = Buffer.alloc(4)
  const { bytesRead } = await handle.read(magic, 0, 4, 0)
  const packing = detectCompression(magic.subarray(0, bytesRead))
  const feed = new FileLineReader({
    handle,
    path,
    packing,
    sizeBytes: stats.size,
    modifiedMs: stats.mtimeMs,
    options,
  })
  return feed.canUnpack
    ? feed
    : refuseLog(path, 'unreadable', 'is compressed with zstd, which needs Node 22.15 or later')
}

interface FileLineInput {
  readonly handle: FileHandle
  readonly path: string
  readonly packing: Compression
  readonly sizeBytes: number
  readonly modifiedMs: number
  readonly options: LineReadOptions
}

class FileLineReader implements FileLines {
  readonly path: string
  readonly sizeBytes: number
  readonly modifiedMs: number
  readonly packing: Compression
  head: Buffer = Buffer.alloc(0)
  processedBytes = 0
  readonly #input: FileLineInput
  readonly #chunk: Buffer
  readonly #splitter
  readonly #unpacker: Decompressor | null
  #lines: SplitLine[] = []
  #readBytes = 0
  #isOver = false

  constructor(input: FileLineInput) {
    const { packing, sizeBytes } = input
    this.#input = input
    this.path = input.path
    this.sizeBytes = sizeBytes
    this.modifiedMs = input.modifiedMs
    this.packing = packing
    const chunkBytes = packing === 'none' ? CHUNK_BYTES : PACKED_CHUNK_BYTES
    this.#chunk = Buffer.allocUnsafe(Math.max(1, Math.min(chunkBytes, sizeBytes)))
    const { maxLineBytes = DEFAULT_MAX_LINE_BYTES } = input.options
    this.#splitter = createLineSplitter(Math.min(maxLineBytes, bufferLimits.MAX_STRING_LENGTH))
    this.#unpacker = createDecompressor(packing, (bytes) => this.#take(bytes))
  }

  get canUnpack(): boolean {
    return this.#unpacker !== null
  }

  get fault(): string | null {
    return this.#unpacker?.fault ?? null
  }

  async next(): Promise<readonly SplitLine[] | null> {
    if (this.#isOver) return null
    this.#input.options.signal?.throwIfAborted()
    const bytes = await this.#read()
    const isMore = bytes.length > 0 && (await this.#unpacker?.write(bytes)) === true
    if (!isMore) await this.#finish()
    const lines = this.#lines
    this.#lines = []
    return lines
  }

  rest(): SplitLine {
    return this.#splitter.end()
  }

  async close(): Promise<void> {
    if (!this.#isOver) await this.#finish()
    await this.#input.handle.close()
  }

  /**
   * Reads the next chunk, but not beyond the size that the file had when it was opened. Otherwise reading a growing
   * file might never end.
   */
  async #read(): Promise<Buffer> {
    const { handle, path, sizeBytes, options } = this.#input
    const wanted = Math.min(this.#chunk.length, sizeBytes - this.#readBytes)
    if (wanted <= 0) return this.#chunk.subarray(0, 0)
    const { bytesRead } = await handle
      .read(this.#chunk, 0, wanted, this.#readBytes)
      .catch((error: unknown) => Promise.reject(ioError(`read ${path}`, error, { path })))
    this.#readBytes += bytesRead
    options.onProgress?.({ path, readBytes: this.#readBytes, totalBytes: sizeBytes })
    return this.#chunk.subarray(0, bytesRead)
  }

  async #finish(): Promise<void> {
    this.#isOver = true
    await this.#unpacker?.end()
  }

  #take(bytes: Buffer): void {
    if (this.head.length < HEAD_BYTES)
      this.head = Buffer.concat([this.head, bytes.subarray(0, HEAD_BYTES - this.head.length)])
    this.processedBytes += bytes.length
    for (const line of this.#splitter.push(bytes)) this.#lines.push(line)
  }
}

/** A log that is not a file, such as one in a database. */
export interface LogText {
  /** The name that messages show instead of a path. */
  readonly name: string
  readonly modifiedMs: number
  readonly lines: readonly string[]
}

/** Lines per chunk. Between two chunks, other work of the thread can run. */
const TEXT_CHUNK_LINES = 500

/** Returns lines in memory in the form of a file's lines. */
export function createTextLines({ name, modifiedMs, lines }: LogText): FileLines {
  let next = 0
  let processedBytes = 0
  return {
    path: name,
    modifiedMs,
    packing: 'none',
    sizeBytes: lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0),
    head: Buffer.from((lines[0] ?? '').slice(0, HEAD_BYTES)).subarray(0, HEAD_BYTES),
    get processedBytes() {
      return processedBytes
    },
    async next() {
      if (next >= lines.length) return null
      const chunk = lines.slice(next, next + TEXT_CHUNK_LINES)
      next += chunk.length
      for (const line of chunk) processedBytes += Buffer.byteLength(line) + 1
      return chunk.map((text) => ({ text, problem: null }))
    },
    rest: () => ({ text: '', problem: null }),
    fault: null,
    close: async () => {},
  }
}

// Results of a search for logs, and the reasons for which a file is refused as a log.

/** The paths of a session's log and of its subagents' logs. */
export interface FoundLog {
  readonly path: string
  readonly agentPaths: readonly string[]
  /** Modification time of the newest of the session's files, in milliseconds. */
  readonly modifiedMs: number
  /** Total size of the session's files in bytes. */
  readonly sizeBytes: number
}

export interface FoundLogs {
  /** The logs that were found, newest first. */
  readonly logs: readonly FoundLog[]
  /** Paths that could not be searched, each with a one-line message. */
  readonly problems: readonly LogSearchProblem[]
}

export interface LogSearchProblem {
  readonly path: string
  readonly message: string
}

export interface FindLogsOptions {
  readonly signal?: AbortSignal
}

type RefusalReason =
  | 'missing' // The file does not exist.
  | 'not-a-file' // The path is a directory, a pipe or a device.
  | 'unreadable' // The file cannot be opened, or its compression is not supported.
  | 'empty'
  | 'binary'
  | 'unknown-format' // The file is text, but not a log in a known format.
  | 'newer-format' // A later version of Tidemark wrote the log.

export interface LogRefusal {
  readonly ok: false
  readonly path: string
  readonly reason: RefusalReason
  readonly message: string
}

/** Creates a refusal. `problem` completes a sentence that begins with the path, such as "is empty". */
export function refuseLog(path: string, reason: RefusalReason, problem: string): LogRefusal {
  return { ok: false, path, reason, message: `${path} ${problem}.` }
}

/** Creates the refusal for an error of the system: `missing` if there is no such file, otherwise `unreadable`. */
export function refuseForReadError(path: string, error: unknown): LogRefusal {
  const code = readErrorCode(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return refuseLog(path, 'missing', 'does not exist')
  const cause = error instanceof Error ? error.message : String(error)
  return refuseLog(path, 'unreadable', `cannot be read: ${cause}`)
}

/** Returns the message for an output file that already exists. */
export function formatFileExists(out: string): string {
  return `${out} exists already, and files are never overwritten: choose another name.`
}
