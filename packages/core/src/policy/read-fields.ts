/** Lays what a person gave over the defaults, and collects everything that is wrong with it. */
import { type Field, type FieldTree, isField, join, pathsOf } from './field.ts'
import { nearest } from './nearest.ts'
import { show } from './show.ts'

export interface Problem {
  /** Where, as in `clear.idle.keep`; empty for the whole. */
  readonly path: string
  /** What was given, in words. */
  readonly given: string
  readonly allowed: string
  /** The whole sentence. */
  readonly message: string
}

export interface Reading {
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
