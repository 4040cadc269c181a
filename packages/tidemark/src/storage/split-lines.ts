/** Bytes to lines: in large pieces, never the whole text at once, whatever the length of a line. */
import { Buffer, constants, isUtf8 } from 'node:buffer'
import type { OpenFile } from './file-system.ts'

export interface LineFlow {
  /** Every line that a newline ends, without it. */
  line(text: string): void
  /** Something about the line about to be given that its text no longer shows. */
  flaw(why: string): void
  /** A piece of the file is done. */
  piece(): void
}

export interface LinesEnd {
  /** What stands behind the last newline. */
  readonly rest: string
  readonly sizeBytes: number
  readonly endsInNewline: boolean
}

const PIECE_BYTES = 1 << 20
const NEWLINE = 10
const TOO_LONG = 'the line is longer than a text can be here; it is set aside'
const NOT_UTF8 = 'the line has bytes that are not UTF-8; each was read as U+FFFD'

/** Reads `file` up to `limit` bytes. */
export async function readLines(file: OpenFile, limit: number, flow: LineFlow): Promise<LinesEnd> {
  const piece = Buffer.allocUnsafe(Math.max(1, Math.min(PIECE_BYTES, limit)))
  const carry: Carry = { parts: [], sizeBytes: 0 }
  let size = 0
  let last = NEWLINE
  while (size < limit) {
    const count = await file.read(piece.subarray(0, Math.min(piece.length, limit - size)), size)
    if (count === 0) break
    size += count
    last = piece[count - 1] ?? NEWLINE
    splitPiece(piece.subarray(0, count), carry, flow)
    flow.piece()
  }
  return { rest: lineOf(carry, EMPTY, flow), sizeBytes: size, endsInNewline: last === NEWLINE }
}

/** The beginning of a line whose end is in a later piece. */
interface Carry {
  parts: Uint8Array[]
  sizeBytes: number
}

const EMPTY = Buffer.alloc(0)

function splitPiece(piece: Buffer, carry: Carry, flow: LineFlow): void {
  let start = 0
  for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, start)) {
    const bytes = piece.subarray(start, end)
    flow.line(carry.sizeBytes === 0 ? textOf(bytes, flow) : lineOf(carry, bytes, flow))
    start = end + 1
  }
  if (start < piece.length) keep(carry, piece.subarray(start))
}

/** Copies, since the piece is filled anew; of what is too long to become a text only the length is kept. */
function keep(carry: Carry, bytes: Buffer): void {
  carry.sizeBytes += bytes.length
  if (carry.sizeBytes > constants.MAX_STRING_LENGTH) carry.parts = []
  else carry.parts.push(Buffer.from(bytes))
}

function lineOf(carry: Carry, end: Buffer, flow: LineFlow): string {
  const { parts, sizeBytes } = carry
  carry.parts = []
  carry.sizeBytes = 0
  if (sizeBytes + end.length <= constants.MAX_STRING_LENGTH)
    return textOf(Buffer.concat([...parts, end]), flow)
  flow.flaw(TOO_LONG)
  return ''
}

function textOf(bytes: Buffer, flow: LineFlow): string {
  const text = bytes.toString('utf8')
  if (text.includes('\uFFFD') && !isUtf8(bytes)) flow.flaw(NOT_UTF8)
  return text
}

// Bytes to lines, in whatever pieces the bytes come. A line longer than is allowed is let go as it goes by.

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

const NEWLINE_LINE_SPLITTER = 10
const NOT_UTF8_LINE_SPLITTER = 'the line has bytes that are not UTF-8; each was read as U+FFFD'

/** The beginning of a line whose end has not come. */
interface CarryLineSplitter {
  parts: Buffer[]
  sizeBytes: number
}

export function createLineSplitter(maxLineBytes: number): LineSplitter {
  const carry: CarryLineSplitter = { parts: [], sizeBytes: 0 }
  function finished(end: Buffer): FedLine {
    const { parts } = carry
    const sizeBytes = carry.sizeBytes + end.length
    carry.parts = []
    carry.sizeBytes = 0
    if (sizeBytes > maxLineBytes) return { text: '', flaw: tooLong(sizeBytes, maxLineBytes) }
    return lineOfLineSplitter(parts.length === 0 ? end : Buffer.concat([...parts, end]))
  }
  return {
    push(bytes) {
      const lines: FedLine[] = []
      let start = 0
      for (
        let end = bytes.indexOf(NEWLINE_LINE_SPLITTER);
        end !== -1;
        end = bytes.indexOf(NEWLINE_LINE_SPLITTER, start)
      ) {
        lines.push(finished(bytes.subarray(start, end)))
        start = end + 1
      }
      if (start < bytes.length) keepLineSplitter(carry, bytes.subarray(start), maxLineBytes)
      return lines
    },
    end: () => finished(Buffer.alloc(0)),
  }
}

function keepLineSplitter(carry: CarryLineSplitter, bytes: Buffer, maxLineBytes: number): void {
  carry.sizeBytes += bytes.length
  if (carry.sizeBytes > maxLineBytes) carry.parts = []
  else carry.parts.push(Buffer.from(bytes))
}

function lineOfLineSplitter(bytes: Buffer): FedLine {
  const text = bytes.toString('utf8')
  return { text, flaw: text.includes('\uFFFD') && !isUtf8(bytes) ? NOT_UTF8_LINE_SPLITTER : null }
}

function tooLong(sizeBytes: number, maxLineBytes: number): string {
  return `the line is ${sizeBytes} bytes long, more than the ${maxLineBytes} that are allowed; it is set aside`
}
