/**
 * Applies ask and deny rules to shell commands. If a command runs what such a rule names, it is never allowed silently: either the rule
 * covers it, or the user is asked because its words do not show what it runs.
 */
import { basename } from 'node:path'
import { compileGlob } from 'tidemark/tools'
import {
  type AnalyzedCommand,
  analyzeCommand,
  matchesCommandPattern,
  type PartWithLaunches,
} from './command-rules.ts'
import {
  HARMLESS_VARIABLES,
  INTERPRETERS,
  isCodeRunner,
  NEUTRAL_OPTIONS,
  SHELL_LIKE_PROGRAMS,
} from './command-table.ts'
import { findLongestRow, isListedUse } from './command-use.ts'
import { type CommandWord, joinWords, splitWord, trimCommand } from './command-words.ts'

/**
 * `covers`: the command runs what an ask or deny rule names. `hides`: its words do not show whether it does. Null: it does not.
 */
export type RestrictionVerdict = 'covers' | 'hides' | null

/** Compares a command with the pattern of an ask or deny rule. In doubt, the verdict is the stricter one. */
export function compareWithRestriction(pattern: string, read: AnalyzedCommand): RestrictionVerdict {
  if (matchesCommandPattern(pattern, trimCommand(read.command))) return 'covers'
  const verdicts = read.parts.map((part) => judgePart(pattern, part))
  if (verdicts.includes('covers')) return 'covers'
  if ((!read.isPlain || read.parts.some(runsText)) && mentionsWords(pattern, read)) return 'covers'
  if (!read.isPlain) return 'hides'
  return verdicts.includes('hides') ? 'hides' : null
}

function judgePart(pattern: string, part: PartWithLaunches): RestrictionVerdict {
  const { programs } = part.launch
  if (listSpellings(part).some((spelling) => matchesCommandPattern(pattern, spelling))) return 'covers'
  if (programs.some((program) => matchesWithOptions(pattern, program))) return 'covers'
  if (hidesWhatItRuns(part)) return mentionsWords(pattern, part) ? 'covers' : 'hides'
  // A program that is not in the table may run its words as a command.
  return !isListedUse(part.words) && mayMean(pattern, part) ? 'hides' : null
}

/**
 * Returns the spellings of a part that rules are compared with: as given, without quotes and backslashes, without words before the program,
 * and without the program's folder. `A=1 sudo -n "/bin/rm" -r x` is also `rm -r x`.
 */
function listSpellings({ text, words, launch }: PartWithLaunches): readonly string[] {
  const programs = launch.programs.map(joinWords)
  return [text, joinWords(words), ...programs, ...programs.map((program) => program.replace(/^\S*\//, ''))]
}

/** Returns true if a rule matches despite options between its words: `git push` in `git -C x push`, `rm -rf` in `rm -f -r x`. */
function matchesWithOptions(pattern: string, [program, ...words]: readonly CommandWord[]): boolean {
  const [name, ...wanted] = listWantedWords(pattern)
  if (program === undefined || name === undefined || wanted.length === 0) return false
  if (basename(program.text) !== basename(name)) return false
  const options = wanted.filter((word) => word.startsWith('-'))
  const subcommands = wanted.filter((word) => !word.startsWith('-'))
  const texts = words.map(({ text }) => text)
  const letters = new Set(texts.filter((text) => /^-[^-]/.test(text)).flatMap((text) => [...text.slice(1)]))
  const hasOption = (option: string): boolean =>
    texts.includes(option) ||
    (/^-[^-]/.test(option) && [...option.slice(1)].every((letter) => letters.has(letter)))
  return options.every(hasOption) && beginsWith(texts, subcommands, NEUTRAL_OPTIONS.get(name) ?? [])
}

/** Returns true if the first words that are neither options nor possible values of options are the wanted ones. */
function beginsWith(texts: readonly string[], wanted: readonly string[], flags: readonly string[]): boolean {
  let found = 0
  let mayBeValue = false
  for (const text of texts) {
    if (found === wanted.length) return true
    if (text === wanted[found]) found += 1
    else if (!text.startsWith('-') && !mayBeValue) return false
    mayBeValue = /^-[^=]*$/.test(text) && !flags.includes(text)
  }
  return found === wanted.length
}

/** How deep commands inside commands, as in `sh -c 'sh -c …'`, are read; deeper ones count as hidden. */
const MOST_TEXTS = 3

/** Returns true if the words of a part do not show what it runs: code, or a launcher with unknown options. */
function hidesWhatItRuns({ words, launch }: PartWithLaunches, depth = 0): boolean {
  if (!launch.isCertain) return true
  const [program, ...rest] = launch.own
  const name = basename(program?.text ?? '')
  const isFed = words.some(({ text }) => basename(text) === 'xargs')
  if (isFed && (program === undefined ? launch.programs.length > 1 : isCodeRunner(name))) return true
  if (
    words.some(
      ({ text }, index) => basename(words[index - 1]?.text ?? '') === 'xargs' && /^-(?:I|i|J)/.test(text),
    )
  )
    return true
  if (program === undefined || isListedUse(launch.own)) return false
  if (SCRIPTED.test(name)) return true
  if (SHELL_LIKE_PROGRAMS.test(name)) return hidesShellText(name, rest, depth)
  return INTERPRETERS.test(name) && !runsFile(rest)
}

/** Returns true if a part may run text from its words or from its input as a command. */
function runsText({ launch }: PartWithLaunches): boolean {
  return launch.programs.some((words) => {
    const name = basename(words[0]?.text ?? '')
    return (isCodeRunner(name) || SCRIPTED.test(name)) && !isListedUse(words)
  })
}

/** Programs whose scripts or expressions can run a command. The table has uses of them that cannot. */
const SCRIPTED = /^(?:find|sed|[gm]?awk|xargs|env|flock)$/

/** Returns true if the words of a shell do not show what it runs. A script file in its words is not read. */
function hidesShellText(name: string, rest: readonly CommandWord[], depth: number): boolean {
  if (/sh$/.test(name) && name !== 'ssh' && runsFile(rest)) return false
  const text = joinWords(rest.filter((word) => !word.text.startsWith('-')))
  if (text === '' || UNREAD_FILE.test(text) || depth >= MOST_TEXTS) return true
  const { parts, isPlain } = analyzeCommand(text)
  return !isPlain || parts.some((part) => hidesWhatItRuns(part, depth + 1))
}

/** Returns true if a shell's words only name a script file or ask for information: no code, and nothing from standard input. */
function runsFile(words: readonly CommandWord[]): boolean {
  const file = words.findIndex(({ text }) => !text.startsWith('-'))
  const options = (file === -1 ? words : words.slice(0, file)).map(({ text }) => text)
  if (
    options.some(
      (text) => text === '-' || /^-[A-Za-z]*[ceEpr]/.test(text) || /^--(?:eval|print|command)/.test(text),
    )
  )
    return false
  if (file === -1) return options.some((text) => text.startsWith('--'))
  return !UNREAD_FILE.test(words[file]?.text ?? '')
}

/** Words that are not a script file although they stand in its place: devices for input, and deno's `eval`. */
const UNREAD_FILE = /^(?:\/dev\/|\/proc\/|eval$)/

/** Returns true if a word of a part may be what a rule names, or may become it when a shell expands it. */
function mayMean(pattern: string, part: PartWithLaunches): boolean {
  const { words, launch } = part
  const wanted = listWantedWords(pattern).map((word) => basename(word))
  const program = launch.own[0]
  if (mentionsWords(pattern, part)) return true
  if (
    findLongestRow(launch.own) === null &&
    words.some((word) => word !== program && isCodeRunner(basename(word.text)))
  )
    return true
  if (words.some(({ raw }) => /[$`]/.test(raw.replaceAll(HARMLESS_VARIABLES, '')))) return true
  // Patterns in quotes count, too, because the program may pass its text to a shell.
  const pieces = new Set(words.flatMap(({ text }) => splitWord(text)).filter((piece) => /[*?[{]/.test(piece)))
  if (pieces.size > MOST_PATTERNS) return true
  return [...pieces].some((piece) => {
    const glob = compileGlob(basename(piece))
    return glob === null || wanted.some((word) => glob([word]))
  })
}

/**
 * A part with more patterns than this is not compared with a rule, and counts as matching it: the comparison would take too long.
 */
const MOST_PATTERNS = 100

function listWantedWords(pattern: string): readonly string[] {
  return pattern
    .replace(/:\*$/, '')
    .split(/[ \t]+/)
    .map((word) => word.replaceAll('*', ''))
    .filter((word) => word !== '')
}

/** Returns true if the words of a rule are among those of a command or a part of one. */
function mentionsWords(pattern: string, { listMentioned }: Pick<AnalyzedCommand, 'listMentioned'>): boolean {
  const wanted = listWantedWords(pattern)
  return wanted.length > 0 && wanted.every((word) => listMentioned().has(word))
}
