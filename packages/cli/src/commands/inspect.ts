/** `tidemark inspect`: finds and reads session logs, and prints a page, a table or JSON. */
import { existsSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { performance } from 'node:perf_hooks'
import { TidemarkError } from '@tidemark/core/errors'
import { renderSessionPage } from '@tidemark/terminal/pages/session-page'
import { formatBytes, formatCount } from '@tidemark/terminal/render/format-numbers'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { printMisuse, printUnreadableLogs } from '@tidemark/terminal/render/print-errors'
import { createProgressLine } from '@tidemark/terminal/render/progress-line'
import { createScreen } from '@tidemark/terminal/render/screen'
import { formatPath, toSafeLine } from '@tidemark/terminal/render/text'
import { EXIT_CODES, type Terminal, toSignalOption } from '@tidemark/terminal/terminal'
import {
  chooseSession,
  filterSessionsSince,
  findDefaultLogs,
  findNamedLogs,
  isSessionId,
  listDefaultLogFolders,
  type NamedLog,
  parseRowNumber,
  redactStrings,
  resolveLogPath,
  type SortKey,
  sortSessions,
  sumSessions,
  type UnreadableLog,
} from 'tidemark/internal'
import { type InspectionResult, inspectFiles, type SessionReport } from 'tidemark/logs'
import { renderSessionsPage } from '../pages/session-list-page.ts'

export interface InspectCommandOptions {
  /** Maximum number of sessions listed in the table or the JSON; 0 for no maximum. */
  readonly limit?: number
  /** Shows only sessions that were used since this time, given in milliseconds since 1970. */
  readonly since?: number
  /** The session to show: its number in the table, or the beginning of its id. */
  readonly session?: string
  readonly sort?: SortKey
  readonly json?: boolean
  /** The file to write the page of one session to. */
  readonly html?: string
  /** The file to write the picture of one session to. */
  readonly card?: string
  /** True to write texts, paths and names into the page, too. */
  readonly withText?: boolean
}

/** Default number of rows in the table. */
const DEFAULT_ROWS = 20

export async function runInspectCommand(
  paths: readonly string[],
  choices: InspectCommandOptions,
  terminal: Terminal,
): Promise<number> {
  if (choices.withText === true && choices.html === undefined)
    return printMisuse("option '--with-text' is for --html.", terminal)
  const found = await findSessionLogs(paths, choices, terminal)
  const inspection = await inspectLogs(found.logs, terminal)
  const unreadable = [...found.unreadable, ...inspection.unreadable]
  const code = printUnreadableLogs(unreadable, terminal)
  const sessions = selectSessions(inspection.sessions, choices)
  const showing: PageContext = { terminal, unread: found.unread, sinceDay: firstDay(choices, terminal) }
  if (choices.session !== undefined) {
    const rows = found.isById === true ? 0 : sessions.length
    const chosen = chooseSession(sessions, choices.session, rows)
    if (!chosen.ok) throw new TidemarkError('not-a-session', `${toSafeLine(chosen.why)}.`)
    const only = [chosen.report]
    if (isExport(choices)) return writeExports(chosen.report, found.logs, choices, terminal)
    if (choices.json === true) writeJson(only, { ...showing, sessions: only, unreadable: [], unread: 0 })
    else terminal.write(renderSessionPage(chosen.report, createScreen(terminal), showing.sinceDay))
    return code
  }
  const [single] = sessions
  if (isExport(choices)) {
    if (single !== undefined && sessions.length === 1)
      return writeExports(single, found.logs, choices, terminal)
    const count = formatCount(sessions.length, 'session')
    return printMisuse(
      `--html and --card are for one session, and there are ${count}: choose with --session.`,
      terminal,
    )
  }
  if (choices.json === true)
    writeJson(limitItems(sessions, choices.limit ?? 0), { ...showing, sessions, unreadable })
  if (sessions.length === 0 && unreadable.length === 0)
    throw createNoSessionError('inspect', paths, choices, terminal)
  if (choices.json !== true) writePage(sessions, choices.limit ?? DEFAULT_ROWS, showing)
  return code
}

function isExport({ html, card }: InspectCommandOptions): boolean {
  return html !== undefined || card !== undefined
}

/** Writes the page and the picture of a session. Their code is loaded only when needed. */
async function writeExports(
  report: SessionReport,
  logs: readonly NamedLog[],
  { html, card, withText = false }: InspectCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const { writeSessionCard, writeSessionPage } = await import('../ui/session-exports.ts')
  if (html !== undefined) await writeSessionPage(html, report, logs, withText)
  if (card !== undefined) await writeSessionCard(card, report)
  for (const file of [html, card]) if (file !== undefined) terminal.write(`${formatPath(file)} written.\n`)
  return EXIT_CODES.done
}

interface FoundLogs {
  readonly logs: readonly NamedLog[]
  readonly unreadable: readonly UnreadableLog[]
  /** Number of logs that were found but will not be read. */
  readonly unread: number
  /** True if the logs were selected by session id. Sessions selected in this way have no row number in the table. */
  readonly isById?: boolean
}

/** Finds the logs in the given files and folders; without any, the newest ones in the default folders. */
export function findSessionLogs(
  paths: readonly string[],
  choices: Pick<InspectCommandOptions, 'limit' | 'since' | 'session'>,
  terminal: Terminal,
): Promise<FoundLogs> {
  return paths.length === 0
    ? findNewestSessions(choices, terminal)
    : findNamedSessions(paths, choices, terminal)
}

async function findNamedSessions(
  paths: readonly string[],
  choices: InspectCommandOptions,
  terminal: Terminal,
): Promise<FoundLogs> {
  const files = await Promise.all(paths.map((path) => resolveLogPath(path, terminal.env)))
  const { logs, unreadable } = await findNamedLogs(files, terminal.interrupted)
  const mayBeIds = new Set(files.filter(isSessionId).map((name) => resolve(name)))
  const described = unreadable.map((log) =>
    mayBeIds.has(log.file) && !existsSync(log.file)
      ? { ...log, why: `${log.why} tidemark sessions lists the ids of sessions.` }
      : log,
  )
  return { logs: filterModifiedSince(logs, choices.since), unreadable: described, unread: 0 }
}

/**
 * Finds logs in the default folders of Claude Code, Codex and Tidemark, with `--since` only those modified since. An id
 * in `--session` selects its logs; without id and `--since`, as many of the newest as the table has rows.
 */
async function findNewestSessions(choices: InspectCommandOptions, terminal: Terminal): Promise<FoundLogs> {
  const places = listDefaultLogFolders(terminal.env)
  const { logs, problems } = await findDefaultLogs(toSignalOption(terminal), places)
  const named = filterModifiedSince(
    logs.map((log) => ({ ...log, file: log.path })),
    choices.since,
  )
  const rows = limitItems(named, choices.since === undefined ? (choices.limit ?? DEFAULT_ROWS) : 0)
  const meant = findById(named, rows.length, choices)
  const read = meant ?? rows
  const unreadable = problems.map(({ path, message }) => ({ file: path, why: message }))
  return { logs: read, unreadable, unread: named.length - read.length, isById: meant !== null }
}

/**
 * Finds the logs whose session id begins with the `--session` value. Returns null if the value is missing, is a row
 * number, or matches no log. Only file names are compared, because a log file is named after its session.
 */
function findById(
  logs: readonly NamedLog[],
  rows: number,
  { session }: InspectCommandOptions,
): readonly NamedLog[] | null {
  if (session === undefined || parseRowNumber(session, rows) !== null) return null
  // Codex writes a timestamp before the session id in the names of its log files.
  const idIn = (path: string) => basename(path).replace(/^rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-/, '')
  const meant = logs.filter(({ path }) => idIn(path).startsWith(session))
  return meant.length === 0 ? null : meant
}

/** Returns the logs whose file was modified at or after `moment`, because an older file contains no newer records; all without a `moment`. */
function filterModifiedSince(logs: readonly NamedLog[], moment: number | undefined): readonly NamedLog[] {
  return moment === undefined ? logs : logs.filter(({ modifiedMs }) => modifiedMs >= moment)
}

/** Returns the first `most` items; all of them if `most` is 0. */
export function limitItems<T>(items: readonly T[], most: number): readonly T[] {
  return most === 0 ? items : items.slice(0, most)
}

async function inspectLogs(logs: readonly NamedLog[], terminal: Terminal): Promise<InspectionResult> {
  const line = createProgressLine(terminal, () => performance.now())
  const zone = terminal.env.TZ
  try {
    return await inspectFiles(logs, {
      ...toSignalOption(terminal),
      ...(zone === undefined ? {} : { timeZone: zone }),
      onProgress: ({ file, number, of, readBytes, totalBytes }) =>
        line.show(
          `reading ${number} of ${of}: ${formatBytes(readBytes)} of ${formatBytes(totalBytes)}  ${formatPath(file)}`,
        ),
    })
  } finally {
    line.clear()
  }
}

function selectSessions(
  sessions: readonly SessionReport[],
  choices: InspectCommandOptions,
): readonly SessionReport[] {
  const kept = choices.since === undefined ? sessions : filterSessionsSince(sessions, choices.since)
  return sortSessions(kept, choices.sort ?? 'date')
}

/** Returns the day of `--since`, the first day included in the totals; null without `--since`. */
function firstDay({ since }: InspectCommandOptions, terminal: Terminal): string | null {
  return since === undefined ? null : createScreen(terminal).time.day(new Date(since).toISOString())
}

interface PageContext {
  readonly terminal: Terminal
  /** Number of sessions that were found but not read. */
  readonly unread: number
  readonly sinceDay: string | null
}

interface JsonContext extends PageContext {
  /** All sessions that were read, including those not listed in the table. The totals are computed from them. */
  readonly sessions: readonly SessionReport[]
  readonly unreadable: readonly UnreadableLog[]
}

function writeJson(listed: readonly SessionReport[], context: JsonContext): void {
  const { sessions, unreadable, unread, terminal, sinceDay } = context
  const value = { sessions: listed, totals: sumSessions(sessions, sinceDay), unreadable, notRead: unread }
  terminal.write(`${formatJson(redactStrings(value))}\n`)
}

function writePage(
  sessions: readonly SessionReport[],
  rows: number,
  { terminal, unread, sinceDay }: PageContext,
): void {
  const [only] = sessions
  const screen = createScreen(terminal)
  if (only === undefined) return
  if (sessions.length === 1 && unread === 0) terminal.write(renderSessionPage(only, screen, sinceDay))
  else
    terminal.write(
      renderSessionsPage(sessions, { rows, unread, sinceDay, isTerminal: terminal.isTty }, screen),
    )
}

/** Returns the error of a command that found no session, with the places where it looked. */
export function createNoSessionError(
  command: string,
  paths: readonly string[],
  choices: InspectCommandOptions,
  terminal: Terminal,
): TidemarkError {
  const searched =
    paths.length === 0 ? listDefaultLogFolders(terminal.env).map(({ folder }) => folder) : paths
  const where = searched.map((path) => formatPath(path)).join(', ')
  const when = choices.since === undefined ? '' : ' used since then'
  return new TidemarkError(
    'not-a-session',
    `no session${when} in ${where}. Name a file or a folder: tidemark ${command} FILE.`,
  )
}
