/** JSON values of unknown shape: settings files, tool inputs, answers of servers. */

export interface JsonObject {
  readonly [key: string]: Json
}

type Json = null | boolean | number | string | readonly Json[] | JsonObject

/** Returns true for objects that are not arrays or null. */
export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns a copy of a JSON-like value with every string in it changed by `change`; keys, and objects with methods, are kept. */
export function mapStrings<Value>(value: Value, change: (text: string) => string): Value {
  return mapValue(value, change) as Value
}

function mapValue(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item) => mapValue(item, change))
  if (!isPlainObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mapValue(item, change)]))
}

/** False for objects with methods, such as an `AbortSignal`, which are not copied. */
function isPlainObject(value: unknown): value is object {
  return isObject(value) && Object.getPrototypeOf(value) === Object.prototype
}
