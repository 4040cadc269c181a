/** Equality of what is sent. The order of keys counts: a provider caches bytes. Cache markers do not count. */
import type { Block } from '../conversation/block.ts'
import { isObject } from '../conversation/json.ts'

const MARKER = 'cache_control'
/** Where blocks lie inside a block, and may have markers of their own. */
const INNER = new Set(['content', 'source'])

export function sameBlock(one: Block, other: Block): boolean {
  return same(one, other, true)
}

export function sameJson(one: unknown, other: unknown): boolean {
  return same(one, other, false)
}

/** `bare`: markers are left out of the comparison here, and where blocks lie further in. */
function same(one: unknown, other: unknown, bare: boolean): boolean {
  if (one === other) return true
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, index) => same(item, other[index], bare))
  }
  if (!isObject(one) || !isObject(other)) return false
  return sameFields(one, other, bare)
}

type Fields = { readonly [field: string]: unknown }

function sameFields(one: Fields, other: Fields, bare: boolean): boolean {
  const keys = keysOf(one, bare)
  const others = keysOf(other, bare)
  if (keys.length !== others.length) return false
  return keys.every(
    (key, index) => key === others[index] && same(one[key], other[key], bare && INNER.has(key)),
  )
}

/** What is undefined is not sent. */
function keysOf(fields: Fields, bare: boolean): readonly string[] {
  return Object.keys(fields).filter((key) => fields[key] !== undefined && !(bare && key === MARKER))
}
