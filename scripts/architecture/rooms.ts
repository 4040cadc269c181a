/** Which way imports may point: between the rooms of a package, and between packages. */
import { isBuiltin } from 'node:module'
import { importsOf, isRelative, packageName, resolveImport } from './imports.ts'
import { type Finding, isTest, packageOf, type Source } from './source.ts'

/** Rooms of `packages/core/src`, in order: a file imports from its own room or an earlier one, types included. */
export const CORE_ROOMS: readonly string[] = [
  'conversation',
  'policy',
  'view',
  'measure',
  'retrieve',
  'carry',
  'clear',
  'summarize',
  'notes',
  'prompt',
  'breaks',
  'plan',
  'engine',
]

const CORE = 'packages/core/src/'

/** Files that stand outside the rooms: `errors.ts` before them all, `index.ts` behind them all. */
const OUTSIDE = new Map([
  ['errors.ts', -1],
  ['index.ts', CORE_ROOMS.length],
])

export function checkRooms(sources: readonly Source[]): readonly Finding[] {
  return sources.filter((source) => source.path.startsWith(CORE)).flatMap(roomFindings)
}

function roomFindings(source: Source): readonly Finding[] {
  const own = rankOf(source.path)
  if (own === null) {
    return [{ file: source.path, line: 0, why: `is in no room: the rooms are ${CORE_ROOMS.join(', ')}` }]
  }
  return importsOf(source).flatMap(({ specifier, line }) => {
    if (!isRelative(specifier)) return []
    const target = resolveImport(source.path, specifier)
    const rank = target.startsWith(CORE) ? rankOf(target) : null
    if (rank === null || rank <= own) return []
    return [
      {
        file: source.path,
        line,
        why: `${roomOf(source.path)} may not import from ${roomOf(target)}, a later room`,
      },
    ]
  })
}

function roomOf(path: string): string {
  return path.slice(CORE.length).split('/')[0] ?? ''
}

function rankOf(path: string): number | null {
  const room = roomOf(path)
  const outside = OUTSIDE.get(room)
  if (outside !== undefined) return outside
  const index = CORE_ROOMS.indexOf(room)
  return index === -1 || path.slice(CORE.length) === room ? null : index
}

/** What a package's manifest says, as far as imports are concerned. */
export interface Manifest {
  readonly name: string
  readonly dependencies: readonly string[]
  readonly exports: readonly string[]
}

export interface Workspace {
  /** Folder under `packages/` → manifest, in package order: one may import those before it. */
  readonly packages: ReadonlyMap<string, Manifest>
  /** Packages that may use nothing of the platform. */
  readonly pure: ReadonlySet<string>
  /** What test files may import on top: the root's dev dependencies, and entries made for tests, of whatever package. */
  readonly forTests: ReadonlySet<string>
}

export function checkPackages(sources: readonly Source[], workspace: Workspace): readonly Finding[] {
  return sources.flatMap((source) => {
    const folder = packageOf(source.path)
    if (folder === null) return []
    return importsOf(source).flatMap(({ specifier, line }) => {
      const why = refusal({ source, folder, specifier }, workspace)
      return why === null ? [] : [{ file: source.path, line, why }]
    })
  })
}

interface Use {
  readonly source: Source
  readonly folder: string
  readonly specifier: string
}

function refusal({ source, folder, specifier }: Use, workspace: Workspace): string | null {
  const test = isTest(source.path) || source.path.startsWith(`packages/${folder}/test/`)
  if (isRelative(specifier)) {
    const inside = resolveImport(source.path, specifier).startsWith(`packages/${folder}/`)
    return inside ? null : `leaves its package: import ${specifier} by package name`
  }
  if (isBuiltin(specifier)) return builtinRefusal(specifier, test || !workspace.pure.has(folder))
  const name = packageName(specifier)
  const own = workspace.packages.get(folder)
  if (own?.name === name && !test) return `imports its own package by name (${specifier}): import the file`
  if (test && (workspace.forTests.has(name) || workspace.forTests.has(specifier))) return null
  const sibling = [...workspace.packages].find(([, manifest]) => manifest.name === name)
  if (sibling !== undefined) return siblingRefusal(specifier, folder, workspace)
  return own?.dependencies.includes(name) ? null : `imports ${name}, which its package.json does not declare`
}

function builtinRefusal(specifier: string, allowed: boolean): string | null {
  if (!allowed) return `imports ${specifier}: this package is pure`
  return specifier.startsWith('node:') ? null : `imports ${specifier}: write node:${specifier}`
}

function siblingRefusal(specifier: string, folder: string, { packages }: Workspace): string | null {
  const order = [...packages.keys()]
  const name = packageName(specifier)
  const [target = '', manifest] = [...packages].find(([, { name: other }]) => other === name) ?? []
  if (target === folder) return null
  if (order.indexOf(target) > order.indexOf(folder))
    return `${folder} may not import ${name}: the order is ${order.join(' < ')}`
  if (!packages.get(folder)?.dependencies.includes(name))
    return `imports ${name}, which its package.json does not declare`
  const subpath = `.${specifier.slice(name.length)}`
  return manifest?.exports.includes(subpath) ? null : `imports ${specifier}, which ${name} does not export`
}
