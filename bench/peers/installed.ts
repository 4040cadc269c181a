/** Installs the peers where they are not there yet, or are not those of the lockfile. They are needed for nothing else. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))

/** Throws where npm cannot install them. */
export function installPeers(say: (line: string) => void): void {
  const why = missingIn(readLock('package-lock.json'), readLock(join('node_modules', '.package-lock.json')))
  if (why === null) return
  say(`bench:peers: ${why}: npm ci --prefix bench/peers --ignore-scripts`)
  const { status, error } = spawnSync(
    'npm',
    ['ci', '--prefix', FOLDER, '--ignore-scripts', '--no-audit', '--no-fund'],
    {
      stdio: ['ignore', 2, 2],
      shell: process.platform === 'win32',
    },
  )
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`the peers could not be installed: npm ended with ${status}`)
}

export interface Lock {
  readonly packages?: Readonly<Record<string, LockedPackage>>
}

interface LockedPackage {
  readonly version?: string
  readonly optional?: boolean
  readonly devOptional?: boolean
}

/** Why what is installed is not what the lockfile asks for; null where it is. Optional packages may be absent. */
export function missingIn(asked: Lock | null, installed: Lock | null): string | null {
  if (asked === null) throw new Error('bench/peers/package-lock.json is missing: restore it')
  if (installed === null) return 'the peers are not installed'
  const found = Object.entries(asked.packages ?? {}).find(
    ([path, { version, optional, devOptional }]) =>
      path !== '' &&
      optional !== true &&
      devOptional !== true &&
      installed.packages?.[path]?.version !== version,
  )
  return found === undefined ? null : `${found[0]} is not the one of the lockfile`
}

function readLock(name: string): Lock | null {
  const path = join(FOLDER, name)
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Lock) : null
}
