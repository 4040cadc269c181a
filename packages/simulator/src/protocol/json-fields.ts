/**
 * Readers for hand-written JSON and YAML (scenarios and faults). A reader reports each problem with its path and
 * continues, so that all problems of a file are found in one pass.
 */
import { isObject, type Json, type JsonObject } from './api.ts'

export type Path = readonly (string | number)[]

interface Problem {
  readonly path: Path
  /** What was expected, and what was found. */
  readonly message: string
}

export interface Place {
  readonly path: Path
  readonly problems: Problem[]
}

/** Returns undefined if the value is not valid; the problem has then been added to `place.problems`. */
export type Reader<T> = (value: unknown, place: Place) => T | undefined

export type Readers<T> = { readonly [K in keyof T]-?: Reader<Exclude<T[K], undefined>> }

type Reading<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** Reads a whole document. Any problem, even in an optional field, makes the result a failure. */
export function readAll<T>(reader: Reader<T>, value: unknown): Reading<T> {
  const problems: Problem[] = []
  const read = reader(value, { path: [], problems })
  return read === undefined || problems.length > 0 ? { ok: false, problems } : { ok: true, value: read }
}

export function report(place: Place, message: string): undefined {
  place.problems.push({ path: place.path, message })
}

export function inside(place: Place, key: string | number): Place {
  return { path: [...place.path, key], problems: place.problems }
}

/** One line, such as `turns[2].calls[0].input: expected fields, found "a"`. */
export function problemText({ path, message }: Problem): string {
  if (path.length === 0) return message
  const place = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')
  return `${place.replace(/^\./, '')}: ${message}`
}

/** A reader from a function that returns null for invalid values. `what` completes "expected …". */
export function checked<T>(what: string, accepts: (value: unknown) => T | null): Reader<T> {
  return (value, place) =>
    accepts(value) ?? report(place, `expected ${what}, found ${shown(value)}`) ?? undefined
}

export const text: Reader<string> = checked('text', (value) => (typeof value === 'string' ? value : null))

export const flag: Reader<boolean> = (value, place) =>
  typeof value === 'boolean' ? value : report(place, `expected true or false, found ${shown(value)}`)

export function count(least: number, most: number = Number.MAX_SAFE_INTEGER): Reader<number> {
  const range =
    most === Number.MAX_SAFE_INTEGER
      ? `of at least ${least}`
      : `from ${least} to ${most.toLocaleString('en-GB')}`
  return checked(`a whole number ${range}`, (value) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
      ? value
      : null,
  )
}

export function oneOf<const T extends string>(...choices: readonly T[]): Reader<T> {
  return checked(
    `one of ${choices.join(', ')}`,
    (value) => choices.find((choice) => choice === value) ?? null,
  )
}

export function listOf<T>(item: Reader<T>, least = 0): Reader<readonly T[]> {
  return (value, place) => {
    if (!Array.isArray(value)) return report(place, `expected a list, found ${shown(value)}`)
    if (value.length < least) return report(place, `expected a list with at least ${least} in it, found none`)
    return value.flatMap((each: unknown, index) => item(each, inside(place, index)) ?? [])
  }
}

/** An object with any keys, whose values are all read by `item`. */
export function mapOf<T>(item: Reader<T>): Reader<Readonly<Record<string, T>>> {
  return (value, place) => {
    if (!isObject(value)) return report(place, `expected fields, found ${shown(value)}`)
    const entries = Object.entries(value).map(([key, each]) => [key, item(each, inside(place, key))] as const)
    return Object.fromEntries(entries.flatMap(([key, each]) => (each === undefined ? [] : [[key, each]])))
  }
}

/** An object with these fields and no others. All are optional: the caller checks what it needs. */
export function fieldsOf<T extends object>(readers: Readers<T>): Reader<Partial<T>> {
  const known = new Map<string, Reader<unknown>>(Object.entries(readers))
  return (value, place) => {
    if (!isObject(value)) return report(place, `expected fields, found ${shown(value)}`)
    const read: Record<string, unknown> = {}
    for (const [key, each] of Object.entries(value)) {
      const reader = known.get(key)
      if (reader === undefined)
        report(inside(place, key), `is not known here; known: ${[...known.keys()].join(', ')}`)
      else read[key] = reader(each, inside(place, key))
    }
    // The cast holds because each field was read by the reader of its name.
    return Object.fromEntries(Object.entries(read).filter(([, each]) => each !== undefined)) as Partial<T>
  }
}

export const jsonObject: Reader<JsonObject> = checked('fields', (value) =>
  isJsonObject(value) ? value : null,
)

/** Checks all values: YAML can yield dates and non-finite numbers, which JSON does not have. */
function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value) && Object.values(value).every(isJson)
}

export function isJson(value: unknown): value is Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  return Array.isArray(value) ? value.every(isJson) : isJsonObject(value)
}

/** A value for an error message: objects and lists by their kind, the rest shortened to 60 characters. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (isObject(value)) return 'fields'
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}
