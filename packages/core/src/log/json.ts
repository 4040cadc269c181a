/**
 * JSON values and JSON text: type checks, the depth limit, and reading text whose exact spelling must be kept (the
 * order of integer-like keys, integers over 2^53, `1.0`, duplicate keys).
 */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

/**
 * Levels of nesting a record may have, itself included. `JSON.parse` accepts any depth, but `JSON.stringify` and other
 * recursive functions overflow the stack after some thousand levels. Deeper values are refused wherever they enter.
 */
export const MAX_DEPTH = 1000

export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Also true for a value that contains itself. */
export function isTooDeep(value: unknown, levels: number = MAX_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  for (const item of Object.values(value)) if (isTooDeep(item, levels - 1)) return true
  return false
}

/**
 * The path of the first part of `value` that JSON cannot represent (undefined, NaN, a function, a Date, a cycle, a
 * gap in an array, more than `MAX_DEPTH` levels …), or null. A record that passes is unchanged by a JSON round trip
 * (law 1), except that -0 becomes 0.
 */
export function firstNonJson(value: unknown, path = '', open: readonly unknown[] = []): string | null {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return null
  if (typeof value === 'number') return Number.isFinite(value) ? null : path || '(value)'
  if (typeof value !== 'object' || open.includes(value)) return path || '(value)'
  if (open.length >= MAX_DEPTH || !isPlain(value)) return path || '(value)'
  const inside = [...open, value]
  for (const [key, item] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    const found = firstNonJson(item, path === '' ? `${key}` : `${path}.${key}`, inside)
    if (found !== null) return found
  }
  return null
}

/** An array may have no properties besides its items; gaps are found as undefined items. */
function isPlain(value: object): boolean {
  if (Array.isArray(value)) return Object.keys(value).length <= value.length
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const encoder = new TextEncoder()
/** Bytes are counted piece by piece in one buffer: a copy of the whole text would cost ten times as much. */
const buffer = new Uint8Array(65_536)

/** UTF-8 length of the JSON of `value`; null if it has none (a cycle, a bigint, too deep). */
export function jsonBytes(value: unknown): number | null {
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

// JSON text. These functions expect text that parses.

const SPACE = ' \t\n\r'
/** Characters that `JSON.stringify` may write differently. */
const ESCAPED = /[\\\ud800-\udfff]/

export interface Member {
  readonly key: string
  /** The JSON text of the value, unchanged. */
  readonly text: string
}

/** The parsed value, or undefined if the text is not JSON. */
export function readJson(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

/**
 * True if parse and stringify keep the members, their order and the numbers of the text. White space and the escaping
 * of strings do not matter.
 */
export function survives(text: string): boolean {
  try {
    const again = JSON.stringify(JSON.parse(text))
    return again === text || again === compact(text)
  } catch {
    return false
  }
}

/** The text if parse and stringify would change it, otherwise undefined. */
export function rawUnlessSurvives(text: string): string | undefined {
  return survives(text) ? undefined : text
}

/** The members of an object in order, duplicates included. The text must be valid JSON. */
export function membersOf(text: string): readonly Member[] {
  const members: Member[] = []
  for (let at = skipSpace(text, text.indexOf('{') + 1); text[at] === '"'; ) {
    const keyEnd = endOfString(text, at)
    const from = skipSpace(text, skipSpace(text, keyEnd) + 1)
    const to = endOfValue(text, from)
    members.push({ key: JSON.parse(text.slice(at, keyEnd)), text: text.slice(from, to) })
    at = afterComma(text, to)
  }
  return members
}

/** The text of each element of an array. The text must be valid JSON. */
export function elementsOf(text: string): readonly string[] {
  const elements: string[] = []
  const start = skipSpace(text, text.indexOf('[') + 1)
  for (let at = start; at < text.length && text[at] !== ']'; ) {
    const to = endOfValue(text, at)
    elements.push(text.slice(at, to))
    at = afterComma(text, to)
  }
  return elements
}

/** The text of the last member with this key, which is the one a parser uses. */
export function memberOf(text: string, key: string): string | undefined {
  return membersOf(text).findLast((member) => member.key === key)?.text
}

export function objectText(members: readonly Member[]): string {
  return `{${members.map(({ key, text }) => `${JSON.stringify(key)}:${text}`).join(',')}}`
}

export function arrayText(elements: readonly string[]): string {
  return `[${elements.join(',')}]`
}

/** `members` with `key` once: at its last old position, otherwise at the end. */
export function withMember(members: readonly Member[], key: string, text: string): readonly Member[] {
  const place = members.findLastIndex((member) => member.key === key)
  if (place === -1) return [...members, { key, text }]
  return members.flatMap((member, index) => {
    if (member.key !== key) return [member]
    return index === place ? [{ key, text }] : []
  })
}

export function withoutMember(members: readonly Member[], key: string): readonly Member[] {
  return members.filter((member) => member.key !== key)
}

function endOfValue(text: string, from: number): number {
  const first = text[from]
  if (first === '"') return endOfString(text, from)
  if (first === '{' || first === '[') return endOfNested(text, from)
  return endOfRun(text, from, `,]}${SPACE}`)
}

/** Counts brackets instead of recursing: a model may nest deeper than the stack allows. */
function endOfNested(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at += 1) {
    const character = text[at]
    if (character === '"') at = endOfString(text, at) - 1
    else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') depth -= 1
    if (depth === 0) return at + 1
  }
  return text.length
}

function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '"') return at + 1
  }
  return text.length
}

function afterComma(text: string, from: number): number {
  const at = skipSpace(text, from)
  return text[at] === ',' ? skipSpace(text, at + 1) : at
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && SPACE.includes(text.charAt(at))) at += 1
  return at
}

/** The text without white space, with strings escaped as `JSON.stringify` does. */
function compact(text: string): string {
  const parts: string[] = []
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const isString = text[at] === '"'
    const to = isString ? endOfString(text, at) : endOfRun(text, at, `"${SPACE}`)
    const part = text.slice(at, to)
    parts.push(isString && ESCAPED.test(part) ? JSON.stringify(JSON.parse(part)) : part)
    at = to
  }
  return parts.join('')
}

function endOfRun(text: string, from: number, stops: string): number {
  let at = from
  while (at < text.length && !stops.includes(text.charAt(at))) at += 1
  return at
}

/**
 * The exact texts of the blocks in `message.content` of a log line that parse and stringify would change. Such a block
 * is sent from its text: key order is part of the provider's cache key and of signed thinking.
 */
export function rawBlocksIn(line: string): readonly { readonly index: number; readonly text: string }[] {
  const message = isOpenedBy(line, '{') ? memberOf(line, 'message') : undefined
  const content = isOpenedBy(message, '{') ? memberOf(message, 'content') : undefined
  if (!isOpenedBy(content, '[')) return []
  return elementsOf(content).flatMap((text, index) => (survives(text) ? [] : [{ index, text }]))
}

function isOpenedBy(text: string | undefined, bracket: '{' | '['): text is string {
  return text?.trimStart().startsWith(bracket) === true
}
