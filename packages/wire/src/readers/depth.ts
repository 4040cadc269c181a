/**
 * Parsing takes any depth; stringifying, and whatever else walks a value by calling itself, does not. A value
 * nested deeper than this is refused at the door, so that nothing behind it can run out of stack.
 */
export const MAX_DEPTH = 1000

export const TOO_DEEP: string = `the line is nested more than ${MAX_DEPTH} levels deep; it is set aside`

export function isTooDeep(value: unknown): boolean {
  let level: object[] = isNested(value) ? [value] : []
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth >= MAX_DEPTH) return true
    const below: object[] = []
    for (const item of level) for (const child of Object.values(item)) if (isNested(child)) below.push(child)
    level = below
  }
  return false
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
