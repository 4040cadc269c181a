/** Paths as text: one spelling for each, and whether one is a memory file. */

/** Absolute where `folder` is given, `/` between the parts, no `.` or `..`. Links are the disk's to follow. */
export function plainPath(path: string, folder: string | null = null): string {
  const given = path.replaceAll('\\', '/')
  const isAbsolute = given.startsWith('/') || /^[A-Za-z]:\//.test(given)
  const whole = isAbsolute || folder === null ? given : `${folder.replaceAll('\\', '/')}/${given}`
  const parts: string[] = []
  for (const part of whole.split('/')) {
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return `${whole.startsWith('/') ? '/' : ''}${parts.join('/')}`
}

/** Does `path` end in `name`: a name, several parts of a path, or with `*` for any part of one? */
export function endsIn(path: string, name: string): boolean {
  const wanted = name.split('/').filter((part) => part !== '')
  const given = plainPath(path).split('/').slice(-wanted.length)
  return given.length === wanted.length && wanted.every((part, index) => isLike(given[index] ?? '', part))
}

function isLike(part: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return part === pattern
  if (!part.startsWith(first)) return false
  const last = rest.at(-1) ?? ''
  let at = first.length
  for (const piece of rest.slice(0, -1)) {
    const found = part.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return part.endsWith(last) && part.length - last.length >= at
}
