import { given } from '../optional-fields.ts'

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

// Server-sent events: bytes or text in any pieces ↔ frames. Lines may end in LF, CR or CRLF; comments are
// skipped; one byte order mark at the start is dropped. A frame is given out as soon as its blank line is read.

export interface Frame {
  /** Absent where the frame named none. */
  readonly event?: string
  /** Lines joined with LF; empty where there was none. */
  readonly data: string
  readonly id?: string
  /** Milliseconds to wait before connecting anew. */
  readonly retry?: number
}

export interface SseState {
  readonly utf8: Utf8State
  readonly begun: boolean
  /** The last piece ended in CR: an LF that comes first belongs to it. */
  readonly afterCr: boolean
  /** The line under way. */
  readonly line: string
  readonly fields: readonly Field[]
}

type Field = readonly [name: string, value: string]

export const sseStart: SseState = { utf8: utf8Start, begun: false, afterCr: false, line: '', fields: [] }

export function decodeSse(state: SseState, chunk: Uint8Array): readonly [SseState, readonly Frame[]] {
  const [utf8, text] = decodeUtf8(state.utf8, chunk)
  return decodeSseText({ ...state, utf8 }, text)
}

export function decodeSseText(state: SseState, text: string): readonly [SseState, readonly Frame[]] {
  if (text === '') return [state, []]
  const clean = skipStart(state, text)
  const lines = clean.split(/\r\n|\r|\n/)
  const rest = lines.pop() ?? ''
  const frames: Frame[] = []
  let { line } = state
  let fields = [...state.fields]
  for (const piece of lines) {
    fields = takeLine(fields, line + piece, frames)
    line = ''
  }
  return [{ utf8: state.utf8, begun: true, afterCr: text.endsWith('\r'), line: line + rest, fields }, frames]
}

export interface SseEnd {
  /** What there was of a frame without its blank line, or null. It may be whole or cut anywhere. */
  readonly rest: Frame | null
  /** The bytes stopped in the middle of a character. */
  readonly cutCharacter: boolean
}

export function endSse(state: SseState): SseEnd {
  const { text, cut } = endUtf8(state.utf8)
  const fields = [...state.fields, ...fieldsOf(state.line + text)]
  return { rest: frameOf(fields), cutCharacter: cut }
}

/** One frame as it goes over the wire. A CR in the data arrives as LF: the format has no other way to say it. */
export function encodeFrame(frame: Frame): string {
  const event = frame.event === undefined ? '' : `event: ${oneLine(frame.event)}\n`
  const id = frame.id === undefined ? '' : `id: ${oneLine(frame.id)}\n`
  const retry = frame.retry === undefined ? '' : `retry: ${frame.retry}\n`
  const data = frame.data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${event}${id}${retry}${data.join('')}\n`
}

/** A line that readers skip: keeps a quiet connection open. */
export function encodeComment(text: string): string {
  return `: ${oneLine(text)}\n\n`
}

function skipStart(state: SseState, text: string): string {
  if (!state.begun) return text.startsWith('\ufeff') ? text.slice(1) : text
  return state.afterCr && text.startsWith('\n') ? text.slice(1) : text
}

/** Adds to `fields` in place: a frame of many lines must not be copied once a line. */
function takeLine(fields: Field[], line: string, frames: Frame[]): Field[] {
  fields.push(...fieldsOf(line))
  if (line !== '') return fields
  const frame = frameOf(fields)
  if (frame !== null) frames.push(frame)
  return []
}

function fieldsOf(line: string): readonly Field[] {
  const colon = line.indexOf(':')
  if (line === '' || colon === 0) return []
  if (colon === -1) return [[line, '']]
  return [[line.slice(0, colon), line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)]]
}

function frameOf(fields: readonly Field[]): Frame | null {
  const last = new Map(fields)
  const event = last.get('event')
  if (!event && !last.has('data')) return null
  const id = last.get('id')
  const retry = last.get('retry')
  return {
    ...given({ event: event || undefined }),
    data: fields.flatMap(([name, value]) => (name === 'data' ? [value] : [])).join('\n'),
    ...given({ id: id?.includes('\0') ? undefined : id }),
    ...given({ retry: retry !== undefined && /^\d+$/.test(retry) ? Number(retry) : undefined }),
  }
}

function oneLine(text: string): string {
  return text.replace(/[\r\n\0]+/g, ' ')
}
