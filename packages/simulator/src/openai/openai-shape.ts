/**
 * Functions that check the shape of a request body, with the error texts and codes of OpenAI's APIs. A check returns
 * the first error, or null. They share no code with the codecs, so that a mistake in one of the two is found by the
 * other.
 */
import { isObject } from '../protocol/messages-request.ts'
import { createParameterError, type OpenaiError } from './openai-error.ts'

export type JsonFields = Readonly<Record<string, unknown>>

/** Checks a value at a path such as `input[2].content`. */
export type ShapeCheck = (value: unknown, path: string) => OpenaiError | null

interface FieldTable {
  readonly required?: Readonly<Record<string, ShapeCheck>>
  readonly optional?: Readonly<Record<string, ShapeCheck>>
}

export const acceptAny: ShapeCheck = () => null

function joinPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

/**
 * Creates a check of an object with these fields. `null` counts as absent for optional fields. `isOpen`: other fields
 * are accepted unread; otherwise they are refused.
 */
export function objectCheck({ required = {}, optional = {} }: FieldTable, isOpen = false): ShapeCheck {
  const needed = Object.entries(required)
  const known = new Map([...needed, ...Object.entries(optional)])
  return (value, path) => {
    if (!isObject(value)) return createWrongTypeError(value, path, 'an object')
    for (const [name] of needed)
      if (value[name] === undefined)
        return createParameterError(
          `Missing required parameter: '${joinPath(path, name)}'.`,
          joinPath(path, name),
          'missing_required_parameter',
        )
    for (const [name, field] of Object.entries(value)) {
      const check = known.get(name)
      const at = joinPath(path, name)
      if (check === undefined) {
        if (isOpen) continue
        return createParameterError(`Unknown parameter: '${at}'.`, at, 'unknown_parameter')
      }
      if (field === null && !(name in required)) continue
      const found = check(field, at)
      if (found !== null) return found
    }
    return null
  }
}

export function createWrongTypeError(value: unknown, path: string, expected: string): OpenaiError {
  return createParameterError(
    `Invalid type for '${path}': expected ${expected}, but got ${nameType(value)} instead.`,
    path === '' ? null : path,
    'invalid_type',
  )
}

function nameType(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal number'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

export function stringCheck(limits: { readonly max?: number; readonly pattern?: RegExp } = {}): ShapeCheck {
  const { max = Number.POSITIVE_INFINITY, pattern } = limits
  return (value, path) => {
    if (typeof value !== 'string') return createWrongTypeError(value, path, 'a string')
    if (value.length > max)
      return createParameterError(
        `Invalid '${path}': string too long. Expected a string with maximum length ${max}, but got a string with length ${value.length} instead.`,
        path,
        'string_above_max_length',
      )
    if (pattern !== undefined && !pattern.test(value))
      return createParameterError(
        `Invalid '${path}': string does not match pattern. Expected a string that matches the pattern '${pattern.source}'.`,
        path,
        'invalid_value',
      )
    return null
  }
}

export const booleanCheck: ShapeCheck = (value, path) =>
  typeof value === 'boolean' ? null : createWrongTypeError(value, path, 'a boolean')

export function integerCheck(least: number): ShapeCheck {
  return (value, path) => {
    if (typeof value !== 'number' || !Number.isInteger(value))
      return createWrongTypeError(value, path, 'an integer')
    if (value >= least) return null
    return createParameterError(
      `Invalid '${path}': integer below minimum value. Expected a value >= ${least}, but got ${value} instead.`,
      path,
      'integer_below_min_value',
    )
  }
}

export function numberCheck(least: number, most: number): ShapeCheck {
  return (value, path) => {
    if (typeof value !== 'number') return createWrongTypeError(value, path, 'a decimal')
    if (value >= least && value <= most) return null
    const [word, sign, bound] = value < least ? ['below minimum', '>=', least] : ['above maximum', '<=', most]
    return createParameterError(
      `Invalid '${path}': decimal ${word} value. Expected a value ${sign} ${bound}, but got ${value} instead.`,
      path,
      `decimal_${value < least ? 'below_min' : 'above_max'}_value`,
    )
  }
}

/** Creates a check that a value is one of these strings. */
export function choiceCheck(...choices: readonly string[]): ShapeCheck {
  return (value, path) =>
    typeof value === 'string' && choices.includes(value) ? null : describeChoice(value, path, choices)
}

function describeChoice(value: unknown, path: string, choices: readonly string[]): OpenaiError {
  return createParameterError(
    `Invalid value: '${String(value)}'. Supported values are: ${formatChoices(choices)}.`,
    path,
    'invalid_value',
  )
}

/** Lists values as OpenAI does: `'a', 'b', and 'c'`. */
export function formatChoices(choices: readonly string[]): string {
  const quoted = choices.map((choice) => `'${choice}'`)
  if (quoted.length < 3) return quoted.join(' and ')
  return `${quoted.slice(0, -1).join(', ')}, and ${quoted.at(-1)}`
}

export function arrayCheck(
  item: ShapeCheck,
  limits: { readonly min?: number; readonly max?: number } = {},
): ShapeCheck {
  const { min = 0, max = Number.POSITIVE_INFINITY } = limits
  return (value, path) => {
    if (!Array.isArray(value)) return createWrongTypeError(value, path, 'an array')
    if (value.length < min)
      return createParameterError(
        `Invalid '${path}': empty array. Expected an array with minimum length ${min}, but got an empty array instead.`,
        path,
        'empty_array',
      )
    if (value.length > max)
      return createParameterError(
        `Invalid '${path}': array too long. Expected an array with maximum length ${max}, but got an array with length ${value.length} instead.`,
        path,
        'array_above_max_length',
      )
    for (const [index, each] of value.entries()) {
      const found = item(each, `${path}[${index}]`)
      if (found !== null) return found
    }
    return null
  }
}

/** Creates a check that accepts a string, or what the other check accepts. */
export function stringOr(check: ShapeCheck): ShapeCheck {
  return (value, path) => (typeof value === 'string' ? null : check(value, path))
}

/** Creates a check for objects of several types: the field `type`, or `whenAbsent` without it, selects the check. */
export function unionCheck(members: Readonly<Record<string, ShapeCheck>>, whenAbsent?: string): ShapeCheck {
  const known = new Map(Object.entries(members))
  return (value, path) => {
    if (!isObject(value)) return createWrongTypeError(value, path, 'an object')
    const type = value.type ?? whenAbsent
    if (type === undefined)
      return createParameterError(
        `Missing required parameter: '${path}.type'.`,
        `${path}.type`,
        'missing_required_parameter',
      )
    const check = typeof type === 'string' ? known.get(type) : undefined
    return check === undefined ? describeChoice(type, path, [...known.keys()]) : check(value, path)
  }
}

const METADATA_LIMIT = 16

export const metadataCheck: ShapeCheck = (value, path) => {
  if (!isObject(value)) return createWrongTypeError(value, path, 'an object')
  const names = Object.keys(value)
  if (names.length > METADATA_LIMIT)
    return createParameterError(
      `Invalid '${path}': too many properties. Expected an object with at most ${METADATA_LIMIT} properties, but got an object with ${names.length} properties instead.`,
      path,
      'object_above_max_properties',
    )
  const check = stringCheck({ max: 512 })
  for (const name of names) {
    const found = check(value[name], `${path}.${name}`)
    if (found !== null) return found
  }
  return null
}

// Prompt caching, which both APIs have.

const ttlCheck = choiceCheck('30m', '12h')

export const breakpointCheck: ShapeCheck = objectCheck({
  required: { mode: choiceCheck('explicit') },
  optional: { ttl: ttlCheck },
})

/** Checks of the request fields for prompt caching, by name. */
export const cacheFieldChecks: Readonly<Record<string, ShapeCheck>> = {
  prompt_cache_key: stringCheck(),
  prompt_cache_retention: choiceCheck('in_memory', '24h'),
  prompt_cache_options: objectCheck({
    optional: {
      mode: choiceCheck('implicit', 'explicit'),
      ttl: ttlCheck,
      prewarm: booleanCheck,
      comparison_response_id: stringCheck(),
    },
  }),
}
