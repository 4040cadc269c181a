/** JSON values, and the one question asked of them from outside: is this JSON at all? */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * The path of the first thing in `value` that JSON cannot carry (undefined, NaN, a function, a Date, a
 * cycle …), or null. A record that passes is the same after a JSON round trip (law 1), but for -0.
 */
export function firstNonJson(value: unknown, path = '', open: readonly unknown[] = []): string | null {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return null
  if (typeof value === 'number') return Number.isFinite(value) ? null : path || '(value)'
  if (typeof value !== 'object' || open.includes(value)) return path || '(value)'
  if (!Array.isArray(value) && !isPlain(value)) return path || '(value)'
  const inside = [...open, value]
  for (const [key, item] of Object.entries(value)) {
    const found = firstNonJson(item, path === '' ? key : `${path}.${key}`, inside)
    if (found !== null) return found
  }
  return null
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
