/** Gateways as processes of their own: killed in the middle of work and of a job, and ended by SIGTERM. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { listKeys } from '@tidemark/gateway'
import { PgBoss } from 'pg-boss'
import { afterEach, describe, expect, it } from 'vitest'
import { UPKEEP_QUEUE } from '../../packages/gateway/src/operation/background-jobs.ts'
import { explainMissingPostgres } from '../support/postgres-server.ts'
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts'
import { type GatewayWorld, SdkAgent, useGatewayWorlds } from './gateway-world.ts'
import { killGateways } from './killed-gateways.ts'

const missing = explainMissingPostgres()

describe.skipIf(missing !== null)('a gateway that is a process of its own', () => {
  const createWorld = useGatewayWorlds()
  const processes: GatewayProcess[] = []
  // Before the worlds are closed: hooks run from the last to the first.
  afterEach(async () => {
    await Promise.all(processes.splice(0).map((gateway) => gateway.kill('SIGKILL')))
  })

  async function start({ url, simulator }: GatewayWorld, flags: readonly string[] = []) {
    const gateway = await startGatewayProcess({ database: url, upstream: simulator.url, args: flags })
    processes.push(gateway)
    return gateway
  }

  it('is killed while clients work: they go on in another one, with every record and each result once', async () => {
    const figures = await killGateways(createWorld, {
      sessions: 6,
      kills: 2,
      everyMs: 500,
      window: 200_000,
      pieceMs: 5,
    })
    expect(figures).toMatchObject({ kills: 2, lostRecords: 0 })
    expect(figures.repeatedCalls).toBeLessThanOrEqual(figures.cutAnswers)
  })

  it('is killed in the middle of a job: another process does that job again', async () => {
    const world = await createWorld()
    const key = await world.addKey('team')
    const killed = await start(world, ['--retention', '30'])
    const agent = new SdkAgent(killed.url, key, world.coder, 'old')
    agent.messages.push({ role: 'user', content: 'Fix the sums.' })
    await agent.step()
    await world.pool.query("update gateway_sessions set used_at = now() - interval '40 days'")
    const boss = new PgBoss({
      connectionString: world.url,
      schema: 'tidemark_jobs',
      supervise: false,
      schedule: false,
    })
    boss.on('error', () => {})
    await boss.start()
    const blocker = await world.pool.connect()
    try {
      // The job waits for this lock, and its process is killed meanwhile.
      await blocker.query('begin; lock table gateway_calls in access exclusive mode')
      // Nothing is sent if the schedule has just sent one: then that is the job.
      await boss.send(UPKEEP_QUEUE)
      // Tables of other databases on this server may have the same number.
      const waiting =
        "select 1 from pg_locks join pg_database on oid = database where not granted and datname = current_database() and relation = 'gateway_calls'::regclass"
      await expect.poll(async () => (await world.pool.query(waiting)).rowCount).toBe(1)
      const active = "select id from tidemark_jobs.job where name = $1 and state = 'active'"
      const id = String((await world.pool.query(active, [UPKEEP_QUEUE])).rows[0]?.id)
      const readState = async () => (await boss.findJobs(UPKEEP_QUEUE, { id }))[0]?.state
      await killed.kill('SIGKILL')
      await blocker.query('rollback')
      expect((await world.pool.query('select 1 from gateway_sessions')).rowCount).toBe(1)
      // As if the time after which a job counts as lost were over.
      await world.pool.query(
        "update tidemark_jobs.job set started_on = now() - interval '1 hour' where id = $1",
        [id],
      )
      await boss.supervise(UPKEEP_QUEUE)
      await start(world, ['--retention', '30'])
      await expect.poll(readState).toBe('completed')
      expect((await world.pool.query('select 1 from gateway_sessions')).rowCount).toBe(0)
    } finally {
      blocker.release(true)
      await boss.stop({ graceful: false })
    }
  })

  it('a process that gets SIGTERM ends the answer that it is sending, and then itself', async () => {
    const world = await createWorld({
      script: () => ({ blocks: [{ type: 'text', text: 'It is 42. '.repeat(100) }], delays: { pieceMs: 20 } }),
    })
    const gateway = await start(world)
    const agent = new SdkAgent(gateway.url, await world.addKey('team'), world.coder, 'job')
    agent.messages.push({ role: 'user', content: 'How many?' })
    const running = agent.step()
    await expect.poll(async () => (await world.pool.query('select 1 from gateway_calls')).rows.length).toBe(1)
    const [ended] = await Promise.all([gateway.kill('SIGTERM').then(() => gateway.process.exitCode), running])
    expect(ended).toBe(0)
    expect(await listKeys(world.pool)).toMatchObject([{ reserved: 0 }])
    expect((await listKeys(world.pool))[0]?.spent).toBeCloseTo(world.readBill(), 8)
  })

  it('a process that ends answers what still comes on an open connection, and ends with 0', async () => {
    const world = await createWorld({
      script: () => ({ blocks: [{ type: 'text', text: 'It is 42. '.repeat(100) }], delays: { pieceMs: 20 } }),
    })
    const gateway = await start(world)
    const { port } = new URL(gateway.url)
    const key = await world.addKey('team')
    const socket = connect(Number(port), '127.0.0.1')
    let received = ''
    socket.on('data', (data) => {
      received += String(data)
    })
    const closed = once(socket, 'close')
    socket.write(writeRequest(key, port, 'first'))
    await expect.poll(() => received).toContain('content_block_delta')
    const ended = gateway.kill('SIGTERM')
    // The process takes no more connections: it drains.
    await expect.poll(() => isTaking(gateway.url)).toBe(false)
    await expect.poll(() => received).toContain('\r\n0\r\n\r\n')
    socket.write(writeRequest(key, port, 'second'))
    await Promise.all([closed, ended])
    expect(received.split('HTTP/1.1 200 OK').length - 1).toBe(2)
    expect(received.split('event: message_stop').length - 1).toBe(2)
    expect(gateway.process.exitCode).toBe(0)
  })
})

function isTaking(url: string): Promise<boolean> {
  return fetch(`${url}/healthz`).then(
    () => true,
    () => false,
  )
}

function writeRequest(key: string, port: string, session: string): string {
  const messages = [{ role: 'user', content: 'How many?' }]
  const tools = [{ name: 'look', input_schema: { type: 'object' } }]
  const body = JSON.stringify({ model: 'claude-sonnet-5-5', max_tokens: 500, stream: true, tools, messages })
  const head = [
    'POST /v1/messages HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    `x-api-key: ${key}`,
    `x-session-id: ${session}`,
  ]
  const types = ['content-type: application/json', 'anthropic-version: 2023-06-01']
  return [...head, ...types, `content-length: ${body.length}`, '', body].join('\r\n')
}
