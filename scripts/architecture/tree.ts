/** The repository on disk: which files it has, and what its manifests say. The only part of the checks that reads. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { Manifest, Workspace } from './folders.ts'
import type { Entries } from './public-names.ts'
import type { Source } from './source.ts'

const LEFT_OUT = new Set(['.git', 'node_modules', 'dist', 'coverage'])

/** Packages in order: each may import those before it. */
export const PACKAGE_ORDER: readonly string[] = [
  'core',
  'wire',
  'tidemark',
  'simulator',
  'terminal',
  'page',
  'agent',
  'gateway',
  'cli',
]
export const PURE_PACKAGES: ReadonlySet<string> = new Set(['core', 'wire'])

export interface PackageManifest {
  readonly name: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly scripts?: Readonly<Record<string, string>>
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>
}

/** Every file but what is built or installed, as paths from `root`, sorted. */
export function filesUnder(root: string, folder = ''): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = posix.join(folder, entry.name)
      if (LEFT_OUT.has(entry.name)) return []
      if (entry.isDirectory()) return filesUnder(root, path)
      return entry.isFile() ? [path] : []
    })
    .sort()
}

export function readText(root: string, path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

export function readSources(root: string, paths: readonly string[]): readonly Source[] {
  return paths.map((path) => ({ path, text: readText(root, path) }))
}

export function readManifest(root: string, folder: string): PackageManifest {
  return JSON.parse(readText(root, posix.join(folder, 'package.json')))
}

/** Folders under `packages/` that hold a package. */
export function packageFolders(root: string): readonly string[] {
  return readdirSync(join(root, 'packages')).filter((folder) =>
    existsSync(join(root, 'packages', folder, 'package.json')),
  )
}

export function readWorkspace(root: string): Workspace {
  const present = new Set(packageFolders(root))
  const order = PACKAGE_ORDER.filter((folder) => present.has(folder))
  const packages = order.map((folder): [string, Manifest] => {
    const manifest = readManifest(root, `packages/${folder}`)
    return [
      folder,
      {
        name: manifest.name,
        dependencies: [...dependenciesOf(manifest), ...bundledIn(manifest)],
        exports: Object.keys(manifest.exports ?? {}),
      },
    ]
  })
  const tools = Object.keys(readManifest(root, '').devDependencies ?? {})
  // A test may run the command, which comes last: it is what users run. Tests of core need a spelling of requests, and
  // take the real one.
  const forTests = new Set([...tools, '@tidemark/cli', '@tidemark/wire/profiles/provider-profile'])
  return { packages: new Map(packages), pure: PURE_PACKAGES, forTests }
}

export function dependenciesOf(manifest: PackageManifest): readonly string[] {
  const { dependencies, peerDependencies, optionalDependencies } = manifest
  return [dependencies, peerDependencies, optionalDependencies].flatMap((list) => Object.keys(list ?? {}))
}

/** Packages of the workspace that are bundled into this one: dev dependencies, since those who install it need none. */
function bundledIn({ devDependencies }: PackageManifest): readonly string[] {
  return Object.keys(devDependencies ?? {}).filter(
    (name) => name === 'tidemark' || name.startsWith('@tidemark/'),
  )
}

/** Public name → source file, from the `tidemark-source` condition of each package's exports. */
export function readEntries(root: string): Entries {
  const entries = packageFolders(root).flatMap((folder) => {
    const { name, exports = {} } = readManifest(root, `packages/${folder}`)
    return Object.entries(exports).flatMap(([subpath, target]): [string, string][] => {
      if (typeof target === 'string') return []
      const source = target['tidemark-source'] ?? ''
      return [[posix.join(name, subpath), posix.join('packages', folder, source)]]
    })
  })
  return new Map(entries)
}
