/** Packed logs: told by their first bytes, whatever their name, and unpacked as they are read. */
import type { Transform } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import * as zlib from 'node:zlib'

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
