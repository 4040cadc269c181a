/**
 * Parses a shell command for permission rules and hooks: its parts, the words of each part as the shell sees them, and whether the words
 * show everything that the command does.
 */
import { basename } from 'node:path'

/** A word of a shell command. */
export interface CommandWord {
  /** As written, with quotes. */
  readonly raw: string
  /** The word without quotes and backslashes. Variables are not replaced. */
  readonly text: string
  /** True if the shell will replace the word: it has a variable or an unquoted file pattern. */
  readonly isExpanded: boolean
  /** True if an expansion may begin with a dash, or give further words that do. */
  readonly mayBecomeOption: boolean
}

/** A simple command: what stands between two operators such as `&&` or `|`. */
export interface CommandPart {
  readonly words: readonly CommandWord[]
  /** Files that redirections read, except /dev/null. */
  readonly inputs: readonly CommandWord[]
  /** The words as written, with one blank between them and without redirections. */
  readonly text: string
  /** What ends the part: `;`, `&&`, `||`, `|`, `&`, a line end, a bracket or nothing. */
  readonly end: string
}

interface ParsedCommand {
  readonly parts: readonly CommandPart[]
  /** False if the command has substitutions, redirections or similar, whose effect the words do not show. */
  readonly isPlain: boolean
}

/** Longer commands are not parsed, and count as not plain. */
const MOST_CHARACTERS = 10_000
/** If there are more parts, the others are left out, and the command is not plain. */
const MOST_PARTS = 100

/**
 * Splits a shell command at `;`, `&&`, `||`, `|`, `&`, line ends, parentheses and backquotes, outside quotes. Not plain are too long
 * commands, and everything that may run something else, write a file, or be parsed differently by a shell (`$(…)`, backquotes, `<(…)`, `>`,
 * here-documents, `$'…'`). Comments are left out.
 */
export function parseCommand(command: string): ParsedCommand {
  if (command.length > MOST_CHARACTERS) return { parts: [], isPlain: false }
  const reader = createReader()
  for (let index = 0; index < command.length; index += 1) {
    const rest = command.slice(index, index + 4)
    index += reader.read(rest, () => findLineEnd(command, index) - index) - 1
  }
  return reader.end()
}

function findLineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from)
  return end === -1 ? text.length : end
}

interface WordDraft {
  raw: string
  text: string
  isExpanded: boolean
  mayBecomeOption: boolean
}

const EMPTY_WORD: WordDraft = { raw: '', text: '', isExpanded: false, mayBecomeOption: false }

interface ReaderState {
  parts: CommandPart[]
  words: CommandWord[]
  inputs: CommandWord[]
  word: WordDraft
  /** The redirection whose target comes next; empty if there is none. */
  redirection: string
  /** The quote that is open: empty, `'` or `"`. */
  quote: string
  /** The last significant character, on which the meaning of the next one may depend. */
  before: string
  /** Number of open braces of `${…}`. */
  braces: number
  /** Open substitutions, innermost last, each with the quote around it. */
  substitutions: { readonly end: string; readonly quote: string }[]
  isPlain: boolean
}

/** Parses a command from left to right. `read` gets the next four characters, and returns how many it has consumed. */
function createReader(): {
  readonly read: (rest: string, measureComment: () => number) => number
  readonly end: () => ParsedCommand
} {
  const state: ReaderState = {
    ...{ parts: [], words: [], inputs: [], word: { ...EMPTY_WORD }, redirection: '', quote: '', before: '' },
    ...{ braces: 0, substitutions: [], isPlain: true },
  }
  return {
    read(rest, measureComment) {
      const isComment = rest[0] === '#' && state.quote === '' && /^[ \t\n;&|()<>]?$/.test(state.before)
      const taken = isComment
        ? Math.max(1, measureComment())
        : (readQuoted(state, rest) ?? readBare(state, rest))
      const isEscape = rest[0] === '\\' && taken === 2
      // The shell removes a backslash together with the line end after it.
      if (!isComment && !(isEscape && rest[1] === '\n'))
        state.before = isEscape ? '\\' : (rest[taken - 1] ?? '')
      return taken
    },
    end() {
      if (state.quote !== '' || state.substitutions.length > 0) state.isPlain = false
      endPart(state, '')
      const parts = state.parts.filter(({ words, inputs }) => words.length + inputs.length > 0)
      return { parts: parts.slice(0, MOST_PARTS), isPlain: state.isPlain && parts.length <= MOST_PARTS }
    },
  }
}

/** Reads quotes, quoted text, and substitutions, which also work inside quotes. Returns null for anything else. */
function readQuoted(state: ReaderState, rest: string): number | null {
  const [character = '', next = ''] = rest
  const { quote, before } = state
  if (quote === "'") {
    if (character === "'") state.quote = ''
    addText(state, character, character === "'" ? '' : character)
    return 1
  }
  if (character === '\\') {
    if (next !== '\n')
      addText(state, character + next, quote === '"' && !/["\\$`]/.test(next) ? `\\${next}` : next)
    return 2
  }
  if (character === '`' || (character === '(' && (quote === '' || before === '$'))) {
    openSubstitution(state, character)
    return 1
  }
  if (character === '"' || (character === "'" && quote === '')) {
    if (before === '$' && quote === '') state.isPlain = false
    state.quote = quote === '' ? character : ''
    addText(state, character, '')
    return 1
  }
  if (quote === '') return null
  if (character === '$') addExpansion(state, state.word.text === '')
  if (character === '{' && before === '$') state.isPlain = false
  if (character === '[' && before === '$') state.isPlain = false
  addText(state, character, character)
  return 1
}

function openSubstitution(state: ReaderState, character: string): void {
  state.isPlain = false
  endPart(state, character)
  if (character === '`' && state.substitutions.at(-1)?.end === '`')
    state.quote = state.substitutions.pop()?.quote ?? ''
  else {
    state.substitutions.push({ end: character === '`' ? '`' : ')', quote: state.quote })
    state.quote = ''
  }
}

/** Reads unquoted text. */
function readBare(state: ReaderState, rest: string): number {
  const [character = ''] = rest
  const redirection = /^(?:&>>?|>>|>\||>&|<<<|<<-?|<>|<&|[<>])/.exec(rest)?.[0]
  if (redirection !== undefined) {
    // A number before a redirection is its file descriptor. Shells read a number that is too large as a word.
    if (/^\d{3,}$/.test(state.word.raw)) state.isPlain = false
    if (/^\d+$/.test(state.word.raw)) state.word = { ...EMPTY_WORD }
    endWord(state)
    if (state.redirection !== '') state.isPlain = false
    state.redirection = redirection
    return redirection.length
  }
  const operator = /^(?:&&|\|\||\|&|[;&|\n])/.exec(rest)?.[0]
  if (operator !== undefined) {
    endPart(state, operator)
    return operator.length
  }
  if (character === ' ' || character === '\t') endWord(state)
  else if (
    character === ')' ||
    ((character === '{' || character === '}') && !isBraceOfVariable(state, character))
  ) {
    state.isPlain = false
    endPart(state, character)
    if (character === ')') state.quote = state.substitutions.pop()?.quote ?? ''
  } else {
    // Shells differ on whether a non-ASCII blank separates words.
    if (/\s/.test(character)) state.isPlain = false
    if (character === '$') addExpansion(state, true)
    if (/[*?[]/.test(character)) {
      if (character === '[' && state.before === '$') state.isPlain = false
      addExpansion(state, state.word.text === '')
    }
    addText(state, character, character)
  }
  return 1
}

/** True for the braces of a variable, which stay in their word. */
function isBraceOfVariable(state: ReaderState, character: string): boolean {
  if (character === '{') {
    if (state.before !== '$') return false
    state.braces += 1
    state.isPlain = false
    return true
  }
  if (state.braces === 0) return false
  state.braces -= 1
  return true
}

function addText(state: ReaderState, raw: string, text: string): void {
  state.word.raw += raw
  state.word.text += text
}

function addExpansion({ word }: ReaderState, mayBecomeOption: boolean): void {
  word.isExpanded = true
  word.mayBecomeOption ||= mayBecomeOption
}

function endWord(state: ReaderState): void {
  if (state.word.raw === '') return
  const word = state.word
  state.word = { ...EMPTY_WORD }
  if (state.redirection === '') state.words.push(word)
  else {
    if (state.redirection === '<' && word.raw !== '/dev/null') state.inputs.push(word)
    if (!isHarmless(state.redirection, word.raw)) state.isPlain = false
  }
  state.redirection = ''
}

/** True for redirections that write to no file: `2>&1`, those to /dev/null, and inputs. */
function isHarmless(redirection: string, target: string): boolean {
  if (redirection === '>&' || redirection === '<&') return /^(?:\d{1,2}|-)$/.test(target)
  if (redirection === '<') return true
  return target === '/dev/null' && /^&?>>?$/.test(redirection)
}

function endPart(state: ReaderState, end: string): void {
  endWord(state)
  if (state.redirection !== '') state.isPlain = false
  state.redirection = ''
  const text = state.words.map(({ raw }) => raw).join(' ')
  state.parts.push({ words: state.words, inputs: state.inputs, text, end })
  state.words = []
  state.inputs = []
}

const BLANKS: ReadonlySet<string> = new Set([' ', '\t', '\n'])

/** Removes the blanks of a shell at both ends. A non-ASCII space is part of a word. */
export function trimCommand(command: string): string {
  // Not by a regular expression, which would try every blank of a long run inside the text.
  const isBlank = (at: number): boolean => BLANKS.has(command[at] ?? '')
  let start = 0
  let end = command.length
  while (isBlank(start)) start += 1
  while (end > start && isBlank(end - 1)) end -= 1
  return command.slice(start, end)
}

/** Returns true for a word that assigns a variable, as in `NAME=value`. */
export function isAssignment({ raw }: CommandWord): boolean {
  return /^[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=/.test(raw)
}

/** Joins words without their quotes, with a blank between them. */
export function joinWords(words: readonly CommandWord[]): string {
  return words.map(({ text }) => text).join(' ')
}

/** Splits a word where a shell or program may split it: `--action=exec=rm x` contains the word `rm`. */
export function splitWord(text: string): readonly string[] {
  return text.split(/[\s=:;&|()<>"'!]+/).filter((piece) => piece !== '')
}

/** Returns all words in a text, however they are quoted, with their pieces and, of paths, the last parts. */
export function listWordsInText(text: string): ReadonlySet<string> {
  const words = text
    .replaceAll(/\\\n/g, '')
    .replaceAll(/[\\'"]/g, '')
    .split(/[^\w@%+=:,./~*-]+/)
    .flatMap((word) => [word, ...splitWord(word)])
  return new Set(words.flatMap((word) => [word, basename(word)]))
}
