/** `tidemark inspect`: finds the logs, reads them, and shows a page, a table or JSON. */
import { basename } from 'node:path'
import { performance } from 'node:perf_hooks'
import { TidemarkError } from '@tidemark/core'
import {
  chooseSession,
  defaultPlaces,
  findDefaultLogs,
  findNamedLogs,
  type Inspection,
  inspectFiles,
  type NamedLog,
  redactAll,
  rowMeant,
  type SessionReport,
  type SortKey,
  since,
  sortReports,
  totalsOf,
  type Unreadable,
} from 'tidemark'
import { sessionPage } from '../pages/session-page.ts'
import { sessionsPage } from '../pages/sessions-page.ts'
import { bytes } from '../render/figures.ts'
import { screenFor } from '../render/screen.ts'
import { shown, shownPath } from '../render/text.ts'
import { createProgressLine, signalOf, type Terminal } from '../terminal.ts'
import { printUnreadable } from './exit-codes.ts'

export interface InspectChoices {
  /** Sessions in the table; 0 for all. */
  readonly limit?: number
  /** Milliseconds since 1970. */
  readonly since?: number
  /** The session to show: its number, or the beginning of its id. */
  readonly session?: string
  readonly sort?: SortKey
  readonly json?: boolean
}

/** Rows of the table by default. */
const ROWS = 20

export async function inspect(
  paths: readonly string[],
  choices: InspectChoices,
  terminal: Terminal,
): Promise<number> {
  const found =
    paths.length === 0 ? await newestLogs(choices, terminal) : await namedLogs(paths, choices, terminal)
  const inspection = await inspected(found.logs, terminal)
  const unreadable = [...found.unreadable, ...inspection.unreadable]
  const code = printUnreadable(unreadable, terminal)
  const sessions = arranged(inspection.sessions, choices)
  const showing: Showing = { terminal, left: found.left, sinceDay: dayOf(choices, terminal) }
  if (choices.session !== undefined) {
    const rows = found.isById === true ? 0 : sessions.length
    const chosen = chooseSession(sessions, choices.session, rows)
    if (!chosen.ok) throw new TidemarkError('not-a-session', `${shown(chosen.why)}.`)
    const only = [chosen.report]
    if (choices.json === true) writeJson(only, { ...showing, sessions: only, unreadable: [], left: 0 })
    else terminal.write(sessionPage(chosen.report, screenFor(terminal), showing.sinceDay))
    return code
  }
  if (choices.json === true)
    writeJson(limited(sessions, choices.limit ?? 0), { ...showing, sessions, unreadable })
  if (sessions.length === 0 && unreadable.length === 0) throw nothingFound(paths, choices, terminal)
  if (choices.json !== true) writePage(sessions, choices.limit ?? ROWS, showing)
  return code
}

interface FoundSessions {
  readonly logs: readonly NamedLog[]
  readonly unreadable: readonly Unreadable[]
  /** How many more there are. */
  readonly left: number
  /** Selected by the beginning of an id, so they have no row numbers. */
  readonly isById?: boolean
}

async function namedLogs(
  paths: readonly string[],
  choices: InspectChoices,
  terminal: Terminal,
): Promise<FoundSessions> {
  const { logs, unreadable } = await findNamedLogs(paths, terminal.interrupted)
  return { logs: touchedSince(logs, choices.since), unreadable, left: 0 }
}

/** Logs in the folders of the known programs. Without a date only the newest are read: there may be thousands. */
async function newestLogs(choices: InspectChoices, terminal: Terminal): Promise<FoundSessions> {
  const places = defaultPlaces(terminal.env)
  const { logs, problems } = await findDefaultLogs(signalOf(terminal), places)
  const named = touchedSince(
    logs.map((log) => ({ ...log, file: log.path })),
    choices.since,
  )
  const rows = limited(named, choices.since === undefined ? (choices.limit ?? ROWS) : 0)
  const meant = meantById(named, rows.length, choices)
  const read = meant ?? rows
  const unreadable = problems.map(({ path, message }) => ({ file: path, why: message }))
  return { logs: read, unreadable, left: named.length - read.length, isById: meant !== null }
}

/** A log is named after its session, so a session requested by id need not be among the newest. */
function meantById(
  logs: readonly NamedLog[],
  rows: number,
  { session }: InspectChoices,
): readonly NamedLog[] | null {
  if (session === undefined || rowMeant(session, rows) !== null) return null
  // Codex puts the time before the id.
  const idIn = (path: string) => basename(path).replace(/^rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-/, '')
  const meant = logs.filter(({ path }) => idIn(path).startsWith(session))
  return meant.length === 0 ? null : meant
}

/** A file that was not modified since then contains nothing newer. */
function touchedSince(logs: readonly NamedLog[], moment: number | undefined): readonly NamedLog[] {
  return moment === undefined ? logs : logs.filter(({ modifiedMs }) => modifiedMs >= moment)
}

/** The first `most` items; 0 for all. */
function limited<T>(items: readonly T[], most: number): readonly T[] {
  return most === 0 ? items : items.slice(0, most)
}

async function inspected(logs: readonly NamedLog[], terminal: Terminal): Promise<Inspection> {
  const line = createProgressLine(terminal, () => performance.now())
  const zone = terminal.env.TZ
  try {
    return await inspectFiles(logs, {
      ...signalOf(terminal),
      ...(zone === undefined ? {} : { timeZone: zone }),
      onProgress: ({ file, number, of, readBytes, totalBytes }) =>
        line.show(
          `reading ${number} of ${of}: ${bytes(readBytes)} of ${bytes(totalBytes)}  ${shownPath(file)}`,
        ),
    })
  } finally {
    line.clear()
  }
}

function arranged(sessions: readonly SessionReport[], choices: InspectChoices): readonly SessionReport[] {
  const kept = choices.since === undefined ? sessions : since(sessions, choices.since)
  return choices.sort === undefined ? kept : sortReports(kept, choices.sort)
}

/** The first day that totals include. */
function dayOf({ since: moment }: InspectChoices, terminal: Terminal): string | null {
  return moment === undefined ? null : screenFor(terminal).moments.day(new Date(moment).toISOString())
}

interface Showing {
  readonly terminal: Terminal
  /** Sessions found but not read. */
  readonly left: number
  readonly sinceDay: string | null
}

interface JsonContext extends Showing {
  /** The sessions that totals cover: all that were read, listed or not. */
  readonly sessions: readonly SessionReport[]
  readonly unreadable: readonly Unreadable[]
}

function writeJson(listed: readonly SessionReport[], context: JsonContext): void {
  const { sessions, unreadable, left, terminal, sinceDay } = context
  const value = { sessions: listed, totals: totalsOf(sessions, sinceDay), unreadable, notRead: left }
  terminal.write(`${JSON.stringify(redactAll(value))}\n`)
}

function writePage(
  sessions: readonly SessionReport[],
  rows: number,
  { terminal, left, sinceDay }: Showing,
): void {
  const [only] = sessions
  const screen = screenFor(terminal)
  if (only === undefined) return
  if (sessions.length === 1 && left === 0) terminal.write(sessionPage(only, screen, sinceDay))
  else terminal.write(sessionsPage(sessions, { rows, left, sinceDay, isWatched: terminal.isTty }, screen))
}

function nothingFound(paths: readonly string[], choices: InspectChoices, terminal: Terminal): TidemarkError {
  const searched = paths.length === 0 ? defaultPlaces(terminal.env).map(({ folder }) => folder) : paths
  const where = searched.map((path) => shownPath(path)).join(', ')
  const when = choices.since === undefined ? '' : ' used since then'
  return new TidemarkError(
    'not-a-session',
    `no session${when} in ${where}. Name a file or a folder: tidemark inspect FILE.`,
  )
}
