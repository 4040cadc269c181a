/** Answers cut and slowed byte by byte, without a care for characters. */
import type { AnswerPiece } from '../server/answer.ts'
import type { FaultPlace } from './fault.ts'

type Bytes = Uint8Array<ArrayBuffer>

const encoder = new TextEncoder()

export function bytesOf(piece: string | Bytes): Bytes {
  return typeof piece === 'string' ? encoder.encode(piece) : piece
}

/** The pieces up to the first `length` bytes; whole where there are no more. */
export function firstPieces(pieces: readonly AnswerPiece[], length: number): readonly AnswerPiece[] {
  let left = length
  const kept: AnswerPiece[] = []
  for (const piece of pieces) {
    if (left <= 0) break
    const bytes = bytesOf(piece.bytes).subarray(0, left)
    kept.push({ ...piece, bytes })
    left -= bytes.length
  }
  return kept
}

/** How many bytes lie before the place; `otherwise` of them where it is not said. */
export function bytesBefore(
  pieces: readonly AnswerPiece[],
  { afterBytes, afterEvents }: FaultPlace,
  otherwise: (total: number) => number,
): number {
  const all = wholeOf(pieces)
  if (afterBytes !== undefined) return Math.min(afterBytes, all.length)
  if (afterEvents === undefined) return otherwise(all.length)
  return afterEvents === 0 ? 0 : (eventEnds(all)[afterEvents - 1] ?? all.length)
}

export function byteCount(pieces: readonly AnswerPiece[]): number {
  return wholeOf(pieces).length
}

export function eventCount(pieces: readonly AnswerPiece[]): number {
  return eventEnds(wholeOf(pieces)).length
}

const BLANK_LINE = Buffer.from('\n\n')

/** Where the events of a stream end, each with its empty line. */
function eventEnds(all: Buffer): readonly number[] {
  const ends: number[] = []
  for (let at = all.indexOf(BLANK_LINE); at >= 0; at = all.indexOf(BLANK_LINE, at + BLANK_LINE.length))
    ends.push(at + BLANK_LINE.length)
  return ends
}

/**
 * A place inside a character of several bytes: the first that begins at `from` or after it, else the last one
 * before. Null where the answer has no such character.
 */
export function insideCharacter(pieces: readonly AnswerPiece[], from: number): number | null {
  const all = wholeOf(pieces)
  const after = all.findIndex((byte, at) => at >= from && isLead(byte))
  const lead = after >= 0 ? after : all.findLastIndex((byte) => isLead(byte))
  return lead < 0 ? null : lead + 1
}

/** The first byte of a character that has more. */
function isLead(byte: number): boolean {
  return byte >= 0xc0
}

function wholeOf(pieces: readonly AnswerPiece[]): Buffer {
  return Buffer.concat(pieces.map((piece) => bytesOf(piece.bytes)))
}

/** Small pieces with a pause before each. */
export function dripped(pieces: readonly AnswerPiece[], size: number, ms: number): readonly AnswerPiece[] {
  return pieces.flatMap((piece) => {
    const bytes = bytesOf(piece.bytes)
    const count = Math.max(1, Math.ceil(bytes.length / size))
    return Array.from({ length: count }, (_, at) => ({
      bytes: bytes.subarray(at * size, (at + 1) * size),
      delayMs: at === 0 ? piece.delayMs + ms : ms,
    }))
  })
}
