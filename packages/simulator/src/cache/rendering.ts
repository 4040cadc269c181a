/**
 * What of a block is part of the prompt, as text: markers and fields set to null are not, a string and one
 * text block are the same, and the order of a block's own fields does not matter while the order of keys
 * inside an input or a schema does. Two blocks are the same to the cache exactly when their renderings are.
 */
import { isObject } from '../api.ts'

type Fields = Readonly<Record<string, unknown>>

export function render(block: Fields): string {
  return JSON.stringify(normal(block))
}

function normal(block: Fields): Fields {
  const fields: Record<string, unknown> = {}
  for (const name of Object.keys(block).sort()) {
    if (isPart(name, block[name])) fields[name] = normalField(name, block[name])
  }
  return fields
}

function isPart(name: string, value: unknown): boolean {
  return name !== 'cache_control' && name !== 'cache_reference' && value !== null && value !== undefined
}

function normalField(name: string, value: unknown): unknown {
  if (name !== 'content') return value
  if (typeof value === 'string') return [{ text: value, type: 'text' }]
  return Array.isArray(value) ? value.map((item) => (isObject(item) ? normal(item) : item)) : value
}

/** The same question without rendering either: most blocks of a request have been seen before. */
export function sameBlock(one: Fields, other: Fields): boolean {
  let parts = 0
  for (const name in one) {
    if (!isPart(name, one[name])) continue
    if (!isPart(name, other[name]) || !sameField(name, one[name], other[name])) return false
    parts += 1
  }
  for (const name in other) if (isPart(name, other[name])) parts -= 1
  return parts === 0
}

function sameField(name: string, one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (name !== 'content') return sameValue(one, other)
  const [left, right] = [contentOf(one), contentOf(other)]
  if (!Array.isArray(left) || !Array.isArray(right)) return sameValue(left, right)
  return left.length === right.length && left.every((item, index) => sameItem(item, right[index]))
}

function contentOf(content: unknown): unknown {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function sameItem(one: unknown, other: unknown): boolean {
  return isObject(one) && isObject(other) ? sameBlock(one, other) : sameValue(one, other)
}

/** Deep equality, with keys in the same order. */
function sameValue(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one)) return Array.isArray(other) && sameList(one, other)
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  return sameList(names, Object.keys(other)) && names.every((name) => sameValue(one[name], other[name]))
}

function sameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => sameValue(item, other[index]))
}
