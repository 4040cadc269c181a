/**
 * Splits chunks of bytes into lines. A line over the size limit is discarded while it is read, so it does not fill the
 * memory.
 */
import { Buffer, constants, isUtf8 } from 'node:buffer'
import type { OpenFile } from './file-system.ts'

export interface SplitLine {
  /** Text of the line without its newline; empty if the line was too long. */
  readonly text: string
  /** What is wrong with the line, such as bytes that are not UTF-8; null if nothing is. */
  readonly problem: string | null
}

interface LineSplitter {
  /** Adds a chunk of bytes and returns the lines that end in it. The caller may reuse the buffer afterwards. */
  push(bytes: Buffer): readonly SplitLine[]
  /** Ends the input and returns the text after the last newline. */
  end(): SplitLine
}

const NEWLINE = 10
const NOT_UTF8 = 'the line has bytes that are not UTF-8; each was read as U+FFFD'

/** Creates a line splitter. By default, a line may be as long as the longest JavaScript string. */
export function createLineSplitter(maxLineBytes: number = constants.MAX_STRING_LENGTH): LineSplitter {
  // The bytes of the current line, whose newline has not arrived yet. They are copied, because the caller reuses its
  // buffer.
  let parts: Buffer[] = []
  let partBytes = 0
  function finishLine(end: Buffer): SplitLine {
    const sizeBytes = partBytes + end.length
    const before = parts
    parts = []
    partBytes = 0
    if (sizeBytes > maxLineBytes) return { text: '', problem: describeTooLong(sizeBytes, maxLineBytes) }
    const bytes = before.length === 0 ? end : Buffer.concat([...before, end])
    const text = bytes.toString('utf8')
    return { text, problem: text.includes('\uFFFD') && !isUtf8(bytes) ? NOT_UTF8 : null }
  }
  return {
    push(bytes) {
      const lines: SplitLine[] = []
      let start = 0
      for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
        lines.push(finishLine(bytes.subarray(start, end)))
        start = end + 1
      }
      if (start < bytes.length) {
        partBytes += bytes.length - start
        if (partBytes > maxLineBytes) parts = []
        else parts.push(Buffer.from(bytes.subarray(start)))
      }
      return lines
    },
    end: () => finishLine(Buffer.alloc(0)),
  }
}

function describeTooLong(sizeBytes: number, maxLineBytes: number): string {
  return `the line is ${sizeBytes} bytes long, more than the ${maxLineBytes} that are allowed; it is left out`
}

/** How the lines of a file ended. */
export interface LinesEnd {
  /** The text after the last newline. */
  readonly rest: SplitLine
  readonly sizeBytes: number
  readonly endsInNewline: boolean
}

const CHUNK_BYTES = 1 << 20

/**
 * Reads the lines in the first `limit` bytes of `file`. Calls `visit` once per chunk, with the lines that end in the
 * chunk.
 */
export async function readLines(
  file: OpenFile,
  limit: number,
  visit: (lines: readonly SplitLine[]) => void,
): Promise<LinesEnd> {
  const chunk = Buffer.allocUnsafe(Math.max(1, Math.min(CHUNK_BYTES, limit)))
  const splitter = createLineSplitter()
  let sizeBytes = 0
  let lastByte = NEWLINE
  while (sizeBytes < limit) {
    const count = await file.read(chunk.subarray(0, Math.min(chunk.length, limit - sizeBytes)), sizeBytes)
    if (count === 0) break
    sizeBytes += count
    lastByte = chunk[count - 1] ?? NEWLINE
    visit(splitter.push(chunk.subarray(0, count)))
  }
  return { rest: splitter.end(), sizeBytes, endsInNewline: lastByte === NEWLINE }
}
