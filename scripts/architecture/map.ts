/**
 * ARCHITECTURE.md against the tree. Its map is made of headings that name a folder (``## `packages/core` ``)
 * and bullets under them that begin with a path inside it (``- `view/flatten.ts`: …``, ``- `view/`: …``).
 */
import { type Finding, isTest } from './source.ts'

export interface Place {
  readonly path: string
  readonly line: number
  readonly said: string
}

export const MAP_FILE = 'ARCHITECTURE.md'

/** Every file must be named once, with a few words; every folder that holds files, too; and nothing that is not there. */
export function checkMap(text: string, files: readonly string[]): readonly Finding[] {
  const places = placesOf(text)
  const named = new Map(places.map((place) => [place.path, place]))
  const real = new Set([...files, ...files.flatMap((path) => roomOf(path) ?? [])])
  return [
    ...[...real].filter((path) => !named.has(path)).map((path) => finding(0, `does not name ${path}`)),
    ...places
      .filter(({ path }) => !real.has(path))
      .map(({ path, line }) => finding(line, `names ${path}, which is not there`)),
    ...places
      .filter((place) => named.get(place.path) !== place)
      .map(({ path, line }) => finding(line, `names ${path} twice`)),
    ...places
      .filter(({ said }) => said.length < 8)
      .map(({ path, line }) => finding(line, `says nothing about ${path}`)),
  ]
}

function finding(line: number, why: string): Finding {
  return { file: MAP_FILE, line, why }
}

export function placesOf(text: string): readonly Place[] {
  const places: Place[] = []
  let root: string | null = null
  for (const [index, row] of text.split('\n').entries()) {
    const heading = /^#+ +(?:`([^`]+)`)?/.exec(row)
    if (heading !== null) root = heading[1] ?? null
    const bullet = /^ *- `([^`]+)`:?(.*)$/.exec(row)
    if (bullet === null || root === null) continue
    const inside = root === '.' ? '' : `${root.replace(/\/$/, '')}/`
    places.push({ path: `${inside}${bullet[1]}`, line: index + 1, said: (bullet[2] ?? '').trim() })
  }
  return places
}

/** What belongs on the map: every source and script that is no test. */
export function isMapped(path: string): boolean {
  return /\.(ts|mjs)$/.test(path) && path.includes('/') && !isTest(path)
}

/** The room a file is in, if it is in one: `packages/core/src/context/flatten.ts` is in `packages/core/src/view/`. */
export function roomOf(path: string): string | null {
  return /^(?:packages\/[^/]+\/[^/]+|scripts|bench|mutants|test)\/[^/]+\//.exec(path)?.[0] ?? null
}
