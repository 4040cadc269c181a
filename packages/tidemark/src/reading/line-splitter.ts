/** Bytes to lines, in whatever pieces the bytes come. A line longer than is allowed is let go as it goes by. */
import { Buffer, isUtf8 } from 'node:buffer'

export interface FedLine {
  /** Without its newline; empty where the line had to be set aside. */
  readonly text: string
  /** What its text does not show. */
  readonly flaw: string | null
}

export interface LineSplitter {
  /** The lines that end in these bytes. The bytes may be overwritten afterwards. */
  push(bytes: Buffer): readonly FedLine[]
  /** What stands behind the last newline. */
  end(): FedLine
}

const NEWLINE = 10
const NOT_UTF8 = 'the line has bytes that are not UTF-8; each was read as U+FFFD'

/** The beginning of a line whose end has not come. */
interface Carry {
  parts: Buffer[]
  sizeBytes: number
}

export function createLineSplitter(maxLineBytes: number): LineSplitter {
  const carry: Carry = { parts: [], sizeBytes: 0 }
  function finished(end: Buffer): FedLine {
    const { parts } = carry
    const sizeBytes = carry.sizeBytes + end.length
    carry.parts = []
    carry.sizeBytes = 0
    if (sizeBytes > maxLineBytes) return { text: '', flaw: tooLong(sizeBytes, maxLineBytes) }
    return lineOf(parts.length === 0 ? end : Buffer.concat([...parts, end]))
  }
  return {
    push(bytes) {
      const lines: FedLine[] = []
      let start = 0
      for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
        lines.push(finished(bytes.subarray(start, end)))
        start = end + 1
      }
      if (start < bytes.length) keep(carry, bytes.subarray(start), maxLineBytes)
      return lines
    },
    end: () => finished(Buffer.alloc(0)),
  }
}

function keep(carry: Carry, bytes: Buffer, maxLineBytes: number): void {
  carry.sizeBytes += bytes.length
  if (carry.sizeBytes > maxLineBytes) carry.parts = []
  else carry.parts.push(Buffer.from(bytes))
}

function lineOf(bytes: Buffer): FedLine {
  const text = bytes.toString('utf8')
  return { text, flaw: text.includes('\uFFFD') && !isUtf8(bytes) ? NOT_UTF8 : null }
}

function tooLong(sizeBytes: number, maxLineBytes: number): string {
  return `the line is ${sizeBytes} bytes long, more than the ${maxLineBytes} that are allowed; it is set aside`
}
