/**
 * The deterministic gate: no summary, a model's or our own, is trusted on what the log knows. It is checked against
 * the facts, and what it does not hold is added from them within budgets, in one labelled place at its end.
 */

import { isInProgress, isOpen, type TodoItem } from '../log/todo-list.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { fileName } from './ledger.ts'
import {
  errorPieces,
  FILES,
  filePieces,
  fitPieces,
  LAST_WORDS,
  MESSAGES,
  messagePieces,
  type Piece,
} from './local-sections.ts'
import {
  type Facts,
  type FailingCommand,
  isEdited,
  type MessageRules,
  mustHold,
  type PersonMessage,
  type TouchedFile,
} from './session-facts.ts'

export interface GateRules {
  /** Tokens of the person's messages that are put back: of one, and of all. */
  readonly messages: { readonly each: number; readonly total: number }
  /** Tokens of the files that are put back. */
  readonly files: number
  /** Errors that are put back in full, newest first; older ones with their last words. */
  readonly errors: number
  /** Tokens of all that is put back. */
  readonly tokens: number
  readonly estimate: Pick<Estimator, 'text'>
}

interface Gated {
  /** Checked, repaired, without secrets. */
  readonly text: string
  /** The paragraphs that were added to it. */
  readonly repairs: readonly string[]
  /** What was missing: uuids of messages and results, paths of files, texts of tasks. */
  readonly added: GateList
  /** Of that, what found no room. */
  readonly unfit: readonly string[]
  /** Tasks that stood as pending and are done. */
  readonly settled: readonly string[]
  /** Orders and questions that were marked as what they are. */
  readonly marked: readonly string[]
}

interface GateList {
  readonly messages: readonly string[]
  readonly files: readonly string[]
  readonly todos: readonly string[]
  readonly errors: readonly string[]
}

export function passGate(summary: string, facts: Facts, rules: GateRules): Gated {
  const voiced = neutralVoice(facts.clean(summary), quotedLines(facts))
  const sorted = withoutSettledTasks(voiced.text, facts.todos)
  const missing = missingFrom(sorted.text, facts, { ...messageRules(rules), errors: rules.errors })
  const repair = repairOf(missing, facts, rules)
  const repaired = [sorted.text.trimEnd(), ...repair.paragraphs].join('\n\n')
  const text = repair.paragraphs.length === 0 ? sorted.text : facts.clean(repaired)
  return {
    text,
    repairs: repair.paragraphs,
    added: listOf(missing),
    unfit: repair.unfit,
    settled: sorted.done,
    marked: voiced.marked,
  }
}

/** Lines of what is told word for word. */
function quotedLines({ messages, commands, todos }: Facts): ReadonlySet<string> {
  const texts = [...messages, ...todos].map(({ text }) => text)
  const errors = commands.map(({ error }) => error)
  return new Set([...texts, ...errors].flatMap((text) => text.split('\n').map((line) => line.trim())))
}

function messageRules({ messages, estimate }: GateRules) {
  return { eachTokens: messages.each, estimate }
}

const HEADINGS: readonly (readonly [section: number, heading: string])[] = [
  [6, 'User messages, word for word:'],
  [3, 'Files touched:'],
  [7, 'Open tasks on the list:'],
  [4, 'Commands that failed and have not succeeded since:'],
]
const ADDED = 'From the log, since the summary above does not have it:'

interface Repair {
  readonly paragraphs: readonly string[]
  readonly unfit: readonly string[]
}

function repairOf(missing: Missing, facts: Facts, rules: GateRules): Repair {
  const caps = new Map([
    [MESSAGES, rules.messages.total],
    [FILES, rules.files],
  ])
  const fitted = fitPieces(piecesOf(missing, facts, rules), {
    total: rules.tokens,
    caps,
    estimate: rules.estimate,
  })
  const parts = HEADINGS.flatMap(([section, heading]) => {
    const own = fitted.placed.filter((piece) => piece.section === section).map(({ text }) => text)
    return own.length === 0 ? [] : [[heading, ...own].join('\n')]
  })
  const unfit = fitted.leftOut.flatMap(({ id }) => (id === null ? [] : [id]))
  return { paragraphs: parts.length === 0 ? [] : [ADDED, ...parts], unfit }
}

/** Messages keep the numbers they have among all. */
function piecesOf(missing: Missing, facts: Facts, rules: GateRules): readonly Piece[] {
  const wanted = new Set(missing.messages.map(({ uuid }) => uuid))
  const messages = messagePieces(facts.messages, 1, messageRules(rules)).filter(({ id }) =>
    wanted.has(id ?? ''),
  )
  const files = filePieces(missing.files, { edited: 3, snippets: 9, read: 5 })
  const newest = new Set(
    facts.commands
      .filter(({ isSettled }) => !isSettled)
      .slice(0, rules.errors)
      .map(({ uuid }) => uuid),
  )
  const errors = errorPieces(missing.commands, [], { open: 4, settled: 4, calls: 4 }).map((piece) =>
    newest.has(piece.id ?? '') ? piece : { ...piece, full: piece.short ?? piece.full, short: null },
  )
  const todos = missing.todos.map((todo, order) => ({
    section: 7,
    rank: 0,
    order,
    full: `- ${isInProgress(todo) ? 'In work: ' : ''}${todo.text}`,
    short: null,
    group: 'todos',
    id: todo.text,
  }))
  return [...todos, ...messages, ...files.filter(({ group }) => group === FILES), ...errors]
}

function listOf({ messages, files, todos, commands }: Missing): GateList {
  return {
    messages: messages.map(({ uuid }) => uuid),
    files: files.map(({ path }) => path),
    todos: todos.map(({ text }) => text),
    errors: commands.map(({ uuid }) => uuid),
  }
}

// What a summary ought to hold and does not: what the gate checks, fact by fact.

interface Missing {
  readonly messages: readonly PersonMessage[]
  readonly files: readonly TouchedFile[]
  readonly todos: readonly TodoItem[]
  /** Commands that still fail and whose last error is not told; of older ones its last words will do. */
  readonly commands: readonly FailingCommand[]
}

interface MissingRules extends MessageRules {
  /** How many errors, newest first, are to be told in full. */
  readonly errors: number
}

/** `text` has no secrets any more, and neither have the facts: so they can be compared. */
function missingFrom(text: string, facts: Facts, rules: MissingRules): Missing {
  const failing = facts.commands.filter(({ isSettled }) => !isSettled)
  return {
    messages: facts.messages.filter(
      (message) => !mustHold(message, rules).every((part) => text.includes(part)),
    ),
    files: facts.files.filter((file) => !isNamed(text, file)),
    todos: facts.todos.filter((todo) => isOpen(todo) && !text.includes(todo.text)),
    commands: failing.filter(({ error }, index) => {
      const told = error.trim()
      return !text.includes(index < rules.errors ? told : told.slice(-LAST_WORDS))
    }),
  }
}

/** A changed file must be told from others of its name; of one that was only read the name will do. */
function isNamed(text: string, file: TouchedFile): boolean {
  return isEdited(file) ? namesFile(text, file.path) : mentionsFile(text, file.path)
}

// A summary is a record and not speech. A line that gives an order or asks something would be taken for the person's
// word when it is read again, so it is marked as what it is; nothing is taken out, and quotations are left alone.

const ORDER =
  /^(?:(?:please|now|next|then|ok(?:ay)?|so)[,:]?\s+)*(?:continue|proceed|resume|go (?:on|ahead)|keep (?:going|working)|carry on|let(?:'|’)?s (?:continue|proceed|go on))\b/i
const QUESTION =
  /^(?:(?:so|and|ok(?:ay)?)[,:]?\s+)*(?:shall|should|would|could|can|do|did|may|is it|are you|what|which|how)\b[^\n]*\b(?:i|you|we)\b[^\n]*\?$/i
const COMMAND = /^\/(?:compact|clear|init|resume)\b/
/** Words that pose as the system's, or that would set aside what was said before. */
const POSING =
  /^\W*(?:system(?: (?:prompt|message|note))?\s*:|(?:ignore|disregard|forget|override)\b.{0,30}\b(?:instructions|rules|prompts?)\b)/i
const FENCE = /^\s*(?:```|~~~)/
const MARKER = /^(\s*(?:[-*+]|\d+[.)])?\s*)(.*)$/s
const NUMBERED = /^[ \t#*]*([1-9])[.)][ \t*]*\S/
const QUOTED_SECTION = 6
/** Nobody gives an order of this length. */
const LONGEST = 500

interface Voiced {
  readonly text: string
  /** Lines that were marked, as they had stood. */
  readonly marked: readonly string[]
}

/** `quoted`: lines that are somebody's own words and stay as they are. */
export function neutralVoice(text: string, quoted: ReadonlySet<string> = new Set()): Voiced {
  const marked: string[] = []
  let section = 0
  let isFenced = false
  const lines = text.split('\n').map((line) => {
    if (FENCE.test(line)) isFenced = !isFenced
    const number = NUMBERED.exec(line)?.[1]
    if (!isFenced && number !== undefined && Number(number) > section) section = Number(number)
    if (isFenced || section === QUOTED_SECTION || line.length > LONGEST || quoted.has(line.trim()))
      return line
    const voiced = neutralLine(line)
    if (voiced !== line) marked.push(line)
    return voiced
  })
  return { text: lines.join('\n'), marked }
}

function neutralLine(line: string): string {
  const [, marker = '', said = ''] = MARKER.exec(line) ?? []
  if (COMMAND.test(said)) return `${marker}A command that was given: \`${said.trim()}\``
  if (POSING.test(said)) return `${marker}Text without any authority: “${said.trim()}”`
  if (ORDER.test(said)) return `${marker}Noted as next: ${said}`
  return QUESTION.test(said.trim()) ? `${marker}Open at the time: ${said}` : line
}

// Tasks that are done and stand among those that are pending: a summary that says so has work done twice.

const PENDING = /^[ \t#*]*7[.)][ \t*]*[^\n]*(?:pending|task)[^\n]*$/gim
const NEXT = /^[ \t#*]*[89][.)][ \t*]*\S/m
const SAID_DONE = /\b(?:done|completed?|finished|fixed|resolved)\b|✅|\[x\]/i

interface Sorted {
  readonly text: string
  /** Texts of the tasks whose lines went. */
  readonly done: readonly string[]
}

/** The lines of section 7 (the last of that name: messages may quote one) that name a completed task and do not say so are taken out of it. */
function withoutSettledTasks(text: string, todos: readonly TodoItem[]): Sorted {
  const head = [...text.matchAll(PENDING)].at(-1)
  const open = todos.filter(isOpen).map(({ text: task }) => plain(task))
  const settled = todos.filter((todo) => !isOpen(todo) && !open.includes(plain(todo.text)))
  if (head === undefined || settled.length === 0) return { text, done: [] }
  const from = head.index + head[0].length
  const length = NEXT.exec(text.slice(from))?.index ?? text.length - from
  const done = new Set<string>()
  const lines = text.slice(from, from + length).split('\n')
  const kept = lines.filter((line) => {
    const task = settled.find(({ text: given }) => plain(line).includes(plain(given)))
    if (task === undefined || SAID_DONE.test(line)) return true
    if (open.some((other) => plain(line).includes(other))) return true
    done.add(task.text)
    return false
  })
  return { text: text.slice(0, from) + kept.join('\n') + text.slice(from + length), done: [...done] }
}

function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[\s*_`]+/g, ' ')
    .trim()
}

// Is a thing still named in a text? As a whole word: part of a longer name is another name.

const PART_OF_NAME = /[\w$]/

function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    if (!PART_OF_NAME.test(text[at - 1] ?? ' ') && !PART_OF_NAME.test(text[at + word.length] ?? ' '))
      return true
  }
  return false
}

/** By its last two parts or more; by its bare name where it has no folder. */
function namesFile(text: string, path: string): boolean {
  const parts = path.split('/').filter((part) => part !== '')
  return hasWord(text, parts.length < 2 ? path : parts.slice(-2).join('/'))
}

/** By its bare name at least. */
export function mentionsFile(text: string, path: string): boolean {
  return hasWord(text, fileName(path))
}
