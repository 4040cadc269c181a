/** From the text of a regular expression to its tree: the plain part of the language, and nothing that looks back. */

export type CharacterTest = (unit: number) => boolean

export type Node =
  | { readonly kind: 'empty' }
  | { readonly kind: 'character'; readonly accepts: CharacterTest }
  | { readonly kind: 'place'; readonly place: 'start' | 'end' | 'word-edge' }
  | { readonly kind: 'sequence'; readonly nodes: readonly Node[] }
  | { readonly kind: 'choice'; readonly nodes: readonly Node[] }
  | { readonly kind: 'repeat'; readonly node: Node; readonly least: number; readonly most: number }

/** Says in a sentence what cannot be read; caught where the pattern was given. */
export class PatternProblem extends Error {}

interface Reader {
  readonly text: string
  at: number
  depth: number
}

const DEEPEST = 50
/** A repeat is written out, copy by copy. */
const MOST_COPIES = 200

/** Throws a `PatternProblem` for what is no pattern, or one of a kind that is not offered. */
export function readPattern(text: string): Node {
  const reader: Reader = { text, at: 0, depth: 0 }
  const node = readChoice(reader)
  if (reader.at < text.length) throw new PatternProblem('there is a ) too many')
  return node
}

function readChoice(reader: Reader): Node {
  const nodes = [readSequence(reader)]
  while (peek(reader) === '|') {
    reader.at += 1
    nodes.push(readSequence(reader))
  }
  return nodes.length === 1 && nodes[0] !== undefined ? nodes[0] : { kind: 'choice', nodes }
}

function readSequence(reader: Reader): Node {
  const nodes: Node[] = []
  for (let next = peek(reader); next !== '' && next !== '|' && next !== ')'; next = peek(reader)) {
    nodes.push(readRepeat(reader, readAtom(reader)))
  }
  return nodes.length === 0 ? { kind: 'empty' } : { kind: 'sequence', nodes }
}

function readRepeat(reader: Reader, node: Node): Node {
  let repeated = node
  for (let bounds = readBounds(reader); bounds !== null; bounds = readBounds(reader)) {
    // A question mark behind asks for the shortest match; whether there is one does not depend on it.
    if (peek(reader) === '?') reader.at += 1
    repeated = { kind: 'repeat', node: repeated, ...bounds }
  }
  return repeated
}

function readBounds(reader: Reader): { readonly least: number; readonly most: number } | null {
  const sign = { '*': [0, Infinity], '+': [1, Infinity], '?': [0, 1] }[peek(reader)]
  if (sign !== undefined) {
    reader.at += 1
    return { least: sign[0] ?? 0, most: sign[1] ?? 0 }
  }
  const counted = /^\{(\d{1,4})(,(\d{0,4}))?\}/.exec(reader.text.slice(reader.at, reader.at + 12))
  if (counted === null) return null
  reader.at += counted[0].length
  const least = Number(counted[1])
  const most = counted[2] === undefined ? least : counted[3] === '' ? Infinity : Number(counted[3])
  if (most < least || least > MOST_COPIES || (most !== Infinity && most > MOST_COPIES))
    throw new PatternProblem(`${counted[0]} is no number of times from 0 to ${MOST_COPIES}`)
  return { least, most }
}

const PLACES: Readonly<Record<string, 'start' | 'end'>> = { '^': 'start', $: 'end' }

function readAtom(reader: Reader): Node {
  const next = take(reader)
  if (next === '(') return readGroup(reader)
  if (next === '[') return { kind: 'character', accepts: readClass(reader) }
  if (next === '.') return { kind: 'character', accepts: () => true }
  if (next === '\\') return readEscape(reader)
  if (next === '*' || next === '+' || next === '?') throw new PatternProblem(`nothing stands before ${next}`)
  const place = PLACES[next]
  return place === undefined ? literal(next) : { kind: 'place', place }
}

function readGroup(reader: Reader): Node {
  const opening = /^\?(:|<?[=!]|<[A-Za-z]\w*>)?/.exec(reader.text.slice(reader.at, reader.at + 60))
  if (opening !== null && opening[1] === undefined) throw new PatternProblem('(? must be followed by :')
  if (opening !== null && /[=!]$/.test(opening[0]))
    throw new PatternProblem('looking ahead or back is not offered')
  reader.at += opening?.[0].length ?? 0
  reader.depth += 1
  if (reader.depth > DEEPEST) throw new PatternProblem('groups are nested too deep')
  const node = readChoice(reader)
  if (take(reader) !== ')') throw new PatternProblem('a ( has no ) to it')
  reader.depth -= 1
  return node
}

function readEscape(reader: Reader): Node {
  const next = take(reader)
  if (next === '') throw new PatternProblem('it ends in a \\')
  if (next === 'b') return { kind: 'place', place: 'word-edge' }
  if (/[1-9kBpPuxc]/.test(next)) throw new PatternProblem(`\\${next} is not offered`)
  const accepts = classOf(next)
  return accepts === null ? literal(CONTROLS[next] ?? next) : { kind: 'character', accepts }
}

const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', '0': '\0' }

function classOf(letter: string): CharacterTest | null {
  const found = { d: isDigit, w: isWord, s: isSpace }[letter.toLowerCase()]
  if (found === undefined) return null
  return letter === letter.toLowerCase() ? found : (unit) => !found(unit)
}

function isDigit(unit: number): boolean {
  return unit >= 48 && unit <= 57
}

export function isWord(unit: number): boolean {
  return isDigit(unit) || unit === 95 || (unit >= 97 && unit <= 122) || (unit >= 65 && unit <= 90)
}

function isSpace(unit: number): boolean {
  return String.fromCharCode(unit).trim() === ''
}

/** Large and small letters are the same: texts are made small before they are looked at. */
function literal(character: string): Node {
  const unit = character.toLowerCase().charCodeAt(0)
  return { kind: 'character', accepts: (given) => given === unit }
}

function readClass(reader: Reader): CharacterTest {
  const isNot = peek(reader) === '^'
  if (isNot) reader.at += 1
  const tests: CharacterTest[] = []
  for (let first = true; first || peek(reader) !== ']'; first = false) tests.push(readMember(reader))
  reader.at += 1
  return (unit) => tests.some((accepts) => accepts(unit)) !== isNot
}

function readMember(reader: Reader): CharacterTest {
  const from = readClassCharacter(reader)
  if (typeof from !== 'string') return from
  const isRange = peek(reader) === '-' && !['', ']'].includes(reader.text.charAt(reader.at + 1))
  if (isRange) reader.at += 1
  const to = isRange ? readClassCharacter(reader) : from
  if (typeof to !== 'string' || to < from) throw new PatternProblem(`${from}- is no range`)
  return inRange(from.charCodeAt(0), to.charCodeAt(0))
}

/** Of a text made small, in either size of letter. */
function inRange(from: number, to: number): CharacterTest {
  return (unit) => {
    const large = String.fromCharCode(unit).toUpperCase().charCodeAt(0)
    return (unit >= from && unit <= to) || (large >= from && large <= to)
  }
}

function readClassCharacter(reader: Reader): string | CharacterTest {
  const next = take(reader)
  if (next === '') throw new PatternProblem('a [ has no ] to it')
  if (next !== '\\') return next
  const escaped = take(reader)
  if (escaped === '') throw new PatternProblem('a [ has no ] to it')
  return classOf(escaped) ?? CONTROLS[escaped] ?? escaped
}

function peek(reader: Reader): string {
  return reader.text.charAt(reader.at)
}

function take(reader: Reader): string {
  reader.at += 1
  return reader.text.charAt(reader.at - 1)
}
