/**
 * Completes the text of a summary from the log. A model's text stands in a frame. The user's messages and the open
 * tasks are always written from the log; files and errors that the text lacks are added, within budgets.
 */

import { type FailedCommand, hasEditAttempt, type TouchedFile } from '../facts/files-and-commands.ts'
import type { SessionFacts } from '../facts/session-facts.ts'
import { isOpenTodo, type TodoItem } from '../facts/todo-list.ts'
import type { UserPrompt } from '../facts/user-prompts.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import {
  createPathMentionCheck,
  hasWord,
  isFileNameMentioned,
  isPathEndMentioned,
} from '../text/code-in-text.ts'
import { sliceWholeCharacters } from '../text/truncate-text.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { SUMMARY_HEADING } from './accept-summary.ts'
import {
  createUserQuotationTest,
  frameModelText,
  markForeignQuotations,
  removeFrames,
  removeUserMessageSection,
} from './model-text.ts'
import {
  createErrorPieces,
  createFilePieces,
  createUserMessagePieces,
  ERRORS_GROUP,
  FILES_GROUP,
  fitSummaryPieces,
  fitUserPrompts,
  formatLeftOutNote,
  formatPendingTask,
  hasPromptPointer,
  hasUserPrompt,
  MESSAGES_GROUP,
  SHORT_ERROR_CHARACTERS,
  type SummaryPiece,
  type UserPromptLimits,
} from './summary-pieces.ts'
import { MESSAGES_SECTION_NUMBER, readSectionNumber } from './summary-prompt.ts'

/**
 * Who wrote the text. `model`: the text is put in a frame. `provider`: its block stays as it is, and additions stand
 * beside it. The engine wrote the others from the log: `notes` of the session, or a `local` summary.
 */
export type SummaryAuthor = 'model' | 'provider' | 'notes' | 'local'

export interface RepairRules {
  readonly author: SummaryAuthor
  /** Text from the log that stands before the model's, for records that no model was shown; empty if there are none. */
  readonly cover?: string
  /** Maximum tokens of one user message, and of all user messages together. */
  readonly messages: { readonly each: number; readonly total: number }
  /** Maximum tokens of the list of added files. */
  readonly files: number
  /** Number of errors added in full, newest first; older errors are cut to their end. */
  readonly errors: number
  /** Maximum tokens of all text added to the summary. */
  readonly tokens: number
  readonly estimate: Pick<Estimator, 'text'>
  /**
   * True if the text is the notes of the session, which shorten paths and errors. It must have the whole path of every
   * file, and every error in full, also of commands that have succeeded since.
   */
  readonly isNotes?: boolean
  /** User messages outside the summary, kept verbatim in the context. A summary may quote them too. */
  readonly keptMessages?: readonly UserPrompt[]
}

interface RepairedSummary {
  /** The complete summary, with credentials removed. */
  readonly text: string
  /** The paragraphs that the log adds, also part of `text`. */
  readonly additions: readonly string[]
  /** Facts that neither the text nor what was added to it has, because they exceed the budget: uuids, paths, texts of tasks. */
  readonly unfit: readonly string[]
}

/** Work of looking up quotations in all messages: each character of the text counts as this many characters read. */
const MARKING_WORK = 4

/** Returns the summary with the facts that it lacks, as far as the budgets allow. Those that do not fit are in `unfit`. */
export function* repairSummary(
  summary: string,
  facts: SessionFacts,
  rules: RepairRules,
): WorkInSteps<RepairedSummary> {
  const { author, cover = '' } = rules
  const cleaned = facts.clean(summary)
  yield cleaned.length
  const isModels = author === 'model'
  const text = isModels ? preparePlan(removeUserMessageSection(removeFrames(cleaned)), facts.todos) : cleaned
  const missing = findMissing(`${cover}\n${text}`, facts, rules)
  yield text.length
  const { paragraphs, unfit } = writeAdditions(missing, facts, rules)
  const additions = paragraphs.map(facts.clean)
  if (!isModels) return { text: [text.trimEnd(), ...additions].join('\n\n'), additions, unfit }
  const isUsers = createUserQuotationTest(
    [...facts.messages, ...(rules.keptMessages ?? [])],
    facts.earlierSummary?.text ?? '',
  )
  const marked = markForeignQuotations(withoutHeading(text), isUsers)
  yield MARKING_WORK * marked.length
  const before = cover === '' ? [] : [withoutHeading(cover), 'The rest, summarised by the model:']
  const framed = [SUMMARY_HEADING, ...before, frameModelText(marked)].join('\n\n').replace('\n\n', '\n')
  return { text: [framed, ...additions].join('\n\n'), additions, unfit }
}

function withoutHeading(text: string): string {
  const trimmed = text.trim()
  return trimmed.startsWith(SUMMARY_HEADING) ? trimmed.slice(SUMMARY_HEADING.length).trim() : trimmed
}

function toMessageLimits({ messages, tokens, estimate }: RepairRules): UserPromptLimits {
  return { eachTokens: messages.each, totalTokens: Math.min(messages.total, tokens), estimate }
}

const TASKS_SECTION = 7
const OPEN_ERRORS = 4
const FIXED_ERRORS = 5
const NO_OPEN_TASK = 'No open task is on record.'
/** What is added to a text of a model: the sections that are always written from the log. */
const OWN_SECTIONS: readonly (readonly [section: number, heading: string, none: string])[] = [
  [MESSAGES_SECTION_NUMBER, '6. All user messages', 'Nothing on record.'],
  [TASKS_SECTION, '7. Pending tasks', NO_OPEN_TASK],
]
/** The sections that are added to a text of the engine, which already has most facts. */
const MISSING_SECTIONS: readonly (readonly [section: number, heading: string])[] = [
  [MESSAGES_SECTION_NUMBER, 'User messages, word for word:'],
  [TASKS_SECTION, 'Open tasks on the list:'],
]
const LACKING: readonly (readonly [section: number, heading: string])[] = [
  [3, 'Files touched:'],
  [OPEN_ERRORS, 'Commands that failed and have not succeeded since:'],
  [FIXED_ERRORS, 'Commands that failed and have succeeded since:'],
]

const REPAIR_INTRODUCTION = 'From the log, since the summary above does not have it:'

function isEngines({ author }: RepairRules): boolean {
  return author === 'notes' || author === 'local'
}

/** Writes the paragraphs to add, and lists the facts for which there is no room. */
function writeAdditions(missing: MissingFacts, facts: SessionFacts, rules: RepairRules) {
  const caps = new Map([
    [MESSAGES_GROUP, rules.messages.total],
    [FILES_GROUP, rules.files],
    [FIXED_ERRORS_GROUP, FIXED_ERRORS_SHARE * rules.tokens],
    [ERRORS_GROUP, OPEN_ERRORS_FACTOR * rules.files],
  ])
  const room = { tokens: rules.tokens, caps, countTokens: rules.estimate.text }
  const fitted = fitSummaryPieces(createMissingPieces(missing, facts, rules), room)
  const list = (section: number): readonly string[] =>
    fitted.placed.filter((piece) => piece.section === section).map(({ text }) => text)
  const listLeftOut = (section: number): readonly string[] =>
    formatLeftOutNote(fitted.leftOut.filter((piece) => piece.section === section))
  const write = (some: readonly (readonly [section: number, heading: string])[]): readonly string[] =>
    some.flatMap(([section, heading]) => {
      // A local summary itself says what it leaves out.
      const isTold = section === MESSAGES_SECTION_NUMBER && rules.author === 'notes'
      const lines = [...list(section), ...(isTold ? listLeftOut(section) : [])]
      return lines.length === 0 ? [] : [[heading, ...lines].join('\n')]
    })
  const own = isEngines(rules)
    ? []
    : OWN_SECTIONS.map(([section, heading, none]) => {
        const age =
          section === TASKS_SECTION && missing.todos.length > 0 && facts.areTodosOlder
            ? [OLDER_LIST_NOTE]
            : []
        const lines = [...list(section), ...listLeftOut(section), ...age]
        return [heading, ...(lines.length === 0 ? [none] : lines)].join('\n')
      })
  const lacking = [...(isEngines(rules) ? write(MISSING_SECTIONS) : []), ...write(LACKING)]
  const unfit = fitted.leftOut.flatMap(({ id }) => (id === null || missing.shortened.has(id) ? [] : [id]))
  return { paragraphs: [...own, ...(lacking.length === 0 ? [] : [REPAIR_INTRODUCTION, ...lacking])], unfit }
}

const ERROR_RANKS = { open: 4, settled: 7, calls: 4 }

const FIXED_ERRORS_GROUP = 'fixed errors'
/**
 * Maximum share of the added tokens for errors of commands that have succeeded since. Notes name these errors already; in
 * a session that fails and succeeds again and again, they would otherwise fill what the user's messages leave free.
 */
const FIXED_ERRORS_SHARE = 0.1
/** Errors of commands that still fail have at most this multiple of the budget of files, which fits the window. */
const OPEN_ERRORS_FACTOR = 2

/** Creates the texts to add for missing facts. A user message keeps its number in the list of all user messages. */
function createMissingPieces(
  missing: MissingFacts,
  facts: SessionFacts,
  rules: RepairRules,
): readonly SummaryPiece[] {
  const wanted = new Set(missing.messages.map(({ uuid }) => uuid))
  const messages = createUserMessagePieces(facts.messages, 1, toMessageLimits(rules)).filter(({ id }) =>
    wanted.has(id ?? ''),
  )
  const files = createFilePieces(missing.files, { edited: 3, snippets: 9, read: 5 })
  const newest = new Set(
    facts.failures
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
      groups: [FIXED_ERRORS_GROUP],
      short: null,
    })),
  ].map((piece) => (isFull(piece) ? piece : { ...piece, full: piece.short ?? piece.full, short: null }))
  const todos = missing.todos.map((todo, order) => ({
    section: 7,
    rank: 0,
    order,
    full: formatPendingTask(todo),
    short: null,
    groups: [],
    id: todo.text,
  }))
  return [...todos, ...messages, ...files.filter(({ groups }) => groups.includes(FILES_GROUP)), ...errors]
}

// Search for facts that a summary must contain and does not.

interface MissingFacts {
  readonly messages: readonly UserPrompt[]
  readonly files: readonly TouchedFile[]
  readonly todos: readonly TodoItem[]
  /** Paths of missing files that the summary has in a shorter form, from which the whole path can be reconstructed. */
  readonly shortened: ReadonlySet<string>
  /**
   * Commands that still fail and whose last error is missing from the summary. Of the older errors, only the end must
   * be in it. For notes, see `RepairRules.isNotes`.
   */
  readonly commands: readonly FailedCommand[]
}

/**
 * Finds the facts to add to `text`: messages and open tasks (for a text of the engine, only those that it lacks; for a
 * text of a model, all), and files and errors that the text does not mention. Text and facts must be redacted already.
 */
function findMissing(text: string, facts: SessionFacts, rules: RepairRules): MissingFacts {
  const { isNotes = false } = rules
  const failing = facts.failures.filter(({ isSettled }) => isNotes || !isSettled)
  const files = facts.files.filter((file) => !isFileNamed(text, file, rules))
  const findPath = createPathMentionCheck(text, facts.folders)
  const open = facts.todos.filter(isOpenTodo)
  return {
    messages: isEngines(rules) ? findMissingMessages(text, facts, rules) : facts.messages,
    files,
    shortened: new Set(files.flatMap(({ path }) => (isNotes && findPath(path) ? [path] : []))),
    todos: isEngines(rules) ? open.filter((todo) => !text.includes(todo.text)) : open,
    commands: failing.filter(({ error }, index) => {
      const wanted = error.trim()
      const isWhole = isNotes || index < rules.errors
      return !text.includes(isWhole ? wanted : sliceWholeCharacters(wanted, -SHORT_ERROR_CHARACTERS))
    }),
  }
}

function findMissingMessages(
  text: string,
  { messages }: SessionFacts,
  rules: RepairRules,
): readonly UserPrompt[] {
  const placed = fitUserPrompts(messages, toMessageLimits(rules))
  return messages.filter((message, index) => {
    if (hasUserPrompt(text, message)) return false
    // If the budget is short, a message that was cut and refers to its record counts as complete.
    const isCut = rules.author === 'local' || placed[index] !== `${message.lead}${message.text}`
    return !isCut || !hasPromptPointer(text, message)
  })
}

/** True if the summary names the file: an edited one with its folder, one only read by its name; in notes, by its whole path. */
function isFileNamed(text: string, file: TouchedFile, { isNotes = false }: RepairRules): boolean {
  if (isNotes) return hasWord(text, file.path)
  return hasEditAttempt(file) ? isPathEndMentioned(text, file.path) : isFileNameMentioned(text, file.path)
}

// Pending tasks in a model's text count as its own plan, because only the log shows what the user asked for.

/** Follows open todos that were last changed before the latest message. */
export const OLDER_LIST_NOTE = 'The list is older than the latest message.'
const OWN_PLAN_HEADING = "7. Pending tasks in the model's own plan, not confirmed"

/**
 * Gives section 7 of a model's text a title of its own, and removes the lines in it that name a completed task, since
 * the model would do that work twice. A model that repeats its last summary has the section twice, its own and the one
 * from the log: repeated items, and what the log said about its own list, are left out.
 */
function preparePlan(text: string, todos: readonly TodoItem[]): string {
  const open = todos.filter(isOpenTodo).map((todo) => normalizeTask(todo.text))
  // A task without words would be found in every line, and all that is planned would be removed.
  const settled = todos
    .filter((todo) => !isOpenTodo(todo))
    .map((todo) => normalizeTask(todo.text))
    .filter((task) => task !== '' && !open.includes(task))
  const isDone = (task: string): boolean =>
    settled.some((one) => hasWord(task, one)) && !open.some((one) => task.includes(one))
  const planned = new Set([NO_OPEN_TASK, OLDER_LIST_NOTE].map(normalizeTask))
  let hasPlan = false
  // Inside a plan: its title, until it is written. The title of a second plan is written before the first line that is new in it.
  let title: readonly string[] | null = null
  const lines = text.split('\n').flatMap((line) => {
    const section = readSectionNumber(line)
    if (section === TASKS_SECTION) {
      title = hasPlan ? [OWN_PLAN_HEADING] : []
      const now = hasPlan ? [] : [OWN_PLAN_HEADING]
      hasPlan = true
      return now
    }
    if (section !== null || line === REPAIR_INTRODUCTION) title = null
    if (title === null) return [line]
    const task = normalizeTask(line)
    if (planned.has(task) || isDone(task)) return []
    if (LIST_ITEM.test(line)) planned.add(task)
    if (task === '' && title.length > 0) return []
    const shown = [...title, line]
    title = []
    return shown
  })
  return lines.join('\n')
}

const LIST_ITEM = /^\s*(?:[-*+]|\d+[.)])\s/

function normalizeTask(text: string): string {
  return text
    .toLowerCase()
    .replace(/[\s*_`]+/g, ' ')
    .trim()
}
