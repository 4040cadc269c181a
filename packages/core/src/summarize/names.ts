/**
 * Names in a text: files, and identifiers that look like ones (camelCase, snake_case). Plain words are left out:
 * they say nothing about which code is meant.
 */

/** Runs of characters that paths and identifiers are made of. */
const CHUNKS = /[A-Za-z0-9_$@~./+-]{3,}/g
const WORDS = /[A-Za-z_$][A-Za-z0-9_$]{2,}/g
const CAMEL = /[a-z0-9][A-Z]|[A-Z][A-Z][a-z]/
const SNAKE = /[A-Za-z0-9]_[A-Za-z0-9]/
const LONGEST = 80
const LONGEST_PATH = 300
/** Many changes between letters and digits: a hash, an id, a piece of base64. */
const RANDOM = /(?:[0-9]+[A-Za-z]+){4,}|^[0-9a-f_]{16,}$/

/** Without a folder before it, only a known ending tells a file from `object.field`. */
const ENDINGS = new Set(
  (
    'ts tsx mts cts js jsx mjs cjs json jsonl jsonc go mod sum work py pyi ipynb rs toml lock rb java kt kts scala c h cc cpp ' +
    'hpp cs fs swift php pl lua sh bash zsh fish ps1 sql md mdx rst txt csv tsv yaml yml xml html htm css scss less svg ' +
    'vue svelte astro proto graphql gql tf hcl nix zig dart ex exs erl hs ml cfg conf ini env log gz zip png jpg pdf'
  ).split(' '),
)
const ENDING = /\.([A-Za-z][A-Za-z0-9]{0,9})$/

export interface Names {
  /** Paths of files as they stand in the text, or bare file names. */
  readonly files: ReadonlySet<string>
  readonly identifiers: ReadonlySet<string>
}

export function namesIn(text: string): Names {
  const files = new Set<string>()
  const identifiers = new Set<string>()
  for (const match of text.matchAll(CHUNKS)) {
    // In quoted code `\nName` is a line break and a name.
    const chunk = text[match.index - 1] === '\\' ? match[0].slice(1) : match[0]
    const file = chunk.length <= LONGEST_PATH && chunk.includes('.') ? fileIn(chunk) : null
    if (file !== null) files.add(file)
    if (isTelling(chunk))
      for (const [word] of chunk.matchAll(WORDS)) if (isIdentifier(word)) identifiers.add(word)
  }
  return { files, identifiers }
}

export function isIdentifier(word: string): boolean {
  return word.length <= LONGEST && isTelling(word) && !RANDOM.test(word)
}

/** The last part of a path. */
export function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function isTelling(chunk: string): boolean {
  return CAMEL.test(chunk) || SNAKE.test(chunk)
}

/** A path that ends in a file, without the dots and dashes that belong to the sentence around it. */
function fileIn(chunk: string): string | null {
  const path = chunk.replace(/[.+-]+$/, '')
  if (path.endsWith('/') || path.startsWith('//')) return null
  const base = fileName(path)
  const ending = ENDING.exec(base)?.[1]
  if (ending === undefined || base.length <= ending.length + 1) return null
  const isKnownEnding = ENDINGS.has(ending)
  return isKnownEnding || (path.includes('/') && /^[a-z0-9]{1,5}$/.test(ending)) ? path : null
}
