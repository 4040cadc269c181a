/**
 * Code and names in texts: finds, removes, closes and wraps Markdown code blocks; finds names of files and identifiers. Also
 * chooses tag names for elements that enclose a text of unknown origin.
 */

/** Matches the first line of a code block: the fence, and the name of the language. It may follow a list marker. */
const FENCE = /^\s*(?:(?:[-*+]|\d+[.)])\s+)?(`{3,}|~{3,})([^`]*)$/

interface Fence {
  /** Index of its line. */
  readonly index: number
  readonly fence: string
  /** True if it has no language and may thus end a block. */
  readonly isClosing: boolean
}

interface CodeBlock {
  readonly fence: string
  /** Indexes of the lines with its two fences. `last` is null if the block is never closed. */
  readonly first: number
  readonly last: number | null
}

/**
 * Lists the code blocks of a text. A block ends only at a fence of at least the same length without a language, so that a
 * block may contain other fences. A fence that is never closed is listed too, and the search goes on behind it.
 */
function listCodeBlocks(lines: readonly string[]): readonly CodeBlock[] {
  const fences = lines.flatMap((line, index): readonly Fence[] => {
    const [, fence, language = ''] = FENCE.exec(line) ?? []
    return fence === undefined ? [] : [{ index, fence, isClosing: language.trim() === '' }]
  })
  const blocks: CodeBlock[] = []
  // Fences that no later fence closes. A longer fence of the same kind cannot be closed either, so it is not searched for again.
  const unclosed: string[] = []
  for (let at = 0; at < fences.length; at += 1) {
    const opening = fences[at]
    if (opening === undefined) continue
    const closes = ({ fence, isClosing }: Fence): boolean => isClosing && fence.startsWith(opening.fence)
    const isUnclosed = unclosed.some((fence) => opening.fence.startsWith(fence))
    let end = isUnclosed ? fences.length : at + 1
    while (end < fences.length && !closes(fences[end] as Fence)) end += 1
    blocks.push({ fence: opening.fence, first: opening.index, last: fences[end]?.index ?? null })
    if (end < fences.length) at = end
    else if (!isUnclosed) unclosed.push(opening.fence)
  }
  return blocks
}

/** Returns the indexes of all lines in code blocks, fences included. A fence that is never closed begins no block. */
export function findFencedLines(lines: readonly string[]): ReadonlySet<number> {
  const fenced = new Set<number>()
  for (const { first, last } of listCodeBlocks(lines))
    for (let line = first; last !== null && line <= last; line += 1) fenced.add(line)
  return fenced
}

/** Returns a text, trimmed, without its code blocks. A block that is never closed reaches to the end of the text. */
export function removeCodeBlocks(text: string): string {
  const lines = text.split('\n')
  const fenced = findFencedLines(lines)
  const open = listCodeBlocks(lines).find(({ last }) => last === null)?.first ?? lines.length
  return lines
    .filter((_, index) => index < open && !fenced.has(index))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** Appends the missing fence if a text ends inside a code block, so that what follows the text is not part of it. */
export function closeCodeBlock(text: string): string {
  const open = listCodeBlocks(text.split('\n')).find(({ last }) => last === null)
  return open === undefined ? text : `${text}\n${open.fence}`
}

/** Returns a trimmed text as a Markdown block quote, so that no line of it is taken for a heading or a list item. */
export function toBlockQuote(text: string): string {
  return text
    .trim()
    .split(/\r\n|\r|\n/)
    .map((line) => `> ${line}`)
    .join('\n')
}

/** Puts a text into a code block whose fence is longer than any run of backticks in the text. */
export function wrapInCodeBlock(text: string, language = ''): string {
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length + 1)))
  return `${fence}${language}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`
}

// Finds names in a text: files, and identifiers in camelCase or snake_case. Plain words are not names, since they do not
// show which code is meant.

/** Matches runs of characters that occur in paths and identifiers. */
const NAME_CHUNKS = /[A-Za-z0-9_$@~./+-]{3,}/g
const WORD = /[A-Za-z_$][A-Za-z0-9_$]{2,}/g
const CAMEL_CASE = /[a-z0-9][A-Z]|[A-Z][A-Z][a-z]/
const SNAKE_CASE = /[A-Za-z0-9]_[A-Za-z0-9]/
/** A number may be written as 2_147_483_647, which has no letter. */
const LETTER = /[A-Za-z]/
const MAX_IDENTIFIER_CHARACTERS = 80
const MAX_PATH_CHARACTERS = 300
/** Matches text in which letters and digits alternate often: a hash, an id, a piece of base64. */
const RANDOM_TEXT = /(?:[0-9]+[A-Za-z]+){4,}|^[0-9a-f_]{16,}$/

/** Extensions by which a name without a folder counts as a file; otherwise it could be `object.field`. */
const FILE_EXTENSIONS = new Set(
  (
    'ts tsx mts cts js jsx mjs cjs json jsonl jsonc go mod sum work py pyi ipynb rs toml lock rb java kt kts scala c h cc cpp ' +
    'hpp cs fs swift php pl lua sh bash zsh fish ps1 sql md mdx rst txt csv tsv yaml yml xml html htm css scss less svg ' +
    'vue svelte astro proto graphql gql tf hcl nix zig dart ex exs erl hs ml cfg conf ini env log gz zip png jpg pdf'
  ).split(' '),
)
/** Matches the extension at the end of a file name; the group has it without the dot. */
export const EXTENSION_PATTERN: RegExp = /\.([A-Za-z][A-Za-z0-9]{0,9})$/

export interface NamesInText {
  /** File paths or bare file names, as written in the text. */
  readonly files: ReadonlySet<string>
  /** How often each identifier occurs in the text. */
  readonly identifiers: ReadonlyMap<string, number>
}

/** Finds the names of files and identifiers in a text. A name without a folder is a file only if its extension is known. */
export function findNamesInText(text: string): NamesInText {
  const files = new Set<string>()
  const identifiers = new Map<string, number>()
  for (const match of text.matchAll(NAME_CHUNKS)) {
    // In quoted code, `\nName` is a line break followed by a name. In a path on Windows, a backslash precedes a name.
    const isEscaped = text[match.index - 1] === '\\' && /^[nrt]/.test(match[0])
    const chunk = isEscaped ? match[0].slice(1) : match[0]
    const file = chunk.length <= MAX_PATH_CHARACTERS && chunk.includes('.') ? parseFilePath(chunk) : null
    if (file !== null) files.add(file)
    if (looksLikeIdentifier(chunk))
      for (const [word] of chunk.matchAll(WORD))
        if (isIdentifier(word)) identifiers.set(word, (identifiers.get(word) ?? 0) + 1)
  }
  return { files, identifiers }
}

function isIdentifier(word: string): boolean {
  const isName = LETTER.test(word) && looksLikeIdentifier(word) && !RANDOM_TEXT.test(word)
  return isName && word.length <= MAX_IDENTIFIER_CHARACTERS
}

/** Returns the part of a path after the last slash. */
export function readLastPathPart(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function looksLikeIdentifier(chunk: string): boolean {
  return CAMEL_CASE.test(chunk) || SNAKE_CASE.test(chunk)
}

/** Returns a piece of text as a file path without the punctuation that ends a sentence; null if it is not a file path. */
function parseFilePath(chunk: string): string | null {
  const path = chunk.replace(/[.+-]+$/, '')
  if (path.endsWith('/') || path.startsWith('//')) return null
  const base = readLastPathPart(path)
  const ending = EXTENSION_PATTERN.exec(base)?.[1]
  if (ending === undefined || base.length <= ending.length + 1) return null
  const isKnownEnding = FILE_EXTENSIONS.has(ending)
  return isKnownEnding || (path.includes('/') && /^[a-z0-9]{1,5}$/.test(ending)) ? path : null
}

// A text names a file only if the name is a whole word: `a.ts` is not named by `data.ts`.

const PART_OF_NAME = /[\w$]/
const PART_OF_PATH = /[\w$/]/

/** Checks whether a text contains `word` as a whole word. `before`: matches a character that may not precede it. */
export function hasWord(text: string, word: string, before: RegExp = PART_OF_NAME): boolean {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    if (!before.test(text[at - 1] ?? ' ') && !PART_OF_NAME.test(text[at + word.length] ?? ' ')) return true
  }
  return false
}

/** Checks whether a text contains at least the last two parts of a path, or its file name if the path has no folder. */
export function isPathEndMentioned(text: string, path: string): boolean {
  const parts = path.split('/').filter((part) => part !== '')
  return hasWord(text, parts.length < 2 ? path : parts.slice(-2).join('/'))
}

/** Checks whether a text contains the file name of `path` as a whole word, with any folder or none. */
export function isFileNameMentioned(text: string, path: string): boolean {
  return hasWord(text, readLastPathPart(path))
}

/** Matches a line of the notes that names files by their folder: `- src/log: block.ts, record.ts`. */
const FOLDER_LINE = /^- ([^:\n]+|[A-Za-z]:[^:\n]*): ([^\n]+)$/gm

/**
 * Creates a check whether `text` names a file by its whole path, or by the path relative to one of the working directories
 * `folders`. A folder line of the notes, such as `- src/log: block.ts, record.ts`, names its files too.
 */
export function createPathMentionCheck(text: string, folders: readonly string[]): (path: string) => boolean {
  const plain = text.replaceAll('\\', '/')
  const listed = new Set<string>()
  for (const [, folder = '', names = ''] of plain.matchAll(FOLDER_LINE))
    for (const name of names.split(', ')) listed.add(folder === '.' ? name : `${folder}/${name}`)
  const bases = folders.map((folder) => `${folder.replaceAll('\\', '/')}/`)
  return (given) => {
    const path = given.replaceAll('\\', '/')
    const relative = bases.flatMap((base) => (path.startsWith(base) ? [path.slice(base.length)] : []))
    return [path, ...relative].some((form) => listed.has(form) || hasWord(plain, form, PART_OF_PATH))
  }
}

// Elements that enclose a text of unknown origin, such as `<system-reminder>`, so that the text cannot end them.

/**
 * Returns a tag name for an element that encloses `text`, so that nothing in the text can end the element: `name`, or, if the
 * text has anything like a tag of that name, `name-2`, `name-3` … with a number that the text does not use. Deterministic.
 */
export function chooseUnusedTagName(name: string, text: string): string {
  const words = name.split('-')
  const tag = new RegExp(`<[\\W_]{0,8}${words.join('[\\W_]{0,3}')}`, 'i')
  if (!tag.test(text)) return name
  const numbered = new RegExp(`${words.at(-1)}[\\W_]{0,3}(\\d+)`, 'gi')
  const used = new Set([...text.matchAll(numbered)].map(([, number]) => Number(number)))
  let number = 2
  while (used.has(number)) number += 1
  return `${name}-${number}`
}
