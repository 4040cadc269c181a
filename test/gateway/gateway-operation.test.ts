/** Running the gateway: its tables, retention, and dead processes. */
import { randomUUID } from 'node:crypto'
import { deleteSession, listAudit, listKeys, migrateDatabase } from '@tidemark/gateway'
import pg from 'pg'
import { describe, expect, it, vi } from 'vitest'
import { runUpkeep } from '../../packages/gateway/src/operation/background-jobs.ts'
import { createViewerSessions } from '../../packages/gateway/src/page/viewer-sessions.ts'
import { explainMissingPostgres } from '../support/postgres-server.ts'
import { SdkAgent, useGatewayWorlds } from './gateway-world.ts'

const missing = explainMissingPostgres()

describe.skipIf(missing !== null)('running the gateway', () => {
  const createWorld = useGatewayWorlds()

  it('tables are created once by processes that start at the same time', async () => {
    const world = await createWorld({ isEmpty: true })
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
    expect(await runUpkeep(world.pool, 30)).toEqual({ settled: 0, deleted: 1, objects: 0 })
    const left = await world.pool.query('select distinct session from tidemark_lines')
    expect(left.rows).toEqual([{ session: 'new' }])
    expect((await world.pool.query('select id from gateway_blobs')).rows).toEqual([
      { id: 'of another session' },
    ])
    expect(await listAudit(world.pool, 10)).toMatchObject([
      {
        action: 'session-deleted',
        actor: 'retention',
        details: expect.stringMatching(/^of the key team, \d+ lines, 1 blobs$/),
      },
      { action: 'key-added', actor: 'test' },
    ])
  })

  it('a session in use is kept by a process whose clock is ahead by more than the retention', async () => {
    const world = await createWorld()
    const { url } = await world.startGateway()
    const agent = new SdkAgent(url, await world.addKey('team'), world.coder, 'job')
    agent.messages.push({ role: 'user', content: 'Fix the sums.' })
    await agent.step()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3 * 86_400_000 })
    try {
      expect(await runUpkeep(world.pool, 2)).toEqual({ settled: 0, deleted: 0, objects: 0 })
    } finally {
      vi.useRealTimers()
    }
  })

  it('the last use of a session is not stored by every call, but again by one after the session was deleted', async () => {
    const world = await createWorld()
    const { url } = await world.startGateway()
    const agent = new SdkAgent(url, await world.addKey('team'), world.coder, 'job')
    agent.messages.push({ role: 'user', content: 'Fix the sums.' })
    const query = vi.spyOn(pg.Client.prototype, 'query')
    for (let step = 0; step < 6; step += 1) await agent.step()
    const stored = query.mock.calls.filter(([given]) =>
      JSON.stringify(given).includes('into gateway_sessions'),
    )
    query.mockRestore()
    expect([stored.length > 0, stored.length < 6]).toEqual([true, true])
    const [key] = await listKeys(world.pool)
    const deleted = { scope: key?.id ?? '', session: 'job', actor: 'test' }
    expect(await deleteSession(world.pool, deleted)).not.toBeNull()
    await agent.step()
    const { rows } = await world.pool.query(
      'select (select count(*)::int from gateway_sessions) as sessions, count(*)::int > 0 as kept from tidemark_lines',
    )
    expect(rows).toEqual([{ sessions: 1, kept: true }])
  })

  it('a long log is read for the page in pieces, so that answers to agents come between them', async () => {
    const world = await createWorld()
    await world.addKey('team')
    const [{ id: scope = '' } = {}] = await listKeys(world.pool)
    const uuids = Array.from({ length: 60 }, () => randomUUID())
    const lines = uuids.map((uuid, index) =>
      JSON.stringify({
        ...{ type: 'user', uuid, parentUuid: uuids[index - 1] ?? null, sessionId: 'long' },
        ...{
          timestamp: '2026-11-01T10:00:00.000Z',
          message: { role: 'user', content: 'text '.repeat(20_000) },
        },
      }),
    )
    await world.pool.query("insert into gateway_sessions (scope, session) values ($1, 'long')", [scope])
    await world.pool.query(
      `insert into tidemark_lines (scope, session, line, text)
       select $1, 'long', number, text from unnest($2::text[]) with ordinality as given (text, number)`,
      [scope, lines],
    )
    const read: number[] = []
    vi.spyOn(world.pool, 'query').mockImplementation(async (...given: unknown[]) => {
      const result = await pg.Pool.prototype.query.apply(world.pool, given as never)
      const texts = (result as unknown as pg.QueryResult).rows.flatMap(({ text }) => text ?? [])
      if (texts.length > 0) read.push(texts.join('').length)
      return result
    })
    const faults: string[] = []
    const reports = createViewerSessions({ pool: world.pool, objects: null }, (message) =>
      faults.push(message),
    )
    const sessions = reports.open({ keyId: scope, name: 'team', team: null, sees: 'own' })
    await expect.poll(async () => (await sessions.list()).sessions.length).toBe(1)
    await reports.close()
    expect(read.reduce((sum, bytes) => sum + bytes, 0)).toBe(lines.join('').length)
    expect(Math.max(...read)).toBeLessThan(2_200_000)
    expect(faults).toEqual([])
  })

  it('a conversation begins without a look at all the others of its key', async () => {
    const world = await createWorld()
    const { url } = await world.startGateway()
    const key = await world.addKey('team')
    const begin = async (session: string, text = `Fix the sums of ${session}.`) => {
      const agent = new SdkAgent(url, key, world.coder, session)
      agent.messages.push({ role: 'user', content: text })
      await agent.step()
    }
    for (const session of ['job', 'job-2', 'other']) await begin(session)
    const query = vi.spyOn(pg.Client.prototype, 'query')
    // Another conversation under the id of the first one.
    await begin('job', 'What is the weather?')
    const texts = query.mock.calls.map(([given]) => JSON.stringify(given))
    query.mockRestore()
    expect(texts.filter((text) => text.includes('recursive'))).toEqual([])
    const { rows } = await world.pool.query(
      'select session from gateway_sessions order by session collate "C"',
    )
    expect(rows.map(({ session }) => session)).toEqual(['job', 'job-2', 'job.2', 'other'])
  })

  it('what clients send is in the log, however large: none of it is stored beside it', async () => {
    const world = await createWorld({ script: () => ({ blocks: [{ type: 'text', text: 'Seen.' }] }) })
    const { url } = await world.startGateway()
    const agent = new SdkAgent(url, await world.addKey('team'), world.coder, 'large')
    const image =
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const result = 'The 42nd line of a very long file.\n'.repeat(20_000)
    agent.messages.push(
      { role: 'user', content: 'Read it all.' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'read_file', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: result },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: image } },
        ],
      },
    )
    await agent.step()
    const { rows } = await world.pool.query(
      `select bool_or(length(text) > $1 and position($2 in text) > 0) as kept, (select count(*)::int from gateway_blobs) as blobs
       from tidemark_lines`,
      [result.length, image],
    )
    expect(rows).toEqual([{ kept: true, blobs: 0 }])
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
    expect(await runUpkeep(world.pool, null)).toEqual({ settled: 1, deleted: 0, objects: 0 })
    expect(await listKeys(world.pool)).toMatchObject([{ spent: 1, reserved: 2 }])
  })
})
