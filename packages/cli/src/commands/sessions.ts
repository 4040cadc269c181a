/** `tidemark sessions`: Tidemark's own sessions, listed, searched, deleted. */
import {
  deleteOwnSession,
  findInOwnSessions,
  isSessionId,
  listOwnSessions,
  type OwnListing,
  type OwnMatch,
  type OwnSession,
  redactAll,
  tidemarkHome,
} from 'tidemark'
import { bytes, count, whole } from '../render/figures.ts'
import { type Screen, screenFor } from '../render/screen.ts'
import { type Column, table } from '../render/table.ts'
import { shown, shownPath } from '../render/text.ts'
import type { Terminal } from '../terminal.ts'

const DONE = 0
const FAILED = 1

interface ListChoices {
  readonly json?: boolean
}

export async function listSessions(choices: ListChoices, terminal: Terminal): Promise<number> {
  const home = tidemarkHome(terminal.env)
  const listing = await listOwnSessions(home, terminal.interrupted)
  const code = tellUnreadable(listing, terminal)
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
    { title: 'begins', gives: 'end', text: ({ firstPrompt }) => shown(firstPrompt ?? ''), paint: colors.dim },
  ]
  return table(sessions, columns, screen)
}

export async function findSessions(text: string, choices: ListChoices, terminal: Terminal): Promise<number> {
  const home = tidemarkHome(terminal.env)
  const listing = await findInOwnSessions(home, text, terminal.interrupted)
  const code = tellUnreadable(listing, terminal)
  if (choices.json === true)
    terminal.write(`${JSON.stringify(redactAll({ home, matches: listing.found }))}\n`)
  else if (listing.found.length === 0) terminal.warn(`No session in ${shownPath(home)} says that.\n`)
  else terminal.write(`${matchTable(listing.found, screenFor(terminal)).join('\n')}\n`)
  return code
}

function matchTable(matches: readonly OwnMatch[], screen: Screen): readonly string[] {
  const columns: readonly Column<OwnMatch>[] = [
    { title: 'id', text: ({ id }) => id, paint: screen.colors.bold },
    { title: 'line', align: 'right', text: ({ line }) => whole(line) },
    { title: 'who', text: ({ who }) => who },
    { title: 'says', gives: 'end', text: ({ text }) => shown(text), paint: screen.colors.dim },
  ]
  return table(matches, columns, screen)
}

function tellUnreadable({ unreadable }: OwnListing<unknown>, terminal: Terminal): number {
  for (const { why } of unreadable) terminal.warn(`tidemark: ${shown(why)}\n`)
  return unreadable.length > 0 ? FAILED : DONE
}

/** A bad id deletes nothing, not even the others. */
export async function deleteSessions(
  ids: readonly string[],
  choices: { readonly yes?: boolean },
  terminal: Terminal,
): Promise<number> {
  const bad = ids.find((id) => !isSessionId(id))
  if (bad !== undefined)
    return refuse(`${JSON.stringify(bad)} is no session id; nothing was deleted.`, terminal)
  if (choices.yes !== true && !(await isWanted(ids, terminal))) return FAILED
  const home = tidemarkHome(terminal.env)
  let code = DONE
  for (const id of new Set(ids)) {
    const outcome = await deleteOwnSession(home, id)
    if (outcome.ok) terminal.write(`deleted ${id}\n`)
    else code = refuse(outcome.why, terminal)
  }
  return code
}

async function isWanted(ids: readonly string[], terminal: Terminal): Promise<boolean> {
  const what = count(ids.length, 'session')
  const answer = await terminal.ask?.(`Delete ${what} for good (${ids.join(', ')})? [y/N] `)
  if (answer == null) {
    refuse(`${what} would be deleted for good: say so with --yes.`, terminal)
    return false
  }
  const isYes = /^y(es)?$/i.test(answer.trim())
  if (!isYes) terminal.warn('Nothing was deleted.\n')
  return isYes
}

function refuse(why: string, terminal: Terminal): number {
  terminal.warn(`tidemark: ${shown(why)}\n`)
  return FAILED
}
