/** Errors about wrong arguments: thrown at once, naming the option and the name that was probably meant. */

import { findNearestName, formatValue, isObject, TidemarkError } from '@tidemark/core'

/** Throws `bad-option` for an unknown option name. `caller` opens the message, for example `run` or `hooks`. */
export function checkOptionNames(caller: string, options: unknown, names: readonly string[]): void {
  if (options === undefined) return
  if (!isObject(options))
    throw badOptionError(caller, `${caller}: expected an object, found ${formatValue(options)}.`)
  for (const name of Object.keys(options))
    if (!names.includes(name)) throw unknownNameError(caller, name, names)
}

/** `what` is the kind of name: an option, an event. */
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
