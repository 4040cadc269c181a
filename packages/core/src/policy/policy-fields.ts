/**
 * Tables of settings: each field with its default and its check, and reading an object against such a table with hints
 * for unknown fields.
 */

/** Which values a field accepts. `allowed` completes the sentence "allowed is …" in an error. */
export interface Check<T> {
  readonly allowed: string
  accepts(value: unknown): value is T
}

/** A whole number: tokens, results, seconds. */
export function count(least = 0, most: number = Number.MAX_SAFE_INTEGER): Check<number> {
  const accepts = (value: unknown): value is number =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
  return { allowed: `a whole number ${range(least, most)}`, accepts }
}

/** Any number: a ratio, a factor. */
export function amount(least: number, most: number): Check<number> {
  const accepts = (value: unknown): value is number =>
    typeof value === 'number' && Number.isFinite(value) && value >= least && value <= most
  return { allowed: `a number ${range(least, most)}`, accepts }
}

/** 25 means 25%, never 0.25: half percentages stay exact, and so do the thresholds computed from them. */
export function percent(least = 0.1, most = 100): Check<number> {
  const { accepts } = amount(least, most)
  return { allowed: `a percentage from ${least} to ${most} (25 means 25%)`, accepts }
}

export function flag(): Check<boolean> {
  return { allowed: 'true or false', accepts: (value): value is boolean => typeof value === 'boolean' }
}

export function text(): Check<string> {
  return { allowed: 'a string', accepts: (value): value is string => typeof value === 'string' }
}

/** A non-blank string. */
export function name(): Check<string> {
  const accepts = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''
  return { allowed: 'a string that is not blank', accepts }
}

export function oneOf<const T extends string>(...choices: readonly T[]): Check<T> {
  const accepts = (value: unknown): value is T => choices.some((choice) => choice === value)
  return { allowed: choices.map((choice) => `'${choice}'`).join(' or '), accepts }
}

/** A list without duplicates; the order matters. */
export function listOf<T>(item: Check<T>): Check<readonly T[]> {
  const accepts = (value: unknown): value is readonly T[] =>
    Array.isArray(value) && Array.from(value).every(item.accepts) && new Set(value).size === value.length
  return { allowed: `a list without repeats, each item ${item.allowed}`, accepts }
}

export function orNull<T>(check: Check<T>): Check<T | null> {
  const accepts = (value: unknown): value is T | null => value === null || check.accepts(value)
  return { allowed: `${check.allowed}, or null`, accepts }
}

export function either<A, B>(one: Check<A>, other: Check<B>): Check<A | B> {
  const accepts = (value: unknown): value is A | B => one.accepts(value) || other.accepts(value)
  return { allowed: `${one.allowed}, or ${other.allowed}`, accepts }
}

function range(least: number, most: number): string {
  return most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`
}

// Tables of fields.

type Leaf = string | number | boolean | null | readonly unknown[]

export interface Field<T> {
  readonly fallback: T
  readonly check: Check<T>
}

/** One `Field` for every leaf of `T`: a field without default and check does not compile. */
export type Fields<T> = {
  readonly [K in keyof T]: [T[K]] extends [Leaf] ? Field<T[K]> : Fields<T[K]>
}

/** The same table, untyped, for code that walks it. */
export interface FieldTree {
  readonly [name: string]: Field<unknown> | FieldTree
}

/** Every field may be omitted. A list replaces the default list. */
export type DeepPartial<T> = {
  readonly [K in keyof T]?: ([T[K]] extends [Leaf] ? T[K] : DeepPartial<T[K]>) | undefined
}

export function field<T>(fallback: T, check: Check<T>): Field<T> {
  return { fallback, check }
}

export function isField(node: Field<unknown> | FieldTree): node is Field<unknown> {
  return typeof (node as Field<unknown>).check?.accepts === 'function'
}

/** The path of every leaf, in the order of the tables. */
export function pathsOf(tree: FieldTree, path = ''): readonly string[] {
  return Object.entries(tree).flatMap(([key, node]) =>
    isField(node) ? [join(path, key)] : pathsOf(node, join(path, key)),
  )
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}

// Reading an object against a table; every problem is collected.

export interface Problem {
  /** Path of the field, as in `clear.idle.keep`; empty for the whole object. */
  readonly path: string
  /** The given value, in words. */
  readonly given: string
  readonly allowed: string
  /** The full sentence. */
  readonly message: string
}

interface Reading {
  /** Frozen and complete: a missing or invalid field has its default. */
  readonly value: unknown
  readonly problems: readonly Problem[]
}

export function problem(path: string, given: unknown, allowed: string): Problem {
  const shown = show(given)
  const message = `${path === '' ? 'at the top' : path}: got ${shown}, allowed is ${allowed}`
  return { path, given: shown, allowed, message }
}

/** `path` and `root`: where `tree` is in the whole table. */
export function readFields(tree: FieldTree, given: unknown, path = '', root: FieldTree = tree): Reading {
  const fields = given === undefined ? {} : plainFields(given)
  const problems: Problem[] = []
  const known = Object.keys(tree).join(', ')
  if (fields === null) problems.push(problem(path, given, `a plain object with any of the fields ${known}`))
  const value: Record<string, unknown> = {}
  for (const [key, node] of Object.entries(tree)) {
    const part = fields !== null && Object.hasOwn(fields, key) ? fields[key] : undefined
    const at = join(path, key)
    const reading = isField(node) ? readLeaf(node, part, at) : readFields(node, part, at, root)
    value[key] = reading.value
    problems.push(...reading.problems)
  }
  for (const key of Object.keys(fields ?? {})) {
    if (Object.hasOwn(tree, key)) continue
    const at = join(path, key)
    const hint = suggestion(key, tree, root, at) ?? `known here are ${known}`
    const message = `${at}: no such field; ${hint}`
    problems.push({ path: at, given: 'an unknown field', allowed: hint, message })
  }
  return { value: Object.freeze(value), problems }
}

function readLeaf(node: Field<unknown>, given: unknown, path: string): Reading {
  if (given === undefined) return { value: own(node.fallback), problems: [] }
  if (node.check.accepts(given)) return { value: own(given), problems: [] }
  return { value: own(node.fallback), problems: [problem(path, given, node.check.allowed)] }
}

/** A frozen copy, so that checked values cannot be changed later. */
function own(value: unknown): unknown {
  if (Array.isArray(value)) return Object.freeze(value.map(own))
  if (typeof value !== 'object' || value === null) return value
  return Object.freeze(Object.fromEntries(Object.entries(value).map(([key, part]) => [key, own(part)])))
}

/** First a typo of a field in the same group, then the right name in the wrong group or written as a path. */
function suggestion(key: string, tree: FieldTree, root: FieldTree, path: string): string | null {
  const neighbour = nearest(key, Object.keys(tree))
  if (neighbour !== null) return `did you mean ${path.slice(0, path.length - key.length)}${neighbour}?`
  const paths = pathsOf(root)
  if (paths.includes(key)) {
    const nested = key.split('.').reduceRight((inner, part) => `{ ${part}: ${inner} }`, '…')
    return `write it nested, as in ${nested}`
  }
  const elsewhere = paths.filter((known) => known.split('.').includes(key))
  return elsewhere.length === 0 ? null : `did you mean ${elsewhere.slice(0, 3).join(' or ')}?`
}

/** The fields of a plain object of any realm; null for anything else (a Map would silently lose its entries). */
function plainFields(value: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null) return null
  const prototype: unknown = Object.getPrototypeOf(value)
  const plain = prototype === null || Object.getPrototypeOf(prototype) === null
  return plain ? Object.fromEntries(Object.entries(value)) : null
}

/** The known name closest to `given`, or null if none is close enough to be a typo. */
export function nearest(given: string, known: readonly string[]): string | null {
  const furthest = Math.max(2, Math.floor(given.length / 3))
  let best: string | null = null
  let least = furthest + 1
  for (const candidate of known) {
    const distance = distanceBetween(given.toLowerCase(), candidate.toLowerCase())
    if (distance < least && distance < candidate.length) [best, least] = [candidate, distance]
  }
  return best
}

/** Edit distance: letters to insert, delete, replace, or swap with their neighbour. */
function distanceBetween(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const change = at(last, column - 1) + (from[row - 1] === to[column - 1] ? 0 : 1)
      const swap = isSwap(from.slice(0, row), to.slice(0, column)) ? at(beforeLast, column - 2) + 1 : change
      current.push(Math.min(at(last, column) + 1, at(current, column - 1) + 1, change, swap))
    }
    beforeLast = last
    last = current
  }
  return at(last, to.length)
}

/** The last two letters of one are those of the other in reverse order. */
function isSwap(from: string, to: string): boolean {
  return from.length > 1 && to.length > 1 && from.at(-1) === to.at(-2) && from.at(-2) === to.at(-1)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? 0
}

const LONGEST = 60

/** A value for an error message: exact if short, otherwise described. */
export function show(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'bigint') return `${value}n`
  if (Array.isArray(value)) return shownList(value)
  if (typeof value === 'object' && value !== null) return 'an object'
  return Object.is(value, -0) ? '-0' : String(value)
}

function quoted(value: string): string {
  return JSON.stringify(value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value)
}

function shownList(list: readonly unknown[]): string {
  const whole = `[${Array.from(list, show).join(', ')}]`
  return whole.length > LONGEST ? `a list of ${list.length}` : whole
}
