/**
 * Readers for hand-written JSON and YAML (scenarios and faults). A reader reports each problem with its path and
 * continues, so that all problems of a file are found in one pass.
 */
import { isObject, type Json, type JsonObject } from './messages-request.ts'

export type ValuePath = readonly (string | number)[]

interface ReadProblem {
  readonly path: ValuePath
  /** Error text that says what was expected and what was found. */
  readonly message: string
}

export interface ReadContext {
  readonly path: ValuePath
  readonly problems: ReadProblem[]
}

/**
 * A function that reads a value of type `T`. If the value is not valid, it adds a problem to `place.problems` and
 * returns undefined.
 */
export type ValueReader<T> = (value: unknown, place: ReadContext) => T | undefined

export type FieldReaders<T> = { readonly [K in keyof T]-?: ValueReader<Exclude<T[K], undefined>> }

type ReadResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly ReadProblem[] }

/** Reads a whole document. Fails if there is any problem, even in an optional field. */
export function readDocument<T>(reader: ValueReader<T>, value: unknown): ReadResult<T> {
  const problems: ReadProblem[] = []
  const read = reader(value, { path: [], problems })
  return read === undefined || problems.length > 0 ? { ok: false, problems } : { ok: true, value: read }
}

export function addReadProblem(place: ReadContext, message: string): undefined {
  place.problems.push({ path: place.path, message })
}

export function enterField(place: ReadContext, key: string | number): ReadContext {
  return { path: [...place.path, key], problems: place.problems }
}

/** Formats a problem as one line, such as `turns[2].calls[0].input: expected fields, found "a"`. */
export function formatReadProblem({ path, message }: ReadProblem): string {
  if (path.length === 0) return message
  const place = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')
  return `${place.replace(/^\./, '')}: ${message}`
}

/**
 * Creates a reader from a function that returns null for invalid values. `what` describes a valid value in the error
 * message "expected …".
 */
export function createReader<T>(what: string, accepts: (value: unknown) => T | null): ValueReader<T> {
  return (value, place) =>
    accepts(value) ?? addReadProblem(place, `expected ${what}, found ${describeValue(value)}`) ?? undefined
}

export const textReader: ValueReader<string> = createReader('text', (value) =>
  typeof value === 'string' ? value : null,
)

export const booleanReader: ValueReader<boolean> = (value, place) =>
  typeof value === 'boolean'
    ? value
    : addReadProblem(place, `expected true or false, found ${describeValue(value)}`)

export function wholeNumberReader(
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
): ValueReader<number> {
  const range =
    most === Number.MAX_SAFE_INTEGER
      ? `of at least ${least}`
      : `from ${least} to ${most.toLocaleString('en-GB')}`
  return createReader(`a whole number ${range}`, (value) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
      ? value
      : null,
  )
}

export function choiceReader<const T extends string>(...choices: readonly T[]): ValueReader<T> {
  return createReader(
    `one of ${choices.join(', ')}`,
    (value) => choices.find((choice) => choice === value) ?? null,
  )
}

export function listReader<T>(item: ValueReader<T>, least = 0): ValueReader<readonly T[]> {
  return (value, place) => {
    if (!Array.isArray(value)) return addReadProblem(place, `expected a list, found ${describeValue(value)}`)
    if (value.length < least)
      return addReadProblem(place, `expected a list with at least ${least} in it, found none`)
    return value.flatMap((each: unknown, index) => item(each, enterField(place, index)) ?? [])
  }
}

/** Creates a reader for an object with arbitrary keys. `item` reads each value. */
export function mapReader<T>(item: ValueReader<T>): ValueReader<Readonly<Record<string, T>>> {
  return (value, place) => {
    if (!isObject(value)) return addReadProblem(place, `expected fields, found ${describeValue(value)}`)
    const entries = Object.entries(value).map(
      ([key, each]) => [key, item(each, enterField(place, key))] as const,
    )
    return Object.fromEntries(entries.flatMap(([key, each]) => (each === undefined ? [] : [[key, each]])))
  }
}

/**
 * Creates a reader for an object with these fields and no others. Fields that are missing or not valid are absent from
 * the result, so the caller checks for required ones.
 */
export function partialObjectReader<T extends object>(readers: FieldReaders<T>): ValueReader<Partial<T>> {
  const known = new Map<string, ValueReader<unknown>>(Object.entries(readers))
  return (value, place) => {
    if (!isObject(value)) return addReadProblem(place, `expected fields, found ${describeValue(value)}`)
    const read: Record<string, unknown> = {}
    for (const [key, each] of Object.entries(value)) {
      const reader = known.get(key)
      if (reader === undefined)
        addReadProblem(enterField(place, key), `is not known here; known: ${[...known.keys()].join(', ')}`)
      else read[key] = reader(each, enterField(place, key))
    }
    // The cast is safe because each value comes from the reader of its own field.
    return Object.fromEntries(Object.entries(read).filter(([, each]) => each !== undefined)) as Partial<T>
  }
}

export const jsonObjectReader: ValueReader<JsonObject> = createReader('fields', (value) =>
  isJsonObject(value) ? value : null,
)

/**
 * Checks that an object and all values inside it are JSON. YAML also has dates and non-finite numbers, which JSON
 * does not have.
 */
function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value) && Object.values(value).every(isJsonValue)
}

export function isJsonValue(value: unknown): value is Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  return Array.isArray(value) ? value.every(isJsonValue) : isJsonObject(value)
}

/** Deepest nesting of lists and objects in a body. A tool's schema needs a few dozen levels. */
const MAX_JSON_DEPTH = 200

/**
 * Returns an error text if lists and objects are nested deeper than the limit; otherwise null. It does not recurse,
 * because the stack would not be enough for a value that is nested too deeply.
 */
export function describeDeepNesting(value: unknown): string | null {
  let level: readonly unknown[] = [value]
  for (let depth = 0; depth <= MAX_JSON_DEPTH; depth += 1) {
    let isEmpty = true
    const next: unknown[] = []
    const add = (each: unknown): void => {
      isEmpty = false
      if (typeof each === 'object' && each !== null) next.push(each)
    }
    for (const each of level) {
      if (Array.isArray(each)) for (const item of each) add(item)
      else if (isObject(each)) for (const name in each) add(each[name])
    }
    if (isEmpty) return null
    level = next
  }
  return `it is nested deeper than ${MAX_JSON_DEPTH} levels`
}

/** Formats a value for an error message: objects and lists by their kind, other values shortened to 60 characters. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (isObject(value)) return 'fields'
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}
