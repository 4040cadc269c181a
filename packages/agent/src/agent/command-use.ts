/** Decides by the table whether a program is used in a known way: its words do no more than the program's name says. */
import { basename } from 'node:path'
import { findLaunchedPrograms } from './command-launchers.ts'
import {
  KNOWN_PROGRAMS,
  NEUTRAL_OPTIONS,
  PROGRAM_USES,
  PROGRAMS_WITH_SUBCOMMANDS,
  type ProgramUse,
  UNLISTED_USE,
} from './command-table.ts'
import { type CommandPart, type CommandWord, isAssignment } from './command-words.ts'

const MOST_NAME_WORDS = 3

/**
 * Returns the row with the longest name that the words begin with, and the number of words in that name; null if there is none.
 */
export function findLongestRow(
  words: readonly CommandWord[],
): { readonly row: ProgramUse; readonly count: number } | null {
  const names = words
    .slice(0, MOST_NAME_WORDS)
    .map(({ text }, index) => (index === 0 ? basename(text) : text))
  for (let count = names.length; count > 0; count -= 1) {
    const row = PROGRAM_USES.get(names.slice(0, count).join(' '))
    if (row !== undefined) return { row, count }
  }
  return null
}

/** Returns the row of the program that a part runs: `UNLISTED_USE` for a known program in another use, null for an unknown program. */
export function findProgramRow(words: readonly CommandWord[]): ProgramUse | null {
  return findUse(words).row
}

/** Returns the row of a part, and the number of words up to the end of the program's name and subcommand. */
function findUse(words: readonly CommandWord[]): { readonly row: ProgramUse | null; readonly count: number } {
  const direct = findLongestRow(words)
  if (direct !== null) return direct
  const { own, programs } = findLaunchedPrograms(words)
  const first = programs[0] ?? []
  // A launcher with its own rows, such as npx, is judged by those.
  const program = isKnownProgram(first) && findLongestRow(own) === null ? first : own
  const { row, count } = findLongestRow(program) ?? { row: null, count: 1 }
  return {
    row: row ?? (isKnownProgram(program) ? UNLISTED_USE : null),
    count: words.length - program.length + count,
  }
}

function isKnownProgram([program]: readonly CommandWord[]): boolean {
  return program !== undefined && KNOWN_PROGRAMS.has(basename(program.text))
}

/** Returns true if the table lists the program and all its options, so that a part runs this program only and nothing else. */
export function isListedUse(words: readonly CommandWord[]): boolean {
  const found = findLongestRow(words)
  return found !== null && isKnownUse(words, found.count, found.row)
}

/**
 * Returns true if the words that a rule does not name do nothing beyond what the row allows. `named`: how many words it names.
 */
export function isKnownUse(words: readonly CommandWord[], named: number, row: ProgramUse | null): boolean {
  // An assignment before the program changes what it does, so the rule must name the assignment.
  const program = words.findIndex((word) => !isAssignment(word))
  if (program === -1 || (program > 0 && named <= program)) return false
  if (row === null) return words.length === named || !QUESTION.test(words[named - 1]?.text ?? '')
  if (row.isExactOnly === true) return false
  const { count } = findUse(words)
  if (row === UNLISTED_USE && !namesSubcommand(words.slice(count - 1), named - count + 1)) return false
  const use = readUse(words.slice(count), Math.max(0, named - count), row)
  return use !== null && hasKnownOperands(use, row)
}

/** Options that only ask for information. A rule that ends with one matches nothing longer: `node --version --run x` runs a script. */
const QUESTION = /^(?:--version|--help|-[vV])$/

/** Returns true if the program has no subcommands, or if the rule names the subcommand. */
function namesSubcommand([program, next]: readonly CommandWord[], named: number): boolean {
  if (program === undefined || !PROGRAMS_WITH_SUBCOMMANDS.has(basename(program.text))) return true
  return next === undefined || (named > 1 && !mayBeOption(next))
}

interface ReadUse {
  /** Words that are neither options nor their values, and are not named by the rule. */
  readonly operands: readonly CommandWord[]
  /** Words that the row's `first` must match. */
  readonly firsts: readonly CommandWord[]
  /** Words that are not options and not named by the rule: operands and values of options. */
  readonly judged: readonly CommandWord[]
  /** Number of operands, including those that the rule names. */
  readonly count: number
}

/** Reads the words after a program's name. Null if an option is unknown, or if its value could hide another option. */
function readUse(words: readonly CommandWord[], named: number, row: ProgramUse): ReadUse | null {
  const operands: CommandWord[] = []
  const firsts: CommandWord[] = []
  const judged = words.filter((word, index) => index >= named && !mayBeOption(word))
  const scripts = row.firstOptions?.split(' ') ?? []
  let count = 0
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? EMPTY
    if (!mayBeOption(word)) {
      if (word.text === '--') continue
      count += 1
      if (index >= named) operands.push(word)
      continue
    }
    const option = readOption(word, row)
    if (!option.isKnown && index >= named) return null
    const isScript = scripts.includes(option.name)
    if (isScript && option.value !== null) firsts.push({ ...word, text: option.value })
    if (!option.takesNext) continue
    const value = words[index + 1]
    // If the option takes no value in this version of the program, that word would be an option: `git diff -U --output=x`.
    if (value !== undefined && mayBeOption(value) && index + 1 >= named) return null
    const isPositional = row.first !== undefined || row.maxOperands !== undefined
    if (isPositional && (value === undefined || mayBeOption(value) || value.isExpanded)) return null
    if (isScript && value !== undefined) firsts.push(value)
    index += 1
  }
  if (firsts.length === 0) firsts.push(...operands.slice(0, count === operands.length ? 1 : 0))
  return { operands, firsts, judged, count }
}

const EMPTY: CommandWord = { raw: '', text: '', isExpanded: false, mayBecomeOption: false }

function hasKnownOperands({ operands, firsts, judged, count }: ReadUse, row: ProgramUse): boolean {
  const fits = (word: CommandWord, pattern: RegExp | undefined): boolean =>
    pattern === undefined || (!word.isExpanded && pattern.test(word.text))
  if (row.maxOperands !== undefined)
    if (count > row.maxOperands || operands.some(({ isExpanded }) => isExpanded)) return false
  return firsts.every((word) => fits(word, row.first)) && judged.every((word) => fits(word, row.operands))
}

/** Returns true if a word is an option, or may become one when the shell expands it. */
export function mayBeOption({ text, mayBecomeOption }: CommandWord): boolean {
  return mayBecomeOption || (text.startsWith('-') && text !== '-' && text !== '--')
}

interface ReadOption {
  readonly isKnown: boolean
  /** The option that takes a value, as the table writes it; empty for other options. */
  readonly name: string
  /** The value that is attached. */
  readonly value: string | null
  /** True if the next word is its value. */
  readonly takesNext: boolean
}

const NO_VALUE: ReadOption = { isKnown: true, name: '', value: null, takesNext: false }
const UNKNOWN: ReadOption = { ...NO_VALUE, isKnown: false }

function readOption({ text, mayBecomeOption }: CommandWord, row: ProgramUse): ReadOption {
  if (row.options === 'any') return NO_VALUE
  if (mayBecomeOption) return UNKNOWN
  const names = readOptions(row.options)
  const equals = text.indexOf('=')
  const name = equals === -1 ? text : text.slice(0, equals)
  if (names.has(text)) return { ...NO_VALUE, name: text, takesNext: names.get(text) === ':' }
  if (equals !== -1 && names.has(name)) return { ...NO_VALUE, name, value: text.slice(equals + 1) }
  if (names.has('-NUMBER') && /^-\d+$/.test(text)) return NO_VALUE
  if (text.startsWith('--') || row.hasWordOptions === true) return UNKNOWN
  for (let index = 1; index < text.length; index += 1) {
    const option = `-${text[index] ?? ''}`
    const kind = names.get(option)
    if (kind === undefined) return UNKNOWN
    // The rest of the word is its value.
    const value = text.slice(index + 1)
    if (kind !== '' && value !== '') return { ...NO_VALUE, name: option, value }
    if (kind === ':') return { ...NO_VALUE, name: option, takesNext: true }
  }
  return NO_VALUE
}

type OptionKind = '' | ':' | '?'
const parsedOptions = new Map<string, ReadonlyMap<string, OptionKind>>()

/** Returns the options of a row, and how each takes a value. */
function readOptions(options: string): ReadonlyMap<string, OptionKind> {
  const known = parsedOptions.get(options)
  if (known !== undefined) return known
  const readKind = (option: string): OptionKind =>
    option.endsWith('?') ? '?' : /[:=]$/.test(option) ? ':' : ''
  const parsed = new Map(
    options.split(' ').map((option) => [option.replace(/[:=?]$/, ''), readKind(option)] as const),
  )
  parsedOptions.set(options, parsed)
  return parsed
}

/** Returns a part without words that do not change what it runs: `timeout 60` before it, and Git's `--no-pager`. */
export function dropNeutralWords<Part extends CommandPart>(part: Part): Part {
  const [launcher, time, next] = part.words
  const isTimed =
    launcher?.raw === 'timeout' && /^\d+(?:\.\d+)?[smhd]?$/.test(time?.raw ?? '') && next !== undefined
  const words = isTimed && !mayBeOption(next) ? part.words.slice(2) : part.words
  const neutral = NEUTRAL_OPTIONS.get(words[0]?.text ?? '') ?? []
  let count = 1
  while (neutral.includes(words[count]?.raw ?? '')) count += 1
  const kept = [...words.slice(0, 1), ...words.slice(count)]
  return { ...part, words: kept, text: kept.map(({ raw }) => raw).join(' ') }
}
