/**
 * Creates the pieces of a local summary, each a text about one fact, and fits them into a token budget. Also used to
 * repair a model's summary by adding the facts it lacks.
 */
import { isOpenTodo, isTodoInProgress, type TodoItem } from '../log/todo-list.ts'
import type { ToolRun } from '../log/tool-calls.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { toFileName } from './ledger.ts'
import {
  type FailedCall,
  type FailingCommand,
  isFileEdited,
  normalizeCommand,
  type RecordText,
  type SessionFacts,
  type TouchedFile,
} from './session-facts.ts'
import { truncateEnd, truncateFirstLine, truncateStart } from './truncate-text.ts'
import { formatUserPrompts, type UserPrompt, type UserPromptLimits } from './user-messages.ts'

export interface SummaryPiece {
  /** Number of the summary section that contains the piece, 1 to 9. */
  readonly section: number
  /** Pieces with a lower rank are placed first; pieces of the same rank in array order. */
  readonly rank: number
  /** Position of the piece within its section, independent of the order of placing. */
  readonly order: number
  readonly full: string
  readonly short: string | null
  /** Name of the group of pieces that share one token limit. */
  readonly group: string
  /** Id by which the piece is reported if it is left out; null if it is not reported. */
  readonly id: string | null
}

// Pieces for sections 1, 2, 5, 7, 8 and 9: requests, repeated commands, results, open tasks, current work, next step.

const QUOTE_CHARACTERS = 400
const ANSWER_CHARACTERS = 2_000
const SHORT_ANSWER_CHARACTERS = 400
const MOST_COMMANDS = 8
const MOST_CALLS = 6
const CALL_CHARACTERS = 160

type WorkPiece = Pick<SummaryPiece, 'section' | 'rank' | 'full'> & { readonly short?: string }

interface WorkRanks {
  /** Rank of the facts without which the work cannot continue: requests and open todos. */
  readonly must: number
  readonly now: number
  readonly rest: number
}

export function createWorkPieces(facts: SessionFacts, ranks: WorkRanks): readonly SummaryPiece[] {
  const pieces = [
    ...requestPieces(facts.messages, ranks),
    ...conceptPieces(facts, ranks),
    ...resultPieces(facts, ranks),
    ...pendingPieces(facts, ranks),
    ...currentWorkPieces(facts, ranks),
    ...nextStepPieces(facts, ranks),
  ]
  return pieces.map((piece, order) => ({
    group: 'work',
    id: null,
    order,
    ...piece,
    short: piece.short ?? null,
  }))
}

function requestPieces(messages: readonly UserPrompt[], { must, rest }: WorkRanks): readonly WorkPiece[] {
  const first = messages[0]
  const last = messages.at(-1)
  if (first === undefined || last === undefined)
    return [{ section: 1, rank: must, full: 'The log has no message of the user.' }]
  const opening = { section: 1, rank: must, full: `- First request: ${quote(first)}` }
  if (last === first) return [opening]
  const newest = { section: 1, rank: must, full: `- Latest message, [${messages.length}]: ${quote(last)}` }
  const corrections = messages.flatMap(({ isCorrection }, index) => (isCorrection ? [`[${index + 1}]`] : []))
  const full = `- Written after the user had stopped the model, so a change of course: ${corrections.join(', ')}`
  return [opening, newest, ...(corrections.length === 0 ? [] : [{ section: 1, rank: rest, full }])]
}

function quote({ text }: UserPrompt): string {
  return `"${truncateEnd(text.trim(), QUOTE_CHARACTERS)}"`
}

/** Lists the commands that were run more than once, most used first, and the extensions of the touched files. */
function conceptPieces({ runs, files, clean }: SessionFacts, { rest }: WorkRanks): readonly WorkPiece[] {
  const commands = new Map<string, { times: number; failed: boolean }>()
  for (const run of runs) {
    if (run.command === null || run.command.includes('\n') || run.refused) continue
    const command = normalizeCommand(run.command)
    commands.set(command, { times: (commands.get(command)?.times ?? 0) + 1, failed: run.failed })
  }
  const repeated = [...commands]
    .filter(([, { times }]) => times > 1)
    .toSorted(([, one], [, other]) => other.times - one.times)
    .slice(0, MOST_COMMANDS)
  const extensions = new Map<string, number>()
  for (const { path } of files) {
    const extension = /\.[A-Za-z0-9]+$/.exec(toFileName(path))?.[0]
    if (extension !== undefined) extensions.set(extension, (extensions.get(extension) ?? 0) + 1)
  }
  const counts = [...extensions].toSorted(([, one], [, other]) => other - one).slice(0, MOST_COMMANDS)
  const kinds = counts.map(([extension, count]) => `${count} ${extension}`).join(', ')
  const lines = [
    ...(kinds === '' ? [] : [`- Files worked with: ${kinds}`]),
    ...repeated.map(
      ([command, { times, failed }]) =>
        `- \`${truncateEnd(clean(command), CALL_CHARACTERS)}\`: run ${times} times, last time ${failed ? 'failed' : 'succeeded'}`,
    ),
  ]
  return lines.map((full) => ({ section: 2, rank: rest, full }))
}

function resultPieces(
  { commands, todos, plan, earlierSummary }: SessionFacts,
  { rest }: WorkRanks,
): readonly WorkPiece[] {
  const done = todos.filter((todo) => !isOpenTodo(todo)).map(({ text }) => `- Done: ${text}`)
  const solved = commands.filter(({ isSettled }) => isSettled).length
  const failing = commands.length - solved
  const counts =
    commands.length === 0
      ? []
      : [`- Of the commands that failed, ${solved} succeeded later and ${failing} did not (section 4).`]
  return [
    ...[...counts, ...done].map((full) => ({ section: 5, rank: rest, full })),
    ...quoteWhole('The plan, as last written', plan, rest),
    ...quoteWhole('From an earlier summary, of records that this log does not hold', earlierSummary, rest),
  ]
}

function quoteWhole(title: string, source: RecordText | null, rank: number): readonly WorkPiece[] {
  if (source === null) return []
  const head = `- ${title} (record ${source.uuid}):\n`
  const full = `${head}${truncateEnd(source.text, 4 * ANSWER_CHARACTERS)}`
  return [{ section: 5, rank, full, short: `${head}${truncateEnd(source.text, SHORT_ANSWER_CHARACTERS)}` }]
}

function pendingPieces({ todos, areTodosOlder }: SessionFacts, { must }: WorkRanks): readonly WorkPiece[] {
  const open = todos.filter(isOpenTodo)
  const age = areTodosOlder ? ['The list is older than the latest message.'] : []
  const none = todos.length === 0 ? 'No list of tasks is on record.' : 'Every task on the list is done.'
  const lines = open.length > 0 ? [...open.map(formatTask), ...age] : [none]
  return lines.map((full) => ({
    section: 7,
    rank: must,
    full,
    ...(full.length <= QUOTE_CHARACTERS ? {} : { short: truncateEnd(full, QUOTE_CHARACTERS) }),
  }))
}

export function formatTask(todo: TodoItem): string {
  return `- ${isTodoInProgress(todo) ? 'In work: ' : ''}${todo.text}`
}

function currentWorkPieces(
  { lastAnswer, runs, clean }: SessionFacts,
  { now }: WorkRanks,
): readonly WorkPiece[] {
  const pieces: WorkPiece[] = []
  if (lastAnswer !== null) {
    const [head, text] = ["The model's latest words:\n", lastAnswer.text.trim()]
    const full = `${head}${truncateEnd(text, ANSWER_CHARACTERS)}`
    pieces.push({
      section: 8,
      rank: now,
      full,
      short: `${head}${truncateStart(text, SHORT_ANSWER_CHARACTERS)}`,
    })
  }
  const calls = runs.slice(-MOST_CALLS).map((run) => `- ${formatCall(run, clean)}`)
  const full = `The latest calls, oldest first:\n${calls.join('\n')}`
  return calls.length === 0 ? pieces : [...pieces, { section: 8, rank: now, full }]
}

function formatCall(run: ToolRun, clean: (text: string) => string): string {
  const target = run.command ?? run.touches[0]?.path ?? findFirstString(run.input)
  const end = run.refused ? 'refused by the user' : run.failed ? 'failed' : 'succeeded'
  const how = run.resultIndex === null ? 'no answer yet' : end
  const line = clean(target).split('\n')[0] ?? ''
  return `${run.name}${line === '' ? '' : ` ${truncateEnd(line, CALL_CHARACTERS)}`}: ${how}`
}

function findFirstString(input: unknown): string {
  if (typeof input !== 'object' || input === null) return ''
  return Object.values(input).find((value): value is string => typeof value === 'string') ?? ''
}

/** Creates the pieces about the next step. Ignores a todo list that is older than the latest user message. */
function nextStepPieces(
  { todos, areTodosOlder, messages }: SessionFacts,
  { now }: WorkRanks,
): readonly WorkPiece[] {
  const listed = areTodosOlder ? [] : todos.filter(isOpenTodo)
  const task = listed.find(isTodoInProgress) ?? listed[0]
  const last = messages.at(-1)
  const lines = [
    ...(task === undefined ? [] : [`Next on the list: ${task.text}`]),
    ...(last === undefined ? [] : [`The latest request: ${quote(last)}`]),
  ]
  const shown = lines.length === 0 ? ['Nothing is asked for: no request is on record.'] : lines
  return shown.map((full) => ({ section: 9, rank: now, full }))
}

// Pieces for section 3, "Files and code sections": each file, its reads and edits, and its last known state.

export const FILES_GROUP = 'files'
export const SNIPPETS_GROUP = 'snippets'
const LINE_CHARACTERS = 100
const SNIPPET_CHARACTERS = 1_200

export function createFilePieces(
  files: readonly TouchedFile[],
  ranks: { readonly edited: number; readonly snippets: number; readonly read: number },
): readonly SummaryPiece[] {
  const edited = files.filter(isFileEdited)
  const read = files.filter((file) => !isFileEdited(file))
  const line = (file: TouchedFile, index: number): SummaryPiece => ({
    section: 3,
    rank: isFileEdited(file) ? ranks.edited : ranks.read,
    order: 2 * index,
    full: `- ${file.path}: ${describeTouches(file)}${describeState(file)}`,
    short: `- ${file.path}${isFileEdited(file) ? ': edited' : ''}`,
    group: FILES_GROUP,
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
  const full = `\`\`\`\n${truncateEnd(newestText, SNIPPET_CHARACTERS)}\n\`\`\``
  return [{ section: 3, rank, order, full, short: null, group: SNIPPETS_GROUP, id: null }]
}

function describeTouches({ edits, refusedEdits, reads, isCreated }: TouchedFile): string {
  const parts = [
    edits > 0 ? `${isCreated ? 'written or edited' : 'edited'} ${formatTimes(edits)}` : '',
    edits === 0 && refusedEdits > 0 ? 'an edit was tried and did not go through' : '',
    reads > 0 ? `read ${formatTimes(reads)}` : '',
  ]
  return parts.filter((part) => part !== '').join(', ')
}

function describeState({ newestText, linesRead }: TouchedFile): string {
  if (newestText !== null && newestText.trim() !== '')
    return `; newest text put there: ${truncateFirstLine(newestText, LINE_CHARACTERS)}`
  return linesRead === null ? '' : `; ${linesRead} line${linesRead === 1 ? '' : 's'} when last read`
}

function formatTimes(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}

// Pieces for section 4, "Errors and fixes": failed commands with their last error, and other failed tool calls.

export const ERRORS_GROUP = 'errors'
const COMMAND_CHARACTERS = 300
/** Maximum characters of an error in the short form of its piece. */
export const SHORT_ERROR_CHARACTERS = 150
const MOST_CHANGED_FILES = 6

export function createErrorPieces(
  commands: readonly FailingCommand[],
  calls: readonly FailedCall[],
  ranks: { readonly open: number; readonly settled: number; readonly calls: number },
): readonly SummaryPiece[] {
  const base = { section: 4, group: ERRORS_GROUP }
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

function describeFailures({ isSettled, failures, editedSince }: FailingCommand): string {
  const failed = failures === 1 ? 'failed' : `failed ${failures} times`
  const changed = shortenPaths(editedSince.slice(-MOST_CHANGED_FILES)).join(', ')
  if (isSettled)
    return `${failed} and has succeeded since${changed === '' ? '' : ` after changes to ${changed}`}`
  return `${failed} and has not succeeded since${changed === '' ? '' : `; changed since: ${changed}`}`
}

/** Shortens paths to file names; files with the same name keep their folder. */
function shortenPaths(paths: readonly string[]): readonly string[] {
  const names = paths.map(toFileName)
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
export function createMessagePieces(
  messages: readonly UserPrompt[],
  rank: number,
  rules: UserPromptLimits,
): readonly SummaryPiece[] {
  const texts = formatUserPrompts(messages, rules)
  const pieces = messages.map(({ text, lead, uuid, isAnswered }, index) => {
    const short = `[${index + 1}] ${truncateEnd(`${lead}${text}`, SHORT_MESSAGE_CHARACTERS)} (in full in record ${uuid})`
    return {
      section: 6,
      rank: index === 0 || index === messages.length - 1 || !isAnswered ? rank : rank + 1,
      order: index,
      full: `[${index + 1}] ${texts[index] ?? ''}`,
      short: !isAnswered || lead.length + text.length <= SHORT_MESSAGE_CHARACTERS ? null : short,
      group: MESSAGES_GROUP,
      id: uuid,
    }
  })
  return pieces.toReversed()
}

// Placement of summary pieces within a token budget.

export interface PlacedPieces {
  /** Texts of the placed pieces, in the order of the sections. */
  readonly placed: readonly { readonly section: number; readonly text: string }[]
  readonly leftOut: readonly SummaryPiece[]
  readonly tokens: number
}

interface PieceBudget {
  readonly total: number
  /** Maximum tokens of each group of pieces; a group that is not listed has no limit. */
  readonly caps: ReadonlyMap<string, number>
  readonly estimate: Pick<Estimator, 'text'>
}

/**
 * Places pieces rank by rank. Within a rank, all pieces are placed in short form first, so that no long piece displaces
 * another; then each is replaced by its full form while tokens last.
 */
export function fitSummaryPieces(
  pieces: readonly SummaryPiece[],
  { total, caps, estimate }: PieceBudget,
): PlacedPieces {
  const placed = new Map<SummaryPiece, string>()
  const spent = new Map<string, number>()
  let tokens = 0
  const put = (piece: SummaryPiece, text: string): void => {
    const before = placed.get(piece)
    const cost = estimate.text(text) - (before === undefined ? 0 : estimate.text(before))
    const used = spent.get(piece.group) ?? 0
    const left = (caps.get(piece.group) ?? Number.POSITIVE_INFINITY) - used
    if (cost > Math.min(total - tokens, left)) return
    tokens += cost
    spent.set(piece.group, used + cost)
    placed.set(piece, text)
  }
  const ranks = [...new Set(pieces.map(({ rank }) => rank))].toSorted((one, other) => one - other)
  for (const rank of ranks) {
    const own = pieces.filter((piece) => piece.rank === rank)
    for (const piece of own) put(piece, piece.short ?? piece.full)
    for (const piece of own) if (piece.short !== null) put(piece, piece.full)
  }
  const inOrder = [...placed].toSorted(
    ([one], [other]) => one.section - other.section || one.order - other.order,
  )
  return {
    placed: inOrder.map(([{ section }, text]) => ({ section, text })),
    leftOut: pieces.filter((piece) => !placed.has(piece)),
    tokens,
  }
}
