/**
 * JSON values and JSON text: type checks, the depth limit, and functions that keep the exact spelling of JSON text
 * (the order of integer-like keys, integers over 2^53, `1.0`, duplicate keys).
 */

/** Any value that JSON can represent. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

/**
 * Maximum nesting depth of a record, counting the record itself as one level. `JSON.parse` accepts any depth, but
 * `JSON.stringify` and other recursive functions overflow the stack after some thousand levels. Log lines are checked
 * against this limit when they are read, and records before they are appended.
 */
export const MAX_JSON_DEPTH = 1000

/** True for an object that is no array. */
export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return isObject(value)
}

/** Returns true for a value with more than `levels` levels of nesting, and for a value that contains itself. */
export function isNestedTooDeep(value: unknown, levels: number = MAX_JSON_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  const items: readonly unknown[] = Array.isArray(value) ? value : Object.values(value)
  for (const item of items)
    if (typeof item === 'object' && item !== null && isNestedTooDeep(item, levels - 1)) return true
  return false
}

/**
 * Returns the path of the first part of `value` that JSON cannot represent (undefined, NaN, a function, a Date, a
 * cycle, a gap in an array, more than `MAX_JSON_DEPTH` levels …), or null if there is none. If the result is null, a
 * JSON round trip does not change `value`, except that -0 becomes 0.
 */
export function findNonJsonPath(value: unknown, path = '', open: readonly unknown[] = []): string | null {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return null
  if (typeof value === 'number') return Number.isFinite(value) ? null : path || '(value)'
  if (typeof value !== 'object' || open.includes(value)) return path || '(value)'
  if (open.length >= MAX_JSON_DEPTH || !isPlainValue(value)) return path || '(value)'
  const inside = [...open, value]
  for (const [key, item] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    const found = findNonJsonPath(item, path === '' ? `${key}` : `${path}.${key}`, inside)
    if (found !== null) return found
  }
  return null
}

/** Returns true for a plain object, and for an array without extra properties. Gaps in an array are not detected here. */
function isPlainValue(value: object): boolean {
  if (Array.isArray(value)) return Object.keys(value).length <= value.length
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Returns the number of characters in all strings of a value at any depth, which says how long it takes to read them. */
export function countStringCharacters(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let characters = 0
  for (const item of Array.isArray(value) ? value : Object.values(value))
    characters += countStringCharacters(item)
  return characters
}

const encoder = new TextEncoder()
/** Reused buffer for counting UTF-8 bytes in pieces. Encoding the whole text at once takes at least twice as long. */
const buffer = new Uint8Array(65_536)

/**
 * Returns the size of `value` as JSON in UTF-8 bytes; null if JSON cannot represent it (a cycle, a bigint, nested too deep).
 */
export function countJsonBytes(value: unknown): number | null {
  try {
    let text = JSON.stringify(value) ?? 'null'
    let bytes = 0
    while (text !== '') {
      const { read, written } = encoder.encodeInto(text, buffer)
      bytes += written
      text = text.slice(read)
    }
    return bytes
  } catch {
    return null
  }
}

const countedValues = new WeakMap<object, number | null>()

/** As `countJsonBytes`, for a value that never changes, such as a block of the log: counted once and remembered by identity. */
export function countJsonBytesOnce(value: object): number | null {
  const known = countedValues.get(value)
  if (known !== undefined) return known
  const bytes = countJsonBytes(value)
  countedValues.set(value, bytes)
  return bytes
}

// Functions on JSON text. They expect text that parses as JSON.

const WHITE_SPACE = ' \t\n\r'
/** Matches characters that `JSON.stringify` may escape differently from the original text. */
const ESCAPED = /[\\\ud800-\udfff]/

export interface JsonMember {
  readonly key: string
  /** The value of the member as JSON text, exactly as in the input. */
  readonly text: string
}

/** Parses JSON text. Returns undefined if the text is not valid JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

/**
 * Returns true if `JSON.parse` and `JSON.stringify` keep all members of the JSON text, their order, and the spelling of
 * numbers. White space and the escaping of strings may change.
 */
export function survivesJsonRoundTrip(text: string): boolean {
  try {
    const again = JSON.stringify(JSON.parse(text))
    return again === text || again === minifyJson(text)
  } catch {
    return false
  }
}

/**
 * Returns the JSON text itself if `JSON.parse` and `JSON.stringify` would change it, so that it must be kept; else undefined.
 */
export function findUnstableJsonText(text: string): string | undefined {
  return survivesJsonRoundTrip(text) ? undefined : text
}

/** Returns the members of a JSON object in order, duplicates included. The text must be valid JSON. */
export function splitJsonObject(text: string): readonly JsonMember[] {
  return splitJsonMembers(text, text.indexOf('{') + 1)
}

/** Returns the members of a JSON object within a text, from the one that begins at the index `from` on. */
export function splitJsonMembers(text: string, from: number): readonly JsonMember[] {
  const members: JsonMember[] = []
  for (let at = skipSpace(text, from); text[at] === '"'; ) {
    const keyEnd = skipString(text, at)
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    const to = skipValue(text, start)
    members.push({ key: JSON.parse(text.slice(at, keyEnd)), text: text.slice(start, to) })
    at = skipComma(text, to)
  }
  return members
}

/** Returns the text of each element of a JSON array. The text must be valid JSON. */
export function splitJsonArray(text: string): readonly string[] {
  const elements: string[] = []
  const start = skipSpace(text, text.indexOf('[') + 1)
  for (let at = start; at < text.length && text[at] !== ']'; ) {
    const to = skipValue(text, at)
    elements.push(text.slice(at, to))
    at = skipComma(text, to)
  }
  return elements
}

/**
 * Returns the value, as JSON text, of the last member with this key, since `JSON.parse` uses the last one too. Returns
 * undefined if there is none.
 */
export function findJsonMember(text: string, key: string): string | undefined {
  return splitJsonObject(text).findLast((member) => member.key === key)?.text
}

/** Joins members to the text of a JSON object; the text of each value stays as it is. */
export function formatJsonObject(members: readonly JsonMember[]): string {
  return `{${members.map(({ key, text }) => `${JSON.stringify(key)}:${text}`).join(',')}}`
}

export function formatJsonArray(elements: readonly string[]): string {
  return `[${elements.join(',')}]`
}

/**
 * Sets the member `key` in a list of JSON members and removes its duplicates. The member takes the place of the last
 * duplicate, or the end of the list if the key is new.
 */
export function withJsonMember(
  members: readonly JsonMember[],
  key: string,
  text: string,
): readonly JsonMember[] {
  const place = members.findLastIndex((member) => member.key === key)
  if (place === -1) return [...members, { key, text }]
  return members.flatMap((member, index) => {
    if (member.key !== key) return [member]
    return index === place ? [{ key, text }] : []
  })
}

export function withoutJsonMember(members: readonly JsonMember[], key: string): readonly JsonMember[] {
  return members.filter((member) => member.key !== key)
}

function skipValue(text: string, from: number): number {
  const first = text[from]
  if (first === '"') return skipString(text, from)
  if (first === '{' || first === '[') return skipNested(text, from)
  return skipUntil(text, from, `,]}${WHITE_SPACE}`)
}

/** Counts brackets instead of recursing, because JSON written by a model may be nested too deep for the stack. */
function skipNested(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at += 1) {
    const character = text[at]
    if (character === '"') at = skipString(text, at) - 1
    else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') depth -= 1
    if (depth === 0) return at + 1
  }
  return text.length
}

function skipString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '"') return at + 1
  }
  return text.length
}

function skipComma(text: string, from: number): number {
  const at = skipSpace(text, from)
  return text[at] === ',' ? skipSpace(text, at + 1) : at
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && WHITE_SPACE.includes(text.charAt(at))) at += 1
  return at
}

/** Returns the JSON text without white space, with strings escaped as `JSON.stringify` does. */
function minifyJson(text: string): string {
  const parts: string[] = []
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const isString = text[at] === '"'
    const to = isString ? skipString(text, at) : skipUntil(text, at, `"${WHITE_SPACE}`)
    const part = text.slice(at, to)
    parts.push(isString && ESCAPED.test(part) ? JSON.stringify(JSON.parse(part)) : part)
    at = to
  }
  return parts.join('')
}

function skipUntil(text: string, from: number, stops: string): number {
  let at = from
  while (at < text.length && !stops.includes(text.charAt(at))) at += 1
  return at
}

/**
 * Returns the exact JSON text of each block in `message.content` of a log line that parse and stringify would change.
 * Such a block must be sent as this text: a different key order would miss the provider's cache and invalidate signed
 * thinking.
 */
export function findUnstableBlockTexts(
  line: string,
): readonly { readonly index: number; readonly text: string }[] {
  const message = hasOpening(line, '{') ? findJsonMember(line, 'message') : undefined
  const content = hasOpening(message, '{') ? findJsonMember(message, 'content') : undefined
  if (!hasOpening(content, '[')) return []
  return splitJsonArray(content).flatMap((text, index) =>
    survivesJsonRoundTrip(text) ? [] : [{ index, text }],
  )
}

function hasOpening(text: string | undefined, bracket: '{' | '['): text is string {
  return text?.trimStart().startsWith(bracket) === true
}

/** Returns the object without fields that are undefined. Optional fields must be absent rather than undefined. */
export function omitUndefined<T extends object>(fields: T): DefinedFields<T> {
  const defined: DefinedFields<T> = {}
  for (const name of Object.keys(fields) as (keyof T)[]) {
    const value = fields[name]
    if (value !== undefined) defined[name] = value as Exclude<T[keyof T], undefined>
  }
  return defined
}

type DefinedFields<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
