/** Large lines and blobs of the gateway in an S3-compatible store that checks signatures. */
import { randomBytes } from 'node:crypto'
import { deleteSession } from '@tidemark/gateway'
import { blobStoreCases } from 'tidemark/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openObjectStore } from '../../packages/gateway/src/database/object-store.ts'
import { createScopeBlobs } from '../../packages/gateway/src/database/session-stores.ts'
import { runUpkeep } from '../../packages/gateway/src/operation/background-jobs.ts'
import { createViewerSessions } from '../../packages/gateway/src/page/viewer-sessions.ts'
import { type ObjectServer, startObjects } from '../support/objects-server.ts'
import { explainMissingPostgres } from '../support/postgres-server.ts'
import { type GatewayWorld, SdkAgent, useGatewayWorlds } from './gateway-world.ts'

const missing = explainMissingPostgres()

describe.skipIf(missing !== null)('a gateway with an S3-compatible store', () => {
  const createWorld = useGatewayWorlds()
  let server: ObjectServer
  beforeEach(async () => {
    server = await startObjects()
  })
  afterEach(() => server.stop())

  const start = (world: GatewayWorld, env: Readonly<Record<string, string>> = server.env) =>
    world.startGateway({ objects: server.url, env: { ANTHROPIC_API_KEY: 'sk-gateway', ...env } })

  async function startAgent(world: GatewayWorld, url: string, session = 'large') {
    const agent = new SdkAgent(url, await world.addKey('team'), world.coder, session)
    agent.messages.push(
      { role: 'user', content: 'Read it all.' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'read_file', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: LARGE }] },
    )
    return agent
  }
  const LARGE = `${randomBytes(200_000).toString('hex')}, the end of “it”`

  it('stores large results as objects: another process goes on with the whole log, and a deleted session leaves none', async () => {
    const world = await createWorld()
    const [first, second] = await Promise.all([start(world), start(world)])
    const agent = await startAgent(world, first.url)
    await agent.step()
    expect(server.list()).toHaveLength(1)
    const longest = await world.pool.query('select max(octet_length(text)) as bytes from tidemark_lines')
    expect(Number(longest.rows[0].bytes)).toBeLessThan(262_144)
    agent.client.baseURL = second.url
    await agent.step()
    const sent = world.simulator.simulator.requests.at(-1)
    expect(sent?.bodyBytes).toBeGreaterThan(LARGE.length)
    expect(sent?.cache?.miss).toBeNull()
    expect(agent.messages).toHaveLength(7)
    const { rows } = await world.pool.query('select scope from gateway_sessions')
    const [{ scope }] = rows
    const faults: string[] = []
    const store = openObjectStore(server.url, server.env)
    const reports = createViewerSessions({ pool: world.pool, objects: store }, (why) => faults.push(why))
    const page = reports.open({ keyId: scope, name: 'team', team: null, sees: 'own' })
    await expect.poll(async () => (await page.list()).sessions.length).toBe(1)
    await reports.close()
    expect(faults).toEqual([])
    expect(await deleteSession(world.pool, { scope, session: 'large', actor: 'test' })).not.toBeNull()
    const upkeep = await runUpkeep(world.pool, null, store)
    expect(upkeep).toMatchObject({ objects: 1 })
    expect(server.list()).toEqual([])
    expect((await world.pool.query('select 1 from gateway_objects')).rowCount).toBe(0)
  })

  it('sends nothing that it cannot store: a store that is away gives an error that SDKs try again', async () => {
    const world = await createWorld()
    const own = await startObjects()
    const gateway = await world.startGateway({
      objects: own.url,
      env: { ANTHROPIC_API_KEY: 'sk-gateway', ...own.env },
    })
    const agent = await startAgent(world, gateway.url)
    await own.stop()
    agent.client.maxRetries = 0
    await expect(agent.step()).rejects.toMatchObject({ status: 503 })
    expect(world.simulator.simulator.requests).toEqual([])
    // Without the store, the large line is not there either.
    const { url } = await world.startGateway()
    agent.client.baseURL = url
    await agent.step()
    expect(world.simulator.simulator.requests).toHaveLength(1)
  })

  it('says that a log needs the store, instead of going on without what is in it', async () => {
    const world = await createWorld()
    const agent = await startAgent(world, (await start(world)).url)
    await agent.step()
    agent.client.baseURL = (await world.startGateway()).url
    agent.client.maxRetries = 0
    await expect(agent.step()).rejects.toMatchObject({
      status: 503,
      message: expect.stringContaining('start the gateway with --objects'),
    })
  })

  it('finds a conversation without an id by tool calls of a large line', async () => {
    const world = await createWorld()
    const [first, second] = await Promise.all([start(world), start(world)])
    const agent = await startAgent(world, first.url)
    delete agent.headers['x-session-id']
    await agent.step()
    agent.client.baseURL = second.url
    await agent.step()
    expect((await world.pool.query('select 1 from gateway_sessions')).rowCount).toBe(1)
  })

  it('is not started with a wrong credential, a bucket that does not exist, or without a database', async () => {
    const world = await createWorld()
    await expect(start(world, { ...server.env, AWS_SECRET_ACCESS_KEY: 'wrong' })).rejects.toThrow(
      /SignatureDoesNotMatch/,
    )
    const startAt = (objects: string) => world.startGateway({ objects, env: server.env })
    await expect(startAt(server.url.replace('/logs', '/other'))).rejects.toThrow(/NoSuchBucket/)
    await expect(startAt('https://s3.example.com')).rejects.toThrow(/with a bucket/)
    await expect(startAt(`${server.url}?x=1`)).rejects.toThrow(/with a bucket/)
    await expect(start(world, {})).rejects.toThrow(/AWS_ACCESS_KEY_ID/)
  })

  it('a job that cannot delete objects is repeated, and objects of what never came to be are deleted after an hour', async () => {
    const world = await createWorld()
    const gateway = await start(world)
    await (await startAgent(world, gateway.url)).step()
    const [name = ''] = server.list()
    const store = openObjectStore(server.url, server.env)
    const fails = { ...store, delete: () => Promise.reject(new Error('away')) }
    await world.pool.query('delete from gateway_sessions')
    expect((await runUpkeep(world.pool, null, store)).objects).toBe(0)
    await world.pool.query("update gateway_objects set created_at = now() - interval '2 hours'")
    await expect(runUpkeep(world.pool, null, fails)).rejects.toThrow('away')
    expect(server.list()).toEqual([name])
    expect((await runUpkeep(world.pool, null, store)).objects).toBe(1)
    expect(server.list()).toEqual([])
  })

  describe('its blobs', () => {
    let scopes = 0
    const cases = blobStoreCases(async () => {
      const world = await createWorld()
      scopes += 1
      const store = openObjectStore(server.url, server.env)
      return { open: async () => createScopeBlobs(world.pool, `key-${scopes}`, store), end: async () => {} }
    })
    for (const { name, run } of cases) it(name, () => run())
  })

  it('large blobs are objects, and small ones are rows', async () => {
    const world = await createWorld()
    const store = openObjectStore(server.url, server.env)
    const blobs = createScopeBlobs(world.pool, 'key', store)
    const large = Uint8Array.from(randomBytes(300_000))
    const ids = [await blobs.put(large), await blobs.put(large), await blobs.put(Uint8Array.of(1, 2))]
    expect(server.list()).toHaveLength(1)
    expect(await blobs.get(ids[0] ?? '')).toEqual(large)
    expect(await blobs.get(ids[2] ?? '')).toEqual(Uint8Array.of(1, 2))
    await expect(createScopeBlobs(world.pool, 'key', null).get(ids[0] ?? '')).rejects.toThrow(/--objects/)
    await store.put(server.list()[0] ?? '', Uint8Array.of(7))
    await expect(blobs.get(ids[0] ?? '')).rejects.toThrow(/is not what was stored/)
  })
})
