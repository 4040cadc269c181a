/** Text to UTF-8 and back, exactly, for platforms whose coders may not be named here. */

/** Null for a text that UTF-8 cannot hold: one with half of a surrogate pair in it. */
export function encodeUtf8(text: string): Uint8Array | null {
  const bytes = new Uint8Array(text.length * 3)
  let length = 0
  for (let index = 0; index < text.length; index += 1) {
    const point = text.codePointAt(index) ?? 0
    if (point >= 0xd800 && point <= 0xdfff) return null
    if (point > 0xffff) index += 1
    length = writePoint(bytes, length, point)
  }
  return bytes.slice(0, length)
}

/** The first byte of a character with so many more. */
const LEADS = [0, 0xc0, 0xe0, 0xf0]

function writePoint(bytes: Uint8Array, at: number, point: number): number {
  if (point < 0x80) {
    bytes[at] = point
    return at + 1
  }
  const more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3
  bytes[at] = (LEADS[more] ?? 0) | (point >> (6 * more))
  for (let step = 1; step <= more; step += 1) {
    bytes[at + step] = 0x80 | ((point >> (6 * (more - step))) & 0x3f)
  }
  return at + more + 1
}

/** Null for bytes that are no UTF-8: what was put aside here always is. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  const pieces: string[] = []
  let units: number[] = []
  for (let at = 0; at < bytes.length; ) {
    const read = readPoint(bytes, at)
    if (read === null) return null
    units.push(read.point)
    at += read.length
    if (units.length >= 4096) {
      pieces.push(String.fromCodePoint(...units))
      units = []
    }
  }
  return pieces.join('') + String.fromCodePoint(...units)
}

const LEAST = [0, 0x80, 0x800, 0x10000]

function readPoint(
  bytes: Uint8Array,
  at: number,
): { readonly point: number; readonly length: number } | null {
  const first = bytes[at] ?? 0
  if (first < 0x80) return { point: first, length: 1 }
  const more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1
  if (first < 0xc2 || first > 0xf4 || at + more >= bytes.length) return null
  let point = first & (0x3f >> more)
  for (let step = 1; step <= more; step += 1) {
    const byte = bytes[at + step] ?? 0
    if ((byte & 0xc0) !== 0x80) return null
    point = (point << 6) | (byte & 0x3f)
  }
  const isSurrogate = point >= 0xd800 && point <= 0xdfff
  const isSound = point >= (LEAST[more] ?? 0) && point <= 0x10ffff && !isSurrogate
  return isSound ? { point, length: more + 1 } : null
}
