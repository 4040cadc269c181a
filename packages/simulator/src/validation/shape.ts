/**
 * Functions that build shapes. A shape is a function that validates a value and returns the first error, in the
 * provider's wording, or null. Error paths are built only when an error is found, so a valid body costs one pass over
 * its keys.
 */
import { isObject } from '../protocol/messages-request.ts'

/** The betas, API version and extensions of a request. They decide which fields and blocks the request may use. */
export interface ApiFeatures {
  readonly betas: ReadonlySet<string>
  readonly version: ApiVersion
  /** True if the undocumented `cache_edits` extension is on. */
  readonly cachedClearing: boolean
}

export type ApiVersion = '2023-06-01' | '2026-10-21'

interface ShapeError {
  /** Keys and indices that lead to the invalid value, outermost first. */
  readonly path: readonly string[]
  readonly message: string
}

/** Validates a value. Returns the first error; null if the value has the shape. */
export type ShapeValidator = (value: unknown, features: ApiFeatures) => ShapeError | null

export interface ShapeField {
  readonly shape: ShapeValidator
  readonly required: boolean
  /**
   * Checks whether the betas and the API version of a request allow this field. If not, the field is rejected as
   * unknown.
   */
  readonly open?: (features: ApiFeatures) => boolean
}

export function shapeError(message: string): ShapeError {
  return { path: [], message }
}

export function prependPath(part: string, found: ShapeError): ShapeError {
  return { path: [part, ...found.path], message: found.message }
}

export function formatShapeError(found: ShapeError): string {
  return found.path.length === 0 ? found.message : `${found.path.join('.')}: ${found.message}`
}

export const anyShape: ShapeValidator = () => null

export function requiredField(shape: ShapeValidator): ShapeField {
  return { shape, required: true }
}

export function optionalField(shape: ShapeValidator): ShapeField {
  return { shape, required: false }
}

/**
 * Creates an optional field that only some requests may use. If `open` returns false, the field is rejected as
 * unknown.
 */
export function conditionalField(
  shape: ShapeValidator,
  open: (features: ApiFeatures) => boolean,
): ShapeField {
  return { shape, required: false, open }
}

/** Creates an optional field that needs one of these betas. Without such a beta the field is rejected as unknown. */
export function betaField(betas: readonly string[], shape: ShapeValidator): ShapeField {
  return conditionalField(shape, (features) => betas.some((beta) => features.betas.has(beta)))
}

export function nullableShape(shape: ShapeValidator): ShapeValidator {
  return (value, features) => (value === null ? null : shape(value, features))
}

export function objectShape(fields: Readonly<Record<string, ShapeField>>): ShapeValidator {
  const known = new Map(Object.entries(fields))
  const needed = [...known].filter(([, field]) => field.required).map(([name]) => name)
  return (value, features) => {
    if (!isObject(value)) return shapeError('Input should be a valid dictionary')
    for (const name of needed) {
      if (value[name] === undefined) return prependPath(name, shapeError('Field required'))
    }
    for (const name in value) {
      const field = known.get(name)
      if (field === undefined || (field.open !== undefined && !field.open(features)))
        return prependPath(name, shapeError('Extra inputs are not permitted'))
      const found = field.shape(value[name], features)
      if (found !== null) return prependPath(name, found)
    }
    return null
  }
}

export function listShape(
  item: ShapeValidator,
  limits: { readonly min?: number; readonly max?: number } = {},
): ShapeValidator {
  return (value, features) => {
    if (!Array.isArray(value)) return shapeError('Input should be a valid list')
    if (value.length < (limits.min ?? 0))
      return shapeError(`List should have at least ${limits.min} item after validation, not ${value.length}`)
    if (value.length > (limits.max ?? Number.POSITIVE_INFINITY))
      return shapeError(`List should have at most ${limits.max} items after validation, not ${value.length}`)
    for (let index = 0; index < value.length; index += 1) {
      const found = item(value[index], features)
      if (found !== null) return prependPath(String(index), found)
    }
    return null
  }
}

/** Creates a shape that accepts any string, or a value that the other shape accepts. */
export function stringOrShape(shape: ShapeValidator): ShapeValidator {
  return (value, features) => (typeof value === 'string' ? null : shape(value, features))
}

/** One of the shapes of a union. `open`: which requests may use it; absent if all may. */
export interface UnionMember {
  readonly shape: ShapeValidator
  readonly open?: (features: ApiFeatures) => boolean
}

/**
 * Creates a shape that selects one of several shapes by the value of the field `type`; `whenAbsent`: its value if the
 * field is missing. The value becomes part of the error path.
 */
export function unionShape(tags: Readonly<Record<string, UnionMember>>, whenAbsent?: string): ShapeValidator {
  const known = new Map(Object.entries(tags))
  return (value, features) => {
    if (!isObject(value)) return shapeError('Input should be a valid dictionary')
    const type = value.type ?? whenAbsent
    if (type === undefined) return prependPath('type', shapeError('Field required'))
    const tag = typeof type === 'string' ? known.get(type) : undefined
    if (tag === undefined || (tag.open !== undefined && !tag.open(features)))
      return shapeError(
        `Input tag '${String(type)}' found using 'type' does not match any of the expected tags: ${listExpectedTags(known, features)}`,
      )
    const found = tag.shape(value, features)
    return found === null ? null : prependPath(String(type), found)
  }
}

function listExpectedTags(known: ReadonlyMap<string, UnionMember>, features: ApiFeatures): string {
  const open = [...known].filter(([, tag]) => tag.open === undefined || tag.open(features))
  return open.map(([name]) => `'${name}'`).join(', ')
}

// Shapes of single values.

export function stringShape(
  limits: { readonly min?: number; readonly max?: number; readonly pattern?: RegExp } = {},
): ShapeValidator {
  const { min = 0, max = Number.POSITIVE_INFINITY, pattern } = limits
  return (value) => {
    if (typeof value !== 'string') return shapeError('Input should be a valid string')
    if (pattern !== undefined && !pattern.test(value))
      return shapeError(`String should match pattern '${pattern.source}'`)
    if (value.length < min)
      return shapeError(`String should have at least ${min} character${min === 1 ? '' : 's'}`)
    if (value.length > max && [...value].length > max)
      return shapeError(`String should have at most ${max} characters`)
    return null
  }
}

export function integerShape(least?: number): ShapeValidator {
  return (value) => {
    if (typeof value !== 'number') return shapeError('Input should be a valid integer')
    if (!Number.isInteger(value))
      return shapeError('Input should be a valid integer, got a number with a fractional part')
    if (least !== undefined && value < least)
      return shapeError(`Input should be greater than or equal to ${least}`)
    return null
  }
}

export function numberShape(least: number, most: number): ShapeValidator {
  return (value) => {
    if (typeof value !== 'number') return shapeError('Input should be a valid number')
    if (value < least) return shapeError(`Input should be greater than or equal to ${least}`)
    if (value > most) return shapeError(`Input should be less than or equal to ${most}`)
    return null
  }
}

export const booleanShape: ShapeValidator = (value) =>
  typeof value === 'boolean' ? null : shapeError('Input should be a valid boolean')

export function literalShape(...values: readonly string[]): ShapeValidator {
  const allowed = new Set<unknown>(values)
  const quoted = values.map((value) => `'${value}'`)
  const last = quoted.at(-1) ?? ''
  const choices = quoted.length < 2 ? last : `${quoted.slice(0, -1).join(', ')} or ${last}`
  return (value) => (allowed.has(value) ? null : shapeError(`Input should be ${choices}`))
}

export const dictionaryShape: ShapeValidator = (value) =>
  isObject(value) ? null : shapeError('Input should be a valid dictionary')
