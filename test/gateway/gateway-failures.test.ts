/** What must survive: a killed gateway, a database that restarts, a connection that is cut, and callers who attack. */
import { request } from 'node:http'
import { listKeys, revokeKey } from '@tidemark/gateway'
import { afterEach, describe, expect, it } from 'vitest'
import { explainMissingPostgres, startPostgres } from '../support/postgres-server.ts'
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts'
import { createGatewayWorld, type GatewayWorld, SdkAgent, useGatewayWorlds } from './gateway-world.ts'

const missing = explainMissingPostgres()

describe.skipIf(missing !== null)('the gateway', () => {
  const createWorld = useGatewayWorlds()
  const processes: GatewayProcess[] = []
  // Before the worlds are closed: hooks run from the last to the first.
  afterEach(async () => {
    for (const gateway of processes.splice(0)) await gateway.kill('SIGKILL')
  })

  /** Every record of a session once, with positions without gaps, and each tool result once. */
  async function expectWholeLogs({ pool }: GatewayWorld, sessions: number): Promise<void> {
    const { rows } = await pool.query(
      'select scope, session, line, text from tidemark_lines order by 1, 2, 3',
    )
    const bySession = Map.groupBy(rows, ({ scope, session }) => `${scope} ${session}`)
    expect(bySession.size).toBe(sessions)
    for (const lines of bySession.values()) {
      expect(lines.map(({ line }) => line)).toEqual(lines.map((_, index) => index + 1))
      const records = lines.map(({ text }) => JSON.parse(text))
      const uuids = records.flatMap(({ uuid }) => (uuid === undefined ? [] : [uuid]))
      expect(new Set(uuids).size).toBe(uuids.length)
      const results = records
        .filter(({ type }) => type === 'user')
        .flatMap(({ message }) => (Array.isArray(message?.content) ? message.content : []))
        .filter(({ type }) => type === 'tool_result')
        .map(({ tool_use_id: id }) => id)
      expect(new Set(results).size).toBe(results.length)
    }
  }

  it('goes on in another process when one is killed in the middle of the work of real clients', async () => {
    const world = await createWorld({ turns: 12 })
    const start = () => startGatewayProcess({ database: world.url, upstream: world.simulator.url })
    processes.push(...(await Promise.all([start(), start()])))
    const [first, second] = processes as [GatewayProcess, GatewayProcess]
    const key = await world.addKey('team')
    const agents = Array.from({ length: 6 }, (_, index) => {
      const agent = new SdkAgent(first.url, key, world.coder, `job-${index}`)
      agent.messages.push({ role: 'user', content: `Job ${index}: fix the sums.` })
      return agent
    })
    let steps = 0
    const killed = Promise.withResolvers<void>()
    const work = agents.map(async (agent) => {
      for (;;) {
        try {
          if (!(await agent.step())) return
        } catch (error) {
          // The address of the client is that of a proxy in front, which knows that the process has gone.
          if (agent.client.baseURL === second.url) throw error
          await killed.promise
          agent.client.baseURL = second.url
          continue
        }
        steps += 1
        if (steps === 20) void first.kill('SIGKILL').then(() => killed.resolve())
      }
    })
    await Promise.all(work)
    await expectWholeLogs(world, agents.length)
    const { rows } = await world.pool.query(
      'select count(*)::int as texts from tidemark_lines where text like \'%Job %: fix the sums.%\' and text like \'%"type":"user"%\'',
    )
    expect(rows[0].texts).toBe(agents.length)
    // What the killed process had reserved is charged once it counts as dead; nothing else stays reserved.
    const open = await world.pool.query(
      'select count(*)::int as calls from gateway_calls where settled_at is null',
    )
    expect(open.rows[0].calls).toBeLessThanOrEqual(agents.length)
  })

  it('goes on when all connections to the database are cut in the middle of answers; the log is whole and the sum is the bill', async () => {
    const own = await startPostgres()
    const world = await createGatewayWorld(own, { turns: 8 })
    try {
      const { url } = await world.startGateway()
      const agent = new SdkAgent(url, await world.addKey('team'), world.coder, 'job')
      agent.messages.push({ role: 'user', content: 'Fix the sums.' })
      await agent.step()
      // All connections are cut, as by a restart.
      const admin = world.pool
      for (let step = 0; step < 4; step += 1) {
        const running = agent.step()
        await admin
          .query(
            'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()',
          )
          .catch(() => {})
        expect(await running).toBe(true)
      }
      await expectWholeLogs(world, 1)
      await expect.poll(async () => (await listKeys(world.pool))[0]?.reserved).toBe(0)
      expect((await listKeys(world.pool))[0]?.spent).toBeCloseTo(world.readBill(), 8)
    } finally {
      await world.close()
      await own.stop()
    }
  })

  it('goes on in any process from one request to the next, with one log', async () => {
    const world = await createWorld({ turns: 10 })
    const gateways = await Promise.all([world.startGateway(), world.startGateway()])
    const key = await world.addKey('team')
    for (const session of ['named', null]) {
      const agent = new SdkAgent(gateways[0]?.url ?? '', key, world.coder, session)
      agent.messages.push({ role: 'user', content: `Fix the sums of ${session ?? 'nobody'}.` })
      for (let step = 1; await agent.step(); step += 1) agent.client.baseURL = gateways[step % 2]?.url ?? ''
    }
    await expectWholeLogs(world, 2)
  })

  it.each<[string, string, string, Record<string, string>, number]>([
    ['no key', 'POST', '/v1/messages', {}, 401],
    ['a key that is none', 'POST', '/v1/messages', { 'x-api-key': "tmk_' or 1=1 --" }, 401],
    ['an unknown key', 'POST', '/v1/messages', { 'x-api-key': `tmk_${'a'.repeat(43)}` }, 401],
    ['two keys in one header', 'POST', '/v1/messages', { 'x-api-key': 'KEY, KEY' }, 401],
    ['a revoked key', 'POST', '/v1/messages', { 'x-api-key': 'REVOKED' }, 403],
    [
      'a revoked key beside a good one',
      'POST',
      '/v1/messages',
      { 'x-api-key': 'KEY', authorization: 'Bearer REVOKED' },
      401,
    ],
    ['files of the account', 'GET', '/v1/files', { 'x-api-key': 'KEY' }, 404],
    ['batches, which nobody would count', 'POST', '/v1/messages/batches', { 'x-api-key': 'KEY' }, 404],
    ['a path that leads elsewhere', 'POST', '/v1/x/../files', { 'x-api-key': 'KEY' }, 404],
    ['an encoded path', 'POST', '/v1/%2e%2e/messages', { 'x-api-key': 'KEY' }, 404],
    ['a stored response of somebody', 'GET', '/v1/responses/resp_1', { 'x-api-key': 'KEY' }, 404],
  ])('refuses %s', async (_, method, path, headers, status) => {
    const world = await createWorld()
    const { url } = await world.startGateway()
    const [key, revoked] = [await world.addKey('good'), await world.addKey('gone')]
    await revokeKey(world.pool, 'gone', 'test')
    const given = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name,
        value.replaceAll('REVOKED', revoked).replaceAll('KEY', key),
      ]),
    )
    const answer = await sendRaw(`${url}${path}`, method, given, '{"model":"claude-sonnet-5-5"}')
    expect([answer.status, JSON.parse(answer.body).error.message.length > 10]).toEqual([status, true])
    expect(world.simulator.simulator.requests).toEqual([])
  })

  it('passes on no key and no account of its own, takes SQL as text, and refuses huge bodies', async () => {
    const world = await createWorld()
    const { url } = await world.startGateway({ maxBodyBytes: 100_000 })
    const key = await world.addKey('team')
    const sql = "'; drop table gateway_keys; -- \u0000"
    const headers = { 'x-api-key': key, 'anthropic-version': '2023-06-01', 'x-session-id': sql.slice(0, -1) }
    const body = {
      model: 'claude-sonnet-5-5',
      max_tokens: 100,
      metadata: { user_id: sql },
      tools: [{ name: 'look', description: sql, input_schema: { type: 'object' } }],
      messages: [{ role: 'user', content: sql }],
    }
    const ok = await sendRaw(`${url}/v1/messages`, 'POST', headers, JSON.stringify(body))
    expect(ok.status).toBe(200)
    const model = await sendRaw(
      `${url}/v1/messages`,
      'POST',
      headers,
      JSON.stringify({ ...body, model: sql }),
    )
    expect(model.status).toBeGreaterThanOrEqual(400)
    expect((await listKeys(world.pool)).map(({ name }) => name)).toEqual(['team'])
    const large = await sendRaw(`${url}/v1/messages`, 'POST', headers, 'x'.repeat(200_000))
    expect(large.status).toBe(413)
    const { rows } = await world.pool.query(
      "select count(*)::int as lines from tidemark_lines where text like '%tmk\\_%'",
    )
    expect(rows[0].lines).toBe(0)
  })
})

/** Sends a request as it is written: `fetch` would tidy up paths and headers. */
function sendRaw(
  url: string,
  method: string,
  headers: Record<string, string>,
  body: string,
): Promise<{ readonly status: number; readonly body: string }> {
  const { hostname, port } = new URL(url)
  const path = url.slice(new URL(url).origin.length)
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers }, (response) => {
      let text = ''
      response.on('data', (data: Buffer) => {
        text += String(data)
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }))
    })
    sent.on('error', reject)
    sent.end(method === 'GET' ? undefined : body)
  })
}
