/**
 * Tables of settings, in which each field has a default and a check. An object is read and checked against such a
 * table. The error for an unknown field suggests the name that was probably meant.
 */

/** Checks the value of a field. `allowed` completes the sentence "allowed is …" in an error message. */
export interface FieldCheck<T> {
  readonly allowed: string
  accepts(value: unknown): value is T
}

/** Accepts whole numbers in a range, for example a number of tokens or seconds. */
export function wholeNumberCheck(least = 0, most: number = Number.MAX_SAFE_INTEGER): FieldCheck<number> {
  const accepts = (value: unknown): value is number =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
  return { allowed: `a whole number ${formatRange(least, most)}`, accepts }
}

/** Accepts finite numbers in a range, for example a ratio or a factor. */
export function decimalNumberCheck(least: number, most: number): FieldCheck<number> {
  const accepts = (value: unknown): value is number =>
    typeof value === 'number' && Number.isFinite(value) && value >= least && value <= most
  return { allowed: `a number ${formatRange(least, most)}`, accepts }
}

/** Accepts percentages: 25 means 25%, and 0.25 means a quarter of one percent. Fractions such as 12.5 are allowed. */
export function percentageCheck(least = 0.1, most = 100): FieldCheck<number> {
  const { accepts } = decimalNumberCheck(least, most)
  return { allowed: `a percentage from ${least} to ${most} (25 means 25%)`, accepts }
}

export function booleanCheck(): FieldCheck<boolean> {
  return { allowed: 'true or false', accepts: (value): value is boolean => typeof value === 'boolean' }
}

export function stringCheck(): FieldCheck<string> {
  return { allowed: 'a string', accepts: (value): value is string => typeof value === 'string' }
}

/** Accepts strings that are not blank. */
export function nonBlankCheck(): FieldCheck<string> {
  const accepts = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''
  return { allowed: 'a string that is not blank', accepts }
}

export function choiceCheck<const T extends string>(...choices: readonly T[]): FieldCheck<T> {
  const accepts = (value: unknown): value is T => choices.some((choice) => choice === value)
  return { allowed: choices.map((choice) => `'${choice}'`).join(' or '), accepts }
}

/** Accepts lists without duplicates; the order does not matter. */
export function uniqueListCheck<T>(item: FieldCheck<T>): FieldCheck<readonly T[]> {
  const accepts = (value: unknown): value is readonly T[] =>
    Array.isArray(value) && Array.from(value).every(item.accepts) && new Set(value).size === value.length
  return { allowed: `a list without repeats, each item ${item.allowed}`, accepts }
}

/** Accepts null, and what `check` accepts. */
export function nullableCheck<T>(check: FieldCheck<T>): FieldCheck<T | null> {
  const accepts = (value: unknown): value is T | null => value === null || check.accepts(value)
  return { allowed: `${check.allowed}, or null`, accepts }
}

/** Accepts what one of two checks accepts. */
export function eitherCheck<A, B>(one: FieldCheck<A>, other: FieldCheck<B>): FieldCheck<A | B> {
  const accepts = (value: unknown): value is A | B => one.accepts(value) || other.accepts(value)
  return { allowed: `${one.allowed}, or ${other.allowed}`, accepts }
}

function formatRange(least: number, most: number): string {
  return most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`
}

// Tables of fields: a tree with the default and the check of every field of an object type.

type FieldValue = string | number | boolean | null | readonly unknown[]

export interface FieldSpec<T> {
  readonly defaultValue: T
  readonly check: FieldCheck<T>
}

/** A table with one `FieldSpec` (default and check) for every leaf field of `T`. The compiler reports a missing field. */
export type FieldSpecs<T> = {
  readonly [K in keyof T]: [T[K]] extends [FieldValue] ? FieldSpec<T[K]> : FieldSpecs<T[K]>
}

/** A `FieldSpecs` table without its type parameter, for code that visits every field. */
export interface FieldSpecTree {
  readonly [name: string]: FieldSpec<unknown> | FieldSpecTree
}

/** An object in which every field of `T` may be omitted, at any depth. A given list replaces the default list. */
export type DeepPartial<T> = {
  readonly [K in keyof T]?: ([T[K]] extends [FieldValue] ? T[K] : DeepPartial<T[K]>) | undefined
}

export function fieldSpec<T>(fallback: T, check: FieldCheck<T>): FieldSpec<T> {
  return { defaultValue: fallback, check }
}

export function isFieldSpec(node: FieldSpec<unknown> | FieldSpecTree): node is FieldSpec<unknown> {
  return typeof (node as FieldSpec<unknown>).check?.accepts === 'function'
}

/** Returns the dotted path of every leaf field, in the order of the table. */
export function listFieldPaths(tree: FieldSpecTree, path = ''): readonly string[] {
  return Object.entries(tree).flatMap(([key, node]) =>
    isFieldSpec(node) ? [joinPath(path, key)] : listFieldPaths(node, joinPath(path, key)),
  )
}

function joinPath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}

// Reads an object against a table of fields. All problems are collected, not only the first.

/** An invalid or unknown field, with what would be allowed. */
export interface FieldProblem {
  /** Dotted path of the field, as in `clear.idle.keep`; empty for the whole object. */
  readonly path: string
  /** The given value, formatted for an error message. */
  readonly given: string
  readonly allowed: string
  /** The complete error message: path, given value, and allowed values. */
  readonly message: string
}

interface ReadFieldsResult {
  /** Frozen object with every field of the table. A missing or invalid field has its default value. */
  readonly value: unknown
  readonly problems: readonly FieldProblem[]
}

export function createFieldProblem(path: string, given: unknown, allowed: string): FieldProblem {
  const shown = formatErrorValue(given)
  const message = `${path === '' ? 'at the top' : path}: got ${shown}, allowed is ${allowed}`
  return { path, given: shown, allowed, message }
}

/**
 * Reads and checks the object `given` against the table `tree`. Never throws: invalid fields get their default and are listed
 * as problems, with all others. For a nested group, `root` is the whole table and `path` the dotted path of the group.
 */
export function readFields(
  tree: FieldSpecTree,
  given: unknown,
  path = '',
  root: FieldSpecTree = tree,
): ReadFieldsResult {
  const fields = given === undefined ? {} : toPlainFields(given)
  const problems: FieldProblem[] = []
  const known = Object.keys(tree).join(', ')
  if (fields === null)
    problems.push(createFieldProblem(path, given, `a plain object with any of the fields ${known}`))
  const value: Record<string, unknown> = {}
  for (const [key, node] of Object.entries(tree)) {
    const part = fields !== null && Object.hasOwn(fields, key) ? fields[key] : undefined
    const at = joinPath(path, key)
    const reading = isFieldSpec(node) ? readField(node, part, at) : readFields(node, part, at, root)
    value[key] = reading.value
    problems.push(...reading.problems)
  }
  for (const key of Object.keys(fields ?? {})) {
    if (Object.hasOwn(tree, key)) continue
    const at = joinPath(path, key)
    const hint = suggestField(key, tree, root, at) ?? `known here are ${known}`
    const message = `${at}: no such field; ${hint}`
    problems.push({ path: at, given: 'an unknown field', allowed: hint, message })
  }
  return { value: Object.freeze(value), problems }
}

function readField(node: FieldSpec<unknown>, given: unknown, path: string): ReadFieldsResult {
  if (given === undefined) return { value: freezeCopy(node.defaultValue), problems: [] }
  if (node.check.accepts(given)) return { value: freezeCopy(given), problems: [] }
  return {
    value: freezeCopy(node.defaultValue),
    problems: [createFieldProblem(path, given, node.check.allowed)],
  }
}

/** Returns a frozen deep copy, so that checked values cannot be changed later. */
function freezeCopy(value: unknown): unknown {
  if (Array.isArray(value)) return Object.freeze(value.map(freezeCopy))
  if (typeof value !== 'object' || value === null) return value
  return Object.freeze(
    Object.fromEntries(Object.entries(value).map(([key, part]) => [key, freezeCopy(part)])),
  )
}

/**
 * Suggests the intended name of an unknown field; null if none fits. Tries first a typo of a field in the same group,
 * then a known field that was put into the wrong group or written as a dotted path.
 */
function suggestField(key: string, tree: FieldSpecTree, root: FieldSpecTree, path: string): string | null {
  const neighbour = findNearestName(key, Object.keys(tree))
  if (neighbour !== null) return `did you mean ${path.slice(0, path.length - key.length)}${neighbour}?`
  const paths = listFieldPaths(root)
  if (paths.includes(key)) {
    const nested = key.split('.').reduceRight((inner, part) => `{ ${part}: ${inner} }`, '…')
    return `write it nested, as in ${nested}`
  }
  const elsewhere = paths.filter((known) => known.split('.').includes(key))
  return elsewhere.length === 0 ? null : `did you mean ${elsewhere.slice(0, 3).join(' or ')}?`
}

/**
 * Returns the fields of a plain object, also one from another realm (iframe, vm). Returns null for any other value, for
 * example a `Map`, whose entries would be lost silently.
 */
function toPlainFields(value: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null) return null
  const prototype: unknown = Object.getPrototypeOf(value)
  const plain = prototype === null || Object.getPrototypeOf(prototype) === null
  return plain ? Object.fromEntries(Object.entries(value)) : null
}

/** Returns the known name closest to `given`, or null if none is close enough to be a typo. */
export function findNearestName(given: string, known: readonly string[]): string | null {
  const furthest = Math.max(2, Math.floor(given.length / 3))
  let best: string | null = null
  let least = furthest + 1
  for (const candidate of known) {
    const distance = measureEditDistance(given.toLowerCase(), candidate.toLowerCase())
    if (distance < least && distance < candidate.length) [best, least] = [candidate, distance]
  }
  return best
}

/** Computes the edit distance of two strings: the number of letters to insert, delete, replace, or swap with a neighbour. */
function measureEditDistance(from: string, to: string): number {
  // By row and column: the distance of the first so many letters of `from` and of `to`.
  const distances: number[][] = []
  const read = (row: number, column: number): number => distances[row]?.[column] ?? 0
  for (let row = 0; row <= from.length; row += 1) {
    const current: number[] = []
    distances.push(current)
    for (let column = 0; column <= to.length; column += 1) {
      const [letter, other] = [from[row - 1], to[column - 1]]
      const ways = [read(row - 1, column) + 1, read(row, column - 1) + 1]
      ways.push(read(row - 1, column - 1) + (letter === other ? 0 : 1))
      const isSwap = row > 1 && column > 1 && letter === to[column - 2] && from[row - 2] === other
      if (isSwap) ways.push(read(row - 2, column - 2) + 1)
      current.push(row === 0 || column === 0 ? row + column : Math.min(...ways))
    }
  }
  return read(from.length, to.length)
}

const LONGEST_VALUE = 60

/** Formats a value for an error message. A short value is shown exactly, a long one is shortened or described. */
export function formatErrorValue(value: unknown): string {
  if (typeof value === 'string') return quoteText(value)
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'bigint') return `${value}n`
  if (Array.isArray(value)) return formatList(value)
  if (typeof value === 'object' && value !== null) return 'an object'
  return Object.is(value, -0) ? '-0' : String(value)
}

function quoteText(value: string): string {
  return JSON.stringify(value.length > LONGEST_VALUE ? `${value.slice(0, LONGEST_VALUE)}…` : value)
}

function formatList(list: readonly unknown[]): string {
  const whole = `[${Array.from(list, formatErrorValue).join(', ')}]`
  return whole.length > LONGEST_VALUE ? `a list of ${list.length}` : whole
}
