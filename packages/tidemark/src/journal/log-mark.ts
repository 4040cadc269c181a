/** Places in a log from which it can be read on, instead of from its beginning. */
import type { Damage, ReadingStart } from '@tidemark/core'
import type { OpenFile } from '../files/file-port.ts'

/** What the log had come to at a place between two of its lines, and how to know that place again. */
export interface LogMark extends ReadingStart {
  /** How far into the file. */
  readonly sizeBytes: number
  readonly identity: string
  /** What was wrong with the lines before it. */
  readonly damage: readonly Damage[]
  /** The last bytes before it: they hold for as long as nobody rewrites the log in place. */
  readonly tail: Uint8Array
}

const TAIL_BYTES = 512

export function tailOf(bytes: Uint8Array): Uint8Array {
  return bytes.slice(-TAIL_BYTES)
}

/** The last bytes of the first `sizeBytes` of the file. */
export async function readTail(file: OpenFile, sizeBytes: number): Promise<Uint8Array> {
  return readBytes(file, Math.max(0, sizeBytes - TAIL_BYTES), sizeBytes)
}

/** The newest marks of a log. Those who ask to read on mostly left off at one of them. */
export class LogMarks {
  /** By how far into the file they are. */
  #marks: readonly LogMark[] = []

  add(mark: LogMark | null): void {
    if (mark === null) return
    const others = this.#marks.filter(
      ({ identity, sizeBytes }) => identity === mark.identity && sizeBytes !== mark.sizeBytes,
    )
    const marks = [...others, mark].sort((one, other) => one.sizeBytes - other.sizeBytes)
    this.#marks = marks.slice(-MOST_MARKS)
  }

  /** The last one that is behind neither, and up to which the file is still the one that was marked. */
  async latest(file: OpenFile, position: number, limit: number): Promise<LogMark | null> {
    const facts = await file.facts()
    const end = Math.min(limit, facts.sizeBytes)
    for (const mark of this.#marks.toReversed()) {
      if (mark.position > position || mark.sizeBytes > end) continue
      if (mark.identity === facts.identity && (await hasTail(file, mark))) return mark
      this.#marks = this.#marks.filter((other) => other !== mark)
    }
    return null
  }
}

const MOST_MARKS = 8

async function hasTail(file: OpenFile, { sizeBytes, tail }: LogMark): Promise<boolean> {
  return Buffer.from(tail).equals(await readBytes(file, sizeBytes - tail.length, sizeBytes))
}

async function readBytes(file: OpenFile, from: number, to: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(to - from)
  let filled = 0
  for (let count = -1; filled < bytes.length && count !== 0; filled += count)
    count = await file.read(bytes.subarray(filled), from + filled)
  return bytes.subarray(0, filled)
}
