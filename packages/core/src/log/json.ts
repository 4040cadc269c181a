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
