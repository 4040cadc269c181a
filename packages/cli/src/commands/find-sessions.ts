/** Which logs a person means: those named, or, where none is, the newest of the known programs. */
import { basename } from 'node:path'
import { performance } from 'node:perf_hooks'
import {
  chooseSession,
  defaultPlaces,
  findDefaultLogs,
  findNamedLogs,
  inspectFiles,
  type NamedLog,
  type ReadLog,
  readLog,
  rowMeant,
  type Unreadable,
} from 'tidemark'
import { bytes, count } from '../render/figures.ts'
import { shownPath } from '../render/text.ts'
import { createProgressLine, type Terminal } from '../terminal.ts'

export interface FindChoices {
  /** How many sessions the table has; 0 for all. */
  readonly limit?: number
  /** Milliseconds since 1970. */
  readonly since?: number
  /** The one that is wanted: its number, or the beginning of its id. */
  readonly session?: string
}

/** Rows of a table, unless said otherwise. */
export const ROWS = 20

export interface FoundSessions {
  readonly logs: readonly NamedLog[]
  readonly unreadable: readonly Unreadable[]
  /** How many there are beside these. */
  readonly left: number
  /** They were chosen by the beginning of an id: their order is no table's. */
  readonly isById?: boolean
}

export async function namedLogs(
  paths: readonly string[],
  choices: FindChoices,
  terminal: Terminal,
): Promise<FoundSessions> {
  const { logs, unreadable } = await findNamedLogs(paths, terminal.interrupted)
  return { logs: touchedSince(logs, choices.since), unreadable, left: 0 }
}

/** Where the known programs keep their sessions. Without a date, only the newest are read: there may be thousands. */
export async function newestLogs(choices: FindChoices, terminal: Terminal): Promise<FoundSessions> {
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

/** The programs name a log after its session, so one that is wanted by its id need not be among the newest. */
function meantById(
  logs: readonly NamedLog[],
  rows: number,
  { session }: FindChoices,
): readonly NamedLog[] | null {
  if (session === undefined || rowMeant(session, rows) !== null) return null
  const meant = logs.filter(({ path }) => idIn(path).startsWith(session))
  return meant.length === 0 ? null : meant
}

/** Codex puts the moment before the id. */
function idIn(path: string): string {
  return basename(path).replace(/^rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-/, '')
}

export function signalOf({ interrupted }: Terminal): { readonly signal?: AbortSignal } {
  return interrupted === undefined ? {} : { signal: interrupted }
}

/** A file that was not written to since then has nothing newer in it. */
function touchedSince(logs: readonly NamedLog[], moment: number | undefined): readonly NamedLog[] {
  return moment === undefined ? logs : logs.filter(({ modifiedMs }) => modifiedMs >= moment)
}

/** The first so many; 0 for all. */
export function limited<T>(items: readonly T[], most: number): readonly T[] {
  return most === 0 ? items : items.slice(0, most)
}

// The one log that a person means by a file, or by a folder and the session in it.

export type OpenedLog =
  | { readonly ok: true; readonly log: ReadLog }
  | { readonly ok: false; readonly isWrongUse: boolean; readonly message: string }

interface SessionChoice {
  readonly session?: string
}

export async function openedLog(
  path: string,
  choices: SessionChoice,
  terminal: Terminal,
): Promise<OpenedLog> {
  const { logs, unreadable } = await findNamedLogs([path], terminal.interrupted)
  const [first] = logs
  if (first === undefined)
    return { ok: false, isWrongUse: false, message: unreadable[0]?.why ?? `${path} is no log.` }
  const meant =
    logs.length === 1 && choices.session === undefined
      ? first
      : await chosen(logs, path, { choices, terminal })
  return 'ok' in meant ? meant : read(meant, terminal)
}

interface Choosing {
  readonly choices: SessionChoice
  readonly terminal: Terminal
}

async function chosen(
  logs: readonly NamedLog[],
  path: string,
  { choices, terminal }: Choosing,
): Promise<NamedLog | Exclude<OpenedLog, { ok: true }>> {
  const wrong = (message: string) => ({ ok: false as const, isWrongUse: true, message })
  if (choices.session === undefined)
    return wrong(
      `${shownPath(path)} holds ${count(logs.length, 'session')}: say which with --session, or give its file.`,
    )
  const { sessions } = await inspectFiles(logs, signalOf(terminal))
  const choice = chooseSession(sessions, choices.session)
  if (!choice.ok) return wrong(`${choice.why}.`)
  return logs.find(({ file }) => file === choice.report.file) ?? wrong(`no session is ${choices.session}.`)
}

async function read(log: NamedLog, terminal: Terminal): Promise<OpenedLog> {
  const line = createProgressLine(terminal, () => performance.now())
  try {
    const found = await readLog(log, {
      ...signalOf(terminal),
      withAgents: false,
      onProgress: ({ readBytes }) =>
        line.show(`reading ${bytes(readBytes)} of ${bytes(log.sizeBytes)}  ${shownPath(log.file)}`),
    })
    return found.ok ? { ok: true, log: found } : { ok: false, isWrongUse: false, message: found.message }
  } finally {
    line.clear()
  }
}
