import type { RawBlock } from './record.ts'

/** JSON values, and the questions asked of them from outside: is this JSON at all, and how deep? */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

/**
 * How many lists and objects a record may have inside each other, itself counted. A parser takes any number;
 * stringify, and whatever else walks a value by calling itself, runs out of stack after some thousands. What is
 * deeper is refused at every door, so that nothing behind a door has to ask.
 */
export const MAX_DEPTH = 1000

export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** True also of a value that holds itself. */
export function isTooDeep(value: unknown, levels: number = MAX_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  for (const item of Object.values(value)) if (isTooDeep(item, levels - 1)) return true
  return false
}

/**
 * The path of the first thing in `value` that JSON cannot carry (undefined, NaN, a function, a Date, a cycle, a
 * gap in a list, more than `MAX_DEPTH` levels …), or null. A record that passes is the same after a JSON round
 * trip (law 1), but for -0.
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

/** Of a list: it has nothing but its items. Gaps in it show as undefined. */
function isPlain(value: object): boolean {
  if (Array.isArray(value)) return Object.keys(value).length <= value.length
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const encoder = new TextEncoder()

/** UTF-8 bytes of the JSON of `value`; null for what has no JSON (a cycle, a big integer, bottomless nesting). */
export function jsonBytes(value: unknown): number | null {
  try {
    return encoder.encode(JSON.stringify(value) ?? 'null').length
  } catch {
    return null
  }
}

// JSON as text, for what a parsed value cannot hold: the order of integer-like keys, integers over 2^53,
// `1.0`, duplicate keys. Works on text that parses; says nothing about text that does not.

const SPACE = ' \t\n\r'
/** What a string may hold that stringify could spell otherwise. */
const ESCAPED = /[\\\ud800-\udfff]/

export interface Member {
  readonly key: string
  /** The value's text, as it stood. */
  readonly text: string
}

/** The value, or undefined where the text is no JSON. */
export function readJson(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

/**
 * The text comes out of parse and stringify saying the same: same members in the same order, same numbers.
 * White space and the way a string is escaped do not count.
 */
export function survives(text: string): boolean {
  try {
    const again = JSON.stringify(JSON.parse(text))
    return again === text || again === compact(text)
  } catch {
    return false
  }
}

/** The text, only where the parsed value would not say the same. */
export function rawUnlessSurvives(text: string): string | undefined {
  return survives(text) ? undefined : text
}

/** The members of an object's text in order, each of a duplicate too. */
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

/** The text of each element of an array's text. */
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

/** The text of the last member with that key: the one a parser takes. */
export function memberOf(text: string, key: string): string | undefined {
  return membersOf(text).findLast((member) => member.key === key)?.text
}

export function objectText(members: readonly Member[]): string {
  return `{${members.map(({ key, text }) => `${JSON.stringify(key)}:${text}`).join(',')}}`
}

export function arrayText(elements: readonly string[]): string {
  return `[${elements.join(',')}]`
}

/** `members` with `key` said once, in its old place or else at the end. */
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

/** Counts brackets instead of calling itself: a model may nest deeper than a stack. */
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

/** The text without white space, each string escaped as stringify would. */
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

// Blocks whose JSON text does not survive parse and stringify. Key order is part of a provider's cache key and
// of bound thinking, so such a block is sent from its text. This finds them in a line as it was written.

/** The exact texts of the blocks of `message.content` in `line` that parse and stringify would change. */
export function rawBlocksIn(line: string): readonly RawBlock[] {
  const message = isOpenedBy(line, '{') ? memberOf(line, 'message') : undefined
  const content = isOpenedBy(message, '{') ? memberOf(message, 'content') : undefined
  if (!isOpenedBy(content, '[')) return []
  return elementsOf(content).flatMap((text, index) => (survives(text) ? [] : [{ index, text }]))
}

function isOpenedBy(text: string | undefined, bracket: '{' | '['): text is string {
  return text?.trimStart().startsWith(bracket) === true
}
