/** The one log that a person means by a file, or by a folder and the session in it. */
import { performance } from 'node:perf_hooks'
import { chooseSession, findNamedLogs, inspectFiles, type NamedLog, type ReadLog, readLog } from 'tidemark'
import { createProgressLine } from '../progress.ts'
import { bytes, count } from '../render/figures.ts'
import { shownPath } from '../render/inspect/shown.ts'
import type { Terminal } from '../terminal.ts'
import { signalOf } from './found-sessions.ts'

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
