/** The writing of faults: a comma parts them, a semicolon what is said about one, quotes keep both together. */

export interface WrittenPart {
  readonly name: string
  /** Null where there is no `=`. */
  readonly value: string | null
}

export interface WrittenFault {
  readonly head: WrittenPart
  readonly about: readonly WrittenPart[]
}

export function writtenFaults(text: string): readonly WrittenFault[] {
  const faults = matches(text, OUTSIDE_COMMAS).filter((each) => each.trim() !== '')
  return faults.map((each) => {
    const [head = NO_PART, ...about] = matches(each, OUTSIDE_SEMICOLONS).map(partOf)
    return { head, about: about.filter((part) => part !== NO_PART && part.name !== '') }
  })
}

const NO_PART: WrittenPart = { name: '', value: null }

const OUTSIDE_COMMAS = /(?:"(?:\\.|[^"\\])*"|[^,"]|")+/g
const OUTSIDE_SEMICOLONS = /(?:"(?:\\.|[^"\\])*"|[^;"]|")+/g

function matches(text: string, pattern: RegExp): readonly string[] {
  return text.match(pattern) ?? []
}

function partOf(text: string): WrittenPart {
  const at = text.indexOf('=')
  if (at < 0) return { name: text.trim(), value: null }
  return { name: text.slice(0, at).trim(), value: unquoted(text.slice(at + 1).trim()) }
}

function unquoted(text: string): string {
  return text.length > 1 && /^".*"$/s.test(text) ? text.slice(1, -1).replaceAll(/\\(["\\])/g, '$1') : text
}
