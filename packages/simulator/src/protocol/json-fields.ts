/**
 * Reading what people wrote by hand (scenarios, faults) into what the code works with. A reader reports every
 * problem with its path and reads on, so that one look at a file tells all that is wrong with it.
 */
import { isObject, type Json, type JsonObject } from './api.ts'

export type Path = readonly (string | number)[]

export interface Problem {
  readonly path: Path
  /** What was expected, and what was found. */
  readonly message: string
}

export interface Place {
  readonly path: Path
  readonly problems: Problem[]
}

/** Undefined where the value is not what it should be; that has then been reported. */
export type Reader<T> = (value: unknown, place: Place) => T | undefined

export type Readers<T> = { readonly [K in keyof T]-?: Reader<Exclude<T[K], undefined>> }

export type Reading<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] }

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

/** `turns[2].calls[0].input` */
export function pathText(path: Path): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')
  return text.replace(/^\./, '')
}

export function problemText({ path, message }: Problem): string {
  return path.length === 0 ? message : `${pathText(path)}: ${message}`
}

/** A reader out of a test: `what` finishes the sentence "expected …". */
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

/** Any keys, one kind of value. */
export function mapOf<T>(item: Reader<T>): Reader<Readonly<Record<string, T>>> {
  return (value, place) => {
    if (!isObject(value)) return report(place, `expected fields, found ${shown(value)}`)
    const entries = Object.entries(value).map(([key, each]) => [key, item(each, inside(place, key))] as const)
    return Object.fromEntries(entries.flatMap(([key, each]) => (each === undefined ? [] : [[key, each]])))
  }
}

/** Known fields and no others; none of them is required here. */
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
    // Each field was read by the reader of its name.
    return Object.fromEntries(Object.entries(read).filter(([, each]) => each !== undefined)) as Partial<T>
  }
}

export const jsonObject: Reader<JsonObject> = checked('fields', (value) =>
  isJsonObject(value) ? value : null,
)

/** What came out of JSON or YAML has no functions in it, but a script in TypeScript may hand us anything. */
function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value) && Object.values(value).every(isJson)
}

export function isJson(value: unknown): value is Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  return Array.isArray(value) ? value.every(isJson) : isJsonObject(value)
}

/** A value in an error message: short, and what kind of thing it is. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (isObject(value)) return 'fields'
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}
