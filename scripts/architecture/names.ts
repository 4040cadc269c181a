/** Words that say nothing about what a thing is, in names of files and of what they export. */
import { basename } from 'node:path'
import { exportsOf } from './exports.ts'
import type { Finding, Source } from './source.ts'

const EMPTY_WORDS = new Set(
  'manager service helper helpers util utils impl base info data handler handlers'.split(' '),
)

/** `allowed`: exported names or paths that may keep such a word, each with its reason. */
export function checkNames(
  sources: readonly Source[],
  allowed: ReadonlyMap<string, string>,
): readonly Finding[] {
  return sources.flatMap((source) => {
    const names = exportsOf(source).map(({ name, line }) => ({ name, line }))
    const own = { name: basename(source.path).replace(/(\.test|\.soak|\.config)*\.[a-z]+$/, ''), line: 0 }
    const shape = /^[a-z0-9]+(-[a-z0-9]+)*$/.test(own.name)
      ? []
      : [{ file: source.path, line: 0, why: 'file names are kebab-case' }]
    const empty = [own, ...names].flatMap(({ name, line }) => {
      const word = emptyWord(name)
      if (word === null || allowed.has(name) || allowed.has(source.path)) return []
      return [{ file: source.path, line, why: `${name}: "${word}" says nothing; name what it is` }]
    })
    return [...shape, ...empty]
  })
}

/** The first or last word of a name, if it is one that says nothing. `Metadata` is a word of its own. */
function emptyWord(name: string): string | null {
  const words = wordsOf(name)
  const found = [words[0] ?? '', words.at(-1) ?? ''].find(
    (word) => EMPTY_WORDS.has(word) || /^v\d+$/.test(word),
  )
  return found ?? null
}

/** `RecordBase`, `record-base`, `RECORD_BASE` → `record`, `base`. */
function wordsOf(name: string): readonly string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '')
    .map((word) => word.toLowerCase())
}
