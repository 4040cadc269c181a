/** What a client pays is what the log says: by `money`, by the events and by `inspect`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EventOf } from 'tidemark'
import { findNamedLogs } from 'tidemark/internal'
import { inspectFiles } from 'tidemark/logs'
import { afterEach, describe, expect, it } from 'vitest'
import {
  ClientAgent,
  type ClientMessage,
  createDropInWorld,
  type DropInOptions,
  type DropInWorld,
  dropIn,
} from './client-agent.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
})

function createHome(): string {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-totals-'))
  folders.push(home)
  return home
}

/** The calls of the bill, and their dollars. */
function readBill({ simulator }: Pick<DropInWorld, 'simulator'>) {
  const billed = simulator.requests.filter(({ cost }) => cost !== null)
  return {
    calls: billed.length,
    dollars: billed.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0),
  }
}

/** Sends a request beside the conversation, without tools, and reads its answer. */
async function askAside(fetch: typeof globalThis.fetch, messages: readonly ClientMessage[], headers = {}) {
  const response = await fetch('http://simulator.test/v1/messages', {
    method: 'POST',
    headers: { 'x-api-key': 'host', 'anthropic-version': '2023-06-01', ...headers },
    body: JSON.stringify({ model: 'claude-haiku-5-5', max_tokens: 500, messages }),
  })
  await response.text()
  return response.status
}

it.each(['manage', 'observe'] as const)(
  'where a client compacts by itself, the totals of its log are those of the bill (%s)',
  async (mode) => {
    const home = createHome()
    const world = dropIn({}, { home, turns: 40 }, { mode })
    const { host, tide, fetch, events } = world
    host.messages.push({ role: 'user', content: 'Fix the sums.' })
    for (let step = 0; step < 12; step += 1) await host.step()
    await askAside(fetch, [...host.messages.slice(0, -1), { role: 'user', content: 'Summarize this.' }])
    await askAside(fetch, [{ role: 'user', content: 'A title for this, please.' }])
    const summary = 'This session is continued from an earlier one. Summary: the sums are being fixed.'
    host.messages = [{ role: 'user', content: summary }, ...host.messages.slice(-2)]
    while (await host.step());
    await tide.close()
    const priced = events.filter((event): event is EventOf<'priced'> => event.type === 'priced')
    const bill = readBill(world)
    expect(priced).toHaveLength(bill.calls)
    expect(priced.reduce((sum, { call }) => sum + (call.money.total ?? 0), 0)).toBeCloseTo(bill.dollars, 9)
    const { sessions } = await inspectFiles((await findNamedLogs([join(home, 'sessions')])).logs)
    expect(sessions.reduce((sum, { apiCalls }) => sum + apiCalls, 0)).toBe(bill.calls)
    expect(sessions.reduce((sum, { costUsd }) => sum + (costUsd ?? Number.NaN), 0)).toBeCloseTo(
      bill.dollars,
      5,
    )
  },
)

/** A client on a session that the test can ask for its totals. */
async function openWorld(options: DropInOptions = {}, mode: 'manage' | 'observe' = 'manage') {
  const world = createDropInWorld({ turns: 12, ...options })
  const session = await world.tide.open('talk')
  const fetch = world.tide.fetch({ session, fetch: world.upstream, mode })
  return { ...world, session, fetch, host: new ClientAgent(fetch, world.coder) }
}

it('a client that joins with a history brings no calls', async () => {
  const direct = createDropInWorld({ turns: 12 })
  const before = new ClientAgent(direct.upstream, direct.coder)
  before.messages.push({ role: 'user', content: 'Fix the sums.' })
  for (let step = 0; step < 6; step += 1) await before.step()
  const world = await openWorld()
  world.host.messages = before.messages
  await world.host.step()
  await world.host.step()
  expect(world.session.money()).toMatchObject({ calls: 2, unpricedCalls: 0 })
  expect(world.session.money().spent.total).toBeCloseTo(readBill(world).dollars, 9)
})

it('an answer that the client stops reading is counted, with what arrived of it', async () => {
  const world = await openWorld({ simulator: { deltaSize: 4 } })
  const { host, session } = world
  host.messages.push({ role: 'user', content: 'Fix the sums.' })
  await host.step()
  world.simulator.queueFaults({ type: 'cut', afterEvents: 12 })
  const response = await host.send({ body: JSON.stringify({ ...host.createBody(), stream: true }) })
  await response.text()
  const { calls, tokens, spent } = session.money()
  const bill = world.simulator.requests.map(({ usage }) => usage)
  expect(calls).toBe(2)
  expect(tokens.input + tokens.cacheRead + tokens.writeShort + tokens.writeLong).toBe(
    bill.reduce((sum, use) => sum + (use === null ? 0 : use.input + use.cacheRead + use.write5m), 0),
  )
  expect(tokens.output).toBeGreaterThan(bill[0]?.output ?? Number.NaN)
  expect(spent.assumed).toEqual(['the output of responses that broke off is estimated from what arrived'])
})

describe.each(['manage', 'observe'] as const)('a response that says nothing of its cost (%s)', (mode) => {
  it.each([
    ['first', 0, 0.35],
    ['second', 1, 0.05],
  ])('is counted with an estimated prompt, and emitted, where it is the %s', async (_, steps, error) => {
    const world = await openWorld({}, mode)
    const { host, session, events } = world
    host.messages.push({ role: 'user', content: 'Fix the sums.' })
    for (let step = 0; step < steps; step += 1) await host.step()
    world.simulator.queueFaults({ type: 'cut', afterBytes: 40 })
    const response = await host.send({ body: JSON.stringify({ ...host.createBody(), stream: true }) })
    await response.text()
    const { calls, spent } = session.money()
    expect(calls).toBe(steps + 1)
    expect(Math.abs((spent.total ?? 0) / readBill(world).dollars - 1)).toBeLessThan(error)
    expect(spent.assumed).toEqual([
      'the prompts of responses that broke off before their usage are estimated',
    ])
    const priced = events.flatMap((event) => (event.type === 'priced' ? [event] : []))
    expect(priced).toHaveLength(calls)
    expect(priced.at(-1)?.totals.spent.total).toBeCloseTo(spent.total ?? Number.NaN, 9)
    await host.step()
    expect(session.money().calls).toBe(steps + 2)
  })

  it.each([true, false])('since the client aborted its request is counted, stream: %s', async (stream) => {
    const stop = new AbortController()
    const world = await openWorld(
      {
        simulator: {
          script: ({ messages }) => {
            const isLast = messages.length > 2
            if (isLast) stop.abort()
            const delays = isLast ? { delays: { startMs: 60_000 } } : {}
            return { blocks: [{ type: 'text', text: 'Fixed.' }], ...delays }
          },
        },
      },
      mode,
    )
    const { host, session } = world
    host.messages.push({ role: 'user', content: `Fix the sums. ${'They are wrong. '.repeat(1_000)}` })
    await host.step()
    host.messages.push({ role: 'user', content: 'And the dates.' })
    const body = JSON.stringify({ ...host.createBody(), stream })
    await expect(host.send({ body, signal: stop.signal })).rejects.toThrow()
    const { calls, spent } = session.money()
    expect(calls).toBe(2)
    expect(spent.assumed).toEqual([
      'the prompts of responses that broke off before their usage are estimated',
    ])
  })
})

it.each(['manage', 'observe'] as const)(
  'a request that the client had aborted before it was sent is not counted (%s)',
  async (mode) => {
    const world = await openWorld({}, mode)
    const { host, session } = world
    host.messages.push({ role: 'user', content: 'Fix the sums.' })
    const signal = AbortSignal.abort()
    await expect(host.send({ body: JSON.stringify(host.createBody()), signal })).rejects.toThrow()
    await host.step()
    expect(session.money().calls).toBe(1)
  },
)

it('a call beside the conversation is counted in the session that it names, also if that begins later', async () => {
  const world = dropIn({ headers: { 'x-session-id': 'talk' } }, {}, { session: undefined })
  const { host, fetch, events, tide } = world
  const headers = { 'x-session-id': 'talk' }
  await askAside(fetch, [{ role: 'user', content: 'A title for this, please.' }], headers)
  await host.ask('Fix the sums.')
  await askAside(fetch, [{ role: 'user', content: 'Another title, please.' }], headers)
  const bill = readBill(world)
  const totals = events.flatMap((event) => (event.type === 'priced' ? [event.totals] : [])).at(-1)
  expect(totals?.calls).toBe(bill.calls)
  expect(totals?.spent.total).toBeCloseTo(bill.dollars, 9)
  await tide.close()
})

it('calls under ids of which no conversation begins are remembered for the newest hundred, so that memory is bounded', async () => {
  const { tide, upstream } = createDropInWorld()
  const fetch = tide.fetch({ fetch: upstream, idleSeconds: 0.02 })
  const title: ClientMessage = { role: 'user', content: 'A title for this, please.' }
  const ids = Array.from({ length: 110 }, (_, index) => `talk-${index}`)
  for (const id of ids) await askAside(fetch, [title], { 'x-session-id': id })
  // Many under one id: the first hundred are counted when it begins.
  for (let call = 1; call < 120; call += 1) await askAside(fetch, [title], { 'x-session-id': 'talk-109' })
  await new Promise((resolve) => setTimeout(resolve, 100))
  const begin = async (id: string): Promise<number> => {
    const host = new ClientAgent(fetch, createDropInWorld().coder, { headers: { 'x-session-id': id } })
    host.messages.push({ role: 'user', content: 'Fix the sums.' })
    await host.step()
    return (await tide.open(id)).money().calls
  }
  expect(await Promise.all(['talk-0', 'talk-108', 'talk-109'].map(begin))).toEqual([1, 2, 101])
  await tide.close()
})
