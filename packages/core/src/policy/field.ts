/** The table a group of the policy is made of: each field's default beside what it may hold. */
import type { Check } from './check.ts'

export type Leaf = string | number | boolean | null | readonly unknown[]

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

export function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}
