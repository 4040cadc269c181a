/**
 * Matches paths against the globs of rule files and of excluded files. Such globs come from projects that nobody has
 * checked, so the time is bounded by the length of glob times path: no regular expression is made from them.
 */

/** The longest glob, and the most alternatives that its braces may stand for. A glob with more matches nothing. */
const MAX_GLOB_CHARACTERS = 1_000
const MAX_ALTERNATIVES = 256

/**
 * Returns true if one of the globs matches the whole path and none that begins with `!` does. `**` stands for any
 * folders, `*` and `?` for characters of one name, `[a-z]` for a set, `{a,b}` for alternatives; `docs/` is everything in
 * `docs`. Names that begin with a dot match too. `path` has `/` as separator and no `..`.
 */
export function matchesGlobs(globs: readonly string[], path: string): boolean {
  const [none, some] = [globs.filter(isNegated), globs.filter((glob) => !isNegated(glob))]
  const isMatch = (glob: string): boolean => matchesGlob(glob, path)
  return some.some(isMatch) && !none.some((glob) => isMatch(glob.slice(1)))
}

function isNegated(glob: string): boolean {
  return glob.startsWith('!')
}

function matchesGlob(glob: string, path: string): boolean {
  if (glob.length > MAX_GLOB_CHARACTERS) return false
  const names = path.split('/').filter((name) => name !== '')
  return expandBraces(glob.trim()).some((alternative) => {
    const anchored = alternative.replace(/^(?:\.?\/)+/, '').replace(/\/$/, '/**')
    const parts = anchored.split('/').filter((part) => part !== '' && part !== '.')
    // What is in a folder is matched by `folder/**`, the folder itself is not.
    const wanted = parts.at(-1) === '**' ? [...parts, '*'] : parts
    return wanted.length > 0 && matchesSequence(wanted, names, (part) => part === '**', matchesName)
  })
}

/**
 * Compares a list with a pattern in which some items stand for any number of items. Only the last such item ever needs
 * to take more, so the time is at most the product of both lengths.
 */
function matchesSequence<P, T>(
  pattern: readonly P[],
  items: readonly T[],
  isAny: (part: P) => boolean,
  isMatch: (part: P, item: T) => boolean,
): boolean {
  let [at, next] = [0, 0]
  let [lastAny, taken] = [-1, 0]
  while (next < items.length) {
    const part = pattern[at]
    if (at < pattern.length && isAny(part as P)) {
      lastAny = at
      taken = next
      at += 1
    } else if (at < pattern.length && isMatch(part as P, items[next] as T)) {
      at += 1
      next += 1
    } else if (lastAny >= 0) {
      taken += 1
      at = lastAny + 1
      next = taken
    } else return false
  }
  return pattern.slice(at).every(isAny)
}

type CharacterTest = ((character: string) => boolean) | 'any'

function matchesName(glob: string, name: string): boolean {
  if (name === '..') return false
  return matchesSequence(
    parseName(glob),
    [...name],
    (test) => test === 'any',
    (test, character) => test !== 'any' && test(character),
  )
}

/** Parses the glob of one name into a test for each character; `any` stands for `*`. */
function parseName(glob: string): readonly CharacterTest[] {
  const characters = [...glob]
  const tests: CharacterTest[] = []
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] as string
    const end = character === '[' ? characters.indexOf(']', at + 2) : -1
    if (character === '*') tests.push('any')
    else if (character === '?') tests.push(() => true)
    else if (end !== -1) {
      tests.push(parseSet(characters.slice(at + 1, end)))
      at = end
    } else {
      const escaped = character === '\\' ? characters[at + 1] : undefined
      if (escaped !== undefined) at += 1
      const literal = escaped ?? character
      tests.push((given) => given === literal)
    }
  }
  return tests
}

function parseSet(characters: readonly string[]): (character: string) => boolean {
  const isNot = characters[0] === '!' || characters[0] === '^'
  const listed = isNot ? characters.slice(1) : characters
  const ranges: (readonly [string, string])[] = []
  for (let at = 0; at < listed.length; at += 1) {
    const from = listed[at] as string
    const to = listed[at + 1] === '-' ? listed[at + 2] : undefined
    if (to !== undefined) at += 2
    ranges.push([from, to ?? from])
  }
  return (character) => ranges.some(([from, to]) => from <= character && character <= to) !== isNot
}

/** Returns the globs that braces stand for: `a.{ts,tsx}` → `a.ts`, `a.tsx`. None if there are too many. */
function expandBraces(glob: string): readonly string[] {
  let open = [glob]
  for (;;) {
    const next = open.flatMap((one) => expandInnermost(one))
    if (next.length > MAX_ALTERNATIVES) return []
    if (next.length === open.length) return next
    open = next
  }
}

/** Replaces the first innermost pair of braces that lists alternatives. */
function expandInnermost(glob: string): readonly string[] {
  let from = -1
  for (let at = 0; at < glob.length; at += 1) {
    if (glob[at] === '\\') at += 1
    else if (glob[at] === '{') from = at
    else if (glob[at] === '}' && from !== -1) {
      const listed = glob.slice(from + 1, at)
      if (listed.includes(','))
        return listed.split(',').map((each) => glob.slice(0, from) + each + glob.slice(at + 1))
      from = -1
    }
  }
  return [glob]
}
