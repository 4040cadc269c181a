/**
 * JSON as text, for what a parsed value cannot hold: the order of integer-like keys, integers over 2^53,
 * `1.0`, duplicate keys. Works on text that parses; says nothing about text that does not.
 */
import type { Json } from './json.ts'
import type { RawBlock } from './record.ts'

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
