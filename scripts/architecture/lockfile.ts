/**
 * What a lockfile must hold for `npm ci` to work everywhere and install the same bytes: no download addresses, a hash
 * for every package, and an entry for every optional package, those for other platforms included. Where the registry
 * lacks one of them, npm leaves it out without a word, and `npm ci` then refuses the lockfile.
 */
import type { Finding } from './source.ts'

export interface LockEntry {
  readonly version?: string
  readonly resolved?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

export interface Lockfile {
  readonly packages: Readonly<Record<string, LockEntry>>
  readonly [field: string]: unknown
}

const FILE = 'package-lock.json'

export function checkLockfile(lock: Lockfile): readonly Finding[] {
  const problems = [...findAddresses(lock), ...findUnhashed(lock), ...findMissingOptional(lock)]
  return problems.map((why) => ({ file: FILE, line: 0, why }))
}

function findAddresses({ packages }: Lockfile): readonly string[] {
  return Object.entries(packages).flatMap(([path, { resolved = '' }]) =>
    /^[a-z+]+:\/\//.test(resolved) ? [`holds a download address for ${path}: ${resolved}`] : [],
  )
}

/** Packages of the workspace (`packages/…`, and the links to them) come from the repository and have no hash. */
function findUnhashed({ packages }: Lockfile): readonly string[] {
  return Object.entries(packages).flatMap(([path, { integrity = '', link }]) =>
    path.includes('node_modules/') && link !== true && !integrity.startsWith('sha512-')
      ? [`has no integrity (sha512) for ${path}: choose a version that the registry has`]
      : [],
  )
}

function findMissingOptional({ packages }: Lockfile): readonly string[] {
  return Object.entries(packages).flatMap(([owner, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).flatMap((name) => {
      const path = `node_modules/${name}`
      if (path in packages || `${owner}/${path}` in packages) return []
      const wanted = owner === '' ? name : owner.replace(/^.*node_modules\//, '')
      return [`has no entry ${path}: choose a version of ${wanted} that the registry has for every platform`]
    }),
  )
}
