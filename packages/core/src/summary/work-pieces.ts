/**
 * Creates the pieces of a local summary about the work: requests, repeated commands, results, what the model decided and
 * found, open tasks, the work in hand, the next step.
 */

import type { AssistantText } from '../facts/model-texts.ts'
import type { RecordText, SessionFacts } from '../facts/session-facts.ts'
import { isReadOnlyOrTemporaryCommand } from '../facts/shell-commands.ts'
import { isOpenTodo, isTodoInProgress } from '../facts/todo-list.ts'
import { isUnsuccessfulStatus, type ToolRun } from '../facts/tool-runs.ts'
import type { UserPrompt } from '../facts/user-prompts.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import { closeCodeBlock, removeCodeBlocks, toBlockQuote, wrapInCodeBlock } from '../text/code-in-text.ts'
import { truncateEnd, truncateStart } from '../text/truncate-text.ts'
import { OLDER_LIST_NOTE } from './repair-summary.ts'
import { formatPendingTask, type SummaryPiece } from './summary-pieces.ts'

const QUOTE_CHARACTERS = 400
const SHORT_QUOTE_CHARACTERS = 160
const ANSWER_CHARACTERS = 8_000
const SHORT_ANSWER_CHARACTERS = 400
const MOST_COMMANDS = 8
const RESULT_CHARACTERS = 4_000
const CALL_CHARACTERS = 160

type WorkPiece = Pick<SummaryPiece, 'section' | 'rank' | 'full'> & { readonly short?: string }

interface WorkRanks {
  /** Rank of the first request and the latest message, which even the smallest summary has. */
  readonly requests: number
  /** Rank of the other facts without which the work cannot continue: open todos. */
  readonly must: number
  readonly now: number
  readonly rest: number
  /** Rank of the newest tool result; older results have higher ranks. Results fill the tokens that all other facts leave free. */
  readonly last: number
}

/** Creates the pieces about the work. Nothing is cut to a budget yet. */
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
    groups: [],
    id: null,
    order,
    ...piece,
    short: piece.short ?? null,
  }))
}

// What is pinned or came later is kept verbatim, and is not in the part of the log that is summarized.
const NO_MESSAGE =
  'No message of the user is summarized here; those that are pinned or newer stand in the conversation itself.'
const NO_REQUEST =
  'No request is summarized here: go by the messages of the user in the conversation, if there are any.'

/** Checks whether the user or an agent wrote the message. A tool's result that only reads like the user's is no request. */
function isRequest({ author }: UserPrompt): boolean {
  return author.kind !== 'tool'
}

function requestPieces(messages: readonly UserPrompt[], { requests, rest }: WorkRanks): readonly WorkPiece[] {
  const first = messages.find(isRequest)
  const last = messages.findLast(isRequest)
  if (first === undefined || last === undefined) return [{ section: 1, rank: requests, full: NO_MESSAGE }]
  const opening = createRequestPiece('First request', first, requests)
  if (last === first) return [opening]
  const newest = createRequestPiece(`Latest message, [${messages.indexOf(last) + 1}]`, last, requests)
  const corrections = messages.flatMap(({ isCorrection }, index) => (isCorrection ? [`[${index + 1}]`] : []))
  const full = `- Written after the user had stopped the model, so a change of course: ${corrections.join(', ')}`
  return [opening, newest, ...(corrections.length === 0 ? [] : [{ section: 1, rank: rest, full }])]
}

function createRequestPiece(title: string, message: UserPrompt, rank: number): WorkPiece {
  const full = `- ${title}: ${quote(message)}`
  const short = `- ${title}: ${quote(message, SHORT_QUOTE_CHARACTERS)}`
  return { section: 1, rank, full, ...(short.length < full.length ? { short } : {}) }
}

/** Quotes a message together with what it answers, because "yes" alone says nothing. */
function quote({ lead, text }: UserPrompt, most: number = QUOTE_CHARACTERS): string {
  return `${lead}"${truncateEnd(text.trim(), most)}"`
}

/** Lists the commands that were run more than once, most used first. */
function conceptPieces({ commands }: SessionFacts, { rest }: WorkRanks): readonly WorkPiece[] {
  const used = new Map<string, { readonly times: number; readonly failed: boolean }>()
  for (const { variant, runs, status } of commands.toReversed())
    used.set(variant, { times: (used.get(variant)?.times ?? 0) + runs, failed: isUnsuccessfulStatus(status) })
  const repeated = [...used]
    .filter(([command, { times }]) => times > 1 && !isReadOnlyOrTemporaryCommand(command))
    .toSorted(([, one], [, other]) => other.times - one.times)
    .slice(0, MOST_COMMANDS)
  const lines = repeated.map(
    ([command, { times, failed }]) =>
      `- \`${truncateEnd(command, CALL_CHARACTERS)}\`: run ${times} times, last time ${failed ? 'failed' : 'succeeded'}`,
  )
  return lines.map((full) => ({ section: 2, rank: rest, full }))
}

function resultPieces(
  { failures, todos, plan, earlierSummary }: SessionFacts,
  { rest }: WorkRanks,
): readonly WorkPiece[] {
  const done = todos.filter((todo) => !isOpenTodo(todo)).map(({ text }) => `- Done: ${text}`)
  const solved = failures.filter(({ isSettled }) => isSettled).length
  const failing = failures.length - solved
  const counts =
    failures.length === 0
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
  const write = (most: number): string => `${head}${toBlockQuote(truncateText(source.text, most))}`
  return [{ section: 5, rank, full: write(ANSWER_CHARACTERS), short: write(SHORT_ANSWER_CHARACTERS) }]
}

function pendingPieces({ todos, areTodosOlder }: SessionFacts, { must }: WorkRanks): readonly WorkPiece[] {
  const open = todos.filter(isOpenTodo)
  const age = areTodosOlder ? [OLDER_LIST_NOTE] : []
  const none = todos.length === 0 ? 'No list of tasks is on record.' : 'Every task on the list is done.'
  const lines = open.length > 0 ? [...open.map(formatPendingTask), ...age] : [none]
  return lines.map((full) => ({
    section: 7,
    rank: must,
    full,
    ...(full.length <= QUOTE_CHARACTERS ? {} : { short: truncateEnd(full, QUOTE_CHARACTERS) }),
  }))
}

/** Creates the pieces of section 8: the model's latest text, the latest calls, and their results. */
function currentWorkPieces(
  { texts, calls, results, clean }: SessionFacts,
  { now, last }: WorkRanks,
): readonly WorkPiece[] {
  const pieces: WorkPiece[] = []
  const latest = texts.at(-1)
  if (latest !== undefined) {
    const head = "The model's latest words:\n"
    const full = `${head}${toBlockQuote(truncateText(latest.text, ANSWER_CHARACTERS))}`
    const short = `${head}${toBlockQuote(truncateStart(removeCodeBlocks(latest.text), SHORT_ANSWER_CHARACTERS))}`
    pieces.push({ section: 8, rank: now, full, short })
  }
  const lines = calls.map((run) => `- ${formatCall(run, clean)}`)
  if (lines.length > 0)
    pieces.push({ section: 8, rank: now, full: `The latest calls, oldest first:\n${lines.join('\n')}` })
  return [
    ...pieces,
    ...results.map((run, index) => ({
      section: 8,
      rank: last + (results.length - index) / results.length,
      full: `Result of ${formatCall(run, clean)}:\n${wrapInCodeBlock(truncateStart(clean(run.result).trim(), RESULT_CHARACTERS))}`,
    })),
  ]
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
  { todos, areTodosOlder, messages, replyPlace }: SessionFacts,
  { now }: WorkRanks,
): readonly WorkPiece[] {
  const listed = areTodosOlder ? [] : todos.filter(isOpenTodo)
  const task = listed.find(isTodoInProgress) ?? listed[0]
  const last = messages.findLast(isRequest)
  const lines = [
    ...(task === undefined ? [] : [`Next on the list: ${task.text}`]),
    ...(last === undefined ? [] : [describeRequest(last, replyPlace > last.place)]),
  ]
  const shown = lines.length === 0 ? [NO_REQUEST] : lines
  return shown.map((full) => ({ section: 9, rank: now, full }))
}

function describeRequest(last: UserPrompt, isReplied: boolean): string {
  if (!isReplied) return `The latest request, in progress: ${quote(last)}`
  return `The latest request: ${quote(last)}. The model has replied to it (section 8).`
}

// What the model decided and found, in its own words. Texts since the last but one message of the user come first, then
// the longest and newest. As many as fit are shown in full, and of the others only the beginning.

export const FINDINGS_GROUP = 'findings'
const SHORTEST_FINDING = 80
const SHORT_FINDING_CHARACTERS = 300
/** Added to the age of a text, counted in texts, when the newest and longest are chosen. */
const NEAR_TEXTS = 10

/**
 * Creates the pieces with the texts of the model, except the latest one, which section 8 has. Texts of the latest two
 * exchanges get rank `recent` and form a group with a limit; the others get ranks from `older` to less than `older + 1`.
 */
export function* createFindingPieces(
  { texts, messages }: SessionFacts,
  ranks: { readonly recent: number; readonly older: number },
): WorkInSteps<readonly SummaryPiece[]> {
  const found = texts.slice(0, -1).filter(({ text }) => text.length >= SHORTEST_FINDING)
  const recent = messages.at(-2)?.place ?? messages.at(-1)?.place ?? -1
  const weighed = found
    .map((one, index) => ({ one, weight: one.text.length / (found.length - index + NEAR_TEXTS) }))
    .toSorted((a, b) => b.weight - a.weight || b.one.place - a.one.place)
  const pieces: SummaryPiece[] = []
  for (const [index, { one }] of weighed.entries()) {
    const isRecent = one.place > recent
    const head = `- ${describePlace(one, messages)}\n`
    const full = `${head}${toBlockQuote(closeCodeBlock(one.text))}`
    const short = `${head}${toBlockQuote(truncateEnd(removeCodeBlocks(one.text), SHORT_FINDING_CHARACTERS))}`
    pieces.push({
      section: 5,
      rank: isRecent ? ranks.recent : ranks.older + index / weighed.length,
      order: FIRST_FINDING + one.place,
      full,
      short: short.length < full.length ? short : null,
      groups: isRecent ? [FINDINGS_GROUP] : [],
      id: one.uuid,
    })
    yield full.length
  }
  return pieces
}

/** Position of the first text of the model within its section, after all other pieces. */
const FIRST_FINDING = 1_000_000

function describePlace({ place }: AssistantText, messages: readonly UserPrompt[]): string {
  const after = messages.findLastIndex((message) => message.place < place)
  return `The model${after === -1 ? '' : `, after [${after + 1}]`}:`
}

/** Cuts a text at its end and closes a code block that the cut left open. */
function truncateText(text: string, most: number): string {
  return closeCodeBlock(truncateEnd(text, most))
}
