/**
 * Server-sent events: bytes or text in any pieces ↔ frames. Lines may end in LF, CR or CRLF; comments are skipped; one
 * byte order mark at the start is dropped; bytes that are not UTF-8 become U+FFFD. A frame is returned as soon as its
 * blank line is read.
 */
import { given } from '../optional-fields.ts'

export interface Frame {
  /** Absent if the frame has no `event` field. */
  readonly event?: string
  /** The `data` lines joined with LF; empty if there were none. */
  readonly data: string
  readonly id?: string
  /** Milliseconds to wait before reconnecting. */
  readonly retry?: number
}

export interface SseState {
  /** The first bytes of a character that the next chunk completes: at most three. */
  readonly cut: Uint8Array
  readonly begun: boolean
  /** The last chunk ended in CR: an LF at the start of the next one belongs to it. */
  readonly afterCr: boolean
  /** The current line, not yet complete. */
  readonly line: string
  readonly fields: readonly Field[]
}

type Field = readonly [name: string, value: string]

const NOTHING = new Uint8Array()

export const sseStart: SseState = { cut: NOTHING, begun: false, afterCr: false, line: '', fields: [] }

export function decodeSse(state: SseState, chunk: Uint8Array): readonly [SseState, readonly Frame[]] {
  const bytes = concat(state.cut, chunk)
  const whole = bytes.length - cutLength(bytes)
  return decodeSseText({ ...state, cut: bytes.slice(whole) }, decodeText(bytes.subarray(0, whole)))
}

function concat(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) return second
  const all = new Uint8Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}

/** With `stream`, an incomplete character at the end gives no text instead of U+FFFD. */
function decodeText(bytes: Uint8Array, stream = false): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream })
}

/** How many bytes at the end are an incomplete character: those for which the decoder waits. */
function cutLength(bytes: Uint8Array): number {
  if ((bytes.at(-1) ?? 0) < 0x80) return 0
  const lengths = [1, 2, 3].filter((length) => length <= bytes.length)
  return lengths.find((length) => decodeText(bytes.subarray(-length), true) === '') ?? 0
}

export function decodeSseText(state: SseState, text: string): readonly [SseState, readonly Frame[]] {
  if (text === '') return [state, []]
  const lines = skipStart(state, text).split(/\r\n|\r|\n/)
  const rest = lines.pop() ?? ''
  const frames: Frame[] = []
  let { line } = state
  let fields = [...state.fields]
  for (const piece of lines) {
    fields = takeLine(fields, line + piece, frames)
    line = ''
  }
  return [{ cut: state.cut, begun: true, afterCr: text.endsWith('\r'), line: line + rest, fields }, frames]
}

function skipStart(state: SseState, text: string): string {
  if (!state.begun) return text.startsWith('\ufeff') ? text.slice(1) : text
  return state.afterCr && text.startsWith('\n') ? text.slice(1) : text
}

/** Adds to `fields` in place, so that a frame of many lines is not copied once a line. */
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

/** The last field of a name counts, except `data`, whose lines are joined. */
function frameOf(fields: readonly Field[]): Frame | null {
  const last = new Map(fields)
  const event = last.get('event')
  if (!event && !last.has('data')) return null
  const [id, retry] = [last.get('id'), last.get('retry')]
  return {
    ...given({ event: event || undefined }),
    data: fields.flatMap(([name, value]) => (name === 'data' ? [value] : [])).join('\n'),
    ...given({
      id: id?.includes('\0') ? undefined : id,
      retry: retry !== undefined && /^\d+$/.test(retry) ? Number(retry) : undefined,
    }),
  }
}

export interface SseEnd {
  /** A frame without its blank line, or null. It may be complete or cut anywhere. */
  readonly rest: Frame | null
  /** The bytes ended inside a character. */
  readonly cutCharacter: boolean
}

export function endSse(state: SseState): SseEnd {
  const fields = [...state.fields, ...fieldsOf(state.line + decodeText(state.cut))]
  return { rest: frameOf(fields), cutCharacter: state.cut.length > 0 }
}

/** One frame as it is sent. A CR in the data arrives as LF: the format cannot express it. */
export function encodeFrame(frame: Frame): string {
  const event = frame.event === undefined ? '' : `event: ${oneLine(frame.event)}\n`
  const id = frame.id === undefined ? '' : `id: ${oneLine(frame.id)}\n`
  const retry = frame.retry === undefined ? '' : `retry: ${frame.retry}\n`
  const data = frame.data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${event}${id}${retry}${data.join('')}\n`
}

/** A line that readers skip. Servers send it to keep an idle connection open. */
export function encodeComment(text: string): string {
  return `: ${oneLine(text)}\n\n`
}

function oneLine(text: string): string {
  return text.replace(/[\r\n\0]+/g, ' ')
}
