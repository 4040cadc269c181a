/**
 * Installs the packages of a bench that has its own package.json and lockfile, if they are missing or are not those of
 * the lockfile. Nothing else in the repository needs them.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Installs the packages of a folder, such as `bench/peers`. Throws if npm cannot install them. */
export function installPackages(folder: string, print: (line: string) => void): void {
  const path = join(ROOT, folder)
  const why = findMissing(
    readLock(join(path, 'package-lock.json')),
    readLock(join(path, 'node_modules', '.package-lock.json')),
  )
  if (why === null) return
  print(`${why}: npm ci --prefix ${folder} --ignore-scripts`)
  const { status, error } = spawnSync(
    'npm',
    ['ci', '--prefix', path, '--ignore-scripts', '--no-audit', '--no-fund'],
    {
      stdio: ['ignore', 2, 2],
      shell: process.platform === 'win32',
    },
  )
  if (error !== undefined) throw error
  if (status !== 0)
    throw new Error(`the packages of ${folder} could not be installed: npm ended with ${status}`)
}

export interface Lock {
  readonly packages?: Readonly<Record<string, LockedPackage>>
}

interface LockedPackage {
  readonly version?: string
  readonly optional?: boolean
  readonly devOptional?: boolean
}

/** Returns how the installed packages differ from the lockfile, or null. Optional packages may be absent. */
export function findMissing(asked: Lock | null, installed: Lock | null): string | null {
  if (asked === null) throw new Error('package-lock.json is missing: restore it')
  if (installed === null) return 'the packages are not installed'
  const found = Object.entries(asked.packages ?? {}).find(
    ([path, { version, optional, devOptional }]) =>
      path !== '' &&
      optional !== true &&
      devOptional !== true &&
      installed.packages?.[path]?.version !== version,
  )
  return found === undefined ? null : `${found[0]} is not the one of the lockfile`
}

function readLock(path: string): Lock | null {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Lock) : null
}
