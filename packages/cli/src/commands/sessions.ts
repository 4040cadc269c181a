/** `tidemark sessions`: lists, searches and deletes Tidemark's own sessions. */

import { formatBytes, formatCount, formatInteger } from '@tidemark/terminal/render/format-numbers'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { renderTable, type TableColumn } from '@tidemark/terminal/render/layout'
import { printError, printUnreadableLogs } from '@tidemark/terminal/render/print-errors'
import { createScreen, type Screen } from '@tidemark/terminal/render/screen'
import { formatPath, toSafeLine } from '@tidemark/terminal/render/text'
import { askYesNo, EXIT_CODES, type Terminal } from '@tidemark/terminal/terminal'
import { hasSession, isSessionId, redactStrings, type SessionInfo, tidemarkHome } from 'tidemark/internal'
import { deleteSession, listSessions, type SessionMatch, searchSessions } from 'tidemark/logs'

interface ListCommandOptions {
  readonly json?: boolean
}

export async function printSessionList(choices: ListCommandOptions, terminal: Terminal): Promise<number> {
  const home = tidemarkHome(terminal.env)
  const listing = await listSessions(home, terminal.interrupted)
  const code = printUnreadableLogs(listing.unreadable, terminal)
  if (choices.json === true)
    terminal.write(`${formatJson(redactStrings({ home, sessions: listing.found }))}\n`)
  else if (listing.found.length > 0)
    terminal.write(`${renderSessionTable(listing.found, createScreen(terminal)).join('\n')}\n`)
  else if (listing.unreadable.length === 0) terminal.warn(`No sessions in ${formatPath(home)}.\n`)
  return code
}

/** Minimum screen width for columns with sizes. A narrower screen shows first prompts, by which users recognize sessions. */
const MIN_WIDTH_FOR_SIZES = 100

const SIZE_COLUMNS: readonly TableColumn<SessionInfo>[] = [
  { title: 'records', align: 'right', text: ({ records }) => formatInteger(records) },
  { title: 'size', align: 'right', text: ({ sizeBytes }) => formatBytes(sizeBytes) },
]

function renderSessionTable(sessions: readonly SessionInfo[], screen: Screen): readonly string[] {
  const { time, colors } = screen
  const damage: TableColumn<SessionInfo> = {
    title: 'damaged',
    align: 'right',
    text: ({ damaged }) => (damaged === 0 ? '' : formatInteger(damaged)),
    color: colors.yellow,
  }
  const columns: readonly TableColumn<SessionInfo>[] = [
    { title: 'id', text: ({ id }) => id, color: colors.bold },
    { title: 'last used', text: ({ modifiedAt }) => time.full(modifiedAt) },
    ...(screen.columns < MIN_WIDTH_FOR_SIZES ? [] : SIZE_COLUMNS),
    ...(sessions.some(({ damaged }) => damaged > 0) ? [damage] : []),
    {
      title: 'first prompt',
      cutAt: 'end',
      text: ({ firstPrompt }) => toSafeLine(firstPrompt ?? ''),
      color: colors.dim,
    },
  ]
  return renderTable(sessions, columns, screen)
}

export async function printSessionMatches(
  text: string,
  choices: ListCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const home = tidemarkHome(terminal.env)
  const listing = await searchSessions(home, text, terminal.interrupted)
  const code = printUnreadableLogs(listing.unreadable, terminal)
  if (choices.json === true)
    terminal.write(`${formatJson(redactStrings({ home, matches: listing.found }))}\n`)
  else if (listing.found.length === 0)
    terminal.warn(
      `No ${listing.unreadable.length > 0 ? 'other ' : ''}session in ${formatPath(home)} contains that text.\n`,
    )
  else terminal.write(`${renderMatchTable(listing.found, createScreen(terminal)).join('\n')}\n`)
  return code
}

function renderMatchTable(matches: readonly SessionMatch[], screen: Screen): readonly string[] {
  const columns: readonly TableColumn<SessionMatch>[] = [
    { title: 'id', text: ({ id }) => id, color: screen.colors.bold },
    { title: 'line', align: 'right', text: ({ line }) => formatInteger(line) },
    { title: 'author', text: ({ who }) => who },
    { title: 'text', cutAt: 'end', text: ({ text }) => toSafeLine(text), color: screen.colors.dim },
  ]
  return renderTable(matches, columns, screen)
}

/** Deletes the sessions that exist, after a question; none if one of the ids is not valid. Returns the exit code. */
export async function deleteSessions(
  ids: readonly string[],
  choices: { readonly yes?: boolean },
  terminal: Terminal,
): Promise<number> {
  const bad = ids.find((id) => !isSessionId(id))
  if (bad !== undefined)
    return printError(`${JSON.stringify(bad)} is not a session id; nothing was deleted.`, terminal)
  const home = tidemarkHome(terminal.env)
  let code: number = EXIT_CODES.done
  const existing: string[] = []
  for (const id of new Set(ids)) {
    if (await hasSession(home, id)) existing.push(id)
    else code = printError(`There is no session "${id}".`, terminal)
  }
  if (existing.length === 0) return code
  if (choices.yes !== true && !(await confirmDeletion(existing, terminal))) return EXIT_CODES.failed
  for (const id of existing) {
    const outcome = await deleteSession(home, id)
    if (outcome.ok) {
      const blobs = outcome.blobs > 0 ? `, with ${formatCount(outcome.blobs, 'large result')}` : ''
      terminal.write(`deleted ${id}${blobs}\n`)
      if (outcome.blobsKept !== null)
        terminal.warn(`Its large results stay in the blobs of ${formatPath(home)}: ${outcome.blobsKept}\n`)
    } else code = printError(outcome.why, terminal)
  }
  return code
}

async function confirmDeletion(ids: readonly string[], terminal: Terminal): Promise<boolean> {
  const what = formatCount(ids.length, 'session')
  const answer = await askYesNo(`Delete ${what} permanently (${ids.join(', ')})?`, terminal)
  if (answer === null) printError(`${what} would be deleted permanently: confirm with --yes.`, terminal)
  if (answer === false) terminal.warn('Nothing was deleted.\n')
  return answer === true
}
