/** `tidemark inspect`: where the context and the money of past sessions went. */
import { performance } from 'node:perf_hooks'
import { TidemarkError } from '@tidemark/core'
import {
  chooseSession,
  defaultPlaces,
  type Inspection,
  type InspectProgress,
  inspectFiles,
  type NamedLog,
  redactAll,
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
import { createProgressLine, type Terminal } from '../terminal.ts'
import { type FindChoices, limited, namedLogs, newestLogs, ROWS, signalOf } from './find-sessions.ts'

export interface InspectChoices extends FindChoices {
  readonly json?: boolean
  readonly sort?: SortKey
}

const DONE = 0
const FAILED = 1

export async function inspect(
  paths: readonly string[],
  choices: InspectChoices,
  terminal: Terminal,
): Promise<number> {
  const found =
    paths.length === 0 ? await newestLogs(choices, terminal) : await namedLogs(paths, choices, terminal)
  const inspection = await inspected(found.logs, terminal)
  const unreadable = [...found.unreadable, ...inspection.unreadable]
  for (const { why } of unreadable) terminal.warn(`tidemark: ${shown(why)}\n`)
  const sessions = arranged(inspection.sessions, choices)
  const code = unreadable.length > 0 ? FAILED : DONE
  const showing = { choices, terminal, left: found.left, sinceDay: dayOf(choices, terminal) }
  if (choices.session !== undefined) {
    const rows = found.isById === true ? 0 : sessions.length
    return showChosen(sessions, choices.session, { ...showing, rows, code })
  }
  if (choices.json === true)
    writeJson(limited(sessions, choices.limit ?? 0), { ...showing, sessions, unreadable })
  if (sessions.length === 0 && unreadable.length === 0) throw nothingFound(paths, showing)
  if (choices.json !== true) showAll(sessions, showing)
  return code
}

/** The day from which on totals are counted. */
function dayOf({ since: moment }: InspectChoices, terminal: Terminal): string | null {
  return moment === undefined ? null : screenFor(terminal).moments.day(new Date(moment).toISOString())
}

async function inspected(logs: readonly NamedLog[], terminal: Terminal): Promise<Inspection> {
  const line = createProgressLine(terminal, () => performance.now())
  const zone = terminal.env.TZ
  try {
    return await inspectFiles(logs, {
      ...signalOf(terminal),
      ...(zone === undefined ? {} : { timeZone: zone }),
      onProgress: (progress) => line.show(progressText(progress)),
    })
  } finally {
    line.clear()
  }
}

function progressText({ file, number, of, readBytes, totalBytes }: InspectProgress): string {
  return `reading ${number} of ${of}: ${bytes(readBytes)} of ${bytes(totalBytes)}  ${shownPath(file)}`
}

function arranged(sessions: readonly SessionReport[], choices: InspectChoices): readonly SessionReport[] {
  const kept = choices.since === undefined ? sessions : since(sessions, choices.since)
  return choices.sort === undefined ? kept : sortReports(kept, choices.sort)
}

interface Showing {
  readonly choices: InspectChoices
  readonly terminal: Terminal
  /** Sessions that were found and not read. */
  readonly left: number
  readonly sinceDay: string | null
}

interface Choosing extends Showing {
  /** How many of them have a number. */
  readonly rows: number
  readonly code: number
}

function showChosen(sessions: readonly SessionReport[], wanted: string, choosing: Choosing): number {
  const { choices, terminal, sinceDay, rows, code } = choosing
  const chosen = chooseSession(sessions, wanted, rows)
  if (!chosen.ok) throw new TidemarkError('not-a-session', `${shown(chosen.why)}.`)
  const only = [chosen.report]
  if (choices.json === true) writeJson(only, { ...choosing, sessions: only, unreadable: [], left: 0 })
  else terminal.write(sessionPage(chosen.report, screenFor(terminal), sinceDay))
  return code
}

interface JsonContext extends Showing {
  /** What the totals are of: all that was read, shown or not. */
  readonly sessions: readonly SessionReport[]
  readonly unreadable: readonly Unreadable[]
}

function writeJson(listed: readonly SessionReport[], context: JsonContext): void {
  const { sessions, unreadable, left, terminal, sinceDay } = context
  const value = { sessions: listed, totals: totalsOf(sessions, sinceDay), unreadable, notRead: left }
  terminal.write(`${JSON.stringify(redactAll(value))}\n`)
}

function showAll(sessions: readonly SessionReport[], { choices, terminal, left, sinceDay }: Showing): void {
  const [only] = sessions
  const screen = screenFor(terminal)
  if (only === undefined) return
  if (sessions.length === 1 && left === 0) terminal.write(sessionPage(only, screen, sinceDay))
  else {
    const view = { rows: choices.limit ?? ROWS, left, sinceDay, isWatched: terminal.isTty }
    terminal.write(sessionsPage(sessions, view, screen))
  }
}

function nothingFound(paths: readonly string[], { choices, terminal }: Showing): TidemarkError {
  const looked = paths.length === 0 ? defaultPlaces(terminal.env).map(({ folder }) => folder) : paths
  const where = looked.map((path) => shownPath(path)).join(', ')
  const when = choices.since === undefined ? '' : ' that was used since then'
  return new TidemarkError(
    'not-a-session',
    `no session${when} in ${where}. Name a file or a folder: tidemark inspect FILE.`,
  )
}
