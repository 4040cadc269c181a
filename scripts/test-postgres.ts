/**
 * One Postgres for all files of a test run, started when the first of them asks: to start one takes a second of CPU time.
 * Workers ask the process of the run, which stops the server after them.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type PostgresServer, startOwnPostgres } from '../test/support/postgres-server.ts'

/** Names the address that answers with that of the server in `TIDEMARK_TEST_POSTGRES`, and returns what stops both. */
export default async function setup(): Promise<() => Promise<void>> {
  let started: Promise<PostgresServer> | null = null
  const door = createServer((_, response) => {
    started ??= startOwnPostgres()
    started.then(
      ({ url }) => response.end(url),
      (error) => response.writeHead(500).end(String(error)),
    )
  }).listen(0, '127.0.0.1')
  await once(door, 'listening')
  process.env.TIDEMARK_TEST_POSTGRES = `http://127.0.0.1:${(door.address() as AddressInfo).port}`
  return async () => {
    door.close()
    await (await started?.catch(() => null))?.stop()
  }
}
