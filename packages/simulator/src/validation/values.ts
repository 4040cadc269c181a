/** The shapes of single values. */
import { isObject } from '../api.ts'
import { misfit, type Shape } from './shape.ts'

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
