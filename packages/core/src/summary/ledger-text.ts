/**
 * Formats a ledger: one line for each file, followed by the file's identifiers. The folder that most files share is named
 * once in the heading, and files of the same folder are listed below its name, so that more names fit. Every path can
 * still be put together from its lines.
 */

export interface LedgerFileLine {
  readonly path: string
  /** Identifiers that were last mentioned together with this file. */
  readonly symbols: readonly string[]
}

export function formatLedger(files: readonly LedgerFileLine[], names: readonly string[]): readonly string[] {
  const listed = files.filter((file) => !isBareName(file))
  const root = findSharedFolder(listed.map(({ path }) => path))
  const folders = new Map<string, LedgerFileLine[]>()
  for (const file of listed) {
    const path = shortenPath(file.path, root)
    const folder = path.slice(0, path.lastIndexOf('/') + 1)
    folders.set(folder, [...(folders.get(folder) ?? []), file])
  }
  const body = [...folders].flatMap(([folder, own]) => {
    const isShort = own.length === 1 || folder === ''
    const lines = own.map((file) => `${isShort ? folder : ' '}${formatFileLine(file)}`)
    return isShort ? lines : [folder, ...lines]
  })
  const also = [...files.filter(isBareName).map(({ path }) => path), ...names]
  const heading = root === '' ? LEDGER_HEADING : `${LEDGER_HEADING}, in ${root}`
  return [heading, ...body, ...(also.length === 0 ? [] : [`Also: ${also.join(' ')}`])]
}

/**
 * Shortens a path below the folder in the heading. Of a path that is known only by its end, it is unknown whether it is in
 * that folder, so it begins with `…/`.
 */
function shortenPath(path: string, root: string): string {
  if (root === '' || !path.includes('/')) return path
  if (path.startsWith(root)) return path.slice(root.length)
  return ABSOLUTE_PATH.test(path) ? path : `…/${path.replace(/^\.\//, '')}`
}

const LEDGER_HEADING = 'In use'
const ABSOLUTE_PATH = /^(?:[A-Za-z]:)?\//

/** Finds the folder whose omission from all paths below it saves most characters; an empty text if none saves any. */
function findSharedFolder(paths: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const path of paths) {
    if (!ABSOLUTE_PATH.test(path)) continue
    for (let end = path.indexOf('/', 1); end !== -1; end = path.indexOf('/', end + 1)) {
      const folder = path.slice(0, end + 1)
      counts.set(folder, (counts.get(folder) ?? 0) + 1)
    }
  }
  const saved = [...counts].map(([folder, count]) => ({ folder, saved: (count - 1) * folder.length }))
  const [best] = saved.toSorted(
    (one, other) => other.saved - one.saved || (one.folder < other.folder ? -1 : 1),
  )
  return best === undefined || best.saved === 0 ? '' : best.folder
}

/** Returns true if a file is known by its bare name only, without folder or identifiers. It gets no line of its own. */
function isBareName({ path, symbols }: LedgerFileLine): boolean {
  return !path.includes('/') && symbols.length === 0
}

function formatFileLine({ path, symbols }: LedgerFileLine): string {
  return `${path.slice(path.lastIndexOf('/') + 1)}${symbols.length === 0 ? '' : `: ${symbols.join(' ')}`}`
}
