/**
 * Brings the map up to date: a line for every file that has none, at the end of its room, and none for a file
 * that is gone. Lines that somebody wrote stay as they are.
 */
import { placesOf, roomOf } from './map.ts'

/** Stands where nothing is known to say; asked again at the next update, and refused by the check. */
const UNSAID = '?'

/** `describe`: what to say about a new file, or null where it says nothing about itself. */
export function updateMap(
  text: string,
  files: readonly string[],
  describe: (path: string) => string | null,
): string {
  const real = new Set([...files, ...files.flatMap((path) => roomOf(path) ?? [])])
  const gone = new Set(
    placesOf(text).flatMap(({ path, line, said }) =>
      real.has(path) && (said !== UNSAID || path.endsWith('/')) ? [] : [line],
    ),
  )
  let rows: readonly string[] = text.split('\n').filter((_, index) => !gone.has(index + 1))
  for (const path of files) rows = withFile(rows, path, describe(path) ?? UNSAID)
  return `${rows
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trimEnd()}\n`
}

function withFile(rows: readonly string[], path: string, words: string): readonly string[] {
  const root = rootOf(path)
  const room = roomOf(path)
  const rooted = withRoot(rows, root)
  const roomed = room === null ? rooted : withRoom(rooted, root, room)
  if (placesOf(roomed.join('\n')).some((place) => place.path === path)) return roomed
  const indent = room === null ? '' : '  '
  return inserted(roomed, room ?? `${root}/`, `${indent}- \`${path.slice(root.length + 1)}\`: ${words}`)
}

/** The folder whose heading a file stands under. */
function rootOf(path: string): string {
  return (/^packages\/[^/]+\/[^/]+/.exec(path) ?? /^[^/]+/.exec(path))?.[0] ?? ''
}

function withRoot(rows: readonly string[], root: string): readonly string[] {
  if (rows.some((row) => isHeadingOf(row, root))) return rows
  return [...rows.join('\n').trimEnd().split('\n'), '', `## \`${root}\``, '']
}

/** In front of the files that are in it, if some are named already. */
function withRoom(rows: readonly string[], root: string, room: string): readonly string[] {
  const inside = placesOf(rows.join('\n')).filter((place) => place.path.startsWith(room))
  if (inside.some((place) => place.path === room)) return rows
  const row = `- \`${room.slice(root.length + 1)}\`: ${UNSAID}`
  const first = inside[0]?.line
  if (first === undefined) return inserted(rows, `${root}/`, row)
  return [...rows.slice(0, first - 1), row, ...rows.slice(first - 1)]
}

/** Behind the last line that names something inside `folder`; failing that, at the end of its section. */
function inserted(rows: readonly string[], folder: string, row: string): string[] {
  const inside = placesOf(rows.join('\n')).filter((place) => place.path.startsWith(folder))
  const last = inside.at(-1)?.line
  if (last !== undefined) return [...rows.slice(0, last), row, ...rows.slice(last)]
  const end = sectionEnd(rows, folder.replace(/\/$/, ''))
  return [...rows.slice(0, end), '', row, ...rows.slice(end)]
}

/** Behind the last line of a section that is not blank. */
function sectionEnd(rows: readonly string[], root: string): number {
  const heading = rows.findIndex((row) => isHeadingOf(row, root))
  const next = rows.findIndex((row, index) => index > heading && /^#+ /.test(row))
  const section = rows.slice(0, next === -1 ? rows.length : next)
  return section.findLastIndex((row) => row.trim() !== '') + 1
}

function isHeadingOf(row: string, root: string): boolean {
  return /^#+ /.test(row) && row.includes(`\`${root}\``)
}
