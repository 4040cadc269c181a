/** Names that tell a reader nothing: empty words, participles, `…Of`, and one exported name for two things. */
import { basename } from 'node:path'
import ts from 'typescript'
import { exportsOf } from './exports.ts'
import { importsOf, isRelative, resolveImport } from './imports.ts'
import { type Finding, lineOf, packageOf, parse, type Source, walk } from './source.ts'

const EMPTY_WORDS = new Set('manager service helper helpers util utils impl base'.split(' '))

/** `allowed`: exported names or paths that may keep such a word, each with its reason. */
export function checkNames(
  sources: readonly Source[],
  allowed: ReadonlyMap<string, string>,
): readonly Finding[] {
  return sources.flatMap((source) => {
    const fileName = basename(source.path).replace(/(\.test|\.soak|\.config|\.d)*\.[a-z]+$/, '')
    const isKebabCase = /^[a-z0-9]+(-[a-z0-9]+)*$/.test(fileName)
    const shape = isKebabCase ? [] : [{ file: source.path, line: 0, why: 'file names are kebab-case' }]
    const exported = exportsOf(source).map(({ name, line }) => ({ name, line }))
    const empty = [{ name: fileName, line: 0 }, ...exported].flatMap(({ name, line }) => {
      const word = emptyWord(name)
      if (word === null || allowed.has(name) || allowed.has(source.path)) return []
      return [{ file: source.path, line, why: `${name}: "${word}" says nothing; name what it is` }]
    })
    return [...shape, ...empty]
  })
}

/** The first or last word of a name, if it says nothing. */
function emptyWord(name: string): string | null {
  const words = splitWords(name)
  const found = [words[0] ?? '', words.at(-1) ?? ''].find(
    (word) => EMPTY_WORDS.has(word) || /^v\d+$/.test(word),
  )
  return found ?? null
}

/** `RecordBase`, `record-base`, `RECORD_BASE` → `record`, `base`. */
function splitWords(name: string): readonly string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '')
    .map((word) => word.toLowerCase())
}

/** Functions begin with a verb: shares of all named functions that may not be passed. */
export interface FunctionNameLimits {
  /** Names that begin with a past participle (`writtenRecords`). */
  readonly participleShare: number
  /** Names that end in `Of` (`keyOf`). */
  readonly ofShare: number
  /** Functions that may be named by a participle alone, each with its reason. */
  readonly allowed?: ReadonlyMap<string, string>
}

/**
 * Refuses every function whose whole name is a past participle (`told`), and a package where too many begin with one
 * or end in `Of`. Methods, arrow functions bound to a name and function-valued properties count.
 */
export function checkFunctionNames(
  sources: readonly Source[],
  limits: FunctionNameLimits,
): readonly Finding[] {
  const functions = sources.flatMap(listFunctions).filter(({ name }) => limits.allowed?.has(name) !== true)
  const lone = functions.filter(({ name }) => /^[a-z]+$/.test(name) && beginsWithParticiple(name))
  const beginning = functions.filter(({ name }) => beginsWithParticiple(name))
  const ending = functions.filter(({ name }) => /[a-z]Of$/.test(name))
  return [
    ...lone.map(({ name, file, line }) => ({
      file,
      line,
      why: `${name}: a participle alone; say what the function does (a verb) or returns (a noun)`,
    })),
    ...shareFinding('begin with a participle', beginning, functions, limits.participleShare),
    ...shareFinding('end in Of', ending, functions, limits.ofShare),
  ]
}

interface NamedFunction {
  readonly name: string
  readonly file: string
  readonly line: number
}

function listFunctions(source: Source): readonly NamedFunction[] {
  const file = parse(source)
  const functions: NamedFunction[] = []
  walk(file, (node) => {
    const name = functionName(node)
    if (name === null || !/^[a-z]/.test(name)) return
    functions.push({ name, file: source.path, line: lineOf(file, node) })
  })
  return functions
}

/** Called for every node of every file: one look at its kind has to do. */
function functionName(node: ts.Node): string | null {
  switch (node.kind) {
    case ts.SyntaxKind.FunctionDeclaration:
    case ts.SyntaxKind.MethodDeclaration:
    case ts.SyntaxKind.MethodSignature:
      return (node as ts.FunctionDeclaration | ts.MethodDeclaration).name?.getText() ?? null
    case ts.SyntaxKind.ArrowFunction:
    case ts.SyntaxKind.FunctionExpression: {
      const { parent } = node
      return ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)
        ? parent.name.getText()
        : null
    }
    default:
      return null
  }
}

const IRREGULAR_PARTICIPLES = new Set(
  `told said made held kept written brought taken given shown seen sent left lost found known drawn spoken chosen begun
  gone done built spent met paid sold thrown grown stood hidden broken forgotten driven fallen laid led meant understood
  won worn`.split(/\s+/),
)
/** Words that end like a participle and are none. */
const OTHER_WORDS_IN_ED = new Set('need feed seed embed speed exceed proceed succeed shed indeed'.split(' '))

function beginsWithParticiple(name: string): boolean {
  const word = /^[a-z]+/.exec(name)?.[0] ?? ''
  return (
    IRREGULAR_PARTICIPLES.has(word) ||
    (word.length > 3 && word.endsWith('ed') && !OTHER_WORDS_IN_ED.has(word))
  )
}

function shareFinding(
  what: string,
  found: readonly NamedFunction[],
  all: readonly NamedFunction[],
  most: number,
): readonly Finding[] {
  const share = all.length === 0 ? 0 : found.length / all.length
  if (share <= most) return []
  const percent = (part: number): string => `${(100 * part).toFixed(1)}%`
  const names = found.slice(0, 12).map(({ name, file }) => `${name} (${file})`)
  const why = `${percent(share)} of function names ${what}, at most ${percent(most)} may: ${names.join(', ')}`
  return [{ file: found[0]?.file ?? '', line: 0, why }]
}

/** An exported name stands for one thing in its package. Entries (`index.ts`) hand names on and do not count. */
export function checkUniqueExports(sources: readonly Source[]): readonly Finding[] {
  const firstHome = new Map<string, string>()
  return sources.flatMap((source) =>
    exportsOf(source).flatMap(({ name, line, from }) => {
      if (from !== null) return []
      const key = `${packageOf(source.path)} ${name}`
      const home = firstHome.get(key)
      firstHome.set(key, home ?? source.path)
      if (home === undefined || home === source.path) return []
      return [{ file: source.path, line, why: `${name} is exported by ${home} too` }]
    }),
  )
}

/**
 * An exported name is imported by some file, if only a test. Files that are loaded whole (`import()`, `import *`) and
 * entries do not count.
 */
export function checkUnusedExports(
  shipped: readonly Source[],
  all: readonly Source[],
  entries: ReadonlySet<string>,
): readonly Finding[] {
  const imported = new Set<string>()
  const loadedWhole = new Set<string>(entries)
  for (const source of all)
    for (const { specifier, names } of importsOf(source)) {
      if (names === null)
        loadedWhole.add(isRelative(specifier) ? resolveImport(source.path, specifier) : specifier)
      for (const name of names ?? []) imported.add(name)
    }
  return shipped
    .filter(({ path }) => !loadedWhole.has(path))
    .flatMap((source) =>
      exportsOf(source)
        .filter(({ name }) => !imported.has(name))
        .map(({ name, line }) => ({
          file: source.path,
          line,
          why: `nobody imports ${name}: do not export it`,
        })),
    )
}
