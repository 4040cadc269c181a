/**
 * How a ledger is spelt: one line a file, its symbols bare behind it. Paths stay whole: a name that has to be put
 * together from two lines is found by nobody who searches, and can be handed to no tool as it stands.
 */

export interface LedgerFile {
  readonly path: string
  readonly edits: number
  readonly reads: number
  /** Identifiers last met in it. */
  readonly symbols: readonly string[]
}

export function ledgerLines(files: readonly LedgerFile[], names: readonly string[]): readonly string[] {
  const body = files.filter((file) => !isBare(file)).map(lineFor)
  const also = [...files.filter(isBare).map(({ path }) => path), ...names]
  return [HEAD, ...body, ...(also.length === 0 ? [] : [`Also: ${also.join(' ')}`])]
}

const HEAD = 'In use (+n: edits)'

/** A file name of which nothing more is known: no line of its own. */
function isBare({ path, edits, symbols }: LedgerFile): boolean {
  return !path.includes('/') && edits === 0 && symbols.length === 0
}

function lineFor({ path, edits, symbols }: LedgerFile): string {
  const state = edits === 0 ? '' : ` +${edits}`
  return `${path}${state}${symbols.length === 0 ? '' : `: ${symbols.join(' ')}`}`
}
