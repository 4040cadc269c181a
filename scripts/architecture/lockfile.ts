/**
 * What a lockfile must hold for `npm ci` to work elsewhere: no download addresses, and an entry for every optional
 * package, those for other platforms included. A registry that lacks one of them makes npm leave it out without
 * a word, and `npm ci` then refuses the lockfile everywhere.
 */
import type { Finding } from './source.ts'

export interface LockEntry {
  readonly version?: string
  readonly resolved?: string
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

export interface Lockfile {
  readonly packages: Readonly<Record<string, LockEntry>>
  readonly [field: string]: unknown
}

const FILE = 'package-lock.json'

export function checkLockfile(lock: Lockfile): readonly Finding[] {
  const addresses = Object.entries(lock.packages).flatMap(([path, { resolved = '' }]) =>
    /^[a-z+]+:\/\//.test(resolved) ? [`holds a download address for ${path}: ${resolved}`] : [],
  )
  const missing = missingOptional(lock).map(({ path }) => `has no entry ${path}: npm run lock adds it`)
  return [...addresses, ...missing].map((why) => ({ file: FILE, line: 0, why }))
}

/** The lockfile with an entry for every optional package it lacks. They have no integrity: nobody here has seen them. */
export function completeLockfile(lock: Lockfile): Lockfile {
  const added = missingOptional(lock).map(({ path, name, version, dev }) => [
    path,
    { version, ...platformOf(name), ...(dev ? { dev } : {}), optional: true },
  ])
  const { '': root = {}, ...packages } = { ...lock.packages, ...Object.fromEntries(added) }
  const sorted = Object.entries(packages).sort(([a], [b]) => a.localeCompare(b, 'en'))
  return { ...lock, packages: { '': root, ...Object.fromEntries(sorted) } }
}

interface Missing {
  readonly path: string
  readonly name: string
  readonly version: string
  readonly dev: boolean
}

function missingOptional({ packages }: Lockfile): readonly Missing[] {
  return Object.entries(packages).flatMap(([owner, { optionalDependencies = {}, dev }]) =>
    Object.entries(optionalDependencies).flatMap(([name, version]) => {
      const path = `node_modules/${name}`
      if (path in packages || `${owner}/${path}` in packages) return []
      return [{ path, name, version, dev: dev === true }]
    }),
  )
}

const SYSTEMS = [
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
]
const PROCESSORS = ['arm', 'arm64', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

/** `@rolldown/binding-linux-x64-musl` → for which machines it is, as npm writes it. */
function platformOf(name: string): Readonly<Record<string, readonly string[]>> {
  const words = (name.split('/').at(-1) ?? '').split('-')
  const os = words.filter((word) => SYSTEMS.includes(word))
  const cpu = words.filter((word) => PROCESSORS.includes(word))
  const libc = words.flatMap((word) =>
    word.startsWith('musl') ? ['musl'] : word.startsWith('gnu') ? ['glibc'] : [],
  )
  const known = { cpu, libc: os.includes('linux') ? libc : [], os }
  return Object.fromEntries(Object.entries(known).filter(([, list]) => list.length > 0))
}
