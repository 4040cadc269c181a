/**
 * Reads a shell command for permission rules and hooks: its parts, the words of each part as the shell would see them, and
 * whether the words say all that the command does.
 */
import { basename } from 'node:path'

export interface CommandWord {
  /** As written, with quotes. */
  readonly raw: string
  /** Without quotes and backslashes. Variables stay as they are written. */
  readonly text: string
  /** True if the shell replaces it: it has a variable, or a file pattern that is not quoted. */
  readonly isExpanded: boolean
  /** True if an expansion may begin with a dash, or make further words that do. */
  readonly mayBecomeOption: boolean
}

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
  /** False if the command has substitutions, redirections or the like, whose effect the words do not tell. */
  readonly isPlain: boolean
}

/** Longer commands are not read: nothing is known of them. */
const MOST_CHARACTERS = 10_000
/** Further parts are left out, and the command is not plain. */
const MOST_PARTS = 100

/**
 * Splits a shell command at `;`, `&&`, `||`, `|`, `&`, line ends, parentheses and backquotes, outside quotes. Whatever
 * may run something else, write somewhere or be read by a shell in another way than here (`$(…)`, backquotes, `<(…)`,
 * `>`, here-documents, `$'…'`) makes the command not plain, and so does its length. Comments are left out.
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
  /** The last character that counts, for what depends on the one before. */
  before: string
  /** Braces of `${…}` that are open. */
  braces: number
  /** Substitutions that are open, the innermost last, with the quote around each. */
  substitutions: { readonly end: string; readonly quote: string }[]
  isPlain: boolean
}

/** Reads a command from left to right. `read` returns how many characters it has taken. */
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
      // The shell removes a backslash with the line end after it.
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

/** Reads quotes, what is quoted, and substitutions, which are the same in quotes. Returns null for anything else. */
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

/** Reads what stands outside quotes. */
function readBare(state: ReaderState, rest: string): number {
  const [character = ''] = rest
  const redirection = /^(?:&>>?|>>|>\||>&|<<<|<<-?|<>|<&|[<>])/.exec(rest)?.[0]
  if (redirection !== undefined) {
    // The number of a stream before it belongs to the redirection. A shell takes a number that is too large for a word.
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
    // A blank of another alphabet is part of a word for one shell, and none for another.
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

/** Removes what a shell takes for blanks. A space of another alphabet is part of a word. */
export function trimCommand(command: string): string {
  // Not by a pattern: that would try each blank of a long row in the middle.
  const isBlank = (at: number): boolean => BLANKS.has(command[at] ?? '')
  let start = 0
  let end = command.length
  while (isBlank(start)) start += 1
  while (end > start && isBlank(end - 1)) end -= 1
  return command.slice(start, end)
}

/** True for `NAME=value` before a program. */
export function isAssignment({ raw }: CommandWord): boolean {
  return /^[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=/.test(raw)
}

export function joinWords(words: readonly CommandWord[]): string {
  return words.map(({ text }) => text).join(' ')
}

/** Splits a word where a shell or a program may: `--action=exec=rm x` has the word `rm`. */
export function splitWord(text: string): readonly string[] {
  return text.split(/[\s=:;&|()<>"'!]+/).filter((piece) => piece !== '')
}

/** Returns all words that occur in a text, wherever they stand and however they are quoted. */
export function listWordsInText(text: string): ReadonlySet<string> {
  const words = text
    .replaceAll(/\\\n/g, '')
    .replaceAll(/[\\'"]/g, '')
    .split(/[^\w@%+=:,./~*-]+/)
    .flatMap((word) => [word, ...splitWord(word)])
  return new Set(words.flatMap((word) => [word, basename(word)]))
}
