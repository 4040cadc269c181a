/**
 * Extracts from the log, by fixed rules, the facts that a summary must not lose: user messages, files, errors, todos.
 * Always reads the whole log up to the cut, so that repeated compactions lose nothing. An earlier summary is quoted
 * only if its records are missing from the log.
 */

import { isTextBlock, toBlocks } from '../log/block.ts'
import type { KnownRecord } from '../log/record.ts'
import { runAtOnce, type Steps } from '../log/work-steps.ts'
import { createRedactor } from '../text/redact.ts'
import { removeControlCharacters, sliceText } from '../text/well-formed-text.ts'
import { type AssistantText, collectAssistantTexts } from './assistant-texts.ts'
import { isFailure, splitOutputHead } from './command-status.ts'
import { type FileChange, listFileChanges, normalizeCommand } from './shell-commands.ts'
import { readPlanText, readTodoList, type TodoItem } from './todo-list.ts'
import type { FileTouch } from './tool-calls.ts'
import { listToolRuns, type ToolRun } from './tool-runs.ts'
import { collectUserPrompts, type UserPrompt } from './user-prompts.ts'

export interface SessionFacts {
  /** Everything the user typed, however it arrived. */
  readonly messages: readonly UserPrompt[]
  readonly files: readonly TouchedFile[]
  /** The working directories of the records, each once. */
  readonly folders: readonly string[]
  readonly commands: readonly FailingCommand[]
  readonly failedCalls: readonly FailedCall[]
  readonly todos: readonly TodoItem[]
  /** True if the user has written a message since the todo list was last changed. */
  readonly areTodosOlder: boolean
  readonly plan: RecordText | null
  /** All texts of the model, oldest first. */
  readonly texts: readonly AssistantText[]
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
 * Extracts the facts from `history`, the records that a summary replaces. `hide` removes credentials from every text;
 * characters that cannot be sent or that control a terminal are removed as well.
 */
export function extractSessionFacts(
  history: readonly KnownRecord[],
  hide: (text: string) => string = createRedactor(),
): SessionFacts {
  return runAtOnce(extractSessionFactsInSteps(history, hide))
}

/** Work of one pass over a record, in characters that would be read in the same time. */
const RECORD_WORK = 100

export function* extractSessionFactsInSteps(
  history: readonly KnownRecord[],
  hide: (text: string) => string = createRedactor(),
): Steps<SessionFacts> {
  const clean = (text: string): string => hide(removeControlCharacters(text))
  const pass = RECORD_WORK * history.length
  const runs = listToolRuns(history)
  yield pass
  const messages = collectUserPrompts(history, clean)
  yield pass
  const list = readTodoList(runs)
  const files = collectTouchedFiles(runs, clean)
  yield pass
  const commands = collectFailingCommands(runs, clean)
  const failedCalls = collectFailedCalls(runs, clean)
  yield pass
  const texts = collectAssistantTexts(history, clean)
  yield pass
  return {
    messages,
    files,
    folders: [
      ...new Set(history.flatMap(({ cwd }) => (cwd === undefined || cwd === '' ? [] : [clean(cwd)]))),
    ],
    commands,
    failedCalls,
    todos: (list?.items ?? []).map((item) => ({ ...item, text: clean(item.text) })),
    areTodosOlder: (messages.at(-1)?.place ?? -1) > (list?.callIndex ?? -1),
    plan: findPlan(history, runs, clean),
    texts,
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
  const run = runs.findLast((each) => readPlanText(each) !== null)
  return run === undefined ? null : { text: clean(readPlanText(run) ?? ''), uuid: run.uuid }
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
  /** What a shell command did to the file since it was last touched, in words; empty if nothing. */
  readonly fate: string
  /** Where its edits went, for certain or perhaps, if `fate` tells of that: from the stash they may come back. Else null. */
  readonly editsLost: 'undone' | 'stashed' | null
  /** True if a commit since the last edit may contain it. */
  readonly isCommitted: boolean
  /** The path that the file had before a shell command moved it; null if none did. */
  readonly movedFrom: string | null
}

/** Collects the files that tool calls read or edited, most recently touched first. */
function collectTouchedFiles(
  runs: readonly ToolRun[],
  clean: (text: string) => string,
): readonly TouchedFile[] {
  const files = new Map<string, TouchedFile>()
  for (const run of runs) {
    for (const touch of run.touches) {
      files.set(touch.path, withTouch(files.get(touch.path), touch, run))
    }
    applyFileChanges(files, run, (file) => file)
  }
  const cleaned = [...files.values()].map((file) => ({
    ...file,
    path: clean(file.path),
    fate: clean(file.fate),
    movedFrom: file.movedFrom === null ? null : clean(file.movedFrom),
    newestText: file.newestText === null ? null : clean(file.newestText),
  }))
  return cleaned.toSorted((one, other) => other.place - one.place || (one.path < other.path ? -1 : 1))
}

export function isFileEdited({ edits, refusedEdits, movedFrom }: TouchedFile): boolean {
  return edits + refusedEdits > 0 || movedFrom !== null
}

/**
 * Applies what a shell command did to known files: a file that it removed, moved or put back is no longer as its last
 * edit left it. `complete` makes a file of a holder from the one at a new path. Returns the paths that changed.
 */
export function applyFileChanges<File extends TouchedFile>(
  files: Map<string, File>,
  run: ToolRun,
  complete: (file: TouchedFile, before: File) => File,
): readonly string[] {
  if (run.command === null || run.status !== 'ok') return []
  const changes = listFileChanges(run.command, files.keys(), run.cwd)
  return changes.flatMap((change) => {
    const file = files.get(change.path)
    if (file !== undefined && change.kind === 'committed')
      files.set(change.path, { ...file, isCommitted: true })
    const fate = file === undefined ? null : describeFate(change, file)
    if (file === undefined || fate === null) return []
    files.set(change.path, { ...file, fate, editsLost: EDITS_LOST[change.kind] ?? null })
    const { to } = change
    if (to === null) return [change.path]
    const { newestText, linesRead } = file
    const place = { path: to, place: run.callIndex, uuid: run.uuid, movedFrom: change.path }
    files.set(to, complete({ ...NO_TOUCHES, newestText, linesRead, ...place }, file))
    return [change.path, to]
  })
}

const EDITS_LOST: Partial<Record<FileChange['kind'], TouchedFile['editsLost']>> = {
  undone: 'undone',
  'perhaps-undone': 'undone',
  stashed: 'stashed',
  'perhaps-stashed': 'stashed',
}

/** Says what a command did to a file; null if that concerns only files that were edited before. */
function describeFate({ kind, to, by }: FileChange, file: TouchedFile): string | null {
  const command = `\`${by}\``
  if (kind === 'removed') return `deleted by ${command}`
  if (kind === 'moved') return `moved to ${to} by ${command}`
  if (file.edits === 0 || kind === 'committed') return null
  if (kind === 'returned') return file.editsLost === 'stashed' ? '' : null
  const isCertain = (kind === 'undone' || kind === 'stashed') && !file.isCommitted
  return `${isCertain ? '' : 'perhaps '}undone by ${command}`
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
  fate: '',
  editsLost: null,
  isCommitted: false,
  movedFrom: null,
}

/** Returns a file with one more touch by a tool call; `before` is undefined for the first. */
export function withTouch(
  before: TouchedFile | undefined,
  { action, newText, path }: FileTouch,
  run: ToolRun,
): TouchedFile {
  const file = before ?? { ...NO_TOUCHES, path }
  // A file that was read is there, but edits that were undone are not back.
  const keepsFate = run.failed || (action === 'read' && file.editsLost !== null)
  const fate = keepsFate ? {} : { fate: '', editsLost: null }
  const touched = { ...file, place: run.callIndex, uuid: run.uuid, ...fate }
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
    isCommitted: false,
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

/**
 * Collects the commands that have failed, newest failure first, including those that succeeded later. One that the user
 * refused or interrupted, or that still runs, has neither failed nor succeeded.
 */
export function collectFailingCommands(
  runs: readonly ToolRun[],
  clean: (text: string) => string,
): readonly FailingCommand[] {
  const failing = new Map<string, FailingCommand>()
  for (const run of runs) {
    if (run.command !== null && (isFailure(run.status) || run.status === 'ok'))
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
    error: cutErrorEnd(splitOutputHead(run.result)[1]),
    failures: (before?.failures ?? 0) + 1,
    isSettled: false,
    editedSince: [],
    place: run.callIndex,
    uuid: run.resultUuid ?? run.uuid,
  })
}

/** Returns the end of an error's text. Trailing white space does not count, so that the result contains text. */
export function cutErrorEnd(text: string): string {
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

/**
 * A failed tool call that is not a command, such as an edit that found nothing to replace or a read of a missing file;
 * or any tool call that the user refused.
 */
export interface FailedCall {
  readonly tool: string
  readonly target: string
  readonly error: string
  /** True if the user refused the call. It did not fail, and `error` only says that it was refused. */
  readonly isRefused: boolean
  readonly place: number
  readonly uuid: string
}

const CALL_ERROR_CHARACTERS = 300

/**
 * Collects failed tool calls other than commands, and refused calls of all kinds, newest first. Omits a call if a later
 * call of the same tool on the same file, or of the same command, succeeded.
 */
export function collectFailedCalls(
  runs: readonly ToolRun[],
  clean: (text: string) => string,
): readonly FailedCall[] {
  const failed = new Map<string, FailedCall>()
  for (const run of runs) {
    const target = run.command ?? run.touches[0]?.path ?? ''
    const key = `${run.name} ${target}`
    failed.delete(key)
    if (!run.failed || (run.command !== null && !run.refused)) continue
    const error = clean(sliceText(run.result.trim(), 0, CALL_ERROR_CHARACTERS))
    failed.set(key, {
      tool: run.name,
      target: clean(target),
      error,
      isRefused: run.refused,
      place: run.callIndex,
      uuid: run.resultUuid ?? run.uuid,
    })
  }
  return [...failed.values()].toReversed()
}
