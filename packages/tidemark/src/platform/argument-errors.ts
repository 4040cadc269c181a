/** Checks the names of options and creates `bad-option` errors, which suggest the option that was probably meant. */

import { TidemarkError } from '@tidemark/core/errors'
import { isObject } from '@tidemark/core/log/json'
import { findNearestName, formatErrorValue } from '@tidemark/core/policy/policy-fields'

/**
 * Throws `bad-option` if `options` is not an object, or has a field that is not in `names`; undefined is accepted.
 * `caller`: name of the called function, for the message.
 */
export function checkOptionNames(caller: string, options: unknown, names: readonly string[]): void {
  if (options === undefined) return
  if (!isObject(options))
    throw badOptionError(caller, `${caller}: expected an object, found ${formatErrorValue(options)}.`)
  for (const name of Object.keys(options))
    if (!names.includes(name)) throw unknownNameError(caller, name, names)
}

/** Returns a `bad-option` error that suggests the nearest known name. `what` is the kind of name: `option` or `event`. */
export function unknownNameError(
  caller: string,
  name: string,
  names: readonly string[],
  what = 'option',
): TidemarkError {
  const meant = findNearestName(name, names)
  const hint = meant === null ? `Known: ${names.join(', ')}.` : `Did you mean ${meant}?`
  return badOptionError(name, `${caller}: unknown ${what} ${name}. ${hint}`)
}

export function badOptionError(option: string, message: string): TidemarkError {
  return new TidemarkError('bad-option', message, { details: { option } })
}
