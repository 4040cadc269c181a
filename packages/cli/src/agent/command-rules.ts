/**
 * Shell commands in permission rules: which patterns fit a command, and which patterns are suggested for it. What is known
 * of programs and their options is the table in command-table.ts.
 */
import { basename, relative, resolve } from 'node:path'
import { matchesStars } from '@tidemark/core'
import { quoteForShell } from '../tools/shell-process.ts'
import { isPathWithin, resolveRealPath } from '../tools/tool-paths.ts'
import {
  EVALUATING_BUILTINS,
  KNOWN_PROGRAMS,
  LAUNCHERS,
  type Launcher,
  OTHER_USE,
  PROGRAM_ROWS,
  type ProgramRow,
  RUNS_TEXT,
  SHELL_CHANGERS,
  SHELL_WORDS,
} from './command-table.ts'
import {
  type CommandPart,
  type CommandWord,
  isAssignment,
  type ParsedCommand,
  parseCommand,
  trimCommand,
} from './command-words.ts'

/** A command, with the folder in which it starts and the working directory to which rules without a folder belong. */
export interface PlacedCommand {
  readonly command: string
  /** The folder in which the shell starts. */
  readonly start: string
  /** The working directory. */
  readonly folder: string
}

interface PlacedPart extends CommandPart {
  /** `cd NAME && ` for a folder other than the working directory; empty there; null if the folder is not known. */
  readonly place: string | null
}

/**
 * Reads a command. Loops, conditions, a builtin that would read its arguments again, and one that changes the shell for
 * later parts, are not plain.
 */
export function readCommand(command: string): ParsedCommand {
  const { parts, isPlain } = parseCommand(command)
  const isOpaque = (part: CommandPart): boolean =>
    SHELL_WORDS.has(part.words[0]?.raw ?? '') ||
    readsArgumentsAgain(part) ||
    (parts.length > 1 && changesShell(part))
  return { parts, isPlain: isPlain && !parts.some(isOpaque) }
}

function readsArgumentsAgain({ words }: CommandPart): boolean {
  const [program, ...rest] = skipLaunchers(words)
  if (program === undefined || !EVALUATING_BUILTINS.has(program.text)) return false
  // Without -v, printf only prints.
  const [first] = rest
  if (program.text === 'printf' && first !== undefined && !first.isExpanded && !/^-./.test(first.text))
    return false
  return rest.some(({ raw }) => /\$\(|`|\[/.test(raw.replaceAll(/[\\'"]/g, '')))
}

function changesShell({ words }: CommandPart): boolean {
  const [program, first] = skipLaunchers(words)
  if (program === undefined || (program.text === 'printf' && /^-./.test(first?.text ?? ''))) return true
  return SHELL_CHANGERS.has(program.text)
}

/** Returns where each part runs: after `cd NAME &&` at the beginning, it is that folder. Those `cd` are left out. */
function placeParts(parts: readonly CommandPart[], { start, folder }: PlacedCommand): readonly PlacedPart[] {
  let current = start
  let index = 0
  for (const { words, end } of parts) {
    const [program, target] = words
    const isChange = program?.raw === 'cd' && target !== undefined && words.length === 2 && end === '&&'
    if (!isChange || target.isExpanded || /^[-~]/.test(target.text) || target.text === '') break
    const next = resolveRealPath(resolve(current, target.text))
    // Leaving the working directory needs a rule of its own.
    if (!isPathWithin(next, folder)) break
    current = next
    index += 1
  }
  const rest = parts.slice(index)
  const isMoving =
    rest.length > 1 &&
    rest.some(({ words }) => /^(?:cd|pushd|popd)$/.test(skipLaunchers(words)[0]?.text ?? ''))
  const place = isMoving ? null : describePlace(current, folder)
  return rest.map((part) => ({ ...part, place }))
}

function describePlace(current: string, folder: string): string {
  if (current === folder) return ''
  const name = isPathWithin(current, folder) ? relative(folder, current) : current
  return `cd ${/^[\w./@+-]+$/.test(name) ? name : quoteForShell(name)} && `
}

/** Returns true if the patterns together allow every part of a command, or one of them is the command itself. */
export function allowsCommand(patterns: readonly string[], placed: PlacedCommand): boolean {
  const { command, start, folder } = placed
  if (patterns.includes(`${describePlace(start, folder)}${trimCommand(command)}`)) return true
  const { parts, isPlain } = readCommand(command)
  if (!isPlain || parts.length === 0) return false
  return placeParts(parts, placed).every((part) => patterns.some((pattern) => allowsPart(pattern, part)))
}

/**
 * Returns true if a pattern allows a part of a command: `npm test:*` (begins with these words), `npm run *` (a star for
 * any text) or the exact part. What `:*` and `*` stand for must be known to do no more than the program's name says.
 */
function allowsPart(pattern: string, part: PlacedPart): boolean {
  const row = findRow(part.words)
  const isAnywhere = row?.isForEveryFolder === true
  const { place } = part
  if (place === null && !isAnywhere) return false
  const isPlaced = place !== null && place !== '' && pattern.startsWith(place)
  if (!isPlaced && place !== '' && !isAnywhere) return false
  const own = isPlaced ? pattern.slice(place.length) : pattern
  if (!matchesCommand(own, part.text)) return false
  return !own.includes('*') || isKnownUse(part.words, countNamedWords(own), row)
}

/** Counts the words that a pattern names in full, before `:*` or a star. */
function countNamedWords(pattern: string): number {
  const isPrefix = pattern.endsWith(':*')
  const named = isPrefix ? pattern.slice(0, -2) : pattern.slice(0, pattern.indexOf('*'))
  const count = parseCommand(named).parts.flatMap(({ words }) => words).length
  return isPrefix || / $/.test(named) ? count : Math.max(0, count - 1)
}

/** Returns true if the words that a pattern does not name do nothing beyond what the row says. */
function isKnownUse(words: readonly CommandWord[], named: number, row: ProgramRow | null): boolean {
  // An assignment in front changes what the program does, so the rule must name it.
  const program = words.findIndex((word) => !isAssignment(word))
  if (program === -1 || (program > 0 && named <= program)) return false
  if (row === null) return true
  const rest = words.slice(Math.max(named, countNameWords(words)))
  if (rest.some((word) => isOption(word) && !isKnownOption(word, row))) return false
  const operands = words.slice(countNameWords(words)).filter((word) => !isOption(word))
  const { maxOperands = Number.POSITIVE_INFINITY } = row
  if (
    operands.length > maxOperands ||
    (row.maxOperands !== undefined && operands.some(({ isExpanded }) => isExpanded))
  )
    return false
  const isJudged = (word: CommandWord): boolean => rest.includes(word)
  const fits = (word: CommandWord, pattern: RegExp | undefined): boolean =>
    pattern === undefined || !isJudged(word) || (!word.isExpanded && pattern.test(word.text))
  const [first] = operands
  if (first !== undefined && !fits(first, row.first)) return false
  return operands.every((word) => fits(word, row.operands))
}

function isOption({ text, mayBecomeOption }: CommandWord): boolean {
  return mayBecomeOption || (text.startsWith('-') && text !== '-' && text !== '--')
}

function isKnownOption({ text, mayBecomeOption }: CommandWord, row: ProgramRow): boolean {
  if (row.options === 'any') return row.maxOperands === undefined || !mayBecomeOption
  if (mayBecomeOption) return false
  const names = readOptions(row.options)
  const [name = ''] = text.split('=')
  const hasValue = name !== text
  const takesWord = (option: string): boolean => names.get(option) === true && row.first !== undefined
  if (names.has(text) || (hasValue && names.has(name))) return hasValue || !takesWord(text)
  if (names.has('-NUMBER') && /^-\d+$/.test(text)) return true
  if (text.startsWith('--') || row.hasWordOptions === true) return false
  const letters = [...text.slice(1)]
  for (const [index, letter] of letters.entries()) {
    const option = `-${letter}`
    if (!names.has(option)) return false
    // The rest of the word is its value.
    if (names.get(option) === true) return index < letters.length - 1 || !takesWord(option)
  }
  return true
}

const parsedOptions = new Map<string, ReadonlyMap<string, boolean>>()

/** Returns the options of a row, each with whether it takes a value. */
function readOptions(options: string): ReadonlyMap<string, boolean> {
  const known = parsedOptions.get(options)
  if (known !== undefined) return known
  const parsed = new Map(
    options.split(' ').map((option) => [option.replace(/[:=]$/, ''), /[:=]$/.test(option)] as const),
  )
  parsedOptions.set(options, parsed)
  return parsed
}

/** Returns the row of the program that a part runs, the one with the most words; null if the program has none. */
function findRow(words: readonly CommandWord[]): ProgramRow | null {
  const own = skipLaunchers(words)
  return findNamedRow(words)?.row ?? findNamedRow(own)?.row ?? (isKnownProgram(own) ? OTHER_USE : null)
}

const MOST_NAME_WORDS = 3

function findNamedRow(
  words: readonly CommandWord[],
): { readonly row: ProgramRow; readonly count: number } | null {
  const names = words
    .slice(0, MOST_NAME_WORDS)
    .map(({ text }, index) => (index === 0 ? basename(text) : text))
  for (let count = names.length; count > 0; count -= 1) {
    const row = PROGRAM_ROWS.get(names.slice(0, count).join(' '))
    if (row !== undefined) return { row, count }
  }
  return null
}

function isKnownProgram([program]: readonly CommandWord[]): boolean {
  return program !== undefined && KNOWN_PROGRAMS.has(basename(program.text))
}

/** Counts the words up to the end of the program's name, with its subcommand and what stands before it. */
function countNameWords(words: readonly CommandWord[]): number {
  const direct = findNamedRow(words)
  if (direct !== null) return direct.count
  const own = skipLaunchers(words)
  return words.length - own.length + (findNamedRow(own)?.count ?? 1)
}

/** Matches `npm test:*` (begins with these words), `npm run *` (a star for any text) or an exact command. */
function matchesCommand(pattern: string, command: string): boolean {
  if (pattern.endsWith(':*')) {
    const start = pattern.slice(0, -2)
    return command === start || command.startsWith(`${start} `)
  }
  return matchesStars(pattern, command)
}

/**
 * Returns true if a rule that asks or denies covers a command: one of its parts, however it is quoted and whatever runs it.
 * In a command whose words do not tell what it runs, the words of the rule count wherever they stand.
 */
export function coversCommand(pattern: string, command: string): boolean {
  const parsed = readCommand(command)
  const spellings = [trimCommand(command), ...parsed.parts.flatMap(listSpellings)]
  if (spellings.some((spelling) => matchesCommand(pattern, spelling))) return true
  const runsText = parsed.parts.some((part) =>
    listPrograms(part.words).some(
      ([program]) => program !== undefined && RUNS_TEXT.test(basename(program.text)),
    ),
  )
  return (!parsed.isPlain || runsText) && mentionsWords(pattern, command)
}

/** Returns true if the words of a command do not tell all that it runs. */
export function isHidingCommand(command: string): boolean {
  return !readCommand(command).isPlain
}

function mentionsWords(pattern: string, command: string): boolean {
  const split = (text: string): readonly string[] =>
    text
      .replaceAll(/\\\n/g, '')
      .replaceAll(/[\\'"]/g, '')
      .split(/[^\w@%+=:,./~*-]+/)
      .flatMap((word) => (word === '' ? [] : [word, basename(word), word.replace(/^\w+=/, '')]))
  const words = split(command)
  const wanted = pattern
    .replace(/:\*$/, '')
    .split(/[ \t]+/)
    .map((word) => word.replaceAll('*', ''))
    .filter((word) => word !== '')
  return wanted.length > 0 && wanted.every((word) => words.some((other) => other === word))
}

/**
 * Returns the ways to write a command that rules which ask or deny match: as given, without quotes and backslashes,
 * without the words before it, and without the folder of the program. `A=1 sudo -n "/bin/rm"  -r x` is also `rm -r x`.
 */
function listSpellings({ text, words }: CommandPart): readonly string[] {
  const join = (list: readonly CommandWord[]): string => list.map((word) => word.text).join(' ')
  const programs = listPrograms(words).map(join)
  return [text, join(words), ...programs, ...programs.map((program) => program.replace(/^\S*\//, ''))]
}

/** Returns the words from the program on, without assignments, words of the shell, and launchers with their options. */
function skipLaunchers(words: readonly CommandWord[]): readonly CommandWord[] {
  return listPrograms(words)[0] ?? []
}

/**
 * Returns what a command may run, the likeliest first. There are several if a launcher has an option that is not known,
 * because the word after it may be its value or the program.
 */
function listPrograms(words: readonly CommandWord[]): readonly (readonly CommandWord[])[] {
  const own = words.slice(words.findIndex((word) => !isAssignment(word)))
  const [name] = own
  if (name === undefined || isAssignment(name)) return []
  const launcher = LAUNCHERS.get(basename(name.text))
  if (launcher === undefined) return [own]
  return skipLauncherWords(own.slice(1), launcher).flatMap(listPrograms)
}

function skipLauncherWords(
  words: readonly CommandWord[],
  launcher: Launcher,
): readonly (readonly CommandWord[])[] {
  const flags = launcher.flags.split(' ')
  const values = launcher.values.split(' ')
  const found: (readonly CommandWord[])[] = []
  let index = 0
  for (;;) {
    const text = words[index]?.text ?? ''
    if (text === '--') index += 1
    if (text === '--' || !/^-/.test(text)) break
    const isValueAttached = text.includes('=') || values.some((option) => isShortWithValue(option, text))
    const isKnown = isValueAttached || flags.includes(text) || /^-\d+$/.test(text)
    if (!isKnown && !values.includes(text)) found.push(words.slice(index + 2))
    index += values.includes(text) ? 2 : 1
  }
  return [words.slice(index + launcher.operands), ...found]
}

function isShortWithValue(option: string, text: string): boolean {
  return option.length === 2 && text.length > 2 && text.startsWith(option)
}

/** More rules than this in one question are not read: the command itself is suggested then. */
const MAX_SUGGESTED = 4

/**
 * Returns patterns that together would allow a command, where `known` are those that already apply: for each part of a
 * chain that needs one, `git diff:*` if the table knows its options, else the part as it is. If a part does not tell what
 * it does, as in a loop or with a redirection, it is the command as it is; none if that would be a pattern for others.
 */
export function suggestCommandPatterns(placed: PlacedCommand, known: readonly string[]): readonly string[] {
  const exact = `${describePlace(placed.start, placed.folder)}${trimCommand(placed.command)}`
  const { parts, isPlain } = readCommand(placed.command)
  const needed = placeParts(parts, placed).filter(
    (part) => !known.some((pattern) => allowsPart(pattern, part)),
  )
  const found = isPlain ? needed.map(suggestPattern) : [null]
  const patterns = [...new Set(found.flatMap((pattern) => pattern ?? []))]
  if (!found.includes(null) && patterns.length > 0 && patterns.length <= MAX_SUGGESTED) return patterns
  return trimCommand(placed.command) === '' || exact.includes('*') ? [] : [exact]
}

/** Returns a pattern for a part: its first words if the table knows the rest, else the whole; null if neither is right. */
function suggestPattern(part: PlacedPart): string | null {
  const { words, text, place } = part
  if (place === null) return null
  const found = findNamedRow(words)
  const count = found === null ? 0 : found.count + (found.row.namedWords ?? 0)
  const named = words.slice(0, count)
  const isNamed = found !== null && named.length === count && !named.slice(found.count).some(isOption)
  const isPrefix = isNamed && found.row.isSuggested !== false && named.every(({ isExpanded }) => !isExpanded)
  const before = found?.row.isForEveryFolder === true ? '' : place
  const prefix = `${before}${named.map(({ raw }) => raw).join(' ')}:*`
  if (isPrefix && allowsPart(prefix, part)) return prefix
  return text.includes('*') ? null : `${place}${text}`
}
