/**
 * Processes of a previous version beside new ones on one database, while clients work: `TIDEMARK_TEST_PREVIOUS=FOLDER` names a checkout of it that is built.
 * The new ones add their steps to its tables; then its processes are replaced one after the other.
 */
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { MIGRATIONS } from '../../packages/gateway/src/database/migrations.ts'
import { explainMissingPostgres } from '../support/postgres-server.ts'
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts'
import { SdkAgent, useGatewayWorlds } from './gateway-world.ts'
import { expectWholeLogs, listLostBlocks } from './stored-sessions.ts'

const previous = process.env.TIDEMARK_TEST_PREVIOUS
const missing = previous === undefined ? 'TIDEMARK_TEST_PREVIOUS is not set' : explainMissingPostgres()
const SESSIONS = 8

describe.skipIf(missing !== null)('a version before and this one on one database', () => {
  const createWorld = useGatewayWorlds()
  const running: GatewayProcess[] = []
  afterEach(async () => {
    await Promise.all(running.splice(0).map((gateway) => gateway.kill('SIGKILL')))
  })

  it('serve the same sessions at once: no request fails, no record is lost, and the sum is the bill', async () => {
    const world = await createWorld({ isEmpty: true, turns: Number.POSITIVE_INFINITY })
    const addresses = { database: world.url, upstream: world.simulator.url }
    const old = [join(previous ?? '', 'packages/cli/bin/tidemark.mjs')]
    const start = async (command?: readonly string[]): Promise<GatewayProcess> => {
      const gateway = await startGatewayProcess({
        ...addresses,
        ...(command === undefined ? {} : { command }),
      })
      running.push(gateway)
      return gateway
    }
    const readSteps = async () =>
      (await world.pool.query('select number from gateway_migrations order by number')).rows.length
    running.length = 0
    await Promise.all([start(old), start(old)])
    const before = await readSteps()
    const key = await world.addKey('team')
    const agents = Array.from({ length: SESSIONS }, (_, index) => {
      const agent = new SdkAgent('http://127.0.0.1:1', key, world.coder, `job-${index}`)
      agent.messages.push({ role: 'user', content: `Job ${index}: fix the sums.` })
      return agent
    })
    let isOver = false
    let steps = 0
    const work = agents.map(async (agent, index) => {
      for (let step = index; !isOver; step += 1) {
        // Each request goes to the next process, whichever its version.
        agent.client.baseURL = running[step % running.length]?.url ?? ''
        await agent.step()
        steps += 1
      }
    })
    const waitForSteps = (more: number) => {
      const end = steps + more
      return Promise.race([expect.poll(() => steps).toBeGreaterThanOrEqual(end), Promise.all(work)])
    }
    await waitForSteps(3 * SESSIONS)
    await start()
    await waitForSteps(5 * SESSIONS)
    await start()
    await waitForSteps(5 * SESSIONS)
    const mixed = steps
    for (const gateway of running.slice(0, 2)) {
      running.splice(running.indexOf(gateway), 1)
      await gateway.kill('SIGTERM')
      expect(gateway.process.exitCode).toBe(0)
    }
    await waitForSteps(3 * SESSIONS)
    isOver = true
    await Promise.all(work)
    await expectWholeLogs(world.pool, SESSIONS)
    const lost = await Promise.all(
      agents.map((agent, index) => listLostBlocks(world.pool, `job-${index}`, agent.messages.slice(0, -1))),
    )
    expect(lost.flat()).toEqual([])
    const { rows } = await world.pool.query(
      'select sum(cost)::float8 as spent, count(*) filter (where settled_at is null)::int as open, count(distinct process)::int as processes from gateway_calls',
    )
    console.log({ before, after: await readSteps(), mixed, steps, ...rows[0], bill: world.readBill() })
    expect(await readSteps()).toBe(MIGRATIONS.length)
    expect(before).toBeLessThan(MIGRATIONS.length)
    expect(rows[0]).toMatchObject({ open: 0, processes: 4 })
    expect(rows[0].spent).toBeCloseTo(world.readBill(), 6)
  })
})
