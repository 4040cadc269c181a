/** A file as lines, a piece at a time: read, unpacked and split, with a word on how far it has come. */

import { Buffer, constants as bufferLimits } from 'node:buffer'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Transform } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import * as zlib from 'node:zlib'
import { ioFailed } from '../storage/file-system.ts'
import { createLineSplitter, type FedLine } from '../storage/split-lines.ts'
import { type LogRefusal, refuse, refuseForError } from './found-log.ts'

// Packed logs: told by their first bytes, whatever their name, and unpacked as they are read.

export type Packing = 'none' | 'gzip' | 'zstd'

const ZSTD_MAGIC = 0xfd2fb528

export function packingOf(firstBytes: Buffer): Packing {
  if (firstBytes.length >= 2 && firstBytes.readUInt16BE(0) === 0x1f8b) return 'gzip'
  return firstBytes.length >= 4 && firstBytes.readUInt32LE(0) === ZSTD_MAGIC ? 'zstd' : 'none'
}

export interface Unpacker {
  /** When it returns, all that these bytes give has been handed on. False from the first fault on. */
  write(bytes: Buffer): Promise<boolean>
  end(): Promise<void>
  /** Why unpacking stopped before its end, or null. */
  readonly fault: string | null
}

/** Null where this Node cannot undo the packing. */
export function createUnpacker(packing: Packing, hand: (bytes: Buffer) => void): Unpacker | null {
  if (packing === 'none') return plain(hand)
  // Absent from Node before 22.15.
  if (packing === 'zstd' && zlib.createZstdDecompress === undefined) return null
  const options = { chunkSize: OUTPUT_BYTES }
  return unpacker(
    packing,
    packing === 'gzip' ? zlib.createGunzip(options) : zlib.createZstdDecompress(options),
    hand,
  )
}

const OUTPUT_BYTES = 1 << 16
/** What a failing step had unpacked is lost, so steps are small. */
const STEP_BYTES = 1024

function plain(hand: (bytes: Buffer) => void): Unpacker {
  return {
    write: async (bytes) => {
      hand(bytes)
      return true
    },
    end: async () => {},
    fault: null,
  }
}

function unpacker(packing: Packing, stream: Transform, hand: (bytes: Buffer) => void): Unpacker {
  let fault: string | null = null
  let isOver = false
  let goOn = (): void => {}
  stream.on('data', hand)
  stream.on('error', (error: Error) => {
    const how = isOver ? 'ends early' : `is broken (${error.message})`
    fault ??= `the ${packing} data ${how}: nothing behind this could be read`
  })
  // A stream that has failed never says that it has taken what it was given; it only closes.
  stream.on('close', () => goOn())
  async function until(begin: (done: () => void) => void): Promise<void> {
    if (!stream.destroyed) {
      await new Promise<void>((done) => {
        goOn = done
        begin(done)
      })
    }
  }
  return {
    async write(bytes) {
      for (let at = 0; at < bytes.length && fault === null; at += STEP_BYTES) {
        await until((done) => stream.write(bytes.subarray(at, at + STEP_BYTES), done))
        // So is what has not been handed on by then.
        while (stream.readableLength > 0 && !stream.destroyed) await setImmediate()
      }
      return fault === null
    },
    async end() {
      isOver = true
      await until(() => stream.end())
      stream.destroy()
    },
    get fault() {
      return fault
    },
  }
}

export interface Progress {
  readonly path: string
  readonly readBytes: number
  readonly totalBytes: number
}

export interface FeedOptions {
  /** Longer lines are reported and set aside; 64 MB unless given. */
  readonly maxLineBytes?: number
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: Progress) => void
}

export interface LineFeed {
  readonly path: string
  readonly sizeBytes: number
  readonly modifiedMs: number
  readonly packing: Packing
  /** The first bytes, unpacked. */
  readonly head: Buffer
  /** How many bytes have been given as lines or let go, unpacked. */
  readonly fedBytes: number
  /** The lines of the next piece, perhaps none; null behind the last. */
  next(): Promise<readonly FedLine[] | null>
  /** What stood behind the last newline; known at the end. */
  rest(): FedLine
  /** Why there may be more that could not be read, or null. */
  readonly fault: string | null
  close(): Promise<void>
}

export const DEFAULT_MAX_LINE_BYTES: number = 64 * 1024 * 1024
const PIECE_BYTES = 1 << 20
/** Packed bytes may stand for a thousand times as many. */
const PACKED_PIECE_BYTES = 1 << 16
const HEAD_BYTES = 8192

// Absent on Windows. A pipe in a log's place must not hang the reader.
const NO_WAITING = constants.O_NONBLOCK ?? 0

/** Symbolic links are followed: people keep their settings, and what lies with them, where they like. */
export async function openLineFeed(path: string, options: FeedOptions = {}): Promise<LineFeed | LogRefusal> {
  let handle: FileHandle | null = null
  try {
    handle = await open(path, constants.O_RDONLY | NO_WAITING)
    const feed = await feedFrom(handle, path, options)
    if ('ok' in feed) await handle.close()
    return feed
  } catch (error) {
    await handle?.close()
    return refuseForError(path, error)
  }
}

async function feedFrom(
  handle: FileHandle,
  path: string,
  options: FeedOptions,
): Promise<LineFeed | LogRefusal> {
  const stats = await handle.stat()
  if (!stats.isFile())
    return refuse(path, 'not-a-file', `is ${stats.isDirectory() ? 'a directory' : 'no regular file'}`)
  const magic = Buffer.alloc(4)
  const { bytesRead } = await handle.read(magic, 0, 4, 0)
  const packing = packingOf(magic.subarray(0, bytesRead))
  const feed = new FileFeed({
    handle,
    path,
    packing,
    sizeBytes: stats.size,
    modifiedMs: stats.mtimeMs,
    options,
  })
  return feed.canUnpack
    ? feed
    : refuse(path, 'unreadable', 'is packed with zstd, which needs Node 22.15 or later')
}

/** No text can be longer than the platform's. */
function lineLimit({ maxLineBytes = DEFAULT_MAX_LINE_BYTES }: FeedOptions): number {
  return Math.min(maxLineBytes, bufferLimits.MAX_STRING_LENGTH)
}

interface FeedPlace {
  readonly handle: FileHandle
  readonly path: string
  readonly packing: Packing
  readonly sizeBytes: number
  readonly modifiedMs: number
  readonly options: FeedOptions
}

class FileFeed implements LineFeed {
  readonly path: string
  readonly sizeBytes: number
  readonly modifiedMs: number
  readonly packing: Packing
  head: Buffer = Buffer.alloc(0)
  fedBytes = 0
  readonly #place: FeedPlace
  readonly #piece: Buffer
  readonly #splitter
  readonly #unpacker: Unpacker | null
  #lines: FedLine[] = []
  #readBytes = 0
  #isOver = false

  constructor(place: FeedPlace) {
    this.#place = place
    this.path = place.path
    this.sizeBytes = place.sizeBytes
    this.modifiedMs = place.modifiedMs
    this.packing = place.packing
    const pieceBytes = place.packing === 'none' ? PIECE_BYTES : PACKED_PIECE_BYTES
    this.#piece = Buffer.allocUnsafe(Math.max(1, Math.min(pieceBytes, place.sizeBytes)))
    this.#splitter = createLineSplitter(lineLimit(place.options))
    this.#unpacker = createUnpacker(place.packing, (bytes) => this.#take(bytes))
  }

  get canUnpack(): boolean {
    return this.#unpacker !== null
  }

  get fault(): string | null {
    return this.#unpacker?.fault ?? null
  }

  async next(): Promise<readonly FedLine[] | null> {
    if (this.#isOver) return null
    this.#place.options.signal?.throwIfAborted()
    const bytes = await this.#read()
    const goesOn = bytes.length > 0 && (await this.#unpacker?.write(bytes)) === true
    if (!goesOn) await this.#finish()
    const lines = this.#lines
    this.#lines = []
    return lines
  }

  rest(): FedLine {
    return this.#splitter.end()
  }

  async close(): Promise<void> {
    if (!this.#isOver) await this.#finish()
    await this.#place.handle.close()
  }

  /** No further than the file went when it was opened: one that is being written to would have no end. */
  async #read(): Promise<Buffer> {
    const { handle, path, sizeBytes, options } = this.#place
    const wanted = Math.min(this.#piece.length, sizeBytes - this.#readBytes)
    if (wanted <= 0) return this.#piece.subarray(0, 0)
    const { bytesRead } = await handle
      .read(this.#piece, 0, wanted, this.#readBytes)
      .catch((error: unknown) => Promise.reject(ioFailed(`read ${path}`, error, { path })))
    this.#readBytes += bytesRead
    options.onProgress?.({ path, readBytes: this.#readBytes, totalBytes: sizeBytes })
    return this.#piece.subarray(0, bytesRead)
  }

  async #finish(): Promise<void> {
    this.#isOver = true
    await this.#unpacker?.end()
  }

  #take(bytes: Buffer): void {
    if (this.head.length < HEAD_BYTES)
      this.head = Buffer.concat([this.head, bytes.subarray(0, HEAD_BYTES - this.head.length)])
    this.fedBytes += bytes.length
    for (const line of this.#splitter.push(bytes)) this.#lines.push(line)
  }
}
