/**
 * What the notes say of the work: how the latest instruction stands, todos, plan, files, commands and their errors, what
 * the model decided and found, and the worklog.
 */

import {
  type CommandFact,
  type FailedCommand,
  isFileChanged,
  type TouchedFile,
} from '../facts/files-and-commands.ts'
import { condenseModelText, cutMiddleSentences, type DecisionOrFinding } from '../facts/model-texts.ts'
import type { SessionFacts, WorklogStep } from '../facts/session-facts.ts'
import { formatCommand, isReadOnlyCommand, isReadOnlyOrTemporaryCommand } from '../facts/shell-commands.ts'
import { isOpenTodo, isTodoInProgress } from '../facts/todo-list.ts'
import { isFailedStatus, type ToolRun, type ToolRunStatus } from '../facts/tool-runs.ts'
import { describeTouchedFile } from '../summary/summary-pieces.ts'
import { toBlockQuote, wrapInCodeBlock } from '../text/code-in-text.ts'
import {
  fitTextsToTokens,
  quoteInline,
  toOneLine,
  truncateEnd,
  truncateMiddle,
  truncateStart,
} from '../text/truncate-text.ts'
import {
  chooseFittingItems,
  formatMissingCount,
  type NoteGroup,
  type RankedNoteItem,
  type SectionBudget,
  toNoteGroup,
} from './notes-file.ts'

// Current state.

const TODO_CHARACTERS = 200
const MOST_WAITING = 5
const LATEST_TEXT_CHARACTERS = 700

/** Tells how the latest instruction stands, and which calls have no result yet. */
export function describeInstructionProgress({
  latest,
  replyPlace,
  turn,
  openCalls,
  clean,
}: SessionFacts): readonly string[] {
  const waiting = openCalls.slice(-MOST_WAITING).map((run) => `- No result yet: ${formatRun(run, clean)}`)
  if (latest === null) return waiting
  const { calls, last, hasBegun } = turn
  const done =
    last === null
      ? ''
      : `${formatCount(calls, 'tool call')} since then, the last one ${formatRun(last, clean)}.`
  if (replyPlace > latest.place)
    return [`The model has answered it, see Key results. ${done}`.trim(), ...waiting]
  if (last !== null) return [`The model is at work on it: ${done}`, ...waiting]
  return [hasBegun ? 'The model is at work on it.' : 'The model has not begun with it.', ...waiting]
}

function formatRun({ name, command, path }: ToolRun, clean: (text: string) => string): string {
  if (command !== null) return `${name} ${formatCommand(clean(command))}`
  return path === null ? name : `${name} ${toOneLine(clean(path))}`
}

/** Lists the open items of the todo list, and says how many are done. */
export function createTodoGroups({ todos, areTodosOlder }: SessionFacts): readonly NoteGroup[] {
  const open = todos.filter(isOpenTodo)
  if (todos.length === 0) return []
  const age = areTodosOlder ? ', last changed before the latest instruction' : ''
  const count = `${todos.length - open.length} of ${todos.length} done${age}`
  if (open.length === 0) return [toNoteGroup('', [`Todo list, ${count}.`])]
  const lines = open.map(
    (item) => `- [${isTodoInProgress(item) ? '>' : ' '}] ${toOneLine(item.text, TODO_CHARACTERS)}`,
  )
  return [toNoteGroup(`Todo list, ${count}:`, lines, 0)]
}

/** Lists the model's latest text about the latest instruction, unless that is answered. */
export function createLatestTextGroups({ texts, latest, hasAnswered }: SessionFacts): readonly NoteGroup[] {
  const text = texts.at(-1)
  // An answer is shown in the section of key results instead.
  if (text === undefined || (latest?.place ?? -1) > text.place || hasAnswered) return []
  return [
    toNoteGroup(
      "The model's latest text:",
      [toBlockQuote(truncateEnd(text.text, LATEST_TEXT_CHARACTERS))],
      2,
    ),
  ]
}

// Plan, answers, an earlier summary: quoted at length where there is room.

const PLAN_CHARACTERS = 4_000
const SHORT_PLAN_CHARACTERS = 1_200
const REQUEST_CHARACTERS = 80
const ANSWER_CHARACTERS = 6_000
const SHORT_ANSWER_CHARACTERS = 1_500
const SUMMARY_CHARACTERS = 5_000
const SHORT_SUMMARY_CHARACTERS = 1_500

/** Lists the plan. The more requests there are in the same section, the more the plan is shortened. */
export function createPlanGroups({ plan }: SessionFacts, requests: number): readonly NoteGroup[] {
  const most = Math.max(SHORT_PLAN_CHARACTERS, PLAN_CHARACTERS - REQUEST_CHARACTERS * requests)
  return quoteText('The plan, as last written:', plan?.text ?? '', {
    rank: 1,
    most,
    least: SHORT_PLAN_CHARACTERS,
  })
}

/** Lists the newest answer at the end of a turn. */
export function createNewestAnswerGroups({ answer }: SessionFacts): readonly NoteGroup[] {
  if (answer === null) return []
  const full = toBlockQuote(truncateEnd(answer, ANSWER_CHARACTERS))
  const short = toBlockQuote(truncateMiddle(answer, SHORT_ANSWER_CHARACTERS, SHORT_ANSWER_CHARACTERS / 3))
  return [{ title: "The model's latest answer:", items: [{ full, short, rank: 1 }] }]
}

/** Lists the summary with which the log begins, if its records before that are elsewhere. */
export function createEarlierSummaryGroups({ earlierSummary }: SessionFacts): readonly NoteGroup[] {
  const title = 'Summary of an earlier part, which is not in this log:'
  const limits = { rank: 2, most: SUMMARY_CHARACTERS, least: SHORT_SUMMARY_CHARACTERS }
  return quoteText(title, earlierSummary?.text ?? '', limits)
}

function quoteText(
  title: string,
  text: string,
  { rank, most, least }: { readonly rank: number; readonly most: number; readonly least: number },
): readonly NoteGroup[] {
  if (text === '') return []
  const [full, short] = [most, least].map((length) => toBlockQuote(truncateEnd(text, length)))
  return [{ title, items: [{ full: full ?? '', short: short ?? '', rank }] }]
}

// Decisions and findings, in the words of the model.

const TEXTS_TITLE = 'Decisions and findings, in the words of the model, oldest first:'
/** Tokens reserved for the title and the line about what was left out. */
const TITLE_TOKENS = 32
/** A text is first shown by its ends, up to this many tokens, and whole if there is room after the others. */
const SHORT_TOKENS = 170
const LEAST_TOKENS = 40
/** Tokens reserved for the line above a text. */
const LABEL_TOKENS = 16

/**
 * Writes decisions and findings, oldest first. Each segment of the session gives one text in turn, so that new ones never
 * push out all old ones.
 */
export function writeDecisionsSection(
  { decisions, answer }: SessionFacts,
  { tokens, countTokens }: SectionBudget,
): string {
  const shownAnswer = answer === null ? '' : condenseModelText(answer)
  const segments = decisions.segments.map((texts) => texts.filter(({ text }) => text !== shownAnswer))
  const elsewhere = decisions.segments.flat().length - segments.flat().length
  const each = Math.floor(tokens / Math.max(1, segments.length)) - LABEL_TOKENS
  const most = Math.min(SHORT_TOKENS, Math.max(LEAST_TOKENS, each))
  const items = segments.flatMap((texts) =>
    texts.map((placed, rank) => ({
      rank,
      full: formatPlaced(placed, placed.text),
      short: formatPlaced(placed, cutMiddleSentences(placed.text, most, countTokens)),
    })),
  )
  const shown = fitTextsToTokens(items, {
    tokens: tokens - TITLE_TOKENS,
    countTokens: (text) => countTokens(text) + 1,
    isBroad: true,
  })
  const missing = decisions.added - shown.size - elsewhere
  if (shown.size + missing === 0) return ''
  const rest = missing === 0 ? [] : [`… ${missing} more ${missing === 1 ? 'is' : 'are'} in the transcript`]
  const lines = items.flatMap((item) => shown.get(item) ?? [])
  return [TEXTS_TITLE, ...rest, ...lines.toReversed()].join('\n')
}

function formatPlaced({ where, isCorrected }: DecisionOrFinding, text: string): string {
  return `- ${where}${isCorrected ? ', in a turn that the user corrected' : ''}:\n${toBlockQuote(text)}`
}

// Files.

const MOST_LISTED = 12
/** Share of the section's tokens for files that were only read. */
const READ_SHARE = 0.25
const HEAD_TOKENS = 60
/** Matches documents that describe a project. */
const PROJECT_DOCUMENT =
  /(?:^|\/)(?:README|CLAUDE|AGENTS|CONTRIBUTING|ARCHITECTURE|DESIGN|GLOSSARY|TODO|PLAN)[^/]*\.(?:md|txt|rst)$|(?:^|\/)(?:package\.json|Cargo\.toml|go\.mod|pyproject\.toml|Makefile|mise\.toml|pom\.xml)$/i

interface FileItem extends RankedNoteItem {
  readonly path: string
}

/**
 * Writes the files. Every file that was changed is named, the newest in a line of its own and, where the budget is short,
 * the others by folder. Files that were only read come after them, as many of the newest as fit.
 */
export function writeFilesSection({ files, project }: SessionFacts, budget: SectionBudget): string {
  const show = createPathFormat(project)
  const folders = new Set<string>()
  const toItem = (file: TouchedFile, rank: number): FileItem => {
    const path = show(file)
    const { folder, name } = splitPath(path)
    // The folder is named once for all of its files.
    const short = folders.has(folder) ? name : path
    folders.add(folder)
    if (rank !== CHANGED) return { path, rank, full: short }
    const full = `- ${describeTouchedFile({ ...file, path, movedFrom: showMoved(file, show) })}`
    return { path, rank, short, full, groups: ['changed'] }
  }
  const items = [CHANGED, TRIED, READ].flatMap((rank) =>
    files.filter((file) => rankFile(file) === rank).map((file) => toItem(file, rank)),
  )
  const tokens = budget.tokens - HEAD_TOKENS
  const isAlone = items.every(({ rank }) => rank === CHANGED)
  const caps = new Map([['changed', isAlone ? tokens : tokens * (1 - READ_SHARE)]])
  const placed = chooseFittingItems(items, { ...budget, tokens, caps })
  const list = (rank: number): readonly FileItem[] =>
    items.filter((item) => item.rank === rank && placed.has(item))
  const noteMissing = (rank: number): readonly string[] => {
    const missing = items.filter((item) => item.rank === rank && !placed.has(item)).length
    return missing === 0 ? [] : [formatMissingCount(missing, 1)]
  }
  const isWhole = (item: FileItem): boolean => placed.get(item) === item.full
  const detailed = list(CHANGED).filter(isWhole)
  const named = list(CHANGED).filter((item) => !isWhole(item))
  const title = detailed.length === 0 ? 'Changed, by folder:' : 'Changed before, by folder:'
  const parts = [
    formatList(
      'Changed, newest first:',
      detailed.map(({ full }) => full),
    ),
    formatList(title, [...formatFolders(named), ...noteMissing(CHANGED)]),
    formatList('A change was tried and not made:', formatFolders(list(TRIED))),
    formatList('Only read, by folder:', [...formatFolders(list(READ)), ...noteMissing(READ)]),
  ].filter((part) => part !== '')
  const head =
    project.base === null ? [] : [`Paths that are not whole are relative to ${formatPath(project.base)}.`]
  return parts.length === 0 ? '' : [...head, ...parts].join('\n\n')
}

const [CHANGED, TRIED, READ] = [0, 1, 2]

/** Returns the rank of a file; null for one that could not even be read. */
function rankFile(file: TouchedFile): number | null {
  if (isFileChanged(file)) return CHANGED
  return file.refusedEdits > 0 ? TRIED : file.linesRead === null ? null : READ
}

function formatList(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [title, ...lines].join('\n')
}

/** Returns lines with the working directory, the folders with most changes, the project documents in use, and the Git branch. */
export function describeProject({ files, project, gitBranch }: SessionFacts): readonly string[] {
  const show = createPathFormat(project)
  const folders = groupByFolder(files.filter(isFileChanged).toReversed().map(show))
  const most = folders.toSorted((one, other) => other.names.length - one.names.length)
  const documents = files.filter(({ key }) => PROJECT_DOCUMENT.test(key)).slice(0, MOST_LISTED)
  const names = documents.toReversed().map(show).join(', ')
  return [
    ...(project.base === null ? [] : [`- Working directory: ${formatPath(project.base)}`]),
    ...most
      .slice(0, MOST_LISTED)
      .map(({ folder, names: { length } }) => `- ${folder}/: ${formatCount(length, 'file')} changed`),
    ...(names === '' ? [] : [`- Project documents that were read or changed: ${names}`]),
    ...(gitBranch === '' ? [] : [`- Git branch: ${toOneLine(gitBranch)}`]),
  ]
}

type PathFormat = (file: Pick<TouchedFile, 'key' | 'isOutside'>) => string

/**
 * Creates a function that writes a path relative to the folder of the project if it is below it, with the separators of
 * the log.
 */
function createPathFormat({ base, start }: SessionFacts['project']): PathFormat {
  return ({ key, isOutside }) => {
    const folder = isOutside && base !== start ? null : base
    const part = folder !== null && key.startsWith(`${folder}/`) ? key.slice(folder.length + 1) : key
    return formatPath(part, DRIVE.test(key))
  }
}

function showMoved({ movedFrom, isOutside }: TouchedFile, show: PathFormat): string | null {
  return movedFrom === null ? null : show({ key: movedFrom, isOutside })
}

const DRIVE = /^[A-Za-z]:/

/** Returns a path on one line, with backslashes on Windows. */
function formatPath(path: string, isWindows: boolean = DRIVE.test(path)): string {
  return toOneLine(isWindows ? path.replaceAll('/', '\\') : path)
}

/** Splits a path at its last separator, whichever it has. */
function splitPath(path: string): { readonly folder: string; readonly name: string } {
  const end = Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\'))
  return { folder: end === -1 ? '.' : path.slice(0, end), name: path.slice(end + 1) }
}

function groupByFolder(
  paths: readonly string[],
): readonly { readonly folder: string; readonly names: readonly string[] }[] {
  const folders = new Map<string, string[]>()
  for (const path of paths) {
    const { folder, name } = splitPath(path)
    const names = folders.get(folder)
    if (names === undefined) folders.set(folder, [name])
    else names.push(name)
  }
  return [...folders].map(([folder, names]) => ({ folder, names }))
}

function formatFolders(items: readonly FileItem[]): readonly string[] {
  return groupByFolder(items.map(({ path }) => path)).map(
    ({ folder, names }) => `- ${folder}: ${names.join(', ')}`,
  )
}

// Commands.

/** Number of commands of each tool that are placed before all older ones. */
const NEWEST_COMMANDS = 20
const MOST_FIXED = 60
const MOST_NAMED_EDITS = 3
const OUTPUT_CHARACTERS = 100
const LONGER_CHARACTERS = 1_000
const ERROR_CHARACTERS = 240

/** What the status is called in the line of a command. */
const STATUS_TEXTS: Readonly<Record<ToolRunStatus, string>> = {
  waiting: 'no result yet',
  ok: 'ok',
  failed: 'failed',
  empty: 'printed nothing, with an exit code other than 0',
  background: 'started in the background',
  running: 'still running',
  refused: 'refused by the user',
  interrupted: 'interrupted by the user',
  stopped: 'stopped at its time limit',
}

/** Lists the commands that did not fail when they last ran. */
export function createCommandGroups({ commands, segmentStart }: SessionFacts): readonly NoteGroup[] {
  const counts = new Map<string, number>()
  const items = listShown(commands, false).map(({ command, shown }) => {
    const newer = counts.get(command.tool) ?? 0
    counts.set(command.tool, newer + 1)
    return toCommandItem(command, shown, {
      isNew: newer < NEWEST_COMMANDS,
      hasEnd: command.place >= segmentStart,
    })
  })
  return [{ title: 'Commands, newest first:', items }]
}

/**
 * Lists the commands that failed (`failed`) or the others, newest first, with the text that shows them. Of commands that
 * begin alike only the newest is listed; if some of them failed and others did not, each is shown at greater length, so
 * that they can be told apart.
 */
function listShown(
  commands: readonly CommandFact[],
  failed: boolean,
): readonly { readonly command: CommandFact; readonly shown: string }[] {
  const isOwn = ({ status }: CommandFact): boolean => isFailedStatus(status) === failed
  const others = new Set(commands.filter((one) => !isOwn(one)).map(({ line }) => formatCommand(line)))
  const listed = new Map<string, CommandFact>()
  for (const one of commands.filter(isOwn)) {
    const brief = formatCommand(one.line)
    const whole = others.has(brief) ? formatCommand(one.line, Number.POSITIVE_INFINITY) : brief
    const shown = whole.length <= LONGER_CHARACTERS ? whole : brief
    if (!listed.has(shown)) listed.set(shown, one)
  }
  return [...listed].map(([shown, command]) => ({ shown, command }))
}

function toCommandItem(
  { variant, status, runs, output, reported }: CommandFact,
  shown: string,
  { isNew, hasEnd }: { readonly isNew: boolean; readonly hasEnd: boolean },
): RankedNoteItem {
  const but = reported === '' ? '' : `, but its output says "${reported}"`
  const line = `- ${shown} → ${STATUS_TEXTS[status]}${but}`
  // The end of what a command that only looks around prints is part of a file or a list, and says nothing about the outcome.
  const saysEnd = hasEnd && status === 'ok' && !isReadOnlyCommand(variant)
  const end = saysEnd ? truncateStart(toOneLine(output), OUTPUT_CHARACTERS) : ''
  const more = [runs === 1 ? '' : `${runs} runs`, end === '' ? '' : `output ends: ${end}`]
  const detail = more.filter((part) => part !== '').join('; ')
  const rank = isNew ? 1 : isReadOnlyOrTemporaryCommand(variant) ? 4 : runs > 1 ? 2 : 3
  return detail === '' ? { full: line, rank } : { full: `${line} (${detail})`, short: line, rank }
}

/** Lists the failing tests of the newest run that names its tests. */
export function createFailingTestGroups({
  tests: { failed, by, passedSince },
}: SessionFacts): readonly NoteGroup[] {
  const since = passedSince === '' ? '' : ` (${formatCommand(passedSince)} has succeeded since)`
  return [
    toNoteGroup(
      `Failing tests in the newest run that names tests, ${formatCommand(by)}${since}:`,
      failed.map((name) => `- failing test: ${name}`),
      2,
    ),
  ]
}

/** Lists the commands that failed when they last ran. */
export function createFailingCommandGroups(facts: SessionFacts): readonly NoteGroup[] {
  const byVariant = new Map(facts.failures.map((failure) => [failure.command, failure]))
  const all = listShown(facts.commands, true).map(({ command, shown }) => {
    const failure = byVariant.get(command.variant)
    return {
      hasPassed: (failure?.settledAt ?? -1) > command.place,
      item: toFailingItem(command, shown, failure),
    }
  })
  const list = (hasPassed: boolean) =>
    all.filter((one) => one.hasPassed === hasPassed).map(({ item }) => item)
  return [
    { title: 'Commands that failed when last run, newest first:', items: list(false) },
    { title: 'Failed as well, but a variant of the command has succeeded since:', items: list(true) },
  ]
}

function toFailingItem(
  { status, failures, output }: CommandFact,
  shown: string,
  failure: FailedCommand | undefined,
): RankedNoteItem {
  const line = `- ${shown} → ${STATUS_TEXTS[status]}`
  const often = failures > 1 ? ` (${failures} times)` : ''
  const named = failure?.settledAt === null ? nameEdits(failure) : ''
  const changed = named === '' ? '' : `; changed since: ${named}`
  return {
    full: `${line}${often}: ${cutOutput(output)}${changed}`,
    short: line,
    ...withWholeError(`${line}${often}${changed}`, output),
    rank: 0,
  }
}

/** Lists the commands that failed and have succeeded since. */
export function createFixedErrorGroups({ failures }: SessionFacts): readonly NoteGroup[] {
  const fixed = failures
    .filter(({ isSettled }) => isSettled)
    .toSorted((one, other) => (other.settledAt ?? 0) - (one.settledAt ?? 0))
  const items = fixed.slice(0, MOST_FIXED).map((failure) => {
    const [shown, named] = [formatCommand(failure.command), nameEdits(failure)]
    const after = named === '' ? '' : ` after changes to ${named}`
    return {
      full: `- fixed: ${shown} had failed (${cutOutput(failure.error)}); ok${after}`,
      ...withWholeError(`- fixed: ${shown} had failed; ok${after}`, failure.error),
      rank: 4,
    }
  })
  return [{ title: 'Errors that were fixed, newest first:', items, dropped: fixed.length - items.length }]
}

/** Names the files that were edited last. */
function nameEdits({ editedSince }: FailedCommand): string {
  const names = editedSince.toReversed().map((path) => toOneLine(splitPath(path).name))
  return [...new Set(names)].slice(0, MOST_NAMED_EDITS).join(', ')
}

function cutOutput(output: string): string {
  return output === '' ? 'no output' : truncateStart(toOneLine(output), ERROR_CHARACTERS)
}

/** Returns the longer form of an item, with the error letter for letter; none if its one line has it all. */
function withWholeError(line: string, error: string): Pick<RankedNoteItem, 'longer'> {
  return cutOutput(error) === error || error === ''
    ? {}
    : { longer: `${line}. Its output ended:\n${wrapInCodeBlock(error)}` }
}

// The worklog: one terse line per step.

const MOST_STEPS = 200
const STEP_TEXT_CHARACTERS = 60
const MOST_STEP_FILES = 4
const MESSAGE_CHARACTERS = 90

/** Lists the steps of the worklog, oldest first. */
export function createWorklogGroups({ steps }: SessionFacts): readonly NoteGroup[] {
  const items = steps.slice(0, MOST_STEPS).map((step) => ({ full: formatStep(step), rank: 3 }))
  return [{ title: '', items, isOldestFirst: true, dropped: steps.length - items.length }]
}

function formatStep({ time, text, sender, files, calls, commands, failed, end }: WorklogStep): string {
  const named = [...files].slice(0, MOST_STEP_FILES).map((path) => toOneLine(splitPath(path).name))
  const more = files.size > MOST_STEP_FILES ? ` and ${files.size - MOST_STEP_FILES} more` : ''
  const others = calls - commands
  const done = [
    files.size === 0 ? '' : `changed ${named.join(', ')}${more}`,
    commands === 0 ? '' : `${formatCount(commands, 'command')}${failed === 0 ? '' : ` (${failed} failed)`}`,
    commands > 0 || files.size > 0 || others === 0 ? '' : formatCount(others, 'call'),
    end === null ? '' : formatStepEnd(end),
  ]
  const result = done.filter((part) => part !== '').join('; ')
  const asked = text === '' ? '' : `${sender}: ${quoteInline(text, STEP_TEXT_CHARACTERS)}`
  const start = `- ${time === '' ? '' : `${time} `}`
  return `${start}${[asked, result].filter((part) => part !== '').join(' → ')}`
}

function formatStepEnd({ kind, text }: NonNullable<WorklogStep['end']>): string {
  return kind === 'done' ? `done: ${text}` : `committed ${quoteInline(text, MESSAGE_CHARACTERS)}`
}

function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
