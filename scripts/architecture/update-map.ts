/**
 * Brings the map up to date: a line for every file that has none, at the end of its room, and none for a file
 * that is gone. Lines that are there stay as they were written.
 */
import { placesOf, roomOf } from './map.ts'

/** `describe`: what to say about a new file, or null where it says nothing about itself. */
export function updateMap(
  text: string,
  files: readonly string[],
  describe: (path: string) => string | null,
): string {
  const real = new Set([...files, ...files.flatMap((path) => roomOf(path) ?? [])])
  const gone = new Set(placesOf(text).flatMap(({ path, line }) => (real.has(path) ? [] : [line])))
  let rows = text.split('\n').filter((_, index) => !gone.has(index + 1))
  for (const path of files) rows = withFile(rows, path, describe(path) ?? '?')
  return rows.join('\n')
}

function withFile(rows: readonly string[], path: string, words: string): string[] {
  if (placesOf(rows.join('\n')).some((place) => place.path === path)) return [...rows]
  const root = rootOf(path)
  const room = roomOf(path)
  const rooted = withRoot(rows, root)
  const roomed = room === null ? rooted : withRoom(rooted, root, room)
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

function withRoom(rows: readonly string[], root: string, room: string): readonly string[] {
  if (placesOf(rows.join('\n')).some((place) => place.path === room)) return rows
  return inserted(rows, `${root}/`, `- \`${room.slice(root.length + 1)}\`: ?`)
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
