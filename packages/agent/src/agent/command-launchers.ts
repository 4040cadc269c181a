/** Finds the command behind words that run another command: `sudo -n timeout 5 rm x` also runs `timeout 5 rm x` and `rm x`. */
import { basename } from 'node:path'
import { LAUNCHERS, type Launcher } from './command-table.ts'
import { type CommandWord, isAssignment } from './command-words.ts'

/** What a part of a command runs. */
export interface LaunchedPrograms {
  /** The words from the program on, without assignments, shell keywords, and launchers with their options. */
  readonly own: readonly CommandWord[]
  /**
   * All commands that the words may run, including launchers. An unknown option of a launcher gives several readings: the word after it may
   * be the option's value or the program.
   */
  readonly programs: readonly (readonly CommandWord[])[]
  /** False if the words do not show what is run. */
  readonly isCertain: boolean
}

/** Maximum programs of one command, launchers included, that are followed. With more, `isCertain` is false. */
const MOST_PROGRAMS = 12

/** Finds all commands that the words of a part may run, through launchers such as `sudo` and `xargs`. */
export function findLaunchedPrograms(words: readonly CommandWord[]): LaunchedPrograms {
  const starts = [skipAssignments(words, 0)]
  let isCertain = true
  let own = starts[0] ?? 0
  for (let at = 0; at < starts.length; at += 1) {
    const start = starts[at] ?? 0
    const launcher = LAUNCHERS.get(basename(words[start]?.text ?? ''))
    if (launcher === undefined) continue
    const { next, others, isKnown } = skipLauncherWords(words, start + 1, launcher)
    const first = skipAssignments(words, next)
    if (start === own) own = first
    if (!isKnown) isCertain = false
    const found = [first, ...others].filter((index) => index < words.length && !starts.includes(index))
    if (starts.length + found.length > MOST_PROGRAMS) isCertain = false
    starts.push(...found.slice(0, MOST_PROGRAMS - starts.length))
  }
  const programs = starts.map((start) => words.slice(start)).filter((program) => program.length > 0)
  return { own: words.slice(own), programs, isCertain }
}

function skipAssignments(words: readonly CommandWord[], from: number): number {
  let index = from
  for (let word = words[index]; word !== undefined && isAssignment(word); word = words[index]) index += 1
  return index
}

interface SkippedWords {
  /** Where the program stands. */
  readonly next: number
  /** Where else it may stand. */
  readonly others: readonly number[]
  readonly isKnown: boolean
}

function skipLauncherWords(words: readonly CommandWord[], from: number, launcher: Launcher): SkippedWords {
  const flags = launcher.flags.split(' ')
  const values = launcher.values.split(' ')
  const others: number[] = []
  let isKnown = true
  let index = from
  for (;;) {
    const word = words[index]
    const text = word?.text ?? ''
    if (word?.isExpanded === true) isKnown = false
    if (text === '--') index += 1
    if (text === '--' || !/^-/.test(text)) break
    const [name = ''] = text.split('=')
    const hasValue = name !== text && (values.includes(name) || flags.includes(name))
    const isAttached = hasValue || values.some((option) => isShortWithValue(option, text))
    if (!isAttached && !flags.includes(text) && !/^-\d+$/.test(text) && !values.includes(text)) {
      isKnown = false
      others.push(index + 2)
    }
    index += values.includes(text) ? 2 : 1
  }
  const next = index + launcher.operands
  // An option after the operands, as in `flock FILE -c TEXT`.
  if (words[next]?.text.startsWith('-') === true) isKnown = false
  return { next, others, isKnown }
}

function isShortWithValue(option: string, text: string): boolean {
  return option.length === 2 && text.length > 2 && text.startsWith(option)
}
