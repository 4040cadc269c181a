/**
 * Decodes and encodes server-sent events (SSE). Input may be cut into chunks anywhere. Lines may end in LF, CR or CRLF;
 * comments and a byte order mark at the start are skipped; bytes that are not UTF-8 become U+FFFD. A frame is returned
 * as soon as the blank line after it arrives.
 */
import { omitUndefined } from '@tidemark/core/log/json'

export interface SseFrame {
  /** Value of the frame's `event` field; absent if the frame has none. */
  readonly event?: string
  /** The frame's `data` lines, joined with LF; empty if there are none. */
  readonly data: string
  readonly id?: string
  /** Milliseconds to wait before reconnecting. */
  readonly retry?: number
}

export interface SseState {
  /** The first bytes (at most three) of a character that the next chunk completes. */
  readonly incompleteBytes: Uint8Array
  readonly hasStarted: boolean
  /** True if the last chunk ended in CR. An LF at the start of the next chunk is then part of the same line ending. */
  readonly endsWithCr: boolean
  /** Text of the current line, whose line ending has not arrived yet. */
  readonly line: string
  readonly fields: readonly SseField[]
}

type SseField = readonly [name: string, value: string]

const NO_BYTES = new Uint8Array()

export const initialSseState: SseState = {
  incompleteBytes: NO_BYTES,
  hasStarted: false,
  endsWithCr: false,
  line: '',
  fields: [],
}

/** Returns the next state, and the frames that the chunk completes. */
export function decodeSseBytes(state: SseState, chunk: Uint8Array): readonly [SseState, readonly SseFrame[]] {
  const bytes = joinBytes(state.incompleteBytes, chunk)
  const whole = bytes.length - countIncompleteBytes(bytes)
  return decodeSseText(
    { ...state, incompleteBytes: bytes.slice(whole) },
    decodeText(bytes.subarray(0, whole)),
  )
}

function joinBytes(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) return second
  const all = new Uint8Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}

/** Decodes UTF-8. With `stream`, an incomplete character at the end is omitted; otherwise it becomes U+FFFD. */
function decodeText(bytes: Uint8Array, stream = false): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream })
}

/** Returns how many bytes at the end belong to a UTF-8 character that is not complete. */
function countIncompleteBytes(bytes: Uint8Array): number {
  if ((bytes.at(-1) ?? 0) < 0x80) return 0
  const lengths = [1, 2, 3].filter((length) => length <= bytes.length)
  return lengths.find((length) => decodeText(bytes.subarray(-length), true) === '') ?? 0
}

export function decodeSseText(state: SseState, text: string): readonly [SseState, readonly SseFrame[]] {
  if (text === '') return [state, []]
  const lines = dropLineStart(state, text).split(/\r\n|\r|\n/)
  const rest = lines.pop() ?? ''
  const frames: SseFrame[] = []
  let { line } = state
  let fields = [...state.fields]
  for (const piece of lines) {
    fields = addLine(fields, line + piece, frames)
    line = ''
  }
  return [
    {
      incompleteBytes: state.incompleteBytes,
      hasStarted: true,
      endsWithCr: text.endsWith('\r'),
      line: line + rest,
      fields,
    },
    frames,
  ]
}

function dropLineStart(state: SseState, text: string): string {
  if (!state.hasStarted) return text.startsWith('\ufeff') ? text.slice(1) : text
  return state.endsWithCr && text.startsWith('\n') ? text.slice(1) : text
}

/**
 * Adds the field in a line to `fields`, in place to avoid a copy per line. A blank line adds a frame to `frames` and
 * starts a new field list.
 */
function addLine(fields: SseField[], line: string, frames: SseFrame[]): SseField[] {
  fields.push(...parseField(line))
  if (line !== '') return fields
  const frame = toSseFrame(fields)
  if (frame !== null) frames.push(frame)
  return []
}

function parseField(line: string): readonly SseField[] {
  const colon = line.indexOf(':')
  if (line === '' || colon === 0) return []
  if (colon === -1) return [[line, '']]
  return [[line.slice(0, colon), line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)]]
}

/**
 * Builds a frame from its fields. `data` fields are joined; of any other field, the last value is used. Returns null if
 * there is neither an event nor data.
 */
function toSseFrame(fields: readonly SseField[]): SseFrame | null {
  const last = new Map(fields)
  const event = last.get('event')
  if (!event && !last.has('data')) return null
  const [id, retry] = [last.get('id'), last.get('retry')]
  return {
    ...omitUndefined({ event: event || undefined }),
    data: fields.flatMap(([name, value]) => (name === 'data' ? [value] : [])).join('\n'),
    ...omitUndefined({
      id: id?.includes('\0') ? undefined : id,
      retry: retry !== undefined && /^\d+$/.test(retry) ? Number(retry) : undefined,
    }),
  }
}

export interface SseRemainder {
  /** The last frame, if the input ended before the blank line after it; otherwise null. Its data may be incomplete. */
  readonly rest: SseFrame | null
  /** True if the input ended in the middle of a UTF-8 character. */
  readonly cutCharacter: boolean
}

export function finishSse(state: SseState): SseRemainder {
  const fields = [...state.fields, ...parseField(state.line + decodeText(state.incompleteBytes))]
  return { rest: toSseFrame(fields), cutCharacter: state.incompleteBytes.length > 0 }
}

/** Encodes a frame as text. A CR in the data is received as LF, because SSE treats it as a line ending. */
export function encodeSseFrame(frame: SseFrame): string {
  const event = frame.event === undefined ? '' : `event: ${toSingleLine(frame.event)}\n`
  const id = frame.id === undefined ? '' : `id: ${toSingleLine(frame.id)}\n`
  const retry = frame.retry === undefined ? '' : `retry: ${frame.retry}\n`
  const data = frame.data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${event}${id}${retry}${data.join('')}\n`
}

function toSingleLine(text: string): string {
  return text.replace(/[\r\n\0]+/g, ' ')
}
