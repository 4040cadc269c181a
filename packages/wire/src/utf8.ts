/**
 * UTF-8 to text in pieces, for platforms whose decoder may not be named here. A character may lie across any
 * number of pieces; bytes that are no UTF-8 become U+FFFD, one for each longest broken sequence, as
 * everywhere on the web. A byte order mark is a character like any other.
 */
export interface Utf8State {
  /** The bits of the character under way. */
  readonly point: number
  /** Bytes it still needs; 0 between characters. */
  readonly needed: number
  /** What the next byte must lie within, or the sequence is broken. */
  readonly lower: number
  readonly upper: number
}

export const utf8Start: Utf8State = { point: 0, needed: 0, lower: 0x80, upper: 0xbf }

const REPLACEMENT = 0xfffd
/** Code units turned into a string at once; more arguments than this overflow some stacks. */
const RUN = 4096

export function decodeUtf8(state: Utf8State, bytes: Uint8Array): readonly [Utf8State, string] {
  const text = new Units()
  let now = state
  for (const byte of bytes) {
    if (now.needed === 0 && byte < 0x80) text.push(byte)
    else now = step(now, byte, text)
  }
  return [now, text.toString()]
}

/** What is left at the end: a character cut in the middle counts as one broken sequence. */
export function endUtf8(state: Utf8State): { readonly text: string; readonly cut: boolean } {
  return state.needed === 0 ? { text: '', cut: false } : { text: '\ufffd', cut: true }
}

function step(state: Utf8State, byte: number, text: Units): Utf8State {
  if (state.needed === 0) return lead(byte, text)
  if (byte < state.lower || byte > state.upper) {
    text.push(REPLACEMENT)
    return lead(byte, text)
  }
  const point = (state.point << 6) | (byte & 0x3f)
  if (state.needed > 1) return { ...utf8Start, point, needed: state.needed - 1 }
  text.push(point)
  return utf8Start
}

/** A first byte. The narrower ranges shut out overlong forms, surrogates and what lies beyond U+10FFFF. */
function lead(byte: number, text: Units): Utf8State {
  if (byte < 0x80) text.push(byte)
  else if (byte >= 0xc2 && byte <= 0xdf) return { ...utf8Start, point: byte & 0x1f, needed: 1 }
  else if (byte >= 0xe0 && byte <= 0xef) return { ...range3(byte), point: byte & 0x0f, needed: 2 }
  else if (byte >= 0xf0 && byte <= 0xf4) return { ...range4(byte), point: byte & 0x07, needed: 3 }
  else text.push(REPLACEMENT)
  return utf8Start
}

function range3(byte: number): Utf8State {
  return { ...utf8Start, lower: byte === 0xe0 ? 0xa0 : 0x80, upper: byte === 0xed ? 0x9f : 0xbf }
}

function range4(byte: number): Utf8State {
  return { ...utf8Start, lower: byte === 0xf0 ? 0x90 : 0x80, upper: byte === 0xf4 ? 0x8f : 0xbf }
}

/** Code units on their way to a string. */
class Units {
  #done = ''
  #units: number[] = []

  push(point: number): void {
    if (point < 0x10000) this.#units.push(point)
    else this.#units.push(0xd7c0 + (point >> 10), 0xdc00 | (point & 0x3ff))
    if (this.#units.length >= RUN) this.#flush()
  }

  #flush(): void {
    this.#done += String.fromCharCode(...this.#units)
    this.#units = []
  }

  toString(): string {
    this.#flush()
    return this.#done
  }
}
