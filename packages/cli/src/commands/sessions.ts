/** `tidemark sessions`: lists, searches and deletes Tidemark's own sessions. */
import {
  deleteOwnSession,
  findInOwnSessions,
  isSessionId,
  listOwnSessions,
  type OwnMatch,
  type OwnSession,
  redactAll,
  tidemarkHome,
} from 'tidemark'
import { bytes, count, whole } from '../render/figures.ts'
import { type Column, table } from '../render/layout.ts'
import { type Screen, screenFor } from '../render/screen.ts'
import { shown, shownPath } from '../render/text.ts'
import { isYes, type Terminal } from '../terminal.ts'
import { EXIT, printError, printUnreadable } from './exit-codes.ts'

interface ListChoices {
  readonly json?: boolean
}

export async function listSessions(choices: ListChoices, terminal: Terminal): Promise<number> {
  const home = tidemarkHome(terminal.env)
  const listing = await listOwnSessions(home, terminal.interrupted)
  const code = printUnreadable(listing.unreadable, terminal)
  if (choices.json === true)
    terminal.write(`${JSON.stringify(redactAll({ home, sessions: listing.found }))}\n`)
  else if (listing.found.length === 0) terminal.warn(`No sessions in ${shownPath(home)}.\n`)
  else terminal.write(`${sessionTable(listing.found, screenFor(terminal)).join('\n')}\n`)
  return code
}

function sessionTable(sessions: readonly OwnSession[], screen: Screen): readonly string[] {
  const { moments, colors } = screen
  const columns: readonly Column<OwnSession>[] = [
    { title: 'id', text: ({ id }) => id, paint: colors.bold },
    { title: 'last used', text: ({ modifiedAt }) => moments.full(modifiedAt) },
    { title: 'records', align: 'right', text: ({ records }) => whole(records) },
    { title: 'size', align: 'right', text: ({ sizeBytes }) => bytes(sizeBytes) },
    {
      title: 'damaged',
      align: 'right',
      text: ({ damaged }) => (damaged === 0 ? '' : whole(damaged)),
      paint: colors.yellow,
    },
    {
      title: 'first prompt',
      gives: 'end',
      text: ({ firstPrompt }) => shown(firstPrompt ?? ''),
      paint: colors.dim,
    },
  ]
  return table(sessions, columns, screen)
}

export async function findSessions(text: string, choices: ListChoices, terminal: Terminal): Promise<number> {
  const home = tidemarkHome(terminal.env)
  const listing = await findInOwnSessions(home, text, terminal.interrupted)
  const code = printUnreadable(listing.unreadable, terminal)
  if (choices.json === true)
    terminal.write(`${JSON.stringify(redactAll({ home, matches: listing.found }))}\n`)
  else if (listing.found.length === 0) terminal.warn(`No session in ${shownPath(home)} contains that text.\n`)
  else terminal.write(`${matchTable(listing.found, screenFor(terminal)).join('\n')}\n`)
  return code
}

function matchTable(matches: readonly OwnMatch[], screen: Screen): readonly string[] {
  const columns: readonly Column<OwnMatch>[] = [
    { title: 'id', text: ({ id }) => id, paint: screen.colors.bold },
    { title: 'line', align: 'right', text: ({ line }) => whole(line) },
    { title: 'author', text: ({ who }) => who },
    { title: 'text', gives: 'end', text: ({ text }) => shown(text), paint: screen.colors.dim },
  ]
  return table(matches, columns, screen)
}

/** If one id is not valid, none is deleted. */
export async function deleteSessions(
  ids: readonly string[],
  choices: { readonly yes?: boolean },
  terminal: Terminal,
): Promise<number> {
  const bad = ids.find((id) => !isSessionId(id))
  if (bad !== undefined)
    return printError(`${JSON.stringify(bad)} is not a session id; nothing was deleted.`, terminal)
  if (choices.yes !== true && !(await isWanted(ids, terminal))) return EXIT.failed
  const home = tidemarkHome(terminal.env)
  let code: number = EXIT.done
  for (const id of new Set(ids)) {
    const outcome = await deleteOwnSession(home, id)
    if (outcome.ok) terminal.write(`deleted ${id}\n`)
    else code = printError(outcome.why, terminal)
  }
  return code
}

async function isWanted(ids: readonly string[], terminal: Terminal): Promise<boolean> {
  const what = count(ids.length, 'session')
  const answer = await isYes(`Delete ${what} permanently (${ids.join(', ')})?`, terminal)
  if (answer === null) printError(`${what} would be deleted permanently: confirm with --yes.`, terminal)
  if (answer === false) terminal.warn('Nothing was deleted.\n')
  return answer === true
}
