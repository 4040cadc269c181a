/** What a search looks for in a line: a plain text, or a pattern whose time is bounded. Large and small letters are the same. */
import { buildMachine, type Machine, matches } from './pattern/machine.ts'
import { PatternProblem, readPattern } from './pattern/syntax.ts'

export interface Finder {
  /** Steps for each character looked at. */
  readonly states: number
  isIn(line: string): boolean
}

export function textFinder(text: string): Finder {
  const wanted = text.toLowerCase()
  return { states: 1, isIn: (line) => line.toLowerCase().includes(wanted) }
}

const LONGEST_PATTERN = 500

/** A sentence where it cannot be used. */
export function patternFinder(pattern: string): Finder | string {
  if (pattern.length > LONGEST_PATTERN) return `The pattern is longer than ${LONGEST_PATTERN} characters.`
  try {
    const machine = buildMachine(readPattern(pattern))
    return { states: machine.steps.length, isIn: (line) => isIn(machine, line) }
  } catch (thrown) {
    if (!(thrown instanceof PatternProblem)) throw thrown
    return `The pattern cannot be used: ${thrown.message}. Give plain words as "text" instead.`
  }
}

function isIn(machine: Machine, line: string): boolean {
  return matches(machine, line.toLowerCase())
}
