/**
 * How a ledger is spelt: one line a file, its symbols bare behind it, the folder most files share said once. Paths
 * stay whole from there on: a name that has to be put together from two lines is found by nobody who searches.
 */

export interface LedgerFile {
  readonly path: string
  readonly edits: number
  readonly reads: number
  /** Identifiers last met in it. */
  readonly symbols: readonly string[]
}

export function ledgerLines(files: readonly LedgerFile[], names: readonly string[]): readonly string[] {
  const root = rootOf(files.map(({ path }) => path))
  const where = root === '' ? '' : `, in ${root}`
  const head = `In use (+n: edits)${where}`
  const body = files.filter((file) => !isBare(file)).map((file) => lineFor(file, root))
  const also = [...files.filter(isBare).map(({ path }) => path), ...names]
  return [head, ...body, ...(also.length === 0 ? [] : [`Also: ${also.join(' ')}`])]
}

/** A file name of which nothing more is known: no line of its own. */
function isBare({ path, edits, symbols }: LedgerFile): boolean {
  return !path.includes('/') && edits === 0 && symbols.length === 0
}

function lineFor({ path, edits, symbols }: LedgerFile, root: string): string {
  const name = root !== '' && path.startsWith(root) ? path.slice(root.length) : path
  const state = edits === 0 ? '' : ` +${edits}`
  return `${name}${state}${symbols.length === 0 ? '' : `: ${symbols.join(' ')}`}`
}

/** The folder that saves most when it is said once: long, and above many of the files. */
function rootOf(paths: readonly string[]): string {
  const above = new Map<string, number>()
  for (const path of paths) {
    for (let at = path.indexOf('/', 1); at !== -1; at = path.indexOf('/', at + 1)) {
      const folder = path.slice(0, at + 1)
      if (folder.startsWith('/')) above.set(folder, (above.get(folder) ?? 0) + 1)
    }
  }
  let best = { folder: '', saved: 0 }
  for (const [folder, count] of above) {
    const saved = (count - 1) * folder.length
    if (saved > best.saved) best = { folder, saved }
  }
  return best.folder
}
