/**
 * A real Postgres for tests: the one that `TIDEMARK_TEST_DATABASE` names, else one of this machine or of npm
 * (`postgres-programs.ts`), started once for the run (`scripts/test-postgres.ts`) on loopback with a data folder of its own.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findPostgresPrograms, findPostgresUser } from './postgres-programs.ts'

export interface PostgresServer {
  /** Address of a database that the tests may fill and empty. */
  readonly url: string
  /** False for a configured server, which may have other databases. */
  readonly isOwn: boolean
  stop(): Promise<void>
}

/** A server that was started for one test, which may do anything to it. */
export interface OwnPostgresServer extends PostgresServer {
  /** Stops the server, which cuts all connections, and starts it again at the same address, with its data. */
  restart(whileStopped?: () => Promise<unknown>): Promise<void>
}

/** Why tests with Postgres do not run here; null if they do. `own`: for tests that stop the server. */
export function explainMissingPostgres(server: 'any' | 'own' = 'any'): string | null {
  if (server === 'any' && process.env.TIDEMARK_TEST_DATABASE) return null
  if (findPostgresPrograms() !== null) return null
  return server === 'any'
    ? 'Tests with Postgres are left out: set TIDEMARK_TEST_DATABASE, or install postgresql.'
    : 'Tests that stop Postgres are left out: install postgresql.'
}

/** Returns the configured server, that of the test run, or outside of one a new one. */
export async function startPostgres(): Promise<PostgresServer> {
  const stop = async () => {}
  const { TIDEMARK_TEST_DATABASE: configured, TIDEMARK_TEST_POSTGRES: run } = process.env
  if (configured !== undefined) return { url: configured, isOwn: false, stop }
  if (run === undefined) return startOwnPostgres()
  const response = await fetch(run)
  if (!response.ok) throw new Error(await response.text())
  return { url: await response.text(), isOwn: true, stop }
}

export async function startOwnPostgres(): Promise<OwnPostgresServer> {
  const programs = findPostgresPrograms()
  if (programs === null) throw new Error(explainMissingPostgres('own') ?? '')
  const owner = findPostgresUser()
  // The folder for temporary files of the tests is closed to other users.
  const folder = mkdtempSync(join(owner === null ? tmpdir() : '/tmp', 'tidemark-postgres-'))
  if (owner !== null) chownSync(folder, owner.uid, owner.gid)
  const run = { ...owner, cwd: folder, env: { LC_ALL: 'C' } }
  const data = join(folder, 'data')
  const options = ['-D', data, '-U', 'tidemark', '--auth=trust', '-E', 'UTF8', '--no-sync']
  await promisify(execFile)(join(programs, 'initdb'), options, run)
  const port = await findFreePort()
  const settings = ['-c', 'fsync=off', '-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=400']
  const start = async (): Promise<ChildProcess> => {
    const started = spawn(
      join(programs, 'postgres'),
      ['-D', data, '-p', String(port), '-k', folder, ...settings],
      { ...run, stdio: ['ignore', 'ignore', 'pipe'] },
    )
    await waitUntilReady(started)
    return started
  }
  let server = await start()
  return {
    url: `postgres://tidemark@127.0.0.1:${port}/postgres`,
    isOwn: true,
    async restart(whileStopped = async () => {}) {
      await end(server, 'SIGINT')
      await whileStopped()
      server = await start()
    },
    async stop() {
      await end(server, 'SIGQUIT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** `SIGINT` stops Postgres as an operator does, cutting all connections; `SIGQUIT` at once. */
async function end(server: ChildProcess, signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const ended = new Promise((resolve) => server.once('exit', resolve))
  server.kill(signal)
  await ended
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
