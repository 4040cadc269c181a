/**
 * Creates the pieces of a local summary (about files, errors and user messages), each a text about one fact, and fits them
 * into a token budget. Also used to add to a model's summary the facts that it lacks. Also finds what a text lacks of the
 * user's messages.
 */

import {
  type FailedCall,
  type FailedCommand,
  hasEditAttempt,
  isFileChanged,
  type TouchedFile,
} from '../facts/files-and-commands.ts'
import { isTodoInProgress, type TodoItem } from '../facts/todo-list.ts'
import type { UserPrompt, UserPromptPart } from '../facts/user-prompts.ts'
import type { Policy } from '../policy/policy.ts'
import { readLastPathPart, wrapInCodeBlock } from '../text/code-in-text.ts'
import {
  type FitTextsOptions,
  fitTextsToTokens,
  formatRecordPointer,
  type RankedText,
  toOneLine,
  truncateEnd,
  truncateMiddleWithPointer,
  truncateStart,
} from '../text/truncate-text.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { MESSAGES_SECTION_NUMBER, quoteHeadings } from './summary-prompt.ts'

/** A text about one fact, in a full and perhaps a shorter form. */
export interface SummaryPiece extends RankedText {
  /** Number of the summary section that contains the piece, 1 to 9. */
  readonly section: number
  /** Position of the piece within its section, independent of the order of placing. */
  readonly order: number
  /** Names of the groups whose token limits apply to the piece, such as `files`. */
  readonly groups: readonly string[]
  /** Id by which the piece is reported if it is left out; null if it is not reported. */
  readonly id: string | null
}

/** Formats an open task for section 7, "Pending tasks". */
export function formatPendingTask(todo: TodoItem): string {
  return `- ${isTodoInProgress(todo) ? 'In work: ' : ''}${todo.text}`
}

// Pieces for section 3, "Files and code sections": each file, its reads and edits, and its last known state.

/** Groups of pieces with a token limit of their own: lines about files; texts of files. */
export const FILES_GROUP = 'files'
export const SNIPPETS_GROUP = 'snippets'
const LINE_CHARACTERS = 100
const FATE_CHARACTERS = 160
const SNIPPET_CHARACTERS = 1_200
/** Matches a variable of the shell in a path, such as `$TEST_DIR`: the log does not tell which file is meant. */
const UNRESOLVED_VARIABLE = /\$(?:\{|[A-Z_]{2})/
const TEMPORARY_PATH =
  /^(?:\/private)?\/(?:tmp|dev|var\/(?:tmp|folders))\/|[\\/]AppData[\\/]Local[\\/]Temp[\\/]/

/** Returns true for a file in a folder for temporary files, which the work rarely needs again. */
function isTemporaryPath(path: string): boolean {
  return TEMPORARY_PATH.test(path)
}

/** Creates a piece for each file, and one for the newest text of each edited file. `ranks`: lower ones are placed first. */
export function createFilePieces(
  files: readonly TouchedFile[],
  ranks: { readonly edited: number; readonly snippets: number; readonly read: number },
): readonly SummaryPiece[] {
  const named = files.filter(({ path }) => !UNRESOLVED_VARIABLE.test(path))
  const edited = named.filter((file) => hasEditAttempt(file) && !isTemporaryPath(file.path))
  const read = named.filter((file) => !edited.includes(file))
  const line = (file: TouchedFile, index: number): SummaryPiece => ({
    section: 3,
    rank: edited.includes(file) ? ranks.edited : ranks.read,
    order: 2 * index,
    full: `- ${describeTouchedFile({ ...file, time: '' })}`,
    short: `- ${file.path}${isFileChanged(file) ? ': edited' : ''}`,
    groups: [FILES_GROUP],
    id: file.path,
  })
  return [
    ...edited.map(line),
    ...edited.flatMap((file, index) => snippetPiece(file, 2 * index + 1, ranks.snippets)),
    ...read.map((file, index) => line(file, edited.length + index)),
  ]
}

/** Creates a piece with the text of a file's newest change; none if the line about the file already shows that text. */
function snippetPiece({ newestText }: TouchedFile, order: number, rank: number): readonly SummaryPiece[] {
  if (newestText === null || newestText.trim().length <= LINE_CHARACTERS) return []
  const full = wrapInCodeBlock(truncateEnd(newestText, SNIPPET_CHARACTERS))
  return [{ section: 3, rank, order, full, short: null, groups: [SNIPPETS_GROUP], id: null }]
}

/** Describes what was done to a file, and how it was left. `time`: empty to leave the time out. */
export function describeTouchedFile(file: TouchedFile): string {
  const { edits, refusedEdits, reads, linesRead, isNew, isDeleted, movedFrom, time } = file
  const made = isNew ? (edits === 1 ? 'created' : `created, ${edits} changes`) : formatTimes('edited', edits)
  const failed = `${refusedEdits} more change${refusedEdits === 1 ? '' : 's'} failed`
  const done = [
    movedFrom === null ? '' : `moved from ${movedFrom}`,
    isDeleted ? 'deleted' : edits === 0 ? '' : made,
    refusedEdits === 0 ? '' : edits === 0 ? 'an edit was tried and did not go through' : failed,
    reads === 0 ? '' : linesRead === null ? 'could not be read' : formatTimes('read', reads),
    time === '' ? '' : `last ${time}`,
  ]
  return `${file.path}: ${done.filter((part) => part !== '').join(', ')}${describeState(file)}`
}

function describeState({ names, newestText, linesRead, fate, isDeleted, edits }: TouchedFile): string {
  const line = newestText === null ? '' : toOneLine(truncateFirstLine(newestText, LINE_CHARACTERS))
  const isThere = fate === '' && !isDeleted
  const parts = [
    fate === '' ? '' : `since then ${truncateEnd(toOneLine(fate), FATE_CHARACTERS)}`,
    names.length === 0 ? '' : `defines ${names.join(', ')}`,
    line === '' || !isThere ? '' : `newest text begins: ${line}`,
    edits > 0 || linesRead === null || !isThere
      ? ''
      : `${linesRead} line${linesRead === 1 ? '' : 's'} when last read`,
  ]
  return parts.map((part) => (part === '' ? '' : `; ${part}`)).join('')
}

/** Matches a line with a word or a number, in any language, unlike a lone brace. */
const SAYING = /[\p{L}\p{N}]{2}|[\p{Lo}\p{N}]/u

/** Returns the first line with a word or a number, or else the first that is not blank, cut to `most` characters. */
function truncateFirstLine(text: string, most: number): string {
  const lines = text.split('\n').filter((given) => given.trim() !== '')
  const line = lines.find((given) => SAYING.test(given)) ?? lines[0] ?? ''
  return truncateEnd(line.trim(), most)
}

function formatTimes(verb: string, count: number): string {
  return count === 1 ? verb : `${verb} ${count} times`
}

// Pieces for section 4, "Errors and fixes": failed commands with their last error, and other failed tool calls.

export const ERRORS_GROUP = 'errors'
const COMMAND_CHARACTERS = 300
/** Maximum characters of an error in the short form of its piece. */
export const SHORT_ERROR_CHARACTERS = 150
const MOST_CHANGED_FILES = 6

/** Creates a piece for each failed command and each other failed call. `ranks`: lower ones are placed first. */
export function createErrorPieces(
  commands: readonly FailedCommand[],
  calls: readonly FailedCall[],
  ranks: { readonly open: number; readonly settled: number; readonly calls: number },
): readonly SummaryPiece[] {
  const base = { section: 4, groups: [ERRORS_GROUP] }
  return [
    ...commands.map((item, order) => ({
      ...base,
      rank: item.isSettled ? ranks.settled : ranks.open,
      order,
      full: `- \`${truncateEnd(item.command, COMMAND_CHARACTERS)}\` ${describeFailures(item)}. Its last error:\n${item.error}`,
      short: `- \`${truncateEnd(item.command, SHORT_ERROR_CHARACTERS)}\` ${describeFailures(item)}: ${truncateStart(item.error.trim(), SHORT_ERROR_CHARACTERS)}`,
      id: item.uuid,
    })),
    ...calls.map(({ tool, target, error, isRefused, uuid }, index) => ({
      ...base,
      rank: ranks.calls,
      order: commands.length + index,
      full: isRefused
        ? `- The user refused ${tool}${target === '' ? '' : `: \`${truncateEnd(target, COMMAND_CHARACTERS)}\``}`
        : `- ${tool}${target === '' ? '' : ` on ${target}`} failed:\n${error}`,
      short: null,
      id: uuid,
    })),
  ]
}

function describeFailures({ isSettled, failures, editedSince }: FailedCommand): string {
  const failed = failures === 1 ? 'failed' : `failed ${failures} times`
  const changed = shortenPaths(editedSince.slice(-MOST_CHANGED_FILES)).join(', ')
  if (isSettled)
    return `${failed} and has succeeded since${changed === '' ? '' : ` after changes to ${changed}`}`
  return `${failed} and has not succeeded since${changed === '' ? '' : `; changed since: ${changed}`}`
}

/** Shortens paths to file names; files with the same name keep their folder. */
function shortenPaths(paths: readonly string[]): readonly string[] {
  const names = paths.map(readLastPathPart)
  const short = paths.map((path, index) => {
    const name = names[index] ?? path
    const isUnique = names.indexOf(name) === names.lastIndexOf(name)
    return isUnique ? name : path.split('/').slice(-2).join('/')
  })
  return [...new Set(short)]
}

// Pieces for section 6, "All user messages", word for word; the newest and the first are placed before all others.

export const MESSAGES_GROUP = 'messages'
const SHORT_MESSAGE_CHARACTERS = 200

/** Creates one piece for each user message, newest first. The newest and the first message get `rank`, all others `rank + 1`. */
export function createUserMessagePieces(
  messages: readonly UserPrompt[],
  rank: number,
  rules: UserPromptLimits,
): readonly SummaryPiece[] {
  const texts = fitUserPrompts(messages, rules)
  const pieces = messages.map((message, index) => {
    const { uuid, isAnswered } = message
    return {
      section: 6,
      rank: index === 0 || index === messages.length - 1 || !isAnswered ? rank : rank + 1,
      order: index,
      full: `[${index + 1}] ${texts[index] ?? ''}`,
      short: isAnswered ? shortenPrompt(message, index + 1) : null,
      groups: [MESSAGES_GROUP],
      id: uuid,
    }
  })
  return pieces.toReversed()
}

/**
 * Returns the short form of a user message; null if there is none that is shorter. If a short message has a long note
 * on what it answers, only the note is left out.
 */
function shortenPrompt({ text, lead, uuid }: UserPrompt, number: number): string | null {
  if (text.length <= SHORT_MESSAGE_CHARACTERS)
    return lead.length <= SHORT_MESSAGE_CHARACTERS ? null : `[${number}] ${text}`
  return `[${number}] ${truncateEnd(`${lead}${text}`, SHORT_MESSAGE_CHARACTERS)} (${formatRecordPointer(uuid)})`
}

// Placement of summary pieces within a token budget.

export interface PlacedPieces {
  /** Texts of the placed pieces, in the order of the sections. */
  readonly placed: readonly { readonly section: number; readonly text: string }[]
  readonly leftOut: readonly SummaryPiece[]
  /** Tokens of the placed user messages. */
  readonly messageTokens: number
}

/** Places as many pieces as fit into `tokens` and the limits of their groups. */
export function fitSummaryPieces(
  pieces: readonly SummaryPiece[],
  options: FitTextsOptions<SummaryPiece>,
): PlacedPieces {
  const fitted = fitTextsToTokens(pieces, options)
  const inOrder = [...fitted].toSorted(
    ([one], [other]) => one.section - other.section || one.order - other.order,
  )
  return {
    // Lines that look like headings are quoted in all texts except the user's messages, which stay as they are.
    placed: inOrder.map(([{ section }, text]) => ({
      section,
      text: section === MESSAGES_SECTION_NUMBER ? text : quoteHeadings(text),
    })),
    leftOut: pieces.filter((piece) => !fitted.has(piece)),
    messageTokens: inOrder
      .filter(([{ groups }]) => groups.includes(MESSAGES_GROUP))
      .reduce((sum, [, text]) => sum + options.countTokens(text), 0),
  }
}

const MOST_NAMED = 3
const ID_CHARACTERS = 120

/** Formats a note on how many pieces were left out of a section, with a few of their ids for the history tool. */
export function formatLeftOutNote(missing: readonly SummaryPiece[]): readonly string[] {
  const ids = missing.flatMap(({ id }) => (id === null ? [] : [id]))
  if (ids.length === 0) return []
  const named = ids
    .slice(0, MOST_NAMED)
    .map((id) => truncateEnd(id, ID_CHARACTERS))
    .join(', ')
  return [`(${ids.length} more in the transcript: ${named}${ids.length > MOST_NAMED ? ', …' : ''})`]
}

// Cutting of user messages to a budget: only if it is short, the longest first, in the middle, with the id of the record
// that has the whole.

export interface UserPromptLimits {
  /** A user message with more tokens than this is cut in the middle. */
  readonly eachTokens: number
  /** Maximum tokens of all user messages together. Messages that the model has not answered do not count. */
  readonly totalTokens: number
  readonly estimate: Pick<Estimator, 'text'>
}

/**
 * Computes the budget of user messages in a summary. `target`: tokens of the context after the compaction; null if the
 * compaction has no target, so that only the limits of the policy apply.
 */
export function computeUserMessageBudget(
  ledger: Policy['ledger'],
  target: number | null,
): { readonly each: number; readonly total: number } {
  const share = Math.floor(((target ?? Number.POSITIVE_INFINITY) * ledger.userMessagesPercent) / 100)
  const total = Math.min(ledger.userMessagesTokens ?? share, share)
  return { each: Math.min(ledger.userMessageTokens ?? total, total), total }
}

/** No message is cut to fewer tokens than this. If that is still too much, whole messages are left out. */
const LEAST_TOKENS = 120

/**
 * Formats the user messages for a summary, in order. All are whole if they fit the budget; otherwise the longest are
 * cut in the middle to one length at which all fit.
 */
export function fitUserPrompts(
  messages: readonly UserPrompt[],
  { eachTokens, totalTokens, estimate }: UserPromptLimits,
): readonly string[] {
  const whole = messages.map(({ lead, text }) => `${lead}${text}`)
  const sizes = messages.map(({ isAnswered }, index) => (isAnswered ? estimate.text(whole[index] ?? '') : 0))
  const most = findLevel(sizes, eachTokens, totalTokens)
  return messages.map((message, index) =>
    (sizes[index] ?? 0) <= most ? (whole[index] ?? '') : cutPrompt(message, most, estimate),
  )
}

/** Returns the number of tokens to which messages must be cut so that all fit into `total`. */
function findLevel(sizes: readonly number[], each: number, total: number): number {
  const ascending = sizes.toSorted((one, other) => one - other)
  let left = total
  for (const [index, size] of ascending.entries()) {
    const level = left / (ascending.length - index)
    if (size > level) return Math.max(LEAST_TOKENS, Math.min(each, Math.floor(level)))
    left -= size
  }
  return Math.max(LEAST_TOKENS, each)
}

function cutPrompt(message: UserPrompt, tokens: number, estimate: Pick<Estimator, 'text'>): string {
  const { text, lead, uuid } = message
  const perToken = text.length / Math.max(1, estimate.text(text))
  for (let each = Math.floor((perToken * tokens) / 2); each > 0; each = Math.floor(each * 0.9) - 8) {
    const cut = `${lead}${truncateMiddleWithPointer(text, each, uuid)}`
    if (estimate.text(cut) <= tokens) return cut
  }
  return `${lead}${truncateMiddleWithPointer(text, 1, uuid)}`
}

// What a text lacks of the user's messages.

/** Checks whether a text contains a user message whole. */
export function hasUserPrompt(text: string, message: UserPrompt): boolean {
  return message.required.every((part) => hasPart(text, part, message))
}

/** Shorter texts, such as "no", may be part of other words, so they must be a whole line to be found. */
const LEAST_FOUND_ANYWHERE = 30
/** Matches the marks before an item of a list of messages: a bullet, a number, a label such as "User:". */
const LIST_ITEM_START =
  /^\s*(?:(?:[-*+>]|\d{1,3}[.)]|\[\d+\]|\*{0,2}(?:user|message|prompt|turn)(?: message)?(?: #?\d+)?\*{0,2}\s*:)\s*)*/i
/** Matches what may be on a line before a user's text, after the marks of a list. */
const BEFORE_TEXT = /^(?:Answered:\s*|Asked:\s*(?="))?["“'‘*_`]*\s*$/
/** Matches from the end of a user's text to the end of its line. */
const AFTER_TEXT = /["”'’*_`]*[^\S\n]*(?:\((?:answering|options:)[^\n]*)?(?:\n|$)/y

function hasPart(text: string, part: string, { lead }: UserPromptPart): boolean {
  if (part.length >= LEAST_FOUND_ANYWHERE || part === '') return text.includes(part)
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) {
    AFTER_TEXT.lastIndex = at + part.length
    if (!AFTER_TEXT.test(text)) continue
    const before = text.slice(0, at)
    const start = before.slice(before.lastIndexOf('\n') + 1).replace(LIST_ITEM_START, '')
    if (BEFORE_TEXT.test(start) || (lead !== '' && before.trimEnd().endsWith(lead.trimEnd()))) return true
  }
  return false
}

/** Checks whether a text refers to the record of a user message, as a message that was cut does. */
export function hasPromptPointer(text: string, { uuid }: UserPrompt): boolean {
  return text.includes(formatRecordPointer(uuid))
}

/** Shorter beginnings or ends of a message may be in a text by chance, so they do not count as kept. */
const LEAST_KEPT_CHARACTERS = 20
/** Shorter texts in quotation marks may not be quotations of the user. */
const LEAST_QUOTED_CHARACTERS = 12
const QUOTED_AT_START = /["“„«'‘`]$/
const QUOTED_AT_END = /^[.,;!?]?["”»'’`]/

/**
 * Creates a function that returns how many characters of a user message a text lacks: 0 if it has the whole message.
 * White space makes no difference, since a quoted message may be wrapped differently. `own`: the part of the text that
 * shows the record of the message itself; words of the message count anywhere in that part.
 */
export function createMissingCharacterCounter(
  text: string,
): (message: UserPromptPart, own?: string) => number {
  const dense = removeWhiteSpace(text)
  const spaced = text.replace(/[^\S\n]+/g, ' ')
  const plain = text.replace(/\s+/g, ' ')
  const hasWhole = (part: string, message: UserPromptPart): boolean =>
    part.length >= LEAST_FOUND_ANYWHERE
      ? dense.includes(removeWhiteSpace(part))
      : hasPart(text, part, message) ||
        hasPart(spaced, part.replace(/\s+/g, ' '), message) ||
        isQuoted(plain, part.replace(/\s+/g, ' '))
  return (message, own = '') => {
    if (own !== '' && message.sources.every((part) => own.includes(part))) return 0
    const missing = message.required.filter((part) => !own.includes(part) && !hasWhole(part, message))
    return missing.reduce((sum, part) => sum + countMissing(dense, part), 0)
  }
}

function removeWhiteSpace(text: string): string {
  return text.replace(/\s+/g, '')
}

function isQuoted(text: string, part: string): boolean {
  if (part.length < LEAST_QUOTED_CHARACTERS) return false
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) {
    const end = at + part.length
    if (QUOTED_AT_START.test(text.slice(at - 1, at)) && QUOTED_AT_END.test(text.slice(end, end + 2)))
      return true
  }
  return false
}

/** `dense`: the text without white space. White space inside the missing part is counted, too. */
function countMissing(dense: string, part: string): number {
  if (part.length < LEAST_FOUND_ANYWHERE) return part.length
  const characters = removeWhiteSpace(part)
  const head = countKept(dense, characters, 'beginning')
  const tail = countKept(dense, characters.slice(head), 'end')
  if (head + tail === 0) return part.length
  const places = Array.from(part.matchAll(/\S/g), ({ index }) => index)
  return (places[characters.length - tail - 1] ?? 0) - (places[head] ?? 0) + 1
}

/**
 * Returns the length of the longest beginning or end of `part` that is in the text; 0 if it is too short to count. Takes time
 * proportional to both lengths, even for repetitive texts (algorithm of Knuth, Morris and Pratt; an end is searched backwards).
 */
function countKept(text: string, part: string, side: 'beginning' | 'end'): number {
  const least = side === 'end' ? part.slice(-LEAST_KEPT_CHARACTERS) : part.slice(0, LEAST_KEPT_CHARACTERS)
  if (least.length < LEAST_KEPT_CHARACTERS || !text.includes(least)) return 0
  const readFrom = (whole: string, at: number): number =>
    whole.charCodeAt(side === 'end' ? whole.length - 1 - at : at)
  const shorter = new Int32Array(part.length)
  for (let at = 1, size = 0; at < part.length; at += 1) {
    while (size > 0 && readFrom(part, at) !== readFrom(part, size)) size = shorter[size - 1] ?? 0
    if (readFrom(part, at) === readFrom(part, size)) size += 1
    shorter[at] = size
  }
  let longest = 0
  for (let at = 0, size = 0; at < text.length && longest < part.length; at += 1) {
    while (size > 0 && readFrom(text, at) !== readFrom(part, size)) size = shorter[size - 1] ?? 0
    if (readFrom(text, at) === readFrom(part, size)) size += 1
    longest = Math.max(longest, size)
  }
  return longest
}

/** Returns what the user typed of a message, without the questions that it answers. */
export function removePromptContext({ text, context }: Pick<UserPrompt, 'text' | 'context'>): string {
  return context.reduce((left, part) => left.replaceAll(part, ''), text)
}

/** Returns a text in a form in which quotation marks, emphasis, white space and case make no difference. */
export function normalizeUserText(text: string): string {
  return text
    .toLowerCase()
    .replace(/["“”„'‘’«»‹›「」『』*_`]/g, '')
    .replace(/\s+/g, ' ')
    .trim()
}
