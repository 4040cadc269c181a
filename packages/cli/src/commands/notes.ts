/** `tidemark notes`: prints the notes of a session, kept from its log without a model; `--watch` follows a live log. */

import { formatJson } from '@tidemark/terminal/render/json-output'
import { printError } from '@tidemark/terminal/render/print-errors'
import { formatPath } from '@tidemark/terminal/render/text'
import { EXIT_CODES, type Terminal, toSignalOption } from '@tidemark/terminal/terminal'
import { createLogNotes, followLogNotes, type NotesFromLog, resolveLogPath } from 'tidemark/internal'

export interface NotesCommandOptions {
  readonly watch?: boolean
  readonly json?: boolean
}

/** Printed between two versions of the notes. */
const RULE = `\n${'─'.repeat(40)}\n\n`

export async function runNotesCommand(
  given: string,
  { watch = false, json = false }: NotesCommandOptions,
  terminal: Terminal,
): Promise<number> {
  if (given.trim() === '') {
    printError('The name of the log is empty. Give a file, or the id of an own session.', terminal)
    return EXIT_CODES.wrongUse
  }
  const path = await resolveLogPath(given, terminal.env)
  let versions = 0
  const print = (notes: NotesFromLog): void => {
    versions += 1
    terminal.write(json ? `${formatNotes(notes)}\n` : `${versions === 1 ? '' : RULE}${notes.notes}`)
  }
  if (watch) {
    const signal = terminal.interrupted ?? new AbortController().signal
    const refusal = await followLogNotes(path, { signal, onNotes: print })
    return refusal === null ? EXIT_CODES.done : printError(refusal.message, terminal)
  }
  const notes = await createLogNotes(path, toSignalOption(terminal))
  if (!notes.ok) return printError(notes.message, terminal)
  if (notes.coveredUuid === null)
    return printError(`${formatPath(path)} has no conversation, so there are no notes of it.`, terminal)
  print(notes)
  warnOfDamage(path, notes.damage, terminal)
  return EXIT_CODES.done
}

/** Warns that the log has damaged places, which the notes may lack. Names the first; `tidemark inspect` lists all. */
function warnOfDamage(path: string, damage: NotesFromLog['damage'], terminal: Terminal): void {
  const [first] = damage
  if (first === undefined) return
  const count = damage.length === 1 ? 'a damaged place' : `${damage.length} damaged places`
  const start = damage.length === 1 ? 'Line' : 'The first is line'
  printError(
    `${formatPath(path)} has ${count}, so the notes may lack something. ${start} ${first.line}: ${first.why}`,
    terminal,
  )
}

function formatNotes({ notes, sections, tokens, coveredUuid, damage }: NotesFromLog): string {
  return formatJson({ notes, sections, tokens, coveredUuid, damage })
}
