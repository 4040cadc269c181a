/** What documents promise, held against the repository: scripts, links, and the names their examples import. */
import { posix } from 'node:path'
import ts from 'typescript'
import type { PublicNames } from './public-names.ts'
import { type Finding, parse, type Source } from './source.ts'

/** Every `npm run x` must be a script. */
export function checkScripts(document: Source, scripts: ReadonlySet<string>): readonly Finding[] {
  return inRows(document, /npm run ([\w:-]+)/g, ([, script = '']) =>
    scripts.has(script) ? null : `npm run ${script}: there is no such script`,
  )
}

/** Every link to a place in the repository must lead somewhere. */
export function checkLinks(document: Source, paths: ReadonlySet<string>): readonly Finding[] {
  const folders = new Set([...paths].flatMap(foldersOf))
  return inRows(document, /\]\(([^)#:\s]+)(?:#[^)]*)?\)/g, ([, link = '']) => {
    const target = posix.join(posix.dirname(document.path), link).replace(/\/$/, '')
    return paths.has(target) || folders.has(target) ? null : `links to ${link}, which is not there`
  })
}

/** Every name that an example in TypeScript imports from one of our packages must be public. */
export function checkSnippets(document: Source, names: PublicNames): readonly Finding[] {
  return [...document.text.matchAll(/^```ts\n([\s\S]*?)^```/gm)].flatMap((match) => {
    const line = document.text.slice(0, match.index).split('\n').length
    return importedNames({ path: 'snippet.ts', text: match[1] ?? '' }).flatMap(([entry, name]) => {
      const known = names[entry]
      const isOurs = /^(tidemark|@tidemark\/)/.test(entry)
      if (!isOurs || known?.includes(name) === true) return []
      return [{ file: document.path, line, why: `imports ${name}, which ${entry} does not export` }]
    })
  })
}

/**
 * ARCHITECTURE.md names the folders of the packages as `core/log/`: each one named must exist, and each one that
 * exists must be named.
 */
export function checkNamedFolders(document: Source, paths: readonly string[]): readonly Finding[] {
  const real = new Set(
    paths.flatMap((path) => {
      const [, name, folder] = /^packages\/([^/]+)\/src\/([^/]+)\//.exec(path) ?? []
      return folder === undefined ? [] : [`${name}/${folder}/`]
    }),
  )
  const packages = new Set([...real].map((folder) => folder.split('/')[0]))
  const named = new Set<string>()
  const gone = inRows(document, /`([\w-]+)\/([\w-]+)\/`/g, ([, name = '', folder = '']) => {
    named.add(`${name}/${folder}/`)
    if (!packages.has(name) || real.has(`${name}/${folder}/`)) return null
    return `names the folder ${name}/${folder}/, which is not there`
  })
  const missing = [...real].filter((folder) => !named.has(folder))
  const why = (folder: string): string => `does not name the folder ${folder}`
  return [...gone, ...missing.map((folder) => ({ file: document.path, line: 0, why: why(folder) }))]
}

/** ARCHITECTURE.md names source files as `core/turn/turn.ts`, without `packages/` and `src/`: each must exist. */
export function checkNamedFiles(document: Source, paths: ReadonlySet<string>): readonly Finding[] {
  return inRows(document, /`([\w-]+)\/((?:[\w-]+\/)?[\w-]+\.ts)\b/g, ([, name = '', rest = '']) => {
    const isThere = paths.has(`packages/${name}/src/${rest}`) || paths.has(`${name}/${rest}`)
    return isThere ? null : `names ${name}/${rest}, which is not there`
  })
}

function importedNames(source: Source): readonly (readonly [entry: string, name: string])[] {
  return parse(source).statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) return []
    const entry = statement.moduleSpecifier.text
    const bindings = statement.importClause?.namedBindings
    if (bindings === undefined || !ts.isNamedImports(bindings)) return []
    return bindings.elements.map((element) => [entry, (element.propertyName ?? element.name).text] as const)
  })
}

function foldersOf(path: string): readonly string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'))
}

function inRows(
  { path, text }: Source,
  pattern: RegExp,
  problem: (match: RegExpExecArray) => string | null,
): readonly Finding[] {
  return text.split('\n').flatMap((row, index) =>
    [...row.matchAll(pattern)].flatMap((match) => {
      const why = problem(match)
      return why === null ? [] : [{ file: path, line: index + 1, why }]
    }),
  )
}
