/** The public surface: what each entry of each package exports, and that only entries hand things on. */
import { exportsOf } from './exports.ts'
import { type Finding, isTest, type Source } from './source.ts'

/** Public name of an entry (`tidemark/testing`) → its source file. */
export type Entries = ReadonlyMap<string, string>

/** Whether an entry is a promise to those who install it: core, wire, terminal, page, `tidemark/report` and `…/internal` are not. */
export function isPublicEntry(entry: string): boolean {
  return !/^@tidemark\/(core|wire|terminal|page)(\/|$)|^tidemark\/report$|\/internal$/.test(entry)
}

export type PublicNames = Readonly<Record<string, readonly string[]>>

export function publicNames(sources: readonly Source[], entries: Entries): PublicNames {
  const byPath = new Map(sources.map((source) => [source.path, source]))
  return Object.fromEntries(
    [...entries].map(([entry, path]) => {
      const source = byPath.get(path)
      const names = source === undefined ? [] : exportsOf(source).map(({ name }) => name)
      return [entry, [...new Set(names)].sort()]
    }),
  )
}

/** What is public and not in the committed list, and the other way round. */
export function checkPublicNames(found: PublicNames, committed: PublicNames): readonly string[] {
  const entries = [...new Set([...Object.keys(found), ...Object.keys(committed)])]
  return entries.flatMap((entry) => {
    const now = found[entry] ?? []
    const before = committed[entry] ?? []
    const added = now.filter((name) => !before.includes(name)).map((name) => `${entry}: + ${name}`)
    const gone = before.filter((name) => !now.includes(name)).map((name) => `${entry}: - ${name}`)
    return [...added, ...gone]
  })
}

/** Entries with more names than a reader can learn in one sitting. */
export function checkSurfaceSize(
  found: PublicNames,
  most: Readonly<Record<string, number>>,
): readonly string[] {
  return Object.entries(most).flatMap(([entry, limit]) => {
    const count = found[entry]?.length ?? 0
    return count <= limit ? [] : [`${entry}: ${count} names, at most ${limit}`]
  })
}

/** No `export *` anywhere, no file that hands on what another one makes, no `index.ts` but a package's own. */
export function checkBarrels(sources: readonly Source[], entries: Entries): readonly Finding[] {
  const own = new Set(entries.values())
  return sources.flatMap((source) => {
    if (isTest(source.path)) return []
    const stray = /(^|\/)index\.ts$/.test(source.path) && !own.has(source.path)
    const barrel = stray ? [{ file: source.path, line: 0, why: 'is an index that no package exports' }] : []
    const handed = exportsOf(source).flatMap(({ name, line, from }) => {
      if (name === '*') return [{ file: source.path, line, why: 'export *: name what is public' }]
      if (from === null || own.has(source.path)) return []
      return [
        { file: source.path, line, why: `hands on ${name} from ${from}: import it from where it is made` },
      ]
    })
    return [...barrel, ...handed]
  })
}
