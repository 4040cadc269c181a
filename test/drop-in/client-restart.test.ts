/** Conversations of clients that name no id, after a restart: they are found by what their logs end with. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import {
  ClientAgent,
  type ClientSettings,
  createDropInWorld,
  sumRequests,
  withMarkers,
} from './client-agent.ts'

/** Runs two conversations through one `fetch`, and goes on with the first after a restart. */
async function restart(settings: ClientSettings, change: (host: ClientAgent) => void = () => {}) {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-drop-in-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }))
  const before = createDropInWorld({ home, turns: 8 })
  const fetch = before.tide.fetch({ fetch: before.upstream })
  const [first, second] = [0, 1].map(() => new ClientAgent(fetch, before.coder, settings)) as [
    ClientAgent,
    ClientAgent,
  ]
  first.messages.push({ role: 'user', content: 'Mend the sums.' })
  second.messages.push({ role: 'user', content: 'Mend the dates.' })
  for (let step = 0; step < 3; step += 1) {
    for (const host of [first, second])
      if (!(await host.step())) host.messages.push({ role: 'user', content: `Go on, ${step}.` })
  }
  const sessions = await before.tide.sessions()
  await before.tide.close()
  change(first)
  const after = createDropInWorld({ home })
  const host = new ClientAgent(after.tide.fetch({ fetch: before.upstream }), before.coder, settings)
  host.messages = first.messages
  const { read } = sumRequests(before)
  await host.step()
  const found = await after.tide.sessions()
  const history = after.listMessages('host-history-changed')
  // The session of the other conversation is not held open.
  const free = await Promise.allSettled(sessions.map((id) => after.tide.open(id, { source: 'test' })))
  await after.tide.close()
  return { sessions, found, history, free, cacheRead: sumRequests(before).read - read }
}

it('a conversation with calls goes on in its own session, from the cache', async () => {
  const { sessions, found, history, free, cacheRead } = await restart({})
  expect(sessions).toHaveLength(2)
  expect(found).toEqual(sessions)
  expect(history).toEqual([])
  expect(cacheRead).toBeGreaterThan(1_000)
  expect(free.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
})

it('so does one whose last response is not in the log', async () => {
  const { sessions, found, history } = await restart({}, (host) => {
    host.messages.push({ role: 'assistant', content: 'I am done.' }, { role: 'user', content: 'Go on.' })
  })
  expect([found, history]).toEqual([sessions, []])
})

it('so does one of texts alone', async () => {
  const { sessions, found, history } = await restart({ tools: [], prepare: withMarkers })
  expect(sessions.length).toBeGreaterThan(0)
  expect([found, history]).toEqual([sessions, []])
})

it('another conversation gets a session of its own', async () => {
  const { sessions, found } = await restart({}, (host) => {
    host.messages = [
      { role: 'user', content: 'Mend the names.' },
      { role: 'assistant', content: 'Which ones?' },
      { role: 'user', content: 'All.' },
    ]
  })
  expect(found).toHaveLength(sessions.length + 1)
})

it.each([
  ['that names no id', {}],
  ['under an id', { session: 'talk' }],
])(
  'a conversation %s is closed after a time without requests, and goes on with the next one',
  async (_, choice) => {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-drop-in-'))
    onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }))
    const world = createDropInWorld({ home, turns: 8 })
    const host = new ClientAgent(
      world.tide.fetch({ fetch: world.upstream, idleSeconds: 0.2, ...choice }),
      world.coder,
      {},
    )
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    await host.step()
    const [id = ''] = await world.tide.sessions()
    // The lock is held while the session is open.
    const isOpen = (): boolean => existsSync(join(home, 'sessions', `${id}.lock`))
    await expect.poll(isOpen).toBe(false)
    await host.step()
    expect(await world.tide.sessions()).toEqual([id])
    expect(world.listMessages('host-history-changed')).toEqual([])
    await world.tide.close()
  },
)

it('a conversation that a new process goes on with at every request costs what it costs in one, and sends the same bytes, compactions included', async () => {
  const bills: number[] = []
  const bodies: string[][] = []
  for (const isRestarted of [false, true]) {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-drop-in-'))
    onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }))
    const options = { home, window: 20_000, turns: Number.POSITIVE_INFINITY, resultTokens: 1_500 }
    const first = createDropInWorld(options)
    let { tide } = first
    let fetch = tide.fetch({ fetch: first.upstream, session: 'job' })
    const host = new ClientAgent((input, init) => fetch(input, init), first.coder, {})
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    for (let step = 0; step < 40; step += 1) {
      await host.step()
      if (!isRestarted) continue
      await tide.close()
      tide = createDropInWorld(options).tide
      fetch = tide.fetch({ fetch: first.upstream, session: 'job' })
    }
    await tide.close()
    if (!isRestarted) expect(first.events.some(({ type }) => type === 'compact')).toBe(true)
    const costs = first.simulator.requests.map(({ cost }) => cost?.total ?? 0)
    bills.push(costs.reduce((sum, cost) => sum + cost, 0))
    bodies.push(first.sent.map((body) => body.replaceAll(home, 'HOME')))
  }
  expect(bodies[1]).toEqual(bodies[0])
  expect(bills[1]).toBe(bills[0])
})
