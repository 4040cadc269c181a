/** Which way imports may point: between the folders of a package, and between packages. */
import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import { importsOf, isRelative, packageName, resolveImport } from './imports.ts'
import { isPublicEntry } from './public-names.ts'
import { type Finding, isTest, packageOf, type Source } from './source.ts'

/**
 * The folders of each package's `src`, in import order: a file imports from its own folder or an earlier one, types
 * included. `.` stands for the files directly in `src`, where a package has some that its folders build on; a file
 * listed by name has its own place. `index.ts` always comes last.
 */
export const FOLDER_ORDER: Readonly<Record<string, readonly string[]>> = {
  core: [
    'errors.ts',
    'text',
    'log',
    'facts',
    'policy',
    'context',
    'validate',
    'tokens',
    'cost',
    'request',
    'cache',
    'clearing',
    'summary',
    'notes',
    'sources',
    'history',
    'planner',
    'engine',
    'compaction',
    'background',
    'turn',
  ],
  wire: ['.', 'http', 'failure', 'providers', 'anthropic', 'openai', 'catalogue', 'profiles', 'readers'],
  tidemark: [
    'platform',
    'storage',
    'models',
    'sources',
    'hooks',
    'telemetry',
    'session',
    'dropin',
    'library',
    'proxy',
    'logs',
    'inspect',
    'compact',
    'replay',
    'explore',
    'testing',
    'logs.ts',
    'catalogue.ts',
    'anthropic.ts',
    'records.ts',
    'project.ts',
    'tools.ts',
    'sqlite.ts',
    'postgres.ts',
  ],
  simulator: [
    'protocol',
    'validation',
    'prompt-cache',
    'context',
    'faults',
    'scripts',
    'request-log',
    'openai',
    'openai/validation',
    'openai/cache',
    'openai/responses',
    'openai/chat',
    'server',
  ],
  terminal: ['terminal.ts', 'render', 'pages'],
  agent: [
    'sample-project.ts',
    'json-value.ts',
    'threads',
    'sandbox',
    'tools',
    'mcp',
    'agent',
    'tour',
    'screen',
    'chat',
    'commands',
  ],
  gateway: ['database', 'keys', 'spending', 'operation', 'page', 'server', 'index.ts'],
  page: ['data', 'chart', 'views', 'main.tsx', 'server'],
  cli: ['.', 'pages', 'ui', 'commands'],
}

/** One finding for each import that points to a later folder, and for each file in a folder that is not listed. */
export function checkFolders(
  sources: readonly Source[],
  order: Readonly<Record<string, readonly string[]>> = FOLDER_ORDER,
): readonly Finding[] {
  return sources.flatMap((source) => {
    const name = packageOf(source.path) ?? ''
    const folders = order[name]
    const root = `packages/${name}/src/`
    if (
      folders === undefined ||
      !source.path.startsWith(root) ||
      isTest(source.path) ||
      source.path.endsWith('.d.ts')
    )
      return []
    const place = (path: string): readonly [name: string, rank: number] =>
      placeInOrder(path.slice(root.length), folders)
    const [own, rank] = place(source.path)
    if (rank === -1) {
      const why = `is in a folder without a place: the order of ${name} is ${folders.join(', ')}`
      return [{ file: source.path, line: 0, why }]
    }
    return importsOf(source).flatMap(({ specifier, line }) => {
      const target = isRelative(specifier) ? resolveImport(source.path, specifier) : ''
      if (!target.startsWith(root)) return []
      const [folder, targetRank] = place(target)
      if (targetRank <= rank) return []
      return [{ file: source.path, line, why: `${own} may not import from ${folder}, which comes later` }]
    })
  })
}

function placeInOrder(path: string, folders: readonly string[]): readonly [name: string, rank: number] {
  if (path === 'index.ts' || path === 'internal.ts') return [path, folders.length]
  if (folders.includes(path)) return [path, folders.indexOf(path)]
  const folder = posix.dirname(path)
  return [folder === '.' ? path : folder, folders.indexOf(folder)]
}

/** What the simulator may import of wire: no codec but those of the Messages API, which it had from the start. */
const SHARED_WITH_SIMULATOR =
  /^@tidemark\/wire\/(?:catalogue\/.+|http\/sse|providers\/(?:reply-events|message-usage)|anthropic\/(?:decode-stream|reply-frames|response-body))$/
const SHARED_WITH_OPENAI = /^@tidemark\/wire\/catalogue\//

/**
 * One finding for each import by which the simulator shares code with a codec that is tested against it: a mistake in
 * shared code would not show.
 */
export function checkCodecImports(sources: readonly Source[]): readonly Finding[] {
  return sources.flatMap((source) => {
    const isOpenai = /\/openai\/|openai[^/]*\.ts$/.test(source.path)
    const allowed = isOpenai ? SHARED_WITH_OPENAI : SHARED_WITH_SIMULATOR
    return importsOf(source)
      .filter(({ specifier }) => specifier.startsWith('@tidemark/wire') && !allowed.test(specifier))
      .map(({ specifier, line }) => ({ file: source.path, line, why: `imports a codec: ${specifier}` }))
  })
}

/** A package's manifest, as far as imports are concerned. */
export interface Manifest {
  readonly name: string
  readonly dependencies: readonly string[]
  readonly exports: readonly string[]
}

export interface Workspace {
  /** Folder under `packages/` → manifest, in package order: a package may import those before it. */
  readonly packages: ReadonlyMap<string, Manifest>
  /** Packages that may use nothing of the platform. */
  readonly pure: ReadonlySet<string>
  /** What test files may import as well: the root's dev dependencies. */
  readonly forTests: ReadonlySet<string>
}

/** One finding for each import that leaves its package by a path, breaks the package order or is not declared. */
export function checkPackages(sources: readonly Source[], workspace: Workspace): readonly Finding[] {
  return sources.flatMap((source) => {
    const folder = packageOf(source.path)
    if (folder === null) return []
    return importsOf(source).flatMap(({ specifier, line }) => {
      const why = importProblem(source, folder, specifier, workspace)
      return why === null ? [] : [{ file: source.path, line, why }]
    })
  })
}

/** Packages that stand on what `tidemark` publishes, and on the terminal: an agent of others could be built in the same way. */
const ON_PUBLIC_ENTRIES: ReadonlySet<string> = new Set(['terminal', 'agent'])

/** One finding for each import of a package on public entries that is not one. Tests may import what they like. */
export function checkPublicImports(sources: readonly Source[]): readonly Finding[] {
  return sources.flatMap((source) => {
    if (!ON_PUBLIC_ENTRIES.has(packageOf(source.path) ?? '') || isInTest(source.path)) return []
    return importsOf(source).flatMap(({ specifier, line }) => {
      const name = packageName(specifier)
      const isOwn = name === 'tidemark' || name.startsWith('@tidemark/')
      if (!isOwn || name === '@tidemark/terminal' || isPublicEntry(specifier)) return []
      return [{ file: source.path, line, why: `imports ${specifier}, which is private` }]
    })
  })
}

function isInTest(path: string): boolean {
  return isTest(path) || /^packages\/[^/]+\/test(ing)?\//.test(path)
}

function importProblem(
  source: Source,
  folder: string,
  specifier: string,
  workspace: Workspace,
): string | null {
  const test = isInTest(source.path)
  if (isRelative(specifier)) {
    const inside = resolveImport(source.path, specifier).startsWith(`packages/${folder}/`)
    return inside ? null : `leaves its package: import ${specifier} by package name`
  }
  if (isBuiltin(specifier)) {
    if (!test && workspace.pure.has(folder)) return `imports ${specifier}: this package is pure`
    return specifier.startsWith('node:') ? null : `imports ${specifier}: write node:${specifier}`
  }
  const name = packageName(specifier)
  const own = workspace.packages.get(folder)
  if (own?.name === name && !test) return `imports its own package by name (${specifier}): import the file`
  if (test && (workspace.forTests.has(name) || workspace.forTests.has(specifier))) return null
  const sibling = [...workspace.packages].find(([, manifest]) => manifest.name === name)
  if (sibling !== undefined) return siblingProblem(specifier, folder, workspace)
  return own?.dependencies.includes(name) ? null : `imports ${name}, which its package.json does not declare`
}

function siblingProblem(specifier: string, folder: string, { packages }: Workspace): string | null {
  const order = [...packages.keys()]
  const name = packageName(specifier)
  const [target = '', manifest] = [...packages].find(([, { name: other }]) => other === name) ?? []
  if (target === folder) return null
  if (order.indexOf(target) > order.indexOf(folder))
    return `${folder} may not import ${name}: the order is ${order.join(' < ')}`
  if (!packages.get(folder)?.dependencies.includes(name))
    return `imports ${name}, which its package.json does not declare`
  const subpath = `.${specifier.slice(name.length)}`
  const isExported = manifest?.exports.some((entry) => matchesEntry(entry, subpath)) === true
  return isExported ? null : `imports ${specifier}, which ${name} does not export`
}

/** `./*` stands for the files of a package that has no index: `./log/record` for `src/log/record.ts`. */
function matchesEntry(entry: string, subpath: string): boolean {
  return entry === './*' ? /^\.\/(?!src\/)[^.]+$/.test(subpath) : entry === subpath
}
