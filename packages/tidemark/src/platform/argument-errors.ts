/** A name that nobody knows is a slip of the pen: said at once, with the name that was likely meant. */

import { inspect } from 'node:util'
import { isObject, TidemarkError } from '@tidemark/core'

/** `who` is what the message begins with, as in `run` or `hooks`. */
export function checkNames(who: string, given: unknown, names: readonly string[]): void {
  if (given === undefined) return
  if (!isObject(given)) throw badOption(who, `${who}: expected an object, found ${show(given)}.`)
  for (const name of Object.keys(given)) if (!names.includes(name)) throw noSuch(who, name, names)
}

export function noSuch(who: string, name: string, names: readonly string[], what = 'option'): TidemarkError {
  const meant = likely(name, names)
  const hint = meant === null ? `Those there are: ${names.join(', ')}.` : `Did you mean ${meant}?`
  return badOption(name, `${who}: there is no ${what} ${name}. ${hint}`)
}

export function badOption(option: string, message: string): TidemarkError {
  return new TidemarkError('bad-option', message, { details: { option } })
}

/** The nearest name, where it is near. */
function likely(name: string, names: readonly string[]): string | null {
  const near = names
    .map((one) => ({ one, steps: distance(plain(name), plain(one)) }))
    .sort((left, right) => left.steps - right.steps)[0]
  if (near === undefined) return null
  return near.steps <= Math.max(1, Math.floor(near.one.length / 3)) ? near.one : null
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z]/g, '')
}

/** Letters to put in, take out or change until the one is the other. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (const [place, letter] of [...one].entries()) {
    const next = [place + 1]
    for (const [index, against] of [...other].entries()) {
      const changed = (row[index] ?? 0) + (letter === against ? 0 : 1)
      next.push(Math.min(changed, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** A value as an error message names it: exact where short, in words where not. */
export function show(value: unknown): string {
  if (typeof value !== 'string') return inspect(value, { depth: -1, customInspect: false })
  return JSON.stringify(value.length > 200 ? `${value.slice(0, 200)}…` : value)
}
