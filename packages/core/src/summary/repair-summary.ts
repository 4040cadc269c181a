/**
 * Checks a summary against the facts of the log and repairs it: user messages, files, open tasks and errors that are
 * missing are added at its end, within budgets. Deterministic; a second run changes nothing.
 */

import { isOpenTodo, type TodoItem } from '../log/todo-list.ts'
import { runAtOnce, type Steps } from '../log/work-steps.ts'
import { findFencedLines } from '../text/code-blocks.ts'
import { createPathFinder, hasWord, isFileMentioned, isPathNamed } from '../text/names-in-text.ts'
import { truncateEnd } from '../text/truncate-text.ts'
import { sliceText } from '../text/well-formed-text.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { INVENTED_MARK, markInventedText, withoutInventedLines } from './invented-text.ts'
import { readListHeading, removeMessageList } from './message-list.ts'
import { markPermissionClaims } from './permission-claims.ts'
import { type FailingCommand, isFileEdited, type SessionFacts, type TouchedFile } from './session-facts.ts'
import {
  createErrorPieces,
  createFilePieces,
  createMessagePieces,
  FILES_GROUP,
  fitSummaryPieces,
  formatTask,
  MESSAGES_GROUP,
  SHORT_ERROR_CHARACTERS,
  type SummaryPiece,
} from './summary-pieces.ts'
import {
  formatUserPrompts,
  hasPointerTo,
  hasUserPrompt,
  type UserPrompt,
  type UserPromptLimits,
} from './user-messages.ts'

export interface RepairRules {
  /** Maximum tokens of one added user message, and of all added user messages together. */
  readonly messages: { readonly each: number; readonly total: number }
  /** Maximum tokens of the list of added files. */
  readonly files: number
  /** Number of errors added in full, newest first; older errors are cut to their end. */
  readonly errors: number
  /** Maximum tokens of all text added to the summary. */
  readonly tokens: number
  readonly estimate: Pick<Estimator, 'text'>
  /** True if the engine wrote the summary from the log. Its user messages are then as complete as its size allows. */
  readonly isLocal?: boolean
  /**
   * True if the summary is the notes of the session, which shorten paths and errors. They must have the whole path of every
   * file, and every error in full, also of commands that have succeeded since.
   */
  readonly isNotes?: boolean
  /** True if the summary stays as the provider wrote it, and what it lacks stands beside it. */
  readonly isFixed?: boolean
  /** User messages outside the summary, kept verbatim in the context. A summary may quote them too. */
  readonly keptMessages?: readonly UserPrompt[]
}

interface RepairedSummary {
  /** The repaired summary, with credentials removed. */
  readonly text: string
  /** The paragraphs that were added to the summary. */
  readonly repairs: readonly string[]
  /** Facts that were missing from the summary: uuids of messages and tool results, paths of files, texts of tasks. */
  readonly added: {
    readonly messages: readonly string[]
    readonly files: readonly string[]
    readonly todos: readonly string[]
    readonly errors: readonly string[]
  }
  /** Missing facts that were not added because they exceed the budget. */
  readonly unfit: readonly string[]
  /** Texts of completed tasks that the summary listed as pending; their lines are removed. */
  readonly settled: readonly string[]
  /**
   * Lines that were marked in the summary, in their original wording: orders, questions, words that the user never wrote,
   * and claims of a permission.
   */
  readonly marked: readonly string[]
}

export function repairSummary(summary: string, facts: SessionFacts, rules: RepairRules): RepairedSummary {
  return runAtOnce(repairSummaryInSteps(summary, facts, rules))
}

/** Every line of a summary is matched with many patterns: a character costs as much as reading this many. */
const MARKING_WORK = 4

export function* repairSummaryInSteps(
  summary: string,
  facts: SessionFacts,
  rules: RepairRules,
): Steps<RepairedSummary> {
  const { isLocal = false, keptMessages = [] } = rules
  const cleaned = facts.clean(summary)
  yield MARKING_WORK * cleaned.length
  const policed = isLocal
    ? { text: cleaned, marked: [] }
    : markInventedText(cleaned, {
        messages: [...facts.messages, ...keptMessages],
        unverified: facts.earlierSummary?.text ?? '',
        endings: LIST_ENDINGS,
      })
  yield MARKING_WORK * policed.text.length
  const voiced = markOrdersAndClaims(policed.text, {
    lines: listQuotedLines(facts),
    messages: [...facts.messages, ...keptMessages],
  })
  yield MARKING_WORK * voiced.text.length
  const settled = removeSettledTasks(voiced.text, facts.todos)
  const isModels = !isLocal && rules.isNotes !== true && rules.isFixed !== true
  const sorted = isModels ? { ...settled, text: writeTaskSection(settled.text, facts) } : settled
  const missing = findMissing(sorted.text, facts, rules)
  const repair = writeRepairs(missing, facts, rules)
  const repaired = [sorted.text.trimEnd(), ...repair.paragraphs].join('\n\n')
  return {
    text: repair.paragraphs.length === 0 ? sorted.text : facts.clean(repaired),
    repairs: repair.paragraphs,
    added: {
      messages: missing.messages.map(({ uuid }) => uuid),
      files: missing.files.map(({ path }) => path),
      todos: findMissingTodos(settled.text, facts).map(({ text }) => text),
      errors: missing.commands.map(({ uuid }) => uuid),
    },
    unfit: repair.unfit,
    settled: sorted.done,
    marked: [...policed.marked, ...voiced.marked],
  }
}

/**
 * Lists the lines of user messages, tasks and errors. A summary quotes these lines, so they are not marked as notes.
 */
function listQuotedLines({ messages, commands, todos }: SessionFacts): ReadonlySet<string> {
  const texts = [...messages, ...todos].map(({ text }) => text)
  const errors = commands.map(({ error }) => error)
  return new Set([...texts, ...errors].flatMap((text) => text.split('\n').map((line) => line.trim())))
}

function toMessageLimits({ messages, tokens, estimate }: RepairRules): UserPromptLimits {
  return { eachTokens: messages.each, totalTokens: Math.min(messages.total, tokens), estimate }
}

const OPEN_TASKS_HEADING = 'Open tasks on the list:'
const OPEN_ERRORS = 4
const FIXED_ERRORS = 5
const REPAIR_HEADINGS: readonly (readonly [section: number, heading: string])[] = [
  [6, 'User messages, word for word:'],
  [3, 'Files touched:'],
  [7, OPEN_TASKS_HEADING],
  [OPEN_ERRORS, 'Commands that failed and have not succeeded since:'],
  [FIXED_ERRORS, 'Commands that failed and have succeeded since:'],
]

const REPAIR_INTRODUCTION = 'From the log, since the summary above does not have it:'
/** Lines that end the list of user messages in a repaired summary. */
const LIST_ENDINGS: readonly string[] = [
  REPAIR_INTRODUCTION,
  ...REPAIR_HEADINGS.map(([, heading]) => heading).filter((heading) => readListHeading(heading) === null),
]

function writeRepairs(missing: MissingFacts, facts: SessionFacts, rules: RepairRules) {
  const caps = new Map([
    [MESSAGES_GROUP, rules.messages.total],
    [FILES_GROUP, rules.files],
    [FIXED_ERRORS_GROUP, FIXED_ERRORS_SHARE * rules.tokens],
  ])
  const room = { total: rules.tokens, caps, estimate: rules.estimate }
  const fitted = fitSummaryPieces(createMissingPieces(missing, facts, rules), room)
  const parts = REPAIR_HEADINGS.flatMap(([section, heading]) => {
    const own = fitted.placed.filter((piece) => piece.section === section).map(({ text }) => text)
    return own.length === 0 ? [] : [[heading, ...own].join('\n')]
  })
  const unfit = fitted.leftOut.flatMap(({ id }) => (id === null || missing.shortened.has(id) ? [] : [id]))
  return { paragraphs: parts.length === 0 ? [] : [REPAIR_INTRODUCTION, ...parts], unfit }
}

const ERROR_RANKS = { open: 4, settled: 7, calls: 4 }

const FIXED_ERRORS_GROUP = 'fixed errors'
/**
 * Maximum share of the added tokens for errors of commands that have succeeded since. Notes name these errors already; in
 * a session that fails and succeeds again and again, they would otherwise fill what the user's messages leave free.
 */
const FIXED_ERRORS_SHARE = 0.1

/** Creates the texts to add for missing facts. A user message keeps its number in the list of all user messages. */
function createMissingPieces(
  missing: MissingFacts,
  facts: SessionFacts,
  rules: RepairRules,
): readonly SummaryPiece[] {
  const wanted = new Set(missing.messages.map(({ uuid }) => uuid))
  const messages = createMessagePieces(facts.messages, 1, toMessageLimits(rules)).filter(({ id }) =>
    wanted.has(id ?? ''),
  )
  const files = createFilePieces(missing.files, { edited: 3, snippets: 9, read: 5 })
  const newest = new Set(
    facts.commands
      .filter(({ isSettled }) => !isSettled)
      .slice(0, rules.errors)
      .map(({ uuid }) => uuid),
  )
  const isFull = ({ id }: SummaryPiece): boolean => rules.isNotes === true || newest.has(id ?? '')
  const [open, fixed] = [false, true].map((isSettled) =>
    missing.commands.filter((command) => command.isSettled === isSettled),
  )
  const errors = [
    ...createErrorPieces(open ?? [], [], ERROR_RANKS),
    ...createErrorPieces(fixed ?? [], [], ERROR_RANKS).map((piece) => ({
      ...piece,
      section: FIXED_ERRORS,
      group: FIXED_ERRORS_GROUP,
      short: null,
    })),
  ].map((piece) => (isFull(piece) ? piece : { ...piece, full: piece.short ?? piece.full, short: null }))
  const todos = missing.todos.map((todo, order) => ({
    section: 7,
    rank: 0,
    order,
    full: formatTask(todo),
    short: null,
    group: 'todos',
    id: todo.text,
  }))
  return [...todos, ...messages, ...files.filter(({ group }) => group === FILES_GROUP), ...errors]
}

// Search for facts that a summary must contain and does not.

interface MissingFacts {
  readonly messages: readonly UserPrompt[]
  readonly files: readonly TouchedFile[]
  readonly todos: readonly TodoItem[]
  /** Paths of missing files that the summary has in a shorter form, from which the whole path can be told. */
  readonly shortened: ReadonlySet<string>
  /**
   * Commands that still fail and whose last error is missing from the summary. Of the older errors, only the end must
   * be in it. Of notes, see `RepairRules`.
   */
  readonly commands: readonly FailingCommand[]
}

/** Finds the facts that `text` does not mention. Both `text` and `facts` must be redacted already. */
function findMissing(text: string, facts: SessionFacts, rules: RepairRules): MissingFacts {
  const { isNotes = false } = rules
  const failing = facts.commands.filter(({ isSettled }) => isNotes || !isSettled)
  const files = facts.files.filter((file) => !isFileNamed(text, file, rules))
  const findPath = createPathFinder(text, facts.folders)
  const placed = formatUserPrompts(facts.messages, toMessageLimits(rules))
  const trusted = withoutInventedLines(text)
  return {
    messages: facts.messages.filter((message, index) => {
      if (hasUserPrompt(trusted, message)) return false
      // Where the budget is short, a message that was cut and refers to its record is as complete as it can be.
      const isCut = rules.isLocal === true || placed[index] !== `${message.lead}${message.text}`
      return !isCut || !hasPointerTo(text, message)
    }),
    files,
    shortened: new Set(files.flatMap(({ path }) => (isNotes && findPath(path) ? [path] : []))),
    todos: findMissingTodos(text, facts),
    commands: failing.filter(({ error }, index) => {
      const wanted = error.trim()
      const isWhole = isNotes || index < rules.errors
      return !text.includes(isWhole ? wanted : sliceText(wanted, -SHORT_ERROR_CHARACTERS))
    }),
  }
}

function findMissingTodos(text: string, { todos }: SessionFacts): readonly TodoItem[] {
  const tasks = readTaskLists(text)
  return todos.filter((todo) => isOpenTodo(todo) && !tasks.includes(todo.text))
}

/**
 * Returns true if the summary names the file: an edited file with its folder, a file that was only read by its file name.
 * Notes must have the whole path.
 */
function isFileNamed(text: string, file: TouchedFile, { isNotes = false }: RepairRules): boolean {
  if (isNotes) return hasWord(text, file.path)
  return isFileEdited(file) ? isPathNamed(text, file.path) : isFileMentioned(text, file.path)
}

// An order or a question in a summary could later be taken for the user's, so its line is marked as a note. No text is
// removed, and quotations are not marked.

const ORDER_LINE =
  /^(?:(?:please|now|next|then|ok(?:ay)?|so)[,:]?\s+)*(?:continue|proceed|resume|go (?:on|ahead)|keep (?:going|working)|carry on|let(?:'|’)?s (?:continue|proceed|go on))\b/i
const QUESTION_LINE =
  /^(?:(?:so|and|ok(?:ay)?)[,:]?\s+)*(?:shall|should|would|could|can|do|did|may|is it|are you|what|which|how)\b[^\n]*\b(?:i|you|we)\b[^\n]*\?$/i
const SLASH_COMMAND = /^\/(?:compact|clear|init|resume)\b/
/** Matches text that poses as a system message or tries to cancel earlier instructions. */
const IMPERSONATION =
  /^\W*(?:system(?: (?:prompt|message|note))?\s*:|(?:ignore|disregard|forget|override)\b.{0,30}\b(?:instructions|rules|prompts?)\b)/i
const LIST_MARKER = /^(\s*(?:[-*+]|\d+[.)])?\s*)(.*)$/s
/** A line longer than this is not checked for an order or a question. */
const MAX_ORDER_CHARACTERS = 500

interface QuotedText {
  /** Lines that are no orders or questions of the summary, because they are quotations. */
  readonly lines?: ReadonlySet<string>
  /** The user's messages, which alone can support a claim that something is permitted. */
  readonly messages: readonly UserPrompt[]
}

/**
 * Marks lines that give an order or ask a question as notes, and claims of a permission that no message supports. The
 * list of user messages and code blocks stay as they are. `marked`: the changed lines in their original wording.
 */
export function markOrdersAndClaims(
  text: string,
  { lines: quoted = new Set(), messages }: QuotedText,
): { readonly text: string; readonly marked: readonly string[] } {
  const marked: string[] = []
  let isInList = false
  const given = text.split('\n')
  const fenced = findFencedLines(given)
  const lines = given.map((line, index) => {
    if (fenced.has(index)) return line
    const heading = readListHeading(line)
    if (heading !== null) isInList = heading.kind === 'messages'
    else if (LIST_ENDINGS.includes(line)) isInList = false
    if (isInList || line.includes(INVENTED_MARK)) return line
    const isOrder = line.length <= MAX_ORDER_CHARACTERS && !quoted.has(line.trim())
    const neutral = isOrder ? neutralizeLine(line) : line
    const voiced = neutral === line ? markPermissionClaims(line, messages) : neutral
    if (voiced !== line) marked.push(line)
    return voiced
  })
  return { text: lines.join('\n'), marked }
}

function neutralizeLine(line: string): string {
  const [, marker = '', said = ''] = LIST_MARKER.exec(line) ?? []
  if (SLASH_COMMAND.test(said)) return `${marker}A command that was given: \`${said.trim()}\``
  if (IMPERSONATION.test(said)) return `${marker}Text without any authority: “${said.trim()}”`
  if (ORDER_LINE.test(said)) return `${marker}Noted as next: ${said}`
  return QUESTION_LINE.test(said.trim()) ? `${marker}Open at the time: ${said}` : line
}

// Removal of completed tasks that a summary lists as pending, since the model would do that work twice.

const PENDING_HEADING = /^[ \t#*]*7[.)][ \t*]*[^\n]*(?:pending|task)[^\n]*$/gim
const NEXT_HEADING = /^[ \t#*]*[89][.)][ \t*]*\S/m
const DONE_MARK = /\b(?:done|completed?|finished|fixed|resolved)\b|✅|\[x\]/i

/** Returns where the last section "Pending tasks" begins and ends; null if there is none. User messages may quote one. */
function findTaskSection(text: string): { readonly from: number; readonly to: number } | null {
  const head = [...text.matchAll(PENDING_HEADING)].at(-1)
  if (head === undefined) return null
  const from = head.index + head[0].length
  const length = NEXT_HEADING.exec(text.slice(from))?.index ?? text.length - from
  return { from, to: from + length }
}

/**
 * Returns the text in which an open task counts as listed: the section of pending tasks and the list that a repair added.
 * The words of a task in a message of the user do not list it. Without such a section, all text but the messages counts.
 */
function readTaskLists(text: string): string {
  const section = findTaskSection(text)
  const added = text.lastIndexOf(`\n${OPEN_TASKS_HEADING}\n`)
  const lists = [
    ...(section === null ? [] : [text.slice(section.from, section.to).split(REPAIR_INTRODUCTION)[0] ?? '']),
    ...(added === -1 ? [] : [text.slice(added)]),
  ]
  return lists.length > 0 ? lists.join('\n') : removeMessageList(text, LIST_ENDINGS)
}

/**
 * Removes the lines of section 7, "Pending tasks", that name a completed task without saying that it is done.
 * `done`: texts of the tasks whose lines were removed.
 */
function removeSettledTasks(text: string, todos: readonly TodoItem[]) {
  const section = findTaskSection(text)
  const open = todos.filter(isOpenTodo).map(({ text: task }) => normalizeTask(task))
  // A task without words would be found in every line, and all that is pending would be removed.
  const settled = todos.filter(
    (todo) => !isOpenTodo(todo) && !['', ...open].includes(normalizeTask(todo.text)),
  )
  if (section === null || settled.length === 0) return { text, done: [] }
  const done = new Set<string>()
  const lines = text.slice(section.from, section.to).split('\n')
  const kept = lines.filter((line) => {
    const task = settled.find(({ text: given }) => hasWord(normalizeTask(line), normalizeTask(given)))
    if (task === undefined || DONE_MARK.test(line)) return true
    if (open.some((other) => normalizeTask(line).includes(other))) return true
    done.add(task.text)
    return false
  })
  return { text: text.slice(0, section.from) + kept.join('\n') + text.slice(section.to), done: [...done] }
}

/** Follows open todos that were last changed before the latest message. */
export const OLDER_LIST = 'The list is older than the latest message.'
const NO_OPEN_TASK = 'No open task is on record.'
const OWN_PLAN_HEADING = "The model's own plan, not confirmed:"
const REQUEST_CHARACTERS = 400

/**
 * Writes section 7 from the log: the open todos and the messages without a response. What the model listed there follows
 * as its own plan, since nothing but the log says what was asked for.
 */
function writeTaskSection(text: string, { todos, areTodosOlder, messages }: SessionFacts): string {
  const section = findTaskSection(text)
  if (section === null) return text
  const open = todos.filter(isOpenTodo).map(formatTask)
  const waiting = messages.flatMap(({ isAnswered, text: request }, index) =>
    isAnswered
      ? []
      : [`- Not answered yet, [${index + 1}]: "${truncateEnd(request.trim(), REQUEST_CHARACTERS)}"`],
  )
  const age = open.length > 0 && areTodosOlder ? [OLDER_LIST] : []
  const lines = [...open, ...age, ...waiting]
  const known = lines.length === 0 ? [NO_OPEN_TASK] : lines
  const given = text.slice(section.from, section.to).split(REPAIR_INTRODUCTION)[0] ?? ''
  const listed = new Set(listLines([...known, OWN_PLAN_HEADING]))
  const own = given
    .split('\n')
    .filter((line) => line.trim() === '' || !listed.has(line.trim()))
    .join('\n')
    .trim()
  const body = [...known, ...(own === '' ? [] : [OWN_PLAN_HEADING, own])].join('\n')
  const rest = text.slice(section.from + given.length)
  return `${text.slice(0, section.from)}\n${body}${rest.trim() === '' ? '' : `\n\n${rest.trimStart()}`}`
}

/** Returns the lines of texts without white space around them. */
function listLines(texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => text.split('\n')).map((line) => line.trim())
}

function normalizeTask(text: string): string {
  return text
    .toLowerCase()
    .replace(/[\s*_`]+/g, ' ')
    .trim()
}
