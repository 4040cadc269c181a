/** Keys and sessions of the gateway, on a real Postgres. */
import { listKeys, revokeKey } from '@tidemark/gateway'
import { describe, expect, it } from 'vitest'
import { explainMissingPostgres } from '../support/postgres-server.ts'
import { SdkAgent, useGatewayWorlds } from './gateway-world.ts'

const missing = explainMissingPostgres()

describe.skipIf(missing !== null)('keys of the gateway', () => {
  const createWorld = useGatewayWorlds()

  it('equal session ids of two keys never meet', async () => {
    const world = await createWorld()
    const { url } = await world.startGateway()
    const agents = await Promise.all(
      ['ann', 'bob'].map(async (name) => {
        const agent = new SdkAgent(url, await world.addKey(name), world.coder, 'shared-id')
        agent.messages.push({ role: 'user', content: `I am ${name}. Fix the sums.` })
        return agent
      }),
    )
    for (let step = 0; step < 4; step += 1) for (const agent of agents) await agent.step()
    const { rows } = await world.pool.query(
      `select k.name, l.session, count(*)::int as lines,
         bool_or(l.text like '%I am ann%') as ann, bool_or(l.text like '%I am bob%') as bob
       from tidemark_lines l join gateway_keys k on k.id = l.scope group by 1, 2 order by 1`,
    )
    expect(rows).toEqual([
      { name: 'ann', session: 'shared-id', lines: expect.any(Number), ann: true, bob: false },
      { name: 'bob', session: 'shared-id', lines: expect.any(Number), ann: false, bob: true },
    ])
    const keys = await listKeys(world.pool)
    expect(keys.reduce((sum, { spent }) => sum + spent, 0)).toBeCloseTo(world.readBill(), 8)
    expect(keys.map(({ reserved }) => reserved)).toEqual([0, 0])
    await revokeKey(world.pool, 'bob', 'test')
    await expect(agents[1]?.step()).rejects.toMatchObject({ status: 403 })
    expect(await agents[0]?.step()).toBe(true)
  })

  it('have names in any script, and no signs that change how text is shown', async () => {
    const world = await createWorld()
    for (const name of ['Jose\u0301 Núñez', '李雷', 'Анна_2']) await world.addKey(name, { team: 'Équipe' })
    expect((await listKeys(world.pool)).map(({ name }) => name)).toEqual(['José Núñez', '李雷', 'Анна_2'])
    // Typed with one sign for the letter, or with two.
    await revokeKey(world.pool, 'Jose\u0301 Núñez', 'test')
    for (const name of ['a\u202eb', 'a\u200bb', 'a\nb', '<b>', "a'b", '', '🦄'])
      await expect(world.addKey(name)).rejects.toThrow('expected 1 to 100 letters')
  })
})
