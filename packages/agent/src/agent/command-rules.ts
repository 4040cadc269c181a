/**
 * Permission rules for shell commands: which patterns allow a command, and which patterns are suggested for it. command-table.ts has what
 * is known of programs and options; command-bans.ts applies ask and deny rules.
 */
import { lstatSync } from 'node:fs'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { matchesStars } from 'tidemark/tools'
import { quoteForShell } from '../tools/shell-process.ts'
import { isPathWithin } from '../tools/tool-access.ts'
import { findLaunchedPrograms, type LaunchedPrograms } from './command-launchers.ts'
import {
  CONTROL_KEYWORDS,
  EVALUATING_BUILTINS,
  PRINTING_PROGRAMS,
  STATE_CHANGING_BUILTINS,
} from './command-table.ts'
import { dropNeutralWords, findLongestRow, findProgramRow, isKnownUse, mayBeOption } from './command-use.ts'
import {
  type CommandPart,
  type CommandWord,
  joinWords,
  listWordsInText,
  parseCommand,
  trimCommand,
} from './command-words.ts'

/** A parsed command. It is read once and then compared with all rules. */
export interface AnalyzedCommand {
  readonly command: string
  readonly parts: readonly PartWithLaunches[]
  /** False if the words do not show everything that the command does. */
  readonly isPlain: boolean
  /** Returns all words that occur in the command, however they are quoted. */
  readonly listMentioned: () => ReadonlySet<string>
}

/** A part of a command with what it runs. */
export interface PartWithLaunches extends CommandPart, Pick<AnalyzedCommand, 'listMentioned'> {
  readonly launch: LaunchedPrograms
}

/** The folder in which a command starts and the working directory to which rules without a folder belong. */
export interface CommandPlace {
  /** The folder in which the shell starts, without symbolic links. */
  readonly start: string
  /** The working directory. */
  readonly folder: string
}

interface PlacedPart extends CommandPart {
  /**
   * The folders in which the part may run. `cd NAME && ` stands for another folder than the working directory, an empty text for the
   * working directory itself, null for an unknown folder. After `cd a && b; ` there are two, because that `cd` may fail.
   */
  readonly places: readonly (string | null)[]
}

/**
 * Parses a command and finds what its parts run. Not plain are: loops, conditions, a program name that the shell expands, a builtin that
 * evaluates its arguments again or changes the shell for later parts, and input for a program that may run it.
 */
export function analyzeCommand(command: string): AnalyzedCommand {
  const parsed = parseCommand(command)
  const parts = parsed.parts.map((part) => ({
    ...part,
    launch: findLaunchedPrograms(part.words),
    listMentioned: createMentions(() => joinWords(part.words)),
  }))
  const isOpaque = (part: PartWithLaunches): boolean =>
    CONTROL_KEYWORDS.has(part.words[0]?.raw ?? '') ||
    part.launch.programs.some(([program]) => program !== undefined && isExpandedName(program)) ||
    readsArgumentsAgain(part) ||
    part.inputs.some((input) => !isReadInput(input, part)) ||
    (parts.length > 1 && changesShell(part))
  const isPlain = parsed.isPlain && !parts.some(isOpaque)
  return { command, parts, isPlain, listMentioned: createMentions(() => command) }
}

/** Returns a function that lists the words of a text when it is first called, because only some rules need them. */
function createMentions(read: () => string): () => ReadonlySet<string> {
  let mentioned: ReadonlySet<string> | null = null
  return () => {
    mentioned ??= listWordsInText(read())
    return mentioned
  }
}

function isExpandedName({ raw, isExpanded }: CommandWord): boolean {
  return isExpanded && raw !== '[' && raw !== '[['
}

/** True for `< file` with a program that only reads it. In /dev, a shell may open connections. */
function isReadInput({ text, isExpanded }: CommandWord, { words }: CommandPart): boolean {
  return !isExpanded && !text.includes('dev/') && findProgramRow(words)?.isForEveryFolder === true
}

function readsArgumentsAgain({ launch: { own } }: PartWithLaunches): boolean {
  const [program, ...rest] = own
  if (program === undefined || !EVALUATING_BUILTINS.has(program.text)) return false
  // Without -v, printf only prints its arguments.
  const [first] = rest
  if (program.text === 'printf' && first !== undefined && !first.isExpanded && !/^-./.test(first.text))
    return false
  return rest.some(({ raw }) => /\$\(|`|\[/.test(raw.replaceAll(/[\\'"]/g, '')))
}

function changesShell({ launch: { own } }: PartWithLaunches): boolean {
  const [program, first] = own
  if (program === undefined || (program.text === 'printf' && /^-./.test(first?.text ?? ''))) return true
  return STATE_CHANGING_BUILTINS.has(program.text)
}

/** Returns the folder of each part: after `cd NAME &&` at the beginning, that folder. These `cd` parts are left out. */
function placeParts(
  parts: readonly PartWithLaunches[],
  { start, folder }: CommandPlace,
): readonly PlacedPart[] {
  let current = start
  let index = 0
  for (const { words, end } of parts) {
    const [program, target] = words
    const isChange = program?.raw === 'cd' && target !== undefined && words.length === 2 && end === '&&'
    if (!isChange || target.isExpanded || /^[-~]/.test(target.text) || target.text === '') break
    const next = enterFolder(current, target.text, folder)
    // Leaving the working directory needs a rule of its own.
    if (next === null || !isPathWithin(next, folder)) break
    current = next
    index += 1
  }
  const rest = parts.slice(index)
  const isMoving = rest.length > 1 && rest.some(({ launch }) => MOVERS.test(launch.own[0]?.text ?? ''))
  const here = isMoving ? null : describePlace(current, folder)
  const firstSure = rest.findIndex(({ end }) => end !== '&&' && end !== '|')
  return rest.map((part, at) => {
    const isSure = index === 0 || firstSure === -1 || at <= firstSure
    return { ...part, places: isSure ? [here] : [here, describePlace(start, folder)] }
  })
}

const MOVERS = /^(?:cd|chdir|pushd|popd)$/

/**
 * Returns the folder that `cd` leads to. Null if the path has a symbolic link, because a shell resolves `..` differently from the file
 * system.
 */
function enterFolder(from: string, target: string, folder: string): string | null {
  const isInFolder = isAbsolute(target) && isPathWithin(target, folder) && !target.includes('..')
  const steps = (isInFolder ? relative(folder, target) : target).split('/')
  let current = isInFolder ? folder : isAbsolute(target) ? '/' : from
  let isThere = true
  for (const step of steps) {
    if (step === '' || step === '.') continue
    if (step === '..' && !isThere) return null
    current = step === '..' ? dirname(current) : join(current, step)
    const found = lstatSync(current, { throwIfNoEntry: false })
    if (found?.isSymbolicLink() === true) return null
    isThere = found?.isDirectory() === true
  }
  return current
}

function describePlace(current: string, folder: string): string {
  if (current === folder) return ''
  const name = isPathWithin(current, folder) ? relative(folder, current) : current
  return `cd ${/^[\w./@+-]+$/.test(name) ? name : quoteForShell(name)} && `
}

/**
 * Returns true if the patterns together allow every part of a command, or if one of them is exactly the command. Beside other
 * parts, those that only print need no pattern.
 */
export function allowsCommand(
  patterns: readonly string[],
  { command, parts, isPlain }: AnalyzedCommand,
  place: CommandPlace,
): boolean {
  if (patterns.includes(`${describePlace(place.start, place.folder)}${trimCommand(command)}`)) return true
  if (!isPlain) return false
  const placed = placeParts(parts, place)
  const others = placed.filter((part) => !isPrinting(part))
  // A command that only prints needs a rule like any other.
  const needed = others.length > 0 ? others : placed
  return needed.length > 0 && needed.every((part) => isPartAllowed(patterns, part))
}

/** Returns true if a part only prints words and the last exit code, as in `echo $?`. */
function isPrinting({ words, end }: CommandPart): boolean {
  if (!PRINTING_PROGRAMS.has(words[0]?.raw ?? '') || /^\|&?$/.test(end)) return false
  return words.every(({ raw, isExpanded }) => !isExpanded || !/[$*?[`]/.test(raw.replaceAll('$?', '')))
}

function isPartAllowed(patterns: readonly string[], part: PlacedPart): boolean {
  const short = dropNeutralWords(part)
  return part.places.every((place) =>
    patterns.some((pattern) => allowsPart(pattern, part, place) || allowsPart(pattern, short, place)),
  )
}

/**
 * Returns true if a pattern allows a part of a command: `npm test:*` (begins with these words), `npm run *` (a star for any text) or the
 * exact part. The words for `:*` and `*` must be known uses of the program.
 */
function allowsPart(pattern: string, { words, text }: CommandPart, place: string | null): boolean {
  const isPlaced = place !== null && place !== '' && pattern.startsWith(place)
  const own = isPlaced ? pattern.slice(place.length) : pattern
  if (!matchesCommandPattern(own, text)) return false
  const row = findProgramRow(words)
  if (!isPlaced && place !== '' && row?.isForEveryFolder !== true) return false
  return !own.includes('*') || isKnownUse(words, countNamedWords(own), row)
}

/** Counts the words that a pattern names in full, before `:*` or a star. */
function countNamedWords(pattern: string): number {
  const isPrefix = pattern.endsWith(':*')
  const named = isPrefix ? pattern.slice(0, -2) : pattern.slice(0, pattern.indexOf('*'))
  const count = parseCommand(named).parts.flatMap(({ words }) => words).length
  return isPrefix || / $/.test(named) ? count : Math.max(0, count - 1)
}

/** Returns true if a command begins with the words of `npm test:*`, fits the stars of `npm run *`, or is exactly the pattern. */
export function matchesCommandPattern(pattern: string, command: string): boolean {
  if (pattern.endsWith(':*')) {
    const start = pattern.slice(0, -2)
    return command === start || command.startsWith(`${start} `)
  }
  return matchesStars(pattern, command)
}

/** If more rules than this would be suggested at once, the exact command is suggested instead. */
const MAX_SUGGESTED = 4

/**
 * Returns patterns that together would allow a command, in addition to the `known` ones. For each part that needs one: `git diff:*` if the
 * table knows its options, else the exact part. If a part does not show what it does, as in a loop or with a redirection, the exact
 * command; none if that text would also match other commands.
 */
export function suggestCommandPatterns(
  { command, parts, isPlain }: AnalyzedCommand,
  place: CommandPlace,
  known: readonly string[],
): readonly string[] {
  const exact = `${describePlace(place.start, place.folder)}${trimCommand(command)}`
  const placed = isPlain ? placeParts(parts, place) : []
  const needed = placed.filter(
    (part) => !(placed.length > 1 && isPrinting(part)) && !isPartAllowed(known, part),
  )
  const found = isPlain ? needed.map(suggestPattern) : [null]
  const patterns = [...new Set(found.flatMap((pattern) => pattern ?? []))]
  if (!found.includes(null) && patterns.length > 0 && patterns.length <= MAX_SUGGESTED) return patterns
  return trimCommand(command) === '' || exact.includes('*') ? [] : [exact]
}

/** Returns a pattern for a part: its first words if the table knows the other words, else the exact part; null if neither is safe. */
function suggestPattern(part: PlacedPart): string | null {
  const [place = null, ...others] = part.places
  if (place === null || others.length > 0) return null
  const { words } = dropNeutralWords(part)
  const found = findLongestRow(words)
  const count = found === null ? 0 : found.count + (found.row.namedWords ?? 0)
  const named = words.slice(0, count)
  const isNamed = found !== null && named.length === count && !named.slice(found.count).some(mayBeOption)
  const isPrefix = isNamed && found.row.isSuggested !== false && named.every(({ isExpanded }) => !isExpanded)
  const before = found?.row.isForEveryFolder === true ? '' : place
  const prefix = `${before}${named.map(({ raw }) => raw).join(' ')}:*`
  if (isPrefix && isPartAllowed([prefix], part)) return prefix
  return part.text.includes('*') ? null : `${place}${part.text}`
}
