/**
 * A real Postgres for tests: the one that `TIDEMARK_TEST_DATABASE` names, else one found on this machine, started for the
 * run on loopback with a data folder of its own.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface PostgresServer {
  /** Address of a database that the tests may fill and empty. */
  readonly url: string
  stop(): Promise<void>
}

/** Why tests with Postgres do not run here; null if they do. */
export function explainMissingPostgres(): string | null {
  if (process.env.TIDEMARK_TEST_DATABASE !== undefined || findPrograms() !== null) return null
  return 'Tests with Postgres are left out: set TIDEMARK_TEST_DATABASE, or install postgresql.'
}

export async function startPostgres(): Promise<PostgresServer> {
  const configured = process.env.TIDEMARK_TEST_DATABASE
  if (configured !== undefined) return { url: configured, stop: async () => {} }
  const programs = findPrograms()
  if (programs === null) throw new Error(explainMissingPostgres() ?? '')
  const owner = findOwner()
  // The folder for temporary files of the tests is closed to other users.
  const folder = mkdtempSync(join(owner === null ? tmpdir() : '/tmp', 'tidemark-postgres-'))
  if (owner !== null) chownSync(folder, owner.uid, owner.gid)
  const run = { ...owner, cwd: folder, env: { LC_ALL: 'C' } }
  const data = join(folder, 'data')
  const made = spawnSync(
    join(programs, 'initdb'),
    ['-D', data, '-U', 'tidemark', '--auth=trust', '-E', 'UTF8', '--no-sync'],
    run,
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)
  const port = await findFreePort()
  const settings = ['-c', 'fsync=off', '-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=200']
  const server = spawn(
    join(programs, 'postgres'),
    ['-D', data, '-p', String(port), '-k', folder, ...settings],
    { ...run, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  await waitUntilReady(server)
  return {
    url: `postgres://tidemark@127.0.0.1:${port}/postgres`,
    async stop() {
      const ended = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGQUIT')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The newest folder with Postgres' programs on this machine. */
function findPrograms(): string | null {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).sort((one, other) => Number(other) - Number(one)) : []
  const folders = [
    ...versions.map((version) => join(root, version, 'bin')),
    ...(process.env.PATH ?? '').split(':'),
  ]
  return (
    folders.find((path) => existsSync(join(path, 'initdb')) && existsSync(join(path, 'postgres'))) ?? null
  )
}

/** Postgres refuses to run as root: then it runs as its own user, or as `nobody`. */
function findOwner(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody')
  return { uid: Number(user?.[2] ?? 65_534), gid: Number(user?.[3] ?? 65_534) }
}

async function findFreePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

function waitUntilReady(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = ''
    server.stderr?.on('data', (data: Buffer) => {
      log += String(data)
      if (log.includes('ready to accept connections')) resolve()
    })
    server.once('exit', () => reject(new Error(`Postgres ended: ${log}`)))
  })
}
