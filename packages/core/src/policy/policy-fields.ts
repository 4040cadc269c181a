/** What a field of the policy may hold. `allowed` finishes the sentence "allowed is …" in an error. */
export interface Check<T> {
  readonly allowed: string
  accepts(value: unknown): value is T
}

/** A whole number of things: tokens, results, seconds. */
export function count(least = 0, most: number = Number.MAX_SAFE_INTEGER): Check<number> {
  const accepts = (value: unknown): value is number =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
  return { allowed: `a whole number ${range(least, most)}`, accepts }
}

/** A number that need not be whole: a ratio, a factor. */
export function amount(least: number, most: number): Check<number> {
  const accepts = (value: unknown): value is number =>
    typeof value === 'number' && Number.isFinite(value) && value >= least && value <= most
  return { allowed: `a number ${range(least, most)}`, accepts }
}

/** 25 means 25%, never 0.25: halves of a per cent stay exact, and so do the lines drawn with them. */
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

/** A string with something in it. */
export function name(): Check<string> {
  const accepts = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''
  return { allowed: 'a string that is not blank', accepts }
}

export function oneOf<const T extends string>(...choices: readonly T[]): Check<T> {
  const accepts = (value: unknown): value is T => choices.some((choice) => choice === value)
  return { allowed: choices.map((choice) => `'${choice}'`).join(' or '), accepts }
}

/** A list without repeats, in an order that counts. */
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

// The table a group of the policy is made of: each field's default beside what it may hold.

type Leaf = string | number | boolean | null | readonly unknown[]

export interface Field<T> {
  readonly fallback: T
  readonly check: Check<T>
}

/** One `Field` for every leaf of `T`: a field without default or check does not compile. */
export type Fields<T> = {
  readonly [K in keyof T]: [T[K]] extends [Leaf] ? Field<T[K]> : Fields<T[K]>
}

/** The same table, for code that walks it without knowing the group. */
export interface FieldTree {
  readonly [name: string]: Field<unknown> | FieldTree
}

/** Every field may be left out. A list is given whole: it replaces the default one. */
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

// Lays what a person gave over the defaults, and collects everything that is wrong with it.

export interface Problem {
  /** Where, as in `clear.idle.keep`; empty for the whole. */
  readonly path: string
  /** What was given, in words. */
  readonly given: string
  readonly allowed: string
  /** The whole sentence. */
  readonly message: string
}

interface Reading {
  /** Frozen, and whole: a field that is missing or wrong has its default. */
  readonly value: unknown
  readonly problems: readonly Problem[]
}

export function problem(path: string, given: unknown, allowed: string): Problem {
  const shown = show(given)
  const message = `${path === '' ? 'at the top' : path}: got ${shown}, allowed is ${allowed}`
  return { path, given: shown, allowed, message }
}

export function readFields(tree: FieldTree, given: unknown): Reading {
  return readGroup({ tree, root: tree }, given, '')
}

interface Place {
  readonly tree: FieldTree
  readonly root: FieldTree
}

function readGroup({ tree, root }: Place, given: unknown, path: string): Reading {
  const fields = given === undefined ? {} : plainFields(given)
  const problems: Problem[] = []
  if (fields === null) problems.push(problem(path, given, groupAllowed(tree)))
  const value: Record<string, unknown> = {}
  for (const [key, node] of Object.entries(tree)) {
    const part = fields !== null && Object.hasOwn(fields, key) ? fields[key] : undefined
    const at = join(path, key)
    const reading = isField(node) ? readLeaf(node, part, at) : readGroup({ tree: node, root }, part, at)
    value[key] = reading.value
    problems.push(...reading.problems)
  }
  problems.push(...unknownFields({ tree, root }, fields ?? {}, path))
  return { value: Object.freeze(value), problems }
}

function readLeaf(node: Field<unknown>, given: unknown, path: string): Reading {
  if (given === undefined) return { value: own(node.fallback), problems: [] }
  if (node.check.accepts(given)) return { value: own(given), problems: [] }
  return { value: own(node.fallback), problems: [problem(path, given, node.check.allowed)] }
}

/** A frozen copy, so that neither the caller nor a reader can change what was checked. */
function own(value: unknown): unknown {
  if (Array.isArray(value)) return Object.freeze(value.map(own))
  if (typeof value !== 'object' || value === null) return value
  return Object.freeze(Object.fromEntries(Object.entries(value).map(([key, part]) => [key, own(part)])))
}

function unknownFields(place: Place, fields: Readonly<Record<string, unknown>>, path: string): Problem[] {
  return Object.keys(fields)
    .filter((key) => !Object.hasOwn(place.tree, key))
    .map((key) => unknownField(place, join(path, key), key))
}

function unknownField({ tree, root }: Place, path: string, key: string): Problem {
  const hint = suggestion(key, { tree, root }, path) ?? `known here are ${Object.keys(tree).join(', ')}`
  return { path, given: 'an unknown field', allowed: hint, message: `${path}: no such field; ${hint}` }
}

/** A slip of the hand among the neighbours first, then the right name in the wrong place or form. */
function suggestion(key: string, { tree, root }: Place, path: string): string | null {
  const neighbour = nearest(key, Object.keys(tree))
  if (neighbour !== null) return `did you mean ${path.slice(0, path.length - key.length)}${neighbour}?`
  const paths = pathsOf(root)
  if (paths.includes(key)) return `write it nested, as in ${nested(key)}`
  const elsewhere = paths.filter((known) => known.split('.').includes(key))
  return elsewhere.length === 0 ? null : `did you mean ${elsewhere.slice(0, 3).join(' or ')}?`
}

function nested(path: string): string {
  return path.split('.').reduceRight((inner, key) => `{ ${key}: ${inner} }`, '…')
}

function groupAllowed(tree: FieldTree): string {
  return `a plain object with any of the fields ${Object.keys(tree).join(', ')}`
}

/** The fields of a plain object, from whatever realm; null for anything else (a Map would lose its entries silently). */
function plainFields(value: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null) return null
  const prototype: unknown = Object.getPrototypeOf(value)
  const plain = prototype === null || Object.getPrototypeOf(prototype) === null
  return plain ? Object.fromEntries(Object.entries(value)) : null
}

// What a person meant who wrote a name nobody knows.

/** The known name closest to `given`, or null where none is close enough to be a slip of the hand. */
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

/** Letters to add, drop, change or swap with their neighbour. */
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

/** The last two letters of the one are those of the other, the other way round. */
function isSwap(from: string, to: string): boolean {
  return from.length > 1 && to.length > 1 && from.at(-1) === to.at(-2) && from.at(-2) === to.at(-1)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? 0
}

/** A value as an error message names it: exact where short, in words where not. */
const LONGEST = 60

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
