import { inspect } from 'node:util'

/** A value as an error message names it: exact where short, in words where not. */
export function show(value: unknown): string {
  if (typeof value !== 'string') return inspect(value, { depth: -1, customInspect: false })
  return JSON.stringify(value.length > 200 ? `${value.slice(0, 200)}…` : value)
}
