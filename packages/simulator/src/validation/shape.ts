/**
 * Schema functions for request bodies. A shape returns the first error, in the wording of the provider. Paths are
 * built only when an error is found, so that a valid body costs one walk over its keys.
 */
import { isObject } from '../protocol/api.ts'

/** Decides which fields and blocks a request may use: its betas, and the version of the API. */
export interface Gate {
  readonly betas: ReadonlySet<string>
  readonly version: ApiVersion
  /** The undocumented `cache_edits` extension is on. */
  readonly cachedClearing: boolean
}

export type ApiVersion = '2023-06-01' | '2026-10-21'

interface Misfit {
  /** Keys and indices, outermost first. */
  readonly path: readonly string[]
  readonly message: string
}

export type Shape = (value: unknown, features: Gate) => Misfit | null

export interface Field {
  readonly shape: Shape
  readonly required: boolean
  /** Where this returns false the field is rejected as unknown. */
  readonly open?: (features: Gate) => boolean
}

export function misfit(message: string): Misfit {
  return { path: [], message }
}

export function inside(part: string, found: Misfit): Misfit {
  return { path: [part, ...found.path], message: found.message }
}

export function describe(found: Misfit): string {
  return found.path.length === 0 ? found.message : `${found.path.join('.')}: ${found.message}`
}

export const anything: Shape = () => null

export function required(shape: Shape): Field {
  return { shape, required: true }
}

export function optional(shape: Shape): Field {
  return { shape, required: false }
}

/** An optional field that is rejected as unknown unless `open` returns true. */
export function conditional(shape: Shape, open: (features: Gate) => boolean): Field {
  return { shape, required: false, open }
}

/** An optional field that is rejected as unknown unless the request has one of these betas. */
export function underBeta(betas: readonly string[], shape: Shape): Field {
  return conditional(shape, (features) => betas.some((beta) => features.betas.has(beta)))
}

export function nullable(shape: Shape): Shape {
  return (value, features) => (value === null ? null : shape(value, features))
}

export function object(fields: Readonly<Record<string, Field>>): Shape {
  const known = new Map(Object.entries(fields))
  const needed = [...known].filter(([, field]) => field.required).map(([name]) => name)
  return (value, features) => {
    if (!isObject(value)) return misfit('Input should be a valid dictionary')
    for (const name of needed) {
      if (value[name] === undefined) return inside(name, misfit('Field required'))
    }
    for (const name in value) {
      const field = known.get(name)
      if (field === undefined || (field.open !== undefined && !field.open(features)))
        return inside(name, misfit('Extra inputs are not permitted'))
      const found = field.shape(value[name], features)
      if (found !== null) return inside(name, found)
    }
    return null
  }
}

export function list(item: Shape, limits: { readonly min?: number; readonly max?: number } = {}): Shape {
  return (value, features) => {
    if (!Array.isArray(value)) return misfit('Input should be a valid list')
    if (value.length < (limits.min ?? 0))
      return misfit(`List should have at least ${limits.min} item after validation, not ${value.length}`)
    if (value.length > (limits.max ?? Number.POSITIVE_INFINITY))
      return misfit(`List should have at most ${limits.max} items after validation, not ${value.length}`)
    for (let index = 0; index < value.length; index += 1) {
      const found = item(value[index], features)
      if (found !== null) return inside(String(index), found)
    }
    return null
  }
}

/** Any string, or a value of the other shape. */
export function textOr(shape: Shape): Shape {
  return (value, features) => (typeof value === 'string' ? null : shape(value, features))
}

export interface Tag {
  readonly shape: Shape
  readonly open?: (features: Gate) => boolean
}

/** One of several shapes, selected by the field `type`, whose value becomes part of the path. */
export function tagged(tags: Readonly<Record<string, Tag>>, whenAbsent?: string): Shape {
  const known = new Map(Object.entries(tags))
  return (value, features) => {
    if (!isObject(value)) return misfit('Input should be a valid dictionary')
    const type = value.type ?? whenAbsent
    if (type === undefined) return inside('type', misfit('Field required'))
    const tag = typeof type === 'string' ? known.get(type) : undefined
    if (tag === undefined || (tag.open !== undefined && !tag.open(features)))
      return misfit(
        `Input tag '${String(type)}' found using 'type' does not match any of the expected tags: ${expected(known, features)}`,
      )
    const found = tag.shape(value, features)
    return found === null ? null : inside(String(type), found)
  }
}

function expected(known: ReadonlyMap<string, Tag>, features: Gate): string {
  const open = [...known].filter(([, tag]) => tag.open === undefined || tag.open(features))
  return open.map(([name]) => `'${name}'`).join(', ')
}

// The shapes of single values.

export function text(
  limits: { readonly min?: number; readonly max?: number; readonly pattern?: RegExp } = {},
): Shape {
  const { min = 0, max = Number.POSITIVE_INFINITY, pattern } = limits
  return (value) => {
    if (typeof value !== 'string') return misfit('Input should be a valid string')
    if (pattern !== undefined && !pattern.test(value))
      return misfit(`String should match pattern '${pattern.source}'`)
    if (value.length < min)
      return misfit(`String should have at least ${min} character${min === 1 ? '' : 's'}`)
    if (value.length > max && [...value].length > max)
      return misfit(`String should have at most ${max} characters`)
    return null
  }
}

export function integer(least?: number): Shape {
  return (value) => {
    if (typeof value !== 'number') return misfit('Input should be a valid integer')
    if (!Number.isInteger(value))
      return misfit('Input should be a valid integer, got a number with a fractional part')
    if (least !== undefined && value < least)
      return misfit(`Input should be greater than or equal to ${least}`)
    return null
  }
}

export function numberWithin(least: number, most: number): Shape {
  return (value) => {
    if (typeof value !== 'number') return misfit('Input should be a valid number')
    if (value < least) return misfit(`Input should be greater than or equal to ${least}`)
    if (value > most) return misfit(`Input should be less than or equal to ${most}`)
    return null
  }
}

export const flag: Shape = (value) =>
  typeof value === 'boolean' ? null : misfit('Input should be a valid boolean')

export function literal(...values: readonly string[]): Shape {
  const allowed = new Set<unknown>(values)
  const quoted = values.map((value) => `'${value}'`)
  const last = quoted.at(-1) ?? ''
  const choices = quoted.length < 2 ? last : `${quoted.slice(0, -1).join(', ')} or ${last}`
  return (value) => (allowed.has(value) ? null : misfit(`Input should be ${choices}`))
}

export const dictionary: Shape = (value) =>
  isObject(value) ? null : misfit('Input should be a valid dictionary')
