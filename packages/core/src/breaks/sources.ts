/** Which query sources share a state, and which names a pattern means. */

/** The main thread goes by several names; a summary call reads its cache. */
export function watchKey(source: string): string {
  const isMain = source === '' || source === 'sdk' || source.startsWith(MAIN)
  return isMain ? MAIN : source
}

const MAIN = 'repl_main_thread'

/** Whose cache the request reads, where that is not its own. */
export function parentKey(source: string, forkOf: string | undefined): string | null {
  if (forkOf !== undefined) return watchKey(forkOf)
  return source === 'compact' ? MAIN : null
}

/** `*` stands for anything; upper and lower case are the same. */
export function matchesPattern(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.toLowerCase().split('*')
  const text = name.toLowerCase()
  if (!text.startsWith(first)) return false
  const last = rest.pop()
  if (last === undefined) return text === first
  let from = first.length
  for (const part of rest) {
    const found = text.indexOf(part, from)
    if (found === -1) return false
    from = found + part.length
  }
  return text.length - last.length >= from && text.endsWith(last)
}
