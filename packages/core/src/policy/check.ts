/** What a field of the policy may hold. `allowed` finishes the sentence "allowed is …" in an error. */
export interface Check<T> {
  readonly allowed: string
  accepts(value: unknown): value is T
}

/** A whole number of things: tokens, results, seconds. */
export function count(least = 0, most: number = Number.MAX_SAFE_INTEGER): Check<number> {
  const accepts = (value: unknown): value is number =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
  return { allowed: `a whole number ${range(least, most)}`, accepts }
}

/** A number that need not be whole: a ratio, a factor. */
export function amount(least: number, most: number): Check<number> {
  const accepts = (value: unknown): value is number =>
    typeof value === 'number' && Number.isFinite(value) && value >= least && value <= most
  return { allowed: `a number ${range(least, most)}`, accepts }
}

/** 25 means 25%, never 0.25: halves of a per cent stay exact, and so do the lines drawn with them. */
export function percent(least = 0.1, most = 100): Check<number> {
  const { accepts } = amount(least, most)
  return { allowed: `a percentage from ${least} to ${most} (25 means 25%)`, accepts }
}

export function flag(): Check<boolean> {
  return { allowed: 'true or false', accepts: (value): value is boolean => typeof value === 'boolean' }
}

export function text(): Check<string> {
  return { allowed: 'a string', accepts: (value): value is string => typeof value === 'string' }
}

/** A string with something in it. */
export function name(): Check<string> {
  const accepts = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''
  return { allowed: 'a string that is not blank', accepts }
}

export function oneOf<const T extends string>(...choices: readonly T[]): Check<T> {
  const accepts = (value: unknown): value is T => choices.some((choice) => choice === value)
  return { allowed: choices.map((choice) => `'${choice}'`).join(' or '), accepts }
}

/** A list without repeats, in an order that counts. */
export function listOf<T>(item: Check<T>): Check<readonly T[]> {
  const accepts = (value: unknown): value is readonly T[] =>
    Array.isArray(value) && Array.from(value).every(item.accepts) && new Set(value).size === value.length
  return { allowed: `a list without repeats, each item ${item.allowed}`, accepts }
}

export function orNull<T>(check: Check<T>): Check<T | null> {
  const accepts = (value: unknown): value is T | null => value === null || check.accepts(value)
  return { allowed: `${check.allowed}, or null`, accepts }
}

export function either<A, B>(one: Check<A>, other: Check<B>): Check<A | B> {
  const accepts = (value: unknown): value is A | B => one.accepts(value) || other.accepts(value)
  return { allowed: `${one.allowed}, or ${other.allowed}`, accepts }
}

function range(least: number, most: number): string {
  return most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`
}
