/**
 * Searches a text with a regular expression that the model wrote. Such an expression may practically never end, so a search ends with an
 * error after a time limit.
 */
import { createContext, Script } from 'node:vm'
import { hasErrorCode } from './file-content.ts'
import { ToolError } from './tool-definition.ts'

/** A regular expression whose searches have a time limit. */
export interface TimeLimitedSearch {
  /** Returns the indexes of the lines in which the expression matches. */
  findLines(lines: readonly string[]): readonly number[]
  /** Returns the indexes of the lines with a part of a match. A match may span several lines. */
  findSpannedLines(text: string): readonly number[]
}

const TIMEOUT_MS = 2_000

/**
 * Compiles an expression. Throws a `ToolError` if it is invalid; the searches throw one if they take more than two seconds.
 * `flags` are those of JavaScript. Flags at the beginning of the pattern, as in `(?i)word`, are also accepted.
 */
export function createTimeLimitedSearch(pattern: string, flags: string): TimeLimitedSearch {
  const [prefix = '', inner = ''] = /^\(\?([ims]+)\)/.exec(pattern) ?? []
  const allFlags = [...new Set(`${flags}${inner}`)].join('')
  const expression = compileExpression(pattern.slice(prefix.length), allFlags)
  const input = { expression, value: '' as string | readonly string[] }
  const context = createContext(input)
  // Without repetitions or back references a search is always fast, and a time limit would cost half a millisecond per file.
  const limits = /[*+{]|\\[1-9k]/.test(pattern) ? { timeout: TIMEOUT_MS } : {}
  function run(script: Script, value: string | readonly string[]): readonly number[] {
    input.value = value
    try {
      return script.runInContext(context, limits)
    } catch (error) {
      if (!hasErrorCode(error, 'ERR_SCRIPT_EXECUTION_TIMEOUT')) throw error
      throw new ToolError(`The pattern takes over ${TIMEOUT_MS / 1_000} s for one file. Simplify it.`)
    } finally {
      input.value = ''
    }
  }
  return {
    findLines: (lines) => run(FIND_LINES, lines),
    findSpannedLines: (text) => run(FIND_SPANNED_LINES, text),
  }
}

/** Compiles for Unicode if possible. Some escapes, such as `\-`, are valid only without. */
function compileExpression(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, `${flags}gu`)
  } catch {
    try {
      return new RegExp(pattern, `${flags}g`)
    } catch (error) {
      throw new ToolError(error instanceof Error ? error.message : String(error))
    }
  }
}

// Only code in a separate context can be ended after a time, so these loops are scripts.

const FIND_LINES = new Script(`{
  const lines = value, wanted = expression, found = []
  for (let index = 0; index < lines.length; index += 1) {
    wanted.lastIndex = 0
    if (wanted.test(lines[index])) found.push(index)
  }
  found
}`)

const FIND_SPANNED_LINES = new Script(`{
  const text = value, wanted = expression, found = []
  let line = 0
  let at = 0
  const countTo = (offset) => {
    for (let end = text.indexOf('\\n', at); end !== -1 && end < offset; end = text.indexOf('\\n', at)) {
      line += 1
      at = end + 1
    }
    return line
  }
  wanted.lastIndex = 0
  for (let match; (match = wanted.exec(text)) !== null; ) {
    const last = match.index + match[0].length
    for (let index = countTo(match.index); index <= countTo(last); index += 1) {
      if (found.at(-1) !== index) found.push(index)
    }
    if (match[0] === '') wanted.lastIndex += 1
  }
  found
}`)

/** Returns a function that keeps the lines in which an expression of the model matches. Throws as `createTimeLimitedSearch` does. */
export function createLineFilter(pattern: string): (text: string) => string {
  const search = createTimeLimitedSearch(pattern, '')
  return (text) => {
    const lines = text.split('\n')
    return search
      .findLines(lines)
      .map((index) => lines[index])
      .join('\n')
  }
}
