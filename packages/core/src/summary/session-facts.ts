/**
 * Extracts from the log, by fixed rules, the facts that a summary must not lose: user messages, files, errors, todos.
 * Always reads the whole log up to the cut, so that repeated compactions lose nothing. An earlier summary is quoted
 * only if its records are missing from the log.
 */

import { isTextBlock, toBlocks } from '../log/block.ts'
import { isSyntheticError, type KnownRecord, readUserTypedText } from '../log/record.ts'
import { readTodoList, type TodoItem } from '../log/todo-list.ts'
import { type FileTouch, listToolRuns, type ToolRun } from '../log/tool-calls.ts'
import { sliceText } from '../log/well-formed-text.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { redact } from './redact.ts'
import { truncateMiddle } from './truncate-text.ts'

export interface SessionFacts {
  readonly messages: readonly UserPrompt[]
  readonly files: readonly TouchedFile[]
  readonly commands: readonly FailingCommand[]
  readonly failedCalls: readonly FailedCall[]
  readonly todos: readonly TodoItem[]
  /** True if the user has written a message since the todo list was last changed. */
  readonly areTodosOlder: boolean
  readonly plan: RecordText | null
  /** The model's newest text; null if the model has written none. */
  readonly lastAnswer: RecordText | null
  readonly runs: readonly ToolRun[]
  /** The summary at the start of a log whose earlier records are missing; null if there is none. */
  readonly earlierSummary: RecordText | null
  readonly clean: (text: string) => string
}

export interface RecordText {
  readonly text: string
  readonly uuid: string
}

/**
 * Extracts the facts from `history`, the records that a summary replaces. `clean` removes credentials from every text.
 */
export function extractSessionFacts(
  history: readonly KnownRecord[],
  clean: (text: string) => string = redact,
): SessionFacts {
  const runs = listToolRuns(history)
  const messages = collectUserPrompts(history, clean)
  const list = readTodoList(runs)
  return {
    messages,
    files: collectTouchedFiles(runs, clean),
    commands: collectFailingCommands(runs, clean),
    failedCalls: collectFailedCalls(runs, clean),
    todos: (list?.items ?? []).map((item) => ({ ...item, text: clean(item.text) })),
    areTodosOlder: (messages.at(-1)?.place ?? -1) > (list?.callIndex ?? -1),
    plan: findPlan(history, runs, clean),
    lastAnswer: findLastAnswer(history, clean),
    runs,
    earlierSummary: findEarlierSummary(history, clean),
    clean,
  }
}

function findPlan(
  history: readonly KnownRecord[],
  runs: readonly ToolRun[],
  clean: (text: string) => string,
): RecordText | null {
  const attached = history.findLast(
    (record) => record.type === 'attachment' && typeof record.attachment.planContent === 'string',
  )
  if (attached?.type === 'attachment')
    return { text: clean(String(attached.attachment.planContent)), uuid: attached.uuid }
  const run = runs.findLast(({ input }) => readPlan(input) !== null)
  return run === undefined ? null : { text: clean(readPlan(run.input) ?? ''), uuid: run.uuid }
}

function readPlan(input: unknown): string | null {
  const plan = typeof input === 'object' && input !== null && 'plan' in input ? input.plan : null
  return typeof plan === 'string' && plan.trim() !== '' ? plan : null
}

function findLastAnswer(history: readonly KnownRecord[], clean: (text: string) => string): RecordText | null {
  const record = history.findLast(
    (one) => one.type === 'assistant' && !isSyntheticError(one) && readText(one).trim() !== '',
  )
  return record === undefined ? null : { text: clean(readText(record)), uuid: record.uuid }
}

function findEarlierSummary(
  history: readonly KnownRecord[],
  clean: (text: string) => string,
): RecordText | null {
  const first = history.find((record) => record.type === 'user' || record.type === 'assistant')
  if (first?.isCompactSummary !== true) return null
  return { text: clean(readText(first)), uuid: first.uuid }
}

function readText(record: KnownRecord): string {
  if (record.type !== 'user' && record.type !== 'assistant') return ''
  return toBlocks(record.message.content)
    .flatMap((block) => (isTextBlock(block) ? [block.text] : []))
    .join('\n')
}

// User messages are quoted word for word in a summary, so that the user's intent does not drift.

export interface UserPrompt {
  readonly uuid: string
  readonly place: number
  /** The user's text verbatim, except that credentials are removed. */
  readonly text: string
  /** True if the user wrote the message after interrupting the model, which indicates a change of course. */
  readonly isCorrection: boolean
}

const INTERRUPTION = /^\s*\[Request interrupted/

function collectUserPrompts(
  history: readonly KnownRecord[],
  clean: (text: string) => string,
): readonly UserPrompt[] {
  const messages: UserPrompt[] = []
  let isCorrection = false
  history.forEach((record, place) => {
    const typed = readUserTypedText(record)
    if (typed !== null) messages.push({ uuid: record.uuid, place, text: clean(typed), isCorrection })
    if (typed !== null || record.type === 'assistant') isCorrection = false
    if (isInterruption(record)) isCorrection = true
  })
  return messages
}

function isInterruption(record: KnownRecord): boolean {
  if (record.type !== 'user' || record.isMeta === true) return false
  return toBlocks(record.message.content).some((block) => isTextBlock(block) && INTERRUPTION.test(block.text))
}

/** A user message longer than this is cut in the middle; `PROMPT_END_CHARACTERS` remain at each end. */
const LONG_PROMPT_CHARACTERS = 4_000
const PROMPT_END_CHARACTERS = 500

export interface UserPromptLimits {
  /** A user message with more tokens than this is cut in the middle. */
  readonly eachTokens: number
  readonly estimate: Pick<Estimator, 'text'>
}

/** Formats a user message for a summary: the whole text, or both ends of a long one with the id of its record. */
export function formatUserPrompt(message: UserPrompt, rules: UserPromptLimits): string {
  return isLongPrompt(message, rules)
    ? truncateMiddle(message.text, PROMPT_END_CHARACTERS, message.uuid)
    : message.text
}

/**
 * Lists the texts that a summary must contain to cover a user message: the whole text, or both ends of a long one and
 * its id.
 */
export function listRequiredTexts(message: UserPrompt, rules: UserPromptLimits): readonly string[] {
  const text = message.text.trim()
  if (!isLongPrompt(message, rules) || text.length <= 2 * PROMPT_END_CHARACTERS) return [text]
  return [sliceText(text, 0, PROMPT_END_CHARACTERS), sliceText(text, -PROMPT_END_CHARACTERS), message.uuid]
}

function isLongPrompt({ text }: UserPrompt, { eachTokens, estimate }: UserPromptLimits): boolean {
  return text.trim().length > LONG_PROMPT_CHARACTERS || estimate.text(text) > eachTokens
}

// Touched files, with the reads and edits of each and its last known state.

export interface TouchedFile {
  readonly path: string
  /** Number of successful edits. Refused edits are counted apart and also make the file part of the work. */
  readonly edits: number
  readonly refusedEdits: number
  readonly reads: number
  readonly isCreated: boolean
  /** Index of the newest tool call that read or edited the file; `uuid` is that call's record. */
  readonly place: number
  readonly uuid: string
  /** Text that the newest edit inserted; null if no tool call contains it. */
  readonly newestText: string | null
  /** Number of lines in the newest successful read; null if there was none. */
  readonly linesRead: number | null
}

/** Collects the files that tool calls read or edited, most recently touched first. */
function collectTouchedFiles(
  runs: readonly ToolRun[],
  clean: (text: string) => string,
): readonly TouchedFile[] {
  const files = new Map<string, TouchedFile>()
  for (const run of runs) {
    for (const touch of run.touches) {
      const before = files.get(touch.path) ?? { ...NO_TOUCHES, path: touch.path }
      files.set(touch.path, withTouch(before, touch, run))
    }
  }
  const cleaned = [...files.values()].map((file) => ({
    ...file,
    path: clean(file.path),
    newestText: file.newestText === null ? null : clean(file.newestText),
  }))
  return cleaned.toSorted((one, other) => other.place - one.place || (one.path < other.path ? -1 : 1))
}

export function isFileEdited({ edits, refusedEdits }: TouchedFile): boolean {
  return edits + refusedEdits > 0
}

const NO_TOUCHES: Omit<TouchedFile, 'path'> = {
  edits: 0,
  refusedEdits: 0,
  reads: 0,
  isCreated: false,
  place: 0,
  uuid: '',
  newestText: null,
  linesRead: null,
}

function withTouch(file: TouchedFile, { action, newText }: FileTouch, run: ToolRun): TouchedFile {
  const touched = { ...file, place: run.callIndex, uuid: run.uuid }
  if (action === 'read')
    return {
      ...touched,
      reads: file.reads + 1,
      linesRead: run.failed ? file.linesRead : countLines(run.result),
    }
  if (run.failed) return { ...touched, refusedEdits: file.refusedEdits + 1 }
  return {
    ...touched,
    edits: file.edits + 1,
    isCreated: file.isCreated || action === 'write',
    newestText: newText ?? file.newestText,
  }
}

function countLines(text: string): number {
  return text === '' ? 0 : text.replace(/\n$/, '').split('\n').length
}

// Failed commands, with the last error of each, whether it has succeeded since, and the files edited in between.

export interface FailingCommand {
  readonly command: string
  /** The end of the command's output when it last failed. */
  readonly error: string
  readonly failures: number
  /** True if the same command has succeeded since. */
  readonly isSettled: boolean
  /** Paths of files edited between the command's last failure and its next success. */
  readonly editedSince: readonly string[]
  readonly place: number
  /** uuid of the record with the result of the last failure. */
  readonly uuid: string
}

const ERROR_END_CHARACTERS = 600
const LEADING_CD = /\s*cd\s+[^&;|\n]*&&\s*/y
const OUTPUT_LIMIT = /^\|\s*(?:head|tail)\b[^&;\n]*$/

/** Removes a leading `cd … &&` and a trailing `| head` or `| tail`, so that commands which differ only in these count as the same. */
export function normalizeCommand(command: string): string {
  let start = 0
  LEADING_CD.lastIndex = 0
  while (LEADING_CD.test(command)) start = LEADING_CD.lastIndex
  let end = command.trimEnd().length
  for (;;) {
    const pipe = command.lastIndexOf('|', end - 1)
    if (pipe <= start || !OUTPUT_LIMIT.test(command.slice(pipe, end))) break
    end = command.slice(0, pipe).trimEnd().length
  }
  return command.slice(start, end).trim()
}

/** Collects the commands that have failed, newest failure first, including those that succeeded later. */
export function collectFailingCommands(
  runs: readonly ToolRun[],
  clean: (text: string) => string,
): readonly FailingCommand[] {
  const failing = new Map<string, FailingCommand>()
  for (const run of runs) {
    if (run.command !== null && run.resultIndex !== null)
      recordRun(failing, normalizeCommand(run.command), run)
    else if (!run.failed) recordEdits(failing, run)
  }
  const cleaned = [...failing.values()].map((item) => ({
    ...item,
    command: clean(item.command),
    error: clean(item.error),
    editedSince: item.editedSince.map(clean),
  }))
  return cleaned.toSorted((one, other) => other.place - one.place)
}

function recordRun(failing: Map<string, FailingCommand>, command: string, run: ToolRun): void {
  const before = failing.get(command)
  if (!run.failed) {
    if (before !== undefined) failing.set(command, { ...before, isSettled: true })
    recordEdits(failing, run)
    return
  }
  failing.set(command, {
    command,
    error: cutErrorEnd(run.result),
    failures: (before?.failures ?? 0) + 1,
    isSettled: false,
    editedSince: [],
    place: run.callIndex,
    uuid: run.resultUuid ?? run.uuid,
  })
}

/** Returns the end of an error's text. Trailing white space does not count, so that the result contains text. */
function cutErrorEnd(text: string): string {
  return sliceText(text, -(ERROR_END_CHARACTERS + text.length - text.trimEnd().length))
}

function recordEdits(failing: Map<string, FailingCommand>, run: ToolRun): void {
  const edited = run.touches.flatMap(({ action, path }) => (action === 'read' ? [] : [path]))
  if (edited.length === 0) return
  for (const [command, item] of failing) {
    if (item.isSettled) continue
    failing.set(command, { ...item, editedSince: [...new Set([...item.editedSince, ...edited])] })
  }
}

/** A failed tool call that is not a command, such as an edit that found nothing to replace or a read of a missing file. */
export interface FailedCall {
  readonly tool: string
  readonly target: string
  readonly error: string
  readonly place: number
  readonly uuid: string
}

const CALL_ERROR_CHARACTERS = 300

/**
 * Collects failed tool calls other than commands, newest first. Omits a call if a later call of the same tool on the
 * same file succeeded.
 */
export function collectFailedCalls(
  runs: readonly ToolRun[],
  clean: (text: string) => string,
): readonly FailedCall[] {
  const failed = new Map<string, FailedCall>()
  for (const run of runs) {
    if (run.command !== null) continue
    const target = run.touches[0]?.path ?? ''
    const key = `${run.name} ${target}`
    failed.delete(key)
    if (!run.failed) continue
    const error = clean(sliceText(run.result.trim(), 0, CALL_ERROR_CHARACTERS))
    failed.set(key, {
      tool: run.name,
      target: clean(target),
      error,
      place: run.callIndex,
      uuid: run.resultUuid ?? run.uuid,
    })
  }
  return [...failed.values()].toReversed()
}
