/** What happens to the database while clients work: it restarts, its connections are cut, and its tables get a step more. */
import { listKeys } from '@tidemark/gateway'
import type { Script } from '@tidemark/simulator'
import { afterEach, describe, expect, it } from 'vitest'
import { MIGRATIONS, migrateDatabase } from '../../packages/gateway/src/database/migrations.ts'
import { explainMissingPostgres, startOwnPostgres } from '../support/postgres-server.ts'
import { startDatabaseLink } from './database-link.ts'
import { createGatewayWorld, SdkAgent, stopServer, useGatewayWorlds } from './gateway-world.ts'
import { expectWholeLogs, listLostBlocks } from './stored-sessions.ts'

const missing = explainMissingPostgres('own')

/** A world on a server of its own, whose answers come in pieces: there is time to act in the middle of one. */
async function createSlowWorld() {
  const server = await startOwnPostgres()
  const world = await createGatewayWorld(server, { turns: 8 })
  return { ...world, server, close: () => world.close().finally(() => stopServer(server)) }
}

function readText(content: unknown): unknown {
  return Array.isArray(content) ? content.map(({ text }) => text).join('') : content
}

describe.skipIf(missing !== null)('the database of the gateway', () => {
  const createWorld = useGatewayWorlds()
  const closing: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })

  it('is restarted in the middle of answers: requests get an error that SDKs try again, the log is whole, and the sum is the bill', async () => {
    const world = await createSlowWorld()
    closing.push(world.close)
    const { url } = await world.startGateway()
    const key = await world.addKey('team')
    const agent = new SdkAgent(url, key, world.coder, 'job')
    agent.messages.push({ role: 'user', content: 'Fix the sums.' })
    await agent.step()
    const statuses: unknown[] = []
    for (let restart = 0; restart < 2; restart += 1) {
      const running = agent.step()
      await world.server.restart(async () => {
        const refused = await fetch(`${url}/v1/messages`, {
          method: 'POST',
          headers: { 'x-api-key': key },
          body: '{"model":"claude-sonnet-5-5"}',
        })
        statuses.push(refused.status, refused.headers.get('x-should-retry'))
        for (const path of ['readyz', 'healthz']) statuses.push((await fetch(`${url}/${path}`)).status)
      })
      expect(await running).toBe(true)
    }
    expect(statuses).toEqual([503, 'true', 503, 200, 503, 'true', 503, 200])
    await agent.step()
    await expectWholeLogs(world.pool, 1)
    expect(await listLostBlocks(world.pool, 'job', agent.messages.slice(0, -1))).toEqual([])
    await expect.poll(async () => (await listKeys(world.pool))[0]?.reserved).toBe(0)
    expect((await listKeys(world.pool))[0]?.spent).toBeCloseTo(world.readBill(), 8)
  })

  it('ends all connections in the middle of answers: clients notice nothing, the log is whole, and the sum is the bill', async () => {
    const world = await createWorld({ turns: 8 })
    const { url } = await world.startGateway()
    const agent = new SdkAgent(url, await world.addKey('team'), world.coder, 'job')
    agent.messages.push({ role: 'user', content: 'Fix the sums.' })
    await agent.step()
    for (let step = 0; step < 4; step += 1) {
      const running = agent.step()
      await world.pool.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()',
      )
      expect(await running).toBe(true)
    }
    await expectWholeLogs(world.pool, 1)
    await expect.poll(async () => (await listKeys(world.pool))[0]?.reserved).toBe(0)
    expect((await listKeys(world.pool))[0]?.spent).toBeCloseTo(world.readBill(), 8)
  })

  it('is cut off from one gateway in mid-answer: another goes on with the session, and what the first writes later follows what it has read of that', async () => {
    const held = Promise.withResolvers<void>()
    const asked: (readonly unknown[])[] = []
    const script: Script = async ({ messages }) => {
      const number = asked.push(messages.map(({ content }) => readText(content)))
      if (number === 2) await held.promise
      return { blocks: [{ type: 'text', text: `This is answer ${number}.` }] }
    }
    const world = await createWorld({ script })
    const link = await startDatabaseLink(world.url)
    closing.push(() => link.close())
    const [cut, whole] = await Promise.all([world.startGateway({ database: link.url }), world.startGateway()])
    const key = await world.addKey('team')
    const ask = async (url: string, texts: readonly string[]): Promise<Response> =>
      fetch(`${url}/v1/messages`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'x-session-id': 'job', 'anthropic-version': '2023-06-01' },
        body: JSON.stringify({
          model: 'claude-sonnet-5-5',
          max_tokens: 100,
          tools: [{ name: 'look', input_schema: { type: 'object' } }],
          messages: texts.map((content, index) => ({
            role: index % 2 === 0 ? 'user' : 'assistant',
            content,
          })),
        }),
      })
    const begun = ['First question.', 'This is answer 1.', 'Second question.']
    const opened = await ask(cut.url, begun.slice(0, 1))
    expect(await opened.text()).toContain('This is answer 1.')
    const late = ask(cut.url, begun).catch(() => null)
    await expect.poll(() => asked.length).toBe(2)
    link.cut()
    // Postgres has released the lock with the connection: the client tries again, and comes to the other process.
    const answered = await ask(whole.url, begun)
    expect(await answered.text()).toContain('This is answer 3.')
    expect((await ask(cut.url, begun)).status).toBe(503)
    const next = await ask(whole.url, [...begun, 'This is answer 3.', 'Third question.'])
    expect(await next.text()).toContain('This is answer 4.')
    held.resolve()
    link.heal()
    expect(await (await late)?.text()).toContain('This is answer 2.')
    // The connection that held the lock is gone, and the position is another: the first process reads before it writes.
    const list = [...begun, 'This is answer 3.', 'Third question.', 'This is answer 4.', 'Fourth question.']
    const last = await ask(cut.url, list)
    expect(await last.text()).toContain('This is answer 5.')
    await expectWholeLogs(world.pool, 1)
    const { rows } = await world.pool.query('select text from tidemark_lines order by line')
    const log = rows.map(({ text }) => JSON.parse(text))
    const spoken = log
      .filter(({ type }) => type === 'assistant')
      .map(({ message, afterUuid }) => [readText(message.content), afterUuid !== undefined])
    // The client of the first process has read its late answer, so the log has it, beside the conversation.
    expect(spoken).toEqual([
      ['This is answer 1.', false],
      ['This is answer 3.', false],
      ['This is answer 4.', false],
      ['This is answer 2.', true],
      ['This is answer 5.', false],
    ])
    expect(asked[4]).toEqual(list)
  })

  it('gets a step more by a newer version while clients work: those of the version before go on, and so do new ones', async () => {
    const world = await createWorld({ turns: 8 })
    const before = await world.startGateway()
    const key = await world.addKey('team', { budget: 50 })
    const agents = ['one', 'other'].map((session) => {
      const agent = new SdkAgent(before.url, key, world.coder, session)
      agent.messages.push({ role: 'user', content: `Fix the sums of ${session}.` })
      return agent
    })
    const work = Promise.all(
      agents.map(async (agent) => {
        for (; await agent.step(); );
      }),
    )
    const number = Math.max(...MIGRATIONS.map((step) => step.number)) + 1
    const sql = `
      alter table gateway_keys add column made_up text not null default 'none';
      alter table gateway_calls add column made_up text; create index made_up on gateway_calls (made_up);
      alter table gateway_sessions add column made_up jsonb not null default '{}';
      create table gateway_made_up (key text references gateway_keys (id));`
    const steps = [...MIGRATIONS, { number, name: 'made up', sql }]
    expect(await migrateDatabase(world.pool, steps)).toEqual([`${number} made up`])
    // A process that starts again after the step is of the version before: it leaves the newer tables as they are.
    const again = await world.startGateway()
    await work
    const late = new SdkAgent(again.url, await world.addKey('later'), world.coder, 'late')
    late.messages.push({ role: 'user', content: 'Fix the sums.' })
    expect(await late.step()).toBe(true)
    await expectWholeLogs(world.pool, 3)
    const keys = await listKeys(world.pool)
    expect(keys.reduce((sum, { spent }) => sum + spent, 0)).toBeCloseTo(world.readBill(), 8)
  })
})
