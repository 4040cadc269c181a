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
  type SessionReport,
  type SortKey,
  since,
  sortReports,
  totalsOf,
  type Unreadable,
} from 'tidemark'
import { createProgressLine } from '../progress.ts'
import { bytes } from '../render/figures.ts'
import { sessionPage } from '../render/inspect/session-page.ts'
import { sessionsPage } from '../render/inspect/sessions-page.ts'
import { shown, shownPath } from '../render/inspect/shown.ts'
import { screenFor } from '../render/screen.ts'
import type { Terminal } from '../terminal.ts'
import { type FindChoices, limited, namedLogs, newestLogs, ROWS, signalOf } from './found-sessions.ts'

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
  if (choices.session !== undefined) return showChosen(sessions, choices.session, { choices, terminal, code })
  if (choices.json === true)
    writeJson(limited(sessions, choices.limit ?? 0), { sessions, unreadable, left: found.left, terminal })
  else if (sessions.length === 0 && unreadable.length === 0) throw nothingFound(paths, { choices, terminal })
  else showAll(sessions, { choices, terminal, left: found.left })
  return code
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
}

function showChosen(
  sessions: readonly SessionReport[],
  wanted: string,
  { choices, terminal, code }: Showing & { readonly code: number },
): number {
  const chosen = chooseSession(sessions, wanted)
  if (!chosen.ok) throw new TidemarkError('not-a-session', `${chosen.why}.`)
  if (choices.json === true)
    writeJson([chosen.report], { sessions: [chosen.report], unreadable: [], left: 0, terminal })
  else terminal.write(sessionPage(chosen.report, screenFor(terminal)))
  return code
}

interface JsonContext {
  /** What the totals are of: all that was read, shown or not. */
  readonly sessions: readonly SessionReport[]
  readonly unreadable: readonly Unreadable[]
  /** Sessions that were found and not read. */
  readonly left: number
  readonly terminal: Terminal
}

function writeJson(listed: readonly SessionReport[], context: JsonContext): void {
  const { sessions, unreadable, left, terminal } = context
  const value = { sessions: listed, totals: totalsOf(sessions), unreadable, notRead: left }
  terminal.write(`${JSON.stringify(value)}\n`)
}

function showAll(
  sessions: readonly SessionReport[],
  { choices, terminal, left }: Showing & { readonly left: number },
): void {
  const [only] = sessions
  const screen = screenFor(terminal)
  if (only === undefined) return
  if (sessions.length === 1 && left === 0) terminal.write(sessionPage(only, screen))
  else
    terminal.write(
      sessionsPage(sessions, { rows: choices.limit ?? ROWS, left, isWatched: terminal.isTty }, screen),
    )
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
