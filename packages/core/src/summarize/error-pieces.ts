/** Section 4, "Errors and fixes", and what follows from it for section 5: what is solved, and what still fails. */
import { beginning, ending } from './cut-text.ts'
import type { FailedCall, FailingCommand } from './failing-command.ts'
import { fileName } from './names.ts'
import type { Piece } from './piece.ts'

export const ERRORS = 'errors'
const COMMAND = 300
/** Characters of an error that is told in short. */
export const LAST_WORDS = 150
const NAMED = 6

export interface ErrorRanks {
  readonly open: number
  readonly settled: number
  readonly calls: number
}

export function errorPieces(
  commands: readonly FailingCommand[],
  calls: readonly FailedCall[],
  ranks: ErrorRanks,
): readonly Piece[] {
  return [
    ...commands.map((item, index) => commandPiece(item, index, ranks)),
    ...calls.map((call, index) => callPiece(call, commands.length + index, ranks.calls)),
  ]
}

/** A command, how it stands, and the end of what it said when it last failed. */
export function commandError(item: FailingCommand): string {
  return `- \`${beginning(item.command, COMMAND)}\` ${standing(item)}. Its last error:\n${item.error}`
}

function commandPiece(item: FailingCommand, index: number, ranks: ErrorRanks): Piece {
  return {
    section: 4,
    rank: item.isSettled ? ranks.settled : ranks.open,
    order: index,
    full: commandError(item),
    short: `- \`${beginning(item.command, LAST_WORDS)}\` ${standing(item)}: ${ending(item.error.trim(), LAST_WORDS)}`,
    group: ERRORS,
    id: item.uuid,
  }
}

function standing({ isSettled, failures, editedSince }: FailingCommand): string {
  const failed = failures === 1 ? 'failed' : `failed ${failures} times`
  const changed = shortNames(editedSince.slice(-NAMED)).join(', ')
  const after = changed === '' ? '' : ` after changes to ${changed}`
  if (isSettled) return `${failed} and has succeeded since${after}`
  return `${failed} and has not succeeded since${changed === '' ? '' : `; changed since: ${changed}`}`
}

/** File names; of files that share theirs, the folder as well. */
function shortNames(paths: readonly string[]): readonly string[] {
  const names = paths.map(fileName)
  const isShared = (name: string): boolean => names.indexOf(name) !== names.lastIndexOf(name)
  const told = paths.map((path, index) => {
    const name = names[index] ?? path
    return isShared(name) ? path.split('/').slice(-2).join('/') : name
  })
  return [...new Set(told)]
}

function callPiece({ tool, target, error, uuid }: FailedCall, order: number, rank: number): Piece {
  const on = target === '' ? '' : ` on ${target}`
  const full = `- ${tool}${on} failed:\n${error}`
  return { section: 4, rank, order, full, short: null, group: ERRORS, id: uuid }
}
