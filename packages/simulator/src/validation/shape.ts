/**
 * A small language for the shape of a request body. A shape finds the first thing wrong and says it in the
 * provider's words; paths are put together only on the way out of a failure, so that a body which is right
 * costs a walk over its keys and nothing more.
 */
import { isObject } from '../protocol/api.ts'

/** What decides which fields and blocks are known: the betas asked for and the version of the API. */
export interface Gate {
  readonly betas: ReadonlySet<string>
  readonly version: ApiVersion
  /** The undocumented cached clearing is on. */
  readonly cachedClearing: boolean
}

export type ApiVersion = '2023-06-01' | '2026-10-21'

export interface Misfit {
  /** Parts from the outside in. */
  readonly path: readonly string[]
  readonly message: string
}

export type Shape = (value: unknown, gate: Gate) => Misfit | null

export interface Field {
  readonly shape: Shape
  readonly required: boolean
  /** Unknown unless this says otherwise. */
  readonly open?: (gate: Gate) => boolean
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

/** Optional, and unknown to a request that did not ask for one of these betas. */
export function underBeta(betas: readonly string[], shape: Shape): Field {
  return { shape, required: false, open: (gate) => betas.some((beta) => gate.betas.has(beta)) }
}

export function nullable(shape: Shape): Shape {
  return (value, gate) => (value === null ? null : shape(value, gate))
}

export function object(fields: Readonly<Record<string, Field>>): Shape {
  const known = new Map(Object.entries(fields))
  const needed = [...known].filter(([, field]) => field.required).map(([name]) => name)
  return (value, gate) => {
    if (!isObject(value)) return misfit('Input should be a valid dictionary')
    for (const name of needed) {
      if (value[name] === undefined) return inside(name, misfit('Field required'))
    }
    for (const name in value) {
      const found = fieldMisfit(known.get(name), value[name], gate)
      if (found !== null) return inside(name, found)
    }
    return null
  }
}

function fieldMisfit(field: Field | undefined, value: unknown, gate: Gate): Misfit | null {
  if (field === undefined || (field.open !== undefined && !field.open(gate)))
    return misfit('Extra inputs are not permitted')
  return field.shape(value, gate)
}

export function list(item: Shape, limits: { readonly min?: number; readonly max?: number } = {}): Shape {
  return (value, gate) => {
    if (!Array.isArray(value)) return misfit('Input should be a valid list')
    if (value.length < (limits.min ?? 0))
      return misfit(`List should have at least ${limits.min} item after validation, not ${value.length}`)
    if (value.length > (limits.max ?? Number.POSITIVE_INFINITY))
      return misfit(`List should have at most ${limits.max} items after validation, not ${value.length}`)
    for (let index = 0; index < value.length; index += 1) {
      const found = item(value[index], gate)
      if (found !== null) return inside(String(index), found)
    }
    return null
  }
}

/** A string is taken as it is; anything else must have the other shape. */
export function textOr(shape: Shape): Shape {
  return (value, gate) => (typeof value === 'string' ? null : shape(value, gate))
}

export interface Tag {
  readonly shape: Shape
  readonly open?: (gate: Gate) => boolean
}

/** One of several shapes, told apart by `type`. The tag becomes part of the path. */
export function tagged(tags: Readonly<Record<string, Tag>>, whenAbsent?: string): Shape {
  const known = new Map(Object.entries(tags))
  return (value, gate) => {
    if (!isObject(value)) return misfit('Input should be a valid dictionary')
    const type = value.type ?? whenAbsent
    if (type === undefined) return inside('type', misfit('Field required'))
    const tag = typeof type === 'string' ? known.get(type) : undefined
    if (tag === undefined || (tag.open !== undefined && !tag.open(gate)))
      return misfit(
        `Input tag '${String(type)}' found using 'type' does not match any of the expected tags: ${expected(known, gate)}`,
      )
    const found = tag.shape(value, gate)
    return found === null ? null : inside(String(type), found)
  }
}

function expected(known: ReadonlyMap<string, Tag>, gate: Gate): string {
  const open = [...known].filter(([, tag]) => tag.open === undefined || tag.open(gate))
  return open.map(([name]) => `'${name}'`).join(', ')
}

// The shapes of single values.

export interface TextLimits {
  readonly min?: number
  readonly max?: number
  readonly pattern?: RegExp
}

export function text(limits: TextLimits = {}): Shape {
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
  const said = quoted.length < 2 ? last : `${quoted.slice(0, -1).join(', ')} or ${last}`
  return (value) => (allowed.has(value) ? null : misfit(`Input should be ${said}`))
}

export const dictionary: Shape = (value) =>
  isObject(value) ? null : misfit('Input should be a valid dictionary')
