/** The sections that say where the work stands: what was asked, what it is done with, what is done, open and next. */
import { type TodoItem, isInProgress, isOpen } from '../log/todo-list.ts'
import type { ToolRun } from '../log/tool-calls.ts'
import { fileName } from './ledger.ts'
import { type Facts, type FailedCall, type FailingCommand, type MessageRules, type PersonMessage, type Said, type TouchedFile, isEdited, plainCommand, shownText } from './session-facts.ts'
import { beginning, ending, firstLine } from './truncate-text.ts'
import type { Estimator } from '../tokens/estimator.ts'

const QUOTE = 400
const ANSWER = 2_000
const ANSWER_SHORT = 400
const COMMANDS = 8
const CALLS = 6
const ONE_CALL = 160

interface Line {
  readonly section: number
  readonly rank: number
  readonly full: string
  readonly short?: string
}

interface WorkRanks {
  /** What the work cannot go on without: requests, open todos. */
  readonly must: number
  readonly now: number
  readonly rest: number
}

export function workPieces(facts: Facts, ranks: WorkRanks): readonly Piece[] {
  const lines = [
    ...requests(facts.messages, ranks),
    ...means(facts, ranks),
    ...outcome(facts, ranks),
    ...pending(facts, ranks),
    ...current(facts, ranks),
    ...next(facts, ranks),
  ]
  return lines.map((line, order) => ({ group: 'work', id: null, order, ...line, short: line.short ?? null }))
}

function requests(messages: readonly PersonMessage[], { must, rest }: WorkRanks): readonly Line[] {
  const first = messages[0]
  const last = messages.at(-1)
  if (first === undefined || last === undefined)
    return [{ section: 1, rank: must, full: 'No message of the person is on record.' }]
  const opened = { section: 1, rank: must, full: `- First request: ${quoted(first)}` }
  if (last === first) return [opened]
  const newest = { section: 1, rank: must, full: `- Latest message, [${messages.length}]: ${quoted(last)}` }
  const turned = messages.flatMap(({ isCorrection }, index) => (isCorrection ? [`[${index + 1}]`] : []))
  const full = `- Said after the person had stopped the model, so a change of course: ${turned.join(', ')}`
  return [opened, newest, ...(turned.length === 0 ? [] : [{ section: 1, rank: rest, full }])]
}

function quoted({ text }: PersonMessage): string {
  return `"${beginning(text.trim(), QUOTE)}"`
}

/** Commands the work uses, the most used first, and the kinds of its files. */
function means({ runs, files, clean }: Facts, { rest }: WorkRanks): readonly Line[] {
  const commands = new Map<string, { times: number; failed: boolean }>()
  for (const run of runs) {
    if (run.command === null || run.command.includes('\n')) continue
    const command = plainCommand(run.command)
    commands.set(command, { times: (commands.get(command)?.times ?? 0) + 1, failed: run.failed })
  }
  const used = [...commands]
    .filter(([, { times }]) => times > 1)
    .toSorted(([, one], [, other]) => other.times - one.times)
    .slice(0, COMMANDS)
  const kinds = new Map<string, number>()
  for (const { path } of files) {
    const kind = /\.[A-Za-z0-9]+$/.exec(fileName(path))?.[0]
    if (kind !== undefined) kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  }
  const worked = [...kinds].toSorted(([, one], [, other]) => other - one).slice(0, COMMANDS)
  const told = worked.map(([kind, count]) => `${count} ${kind}`).join(', ')
  return [
    ...(told === '' ? [] : [{ section: 2, rank: rest, full: `- Files worked with: ${told}` }]),
    ...used.map(([command, { times, failed }]) => ({
      section: 2,
      rank: rest,
      full: `- \`${beginning(clean(command), ONE_CALL)}\`: run ${times} times, last time ${failed ? 'failed' : 'succeeded'}`,
    })),
  ]
}

function outcome({ commands, todos, plan, earlier }: Facts, { rest }: WorkRanks): readonly Line[] {
  const done = todos.filter((todo) => !isOpen(todo)).map(({ text }) => `- Done: ${text}`)
  const solved = commands.filter(({ isSettled }) => isSettled).length
  const failing = commands.length - solved
  const counts =
    commands.length === 0
      ? []
      : [`- Of the commands that failed, ${solved} succeeded later and ${failing} did not (section 4).`]
  const lines = [...counts, ...done].map((full) => ({ section: 5, rank: rest, full }))
  return [
    ...lines,
    ...quotedWhole('The plan, as last written', plan, rest),
    ...quotedWhole('From an earlier summary, of records that this log does not hold', earlier, rest),
  ]
}

function quotedWhole(title: string, said: Said | null, rank: number): readonly Line[] {
  if (said === null) return []
  const { text, uuid } = said
  const full = `- ${title} (record ${uuid}):\n${beginning(text, 4 * ANSWER)}`
  return [{ section: 5, rank, full, short: `- ${title} (record ${uuid}):\n${beginning(text, ANSWER_SHORT)}` }]
}

function pending({ todos, areTodosOlder }: Facts, { must }: WorkRanks): readonly Line[] {
  const open = todos.filter(isOpen)
  const age = areTodosOlder ? ['The list is older than the latest message.'] : []
  const lines = open.map((todo) => `- ${isInProgress(todo) ? 'In work: ' : ''}${todo.text}`)
  const told = lines.length > 0 ? [...lines, ...age] : [nothingOpen(todos)]
  return told.map((full) => ({ section: 7, rank: must, full, ...shortOf(full) }))
}

/** Nobody's task is longer than this, but any text may stand there. */
function shortOf(full: string): { readonly short?: string } {
  return full.length <= QUOTE ? {} : { short: beginning(full, QUOTE) }
}

function nothingOpen(todos: readonly TodoItem[]): string {
  return todos.length === 0 ? 'No list of tasks is on record.' : 'Every task on the list is done.'
}

function current({ lastAnswer, runs, clean }: Facts, { now }: WorkRanks): readonly Line[] {
  const said =
    lastAnswer === null
      ? []
      : [
          {
            section: 8,
            rank: now,
            full: `The model's latest words:\n${beginning(lastAnswer.text.trim(), ANSWER)}`,
            short: `The model's latest words:\n${ending(lastAnswer.text.trim(), ANSWER_SHORT)}`,
          },
        ]
  const calls = runs.slice(-CALLS).map((run) => `- ${callLine(run, clean)}`)
  if (calls.length === 0) return said
  return [...said, { section: 8, rank: now, full: `The latest calls, oldest first:\n${calls.join('\n')}` }]
}

function callLine(run: ToolRun, clean: (text: string) => string): string {
  const target = run.command ?? run.touches[0]?.path ?? targetOf(run.input)
  const how = run.answeredAt === null ? 'no answer yet' : run.failed ? 'failed' : 'succeeded'
  const line = clean(target).split('\n')[0] ?? ''
  return `${run.name}${line === '' ? '' : ` ${beginning(line, ONE_CALL)}`}: ${how}`
}

function targetOf(input: unknown): string {
  if (typeof input !== 'object' || input === null) return ''
  return Object.values(input).find((value): value is string => typeof value === 'string') ?? ''
}

/** A list that is older than the latest message says nothing about what is next. */
function next({ todos, areTodosOlder, messages }: Facts, { now }: WorkRanks): readonly Line[] {
  const listed = areTodosOlder ? [] : todos.filter(isOpen)
  const task = listed.find(isInProgress) ?? listed[0]
  const last = messages.at(-1)
  const lines = [
    ...(task === undefined ? [] : [`Next on the list: ${task.text}`]),
    ...(last === undefined ? [] : [`The latest request: ${quoted(last)}`]),
  ]
  const told = lines.length === 0 ? ['Nothing is asked for: no request is on record.'] : lines
  return told.map((full) => ({ section: 9, rank: now, full }))
}

// Section 3, "Files and code sections": each file with what was done to it and its last known state.

export const FILES = 'files'
export const SNIPPETS = 'snippets'
const LINE = 100
const SNIPPET = 1_200

export function filePieces(files: readonly TouchedFile[], ranks: FileRanks): readonly Piece[] {
  const edited = files.filter(isEdited)
  const read = files.filter((file) => !isEdited(file))
  return [
    ...edited.map((file, index) => editedPiece(file, index, ranks)),
    ...edited.flatMap((file, index) => snippetPiece(file, index, ranks)),
    ...read.map((file, index) => readPiece(file, edited.length + index, ranks)),
  ]
}

interface FileRanks {
  readonly edited: number
  readonly snippets: number
  readonly read: number
}

/** What was done to a file, and the last that is known of it, in one line. */
function fileLine(file: TouchedFile): string {
  return `- ${file.path}: ${done(file)}${state(file)}`
}

function editedPiece(file: TouchedFile, index: number, ranks: FileRanks): Piece {
  return {
    section: 3,
    rank: ranks.edited,
    order: 2 * index,
    full: fileLine(file),
    short: `- ${file.path}: edited`,
    group: FILES,
    id: file.path,
  }
}

/** The text of the newest change, where a line does not hold it. */
function snippetPiece(file: TouchedFile, index: number, ranks: FileRanks): readonly Piece[] {
  if (file.put === null || file.put.trim().length <= LINE) return []
  const full = `\`\`\`\n${beginning(file.put, SNIPPET)}\n\`\`\``
  const order = 2 * index + 1
  return [{ section: 3, rank: ranks.snippets, order, full, short: null, group: SNIPPETS, id: null }]
}

function readPiece(file: TouchedFile, index: number, ranks: FileRanks): Piece {
  return {
    section: 3,
    rank: ranks.read,
    order: 2 * index,
    full: fileLine(file),
    short: `- ${file.path}`,
    group: FILES,
    id: file.path,
  }
}

function done({ edits, refusedEdits, reads, isMade }: TouchedFile): string {
  const parts = [
    edits > 0 ? `${isMade ? 'written or edited' : 'edited'} ${times(edits)}` : '',
    edits === 0 && refusedEdits > 0 ? 'an edit was tried and did not go through' : '',
    reads > 0 ? `read ${times(reads)}` : '',
  ]
  return parts.filter((part) => part !== '').join(', ')
}

function state({ put, linesRead }: TouchedFile): string {
  if (put !== null && put.trim() !== '') return `; newest text put there: ${firstLine(put, LINE)}`
  return linesRead === null ? '' : `; ${linesRead} line${linesRead === 1 ? '' : 's'} when last read`
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}

// Section 4, "Errors and fixes", and what follows from it for section 5: what is solved, and what still fails.

export const ERRORS = 'errors'
const COMMAND = 300
/** Characters of an error that is told in short. */
export const LAST_WORDS = 150
const NAMED = 6

interface ErrorRanks {
  readonly open: number
  readonly settled: number
  readonly calls: number
}

export function errorPieces(
  commands: readonly FailingCommand[],
  calls: readonly FailedCall[],
  ranks: ErrorRanks,
): readonly Piece[] {
  return [
    ...commands.map((item, index) => commandPiece(item, index, ranks)),
    ...calls.map((call, index) => callPiece(call, commands.length + index, ranks.calls)),
  ]
}

/** A command, how it stands, and the end of what it said when it last failed. */
function commandError(item: FailingCommand): string {
  return `- \`${beginning(item.command, COMMAND)}\` ${standing(item)}. Its last error:\n${item.error}`
}

function commandPiece(item: FailingCommand, index: number, ranks: ErrorRanks): Piece {
  return {
    section: 4,
    rank: item.isSettled ? ranks.settled : ranks.open,
    order: index,
    full: commandError(item),
    short: `- \`${beginning(item.command, LAST_WORDS)}\` ${standing(item)}: ${ending(item.error.trim(), LAST_WORDS)}`,
    group: ERRORS,
    id: item.uuid,
  }
}

function standing({ isSettled, failures, editedSince }: FailingCommand): string {
  const failed = failures === 1 ? 'failed' : `failed ${failures} times`
  const changed = shortNames(editedSince.slice(-NAMED)).join(', ')
  const after = changed === '' ? '' : ` after changes to ${changed}`
  if (isSettled) return `${failed} and has succeeded since${after}`
  return `${failed} and has not succeeded since${changed === '' ? '' : `; changed since: ${changed}`}`
}

/** File names; of files that share theirs, the folder as well. */
function shortNames(paths: readonly string[]): readonly string[] {
  const names = paths.map(fileName)
  const isShared = (name: string): boolean => names.indexOf(name) !== names.lastIndexOf(name)
  const told = paths.map((path, index) => {
    const name = names[index] ?? path
    return isShared(name) ? path.split('/').slice(-2).join('/') : name
  })
  return [...new Set(told)]
}

function callPiece({ tool, target, error, uuid }: FailedCall, order: number, rank: number): Piece {
  const on = target === '' ? '' : ` on ${target}`
  const full = `- ${tool}${on} failed:\n${error}`
  return { section: 4, rank, order, full, short: null, group: ERRORS, id: uuid }
}

// Section 6, "All user messages": word for word, the newest and the first before the others where room is short.

export const MESSAGES = 'messages'
const SHORT = 200

/** The newest and the first request have `rank`, the rest the next one, from new to old. */
export function messagePieces(
  messages: readonly PersonMessage[],
  rank: number,
  rules: MessageRules,
): readonly Piece[] {
  const pieces = messages.map((message, index) => messagePiece(message, index, rules))
  return pieces
    .map((piece, index) => ({ ...piece, rank: index === 0 || index === pieces.length - 1 ? rank : rank + 1 }))
    .toReversed()
}

function messagePiece(message: PersonMessage, index: number, rules: MessageRules): Omit<Piece, 'rank'> {
  const { text, uuid } = message
  const full = `[${index + 1}] ${shownText(message, rules)}`
  const short = `[${index + 1}] ${beginning(text, SHORT)} (in full in record ${uuid})`
  const isShort = text.length <= SHORT
  return { section: 6, order: index, full, short: isShort ? null : short, group: MESSAGES, id: uuid }
}

// What a summary is put together from when it has to fit: pieces with a rank, each in full or in short. The lowest
// rank goes in first, and what does not fit at all is counted, not hidden.

export interface Piece {
  /** 1 to 9: where it stands. */
  readonly section: number
  /** 0 first. Pieces of one rank are taken in the order given. */
  readonly rank: number
  /** Where it stands within its section, whatever the order it was taken in. */
  readonly order: number
  readonly full: string
  readonly short: string | null
  /** Pieces of one group share a cap. */
  readonly group: string
  /** How it is named where it is left out altogether. */
  readonly id: string | null
}

export interface Room {
  readonly total: number
  /** Tokens by group; a group that is not named has no cap of its own. */
  readonly caps: ReadonlyMap<string, number>
  readonly estimate: Pick<Estimator, 'text'>
}

export interface Fitted {
  /** In the order they stand. */
  readonly placed: readonly { readonly section: number; readonly text: string }[]
  readonly leftOut: readonly Piece[]
  readonly tokens: number
}

/** Rank by rank: first every piece in short, so that none is lost for the length of another, then in full while room lasts. */
export function fitPieces(pieces: readonly Piece[], room: Room): Fitted {
  const fill: Fill = { room, spent: new Map(), placed: new Map(), tokens: 0 }
  const ranks = [...new Set(pieces.map(({ rank }) => rank))].toSorted((one, other) => one - other)
  for (const rank of ranks) {
    const own = pieces.filter((piece) => piece.rank === rank)
    for (const piece of own) put(fill, piece, piece.short ?? piece.full)
    for (const piece of own) if (piece.short !== null) put(fill, piece, piece.full)
  }
  const leftOut = pieces.filter((piece) => !fill.placed.has(piece))
  return { placed: inPlace(fill.placed), leftOut, tokens: fill.tokens }
}

interface Fill {
  readonly room: Room
  readonly spent: Map<string, number>
  readonly placed: Map<Piece, string>
  tokens: number
}

/** In the place of what stands there of the piece, if anything does. */
function put(fill: Fill, piece: Piece, text: string): void {
  const { room, spent, placed } = fill
  const before = placed.get(piece)
  const cost = room.estimate.text(text) - (before === undefined ? 0 : room.estimate.text(before))
  if (cost > Math.min(room.total - fill.tokens, leftIn(piece.group, spent, room))) return
  fill.tokens += cost
  spent.set(piece.group, (spent.get(piece.group) ?? 0) + cost)
  placed.set(piece, text)
}

function leftIn(group: string, spent: ReadonlyMap<string, number>, room: Room): number {
  return (room.caps.get(group) ?? Number.POSITIVE_INFINITY) - (spent.get(group) ?? 0)
}

function inPlace(placed: ReadonlyMap<Piece, string>): Fitted['placed'] {
  return [...placed]
    .toSorted(([one], [other]) => one.section - other.section || one.order - other.order)
    .map(([{ section }, text]) => ({ section, text }))
}
