/**
 * Matches paths against globs. Globs come from models and from rules, ignore files and settings of untrusted projects,
 * so no regular expression is built from them. The time is at most proportional to length of glob times length of path.
 */

/** Maximum characters of a glob. */
export const MAX_GLOB_CHARACTERS = 1_000
/** Maximum alternatives that the braces of a glob stand for. */
const MAX_ALTERNATIVES = 256
/** Maximum characters of all alternatives of a glob together. */
const MAX_EXPANDED_CHARACTERS = 20_000

/** A compiled glob. `names` is a path, split at its slashes. */
export type Glob = (names: readonly string[]) => boolean

/**
 * Compiles a glob that matches whole paths. `**` stands for any folders, `*` and `?` for characters of one name, `[a-z]`
 * for a set, `{a,b}` for alternatives, and a backslash makes the next character plain; `docs/` is everything in `docs`.
 * Names that begin with a dot match too. Returns null if the glob is longer than the limits.
 */
export function compileGlob(glob: string): Glob | null {
  if (glob.length > MAX_GLOB_CHARACTERS) return null
  const compiled = expandBraces(glob.trim())?.map((alternative) => {
    const { segments } = parseSegments(alternative.endsWith('/') ? `${alternative}**` : alternative)
    return matchSegments(segments.filter((segment) => segment !== '' && segment !== '.'))
  })
  if (compiled === undefined) return null
  return (names) => {
    const given = names.filter((name) => name !== '')
    return compiled.some((matches) => matches(given))
  }
}

/**
 * Compiles a pattern of a .gitignore file, without `!` and without a slash at its end. Null if Git would match nothing
 * with it, or if it exceeds the limits.
 */
export function compileIgnorePattern(pattern: string): Glob | null {
  if (pattern === '' || pattern.length > MAX_GLOB_CHARACTERS) return null
  const { segments, isComplete } = parseSegments(pattern)
  if (!isComplete) return null
  // A pattern with a slash, even in a set, is relative to the folder of the file. Without a slash, it matches a name at
  // any depth.
  if (!pattern.includes('/')) return matchSegments([ANY_FOLDERS, ...segments])
  return matchSegments(pattern.startsWith('/') ? segments.slice(1) : segments)
}

/** Matches a text with a pattern in which only `*` has a meaning: any text. */
export function matchesStars(pattern: string, text: string): boolean {
  const [first = '', ...others] = pattern.split('*')
  const last = others.pop()
  if (last === undefined) return text === pattern
  const end = text.length - last.length
  if (!text.startsWith(first) || !text.endsWith(last) || first.length > end) return false
  let at = first.length
  for (const part of others) {
    const found = text.indexOf(part, at)
    if (found === -1 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

/**
 * Returns true if at least one glob matches the whole path and no glob that begins with `!` does. `path` has `/` as
 * separator and no `..`. A glob that exceeds the limits matches nothing.
 */
export function matchesGlobs(globs: readonly string[], path: string): boolean {
  const names = path.split('/')
  const isMatch = (glob: string): boolean => compileGlob(glob)?.(names) === true
  const [none, some] = [globs.filter(isNegated), globs.filter((glob) => !isNegated(glob))]
  return some.some(isMatch) && !none.some((glob) => isMatch(glob.slice(1)))
}

function isNegated(glob: string): boolean {
  return glob.startsWith('!')
}

const ANY_FOLDERS = Symbol('any folders')
const ANY_TEXT: unique symbol = Symbol('any text')
type CharacterTest = ((character: string) => boolean) | typeof ANY_TEXT
/** A segment of a pattern: an exact name, tests for each character of a name, or any folders. */
type Segment = string | readonly CharacterTest[] | typeof ANY_FOLDERS

function matchSegments(segments: readonly Segment[]): Glob {
  // `folder/**` matches everything in the folder, but not the folder itself.
  const wanted: readonly Segment[] = segments.at(-1) === ANY_FOLDERS ? [...segments, [ANY_TEXT]] : segments
  return (names) =>
    wanted.length > 0 && matchesSequence(wanted, names, (part) => part === ANY_FOLDERS, matchesName)
}

/**
 * Matches a list with a pattern in which some items stand for any number of items. Only the last such item must ever be
 * extended, so the time is at most the product of both lengths.
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

function matchesName(segment: Segment, name: string): boolean {
  if (typeof segment === 'string') return segment === name && name !== '..'
  if (segment === ANY_FOLDERS || name === '..') return false
  return matchesSequence(
    segment,
    [...name],
    (test) => test === ANY_TEXT,
    (test, character) => test !== ANY_TEXT && test(character),
  )
}

interface ParsedSegments {
  readonly segments: readonly Segment[]
  /** False if a set is not closed or the pattern ends with a backslash. The bracket or backslash then stands for itself. */
  readonly isComplete: boolean
}

/** Parses a glob without braces, name by name. */
function parseSegments(glob: string): ParsedSegments {
  const characters = [...glob]
  const segments: Segment[] = []
  let [tests, literal]: [CharacterTest[], string | null] = [[], '']
  let isComplete = true
  const endSegment = (): void => {
    const isStars = tests.length > 1 && tests.every((test) => test === ANY_TEXT)
    segments.push(literal ?? (isStars ? ANY_FOLDERS : tests))
    tests = []
    literal = ''
  }
  const addTest = (test: CharacterTest): void => {
    tests.push(test)
    literal = null
  }
  for (let at = 0; at < characters.length; at += 1) {
    const set = characters[at] === '[' ? parseSet(characters, at + 1) : null
    if (characters[at] === '*') addTest(ANY_TEXT)
    else if (characters[at] === '?') addTest(() => true)
    else if (set !== null) {
      addTest(set.test)
      at = set.end
    } else {
      if (characters[at] === '[') isComplete = false
      if (characters[at] === '\\') {
        if (at + 1 < characters.length) at += 1
        else isComplete = false
      }
      const wanted = characters[at] as string
      if (wanted === '/') endSegment()
      else {
        tests.push((given) => given === wanted)
        if (literal !== null) literal += wanted
      }
    }
  }
  endSegment()
  return { segments, isComplete }
}

interface ParsedSet {
  readonly test: (character: string) => boolean
  /** Index of the bracket that closes the set. */
  readonly end: number
}

/** Classes of characters, as in `[[:digit:]]`. */
const CLASSES: Readonly<Record<string, RegExp>> = {
  alnum: /[a-z0-9]/i,
  alpha: /[a-z]/i,
  blank: /[ \t]/,
  cntrl: /\p{Cc}/u,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /\s/,
  upper: /[A-Z]/,
  xdigit: /[0-9a-f]/i,
}

/** Parses a set whose first character is at `from`; null if it is not closed. A bracket that comes first is a member. */
function parseSet(characters: readonly string[], from: number): ParsedSet | null {
  const isNot = characters[from] === '!' || characters[from] === '^'
  const first = isNot ? from + 1 : from
  const members: ((character: string) => boolean)[] = []
  let start: string | null = null
  for (let at = first; at < characters.length; at += 1) {
    if (characters[at] === ']' && at > first)
      return { test: (character) => members.some((isMember) => isMember(character)) !== isNot, end: at }
    const named = characters[at] === '[' && characters[at + 1] === ':' ? characters.indexOf(']', at) : -1
    const lower: string | null = start
    if (named > at + 2 && characters[named - 1] === ':') {
      const known = CLASSES[characters.slice(at + 2, named - 1).join('')]
      if (known === undefined) return null
      members.push((character) => known.test(character))
      start = null
      at = named
    } else if (characters[at] === '-' && lower !== null && (characters[at + 1] ?? ']') !== ']') {
      at += characters[at + 1] === '\\' ? 2 : 1
      const upper = characters[at]
      if (upper === undefined) return null
      members.push((character) => isBetween(character, lower, upper))
      start = null
    } else {
      if (characters[at] === '\\') at += 1
      const member = characters[at]
      if (member === undefined) return null
      members.push((character) => character === member)
      start = member
    }
  }
  return null
}

function isBetween(character: string, lower: string, upper: string): boolean {
  const [given = 0, from = 0, to = 0] = [character, lower, upper].map((each) => each.codePointAt(0))
  return from <= given && given <= to
}

/** Returns the globs that braces stand for: `a.{ts,tsx}` → `a.ts`, `a.tsx`. Null if there are too many. */
function expandBraces(glob: string): readonly string[] | null {
  let open = [glob]
  for (;;) {
    const next = open.flatMap((one) => expandInnermost(one))
    const characters = next.reduce((sum, one) => sum + one.length, 0)
    if (next.length > MAX_ALTERNATIVES || characters > MAX_EXPANDED_CHARACTERS) return null
    if (next.length === open.length) return next
    open = next
  }
}

/** Replaces the first innermost pair of braces that lists alternatives. */
function expandInnermost(glob: string): readonly string[] {
  let from = -1
  let commas: number[] = []
  for (let at = 0; at < glob.length; at += 1) {
    if (glob[at] === '\\') at += 1
    else if (glob[at] === ',') commas.push(at)
    else if (glob[at] === '{') {
      from = at
      commas = []
    } else if (glob[at] === '}' && from !== -1) {
      const open = from
      const close = at
      const ends = [...commas, close]
      if (commas.length > 0)
        return ends.map(
          (end, index) =>
            glob.slice(0, open) + glob.slice((ends[index - 1] ?? open) + 1, end) + glob.slice(close + 1),
        )
      from = -1
    }
  }
  return [glob]
}
