/** Is a thing still named in a text? As a whole word: part of a longer name is another name. */
import { fileName } from './names.ts'

const PART_OF_NAME = /[\w$]/

export function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    if (!PART_OF_NAME.test(text[at - 1] ?? ' ') && !PART_OF_NAME.test(text[at + word.length] ?? ' '))
      return true
  }
  return false
}

/** By its last two parts or more; by its bare name where it has no folder. */
export function namesFile(text: string, path: string): boolean {
  const parts = path.split('/').filter((part) => part !== '')
  return hasWord(text, parts.length < 2 ? path : parts.slice(-2).join('/'))
}

/** By its bare name at least. */
export function mentionsFile(text: string, path: string): boolean {
  return hasWord(text, fileName(path))
}
