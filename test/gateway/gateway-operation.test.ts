/** Running the gateway: upgrades, retention, dead processes, drain, and a database that is away. */
import { randomUUID } from 'node:crypto'
import { listAudit, listKeys, migrateDatabase } from '@tidemark/gateway'
import { describe, expect, it } from 'vitest'
import { runUpkeep } from '../../packages/gateway/src/operation/retention.ts'
import { explainMissingPostgres, startPostgres } from '../support/postgres-server.ts'
import { startGatewayProcess } from './gateway-process.ts'
import { createGatewayWorld, SdkAgent, useGatewayWorlds } from './gateway-world.ts'

const missing = explainMissingPostgres()

describe.skipIf(missing !== null)('running the gateway', () => {
  const createWorld = useGatewayWorlds()

  it('tables are created once by processes that start at the same time', async () => {
    const world = await createWorld()
    const steps = await Promise.all([1, 2, 3].map(() => migrateDatabase(world.pool)))
    expect(steps.filter((done) => done.length > 0)).toHaveLength(1)
    await Promise.all([world.startGateway(), world.startGateway()])
  })

  it('sessions that nobody has used are deleted with their blobs, and that is audited', async () => {
    const world = await createWorld()
    const { url } = await world.startGateway()
    const key = await world.addKey('team')
    for (const session of ['old', 'new']) {
      const agent = new SdkAgent(url, key, world.coder, session)
      agent.messages.push({ role: 'user', content: 'Fix the sums.' })
      await agent.step()
    }
    await world.pool.query(
      "update gateway_sessions set used_at = now() - interval '40 days' where session = 'old'",
    )
    const blob = `insert into gateway_blobs (scope, id, bytes) select scope, $1, '' from gateway_sessions where session = 'old'`
    const { rows } = await world.pool.query(
      'select substring(text from \'"uuid":"([^"]+)"\') as id from tidemark_lines where session = \'old\' and line = 2',
    )
    // Any text of a line can be the id of a blob here.
    await world.pool.query(blob, [rows[0].id])
    await world.pool.query(blob, ['of another session'])
    expect(await runUpkeep(world.pool, 30)).toEqual({ settled: 0, deleted: 1 })
    const left = await world.pool.query('select distinct session from tidemark_lines')
    expect(left.rows).toEqual([{ session: 'new' }])
    expect((await world.pool.query('select id from gateway_blobs')).rows).toEqual([
      { id: 'of another session' },
    ])
    expect((await listAudit(world.pool, 10)).map(({ action, actor }) => [action, actor])).toEqual([
      ['session-deleted', 'retention'],
      ['key-added', 'test'],
    ])
  })

  it('what a dead process had reserved is charged, and that of a living one is not', async () => {
    const world = await createWorld()
    await world.startGateway()
    await world.addKey('team', { budget: 10 })
    const [key] = await listKeys(world.pool)
    const [dead, alive] = [randomUUID(), randomUUID()]
    await world.pool.query(
      "insert into gateway_processes (id, seen_at) values ($1, now() - interval '5 minutes'), ($2, now())",
      [dead, alive],
    )
    await world.pool.query(
      `insert into gateway_spending (key, period, reserved) values ($1, date_trunc('month', now() at time zone 'utc'), 3)`,
      [key?.id],
    )
    for (const [process, amount] of [
      [dead, 1],
      [alive, 2],
    ])
      await world.pool.query(
        `insert into gateway_calls (id, key, period, process, model, reserved)
         values (gen_random_uuid(), $1, date_trunc('month', now() at time zone 'utc'), $2, 'm', $3)`,
        [key?.id, process, amount],
      )
    expect(await runUpkeep(world.pool, null)).toEqual({ settled: 1, deleted: 0 })
    expect(await listKeys(world.pool)).toMatchObject([{ spent: 1, reserved: 2 }])
  })

  it('a process that gets SIGTERM ends the answer that it is sending, and then itself', async () => {
    const world = await createWorld({
      script: () => ({ blocks: [{ type: 'text', text: 'It is 42. '.repeat(100) }], delays: { pieceMs: 20 } }),
    })
    const gateway = await startGatewayProcess({ database: world.url, upstream: world.simulator.url })
    const agent = new SdkAgent(gateway.url, await world.addKey('team'), world.coder, 'job')
    agent.messages.push({ role: 'user', content: 'How many?' })
    const running = agent.step()
    await expect.poll(async () => (await world.pool.query('select 1 from gateway_calls')).rows.length).toBe(1)
    const [ended] = await Promise.all([gateway.kill('SIGTERM').then(() => gateway.process.exitCode), running])
    expect(ended).toBe(0)
    expect(await listKeys(world.pool)).toMatchObject([{ reserved: 0 }])
    expect((await listKeys(world.pool))[0]?.spent).toBeCloseTo(world.readBill(), 8)
  })

  it('while the database is away, requests get an error that SDKs try again, and readyz says so', async () => {
    const own = await startPostgres()
    const world = await createGatewayWorld(own)
    const { url } = await world.startGateway()
    const key = await world.addKey('team')
    await own.stop()
    const answer = await fetch(`${url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': key },
      body: '{"model":"claude-sonnet-5-5"}',
    })
    expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([503, 'true'])
    expect((await fetch(`${url}/readyz`)).status).toBe(503)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect(world.simulator.simulator.requests).toEqual([])
    await world.close()
  })
})
