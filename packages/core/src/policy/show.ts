/** A value as an error message names it: exact where short, in words where not. */
const LONGEST = 60

export function show(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'bigint') return `${value}n`
  if (Array.isArray(value)) return shownList(value)
  if (typeof value === 'object' && value !== null) return 'an object'
  return Object.is(value, -0) ? '-0' : String(value)
}

function quoted(value: string): string {
  return JSON.stringify(value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value)
}

function shownList(list: readonly unknown[]): string {
  const whole = `[${Array.from(list, show).join(', ')}]`
  return whole.length > LONGEST ? `a list of ${list.length}` : whole
}
