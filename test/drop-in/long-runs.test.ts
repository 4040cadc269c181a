/** A client that caches by itself and runs past its window: what Tidemark costs before the window is full, and after it. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isFullRun, sampleCases } from '@tidemark/core/testing'
import { expect, it, onTestFinished } from 'vitest'
import {
  ClientAgent,
  createDropInWorld,
  type DropInOptions,
  sumRequests,
  withMarkers,
} from './client-agent.ts'
import { LONG_RUN, type LongRunSettings, type LongWay, runLongClient } from './long-clients.ts'

const run = (way: LongWay, settings: Partial<LongRunSettings>) =>
  runLongClient({ ...LONG_RUN, steps: 300, way, ...settings })

/** Most of the window, and not all of it. */
const FITTING = { resultTokens: 2_300, steps: 75 }

const FREE = { dropIn: { freeRewrites: true } }

it('with free rewrites, a client has paid no more than direct whenever it ends, though it is compacted before its window is full', async () => {
  const [direct, managed] = [
    await run('direct', FITTING),
    await run('Tidemark', { ...FITTING, policy: FREE }),
  ]
  expect([direct.error, managed.error]).toEqual([null, null])
  expect(managed.rewrites).toBeGreaterThan(0)
  for (const [request, bill] of direct.bills.entries())
    expect(managed.bills[request], `request ${request + 1}`).toBeLessThanOrEqual(bill + 1e-9)
})

it('until the window of a client is full, every request costs what it costs direct, also with free rewrites where a compaction would cost more', async () => {
  const sizes = { window: 40_000, resultTokens: 660, systemTokens: 6_000, steps: 75 }
  const settings = { work: 'rereads', ...sizes } as const
  const direct = await run('direct', settings)
  expect(direct.error).toContain('prompt is too long')
  for (const policy of sampleCases([{}, FREE], 1)) {
    const managed = await run('Tidemark', { ...settings, policy })
    expect(managed).toMatchObject({ error: null, steps: 75, firstRewrite: direct.steps + 1 })
    expect(managed.bills.slice(0, direct.bills.length)).toEqual(direct.bills)
  }
})

it('nothing of a client changes until its window is full', async () => {
  expect(await run('Tidemark', FITTING)).toMatchObject({ error: null, steps: 75, rewrites: 0 })
})

it.runIf(isFullRun()).each([
  ['makes queries', {}],
  ['reads its files anew for each change', { work: 'rereads', resultTokens: 1_600 }],
  ['reads files whose lines it no longer sees', { work: 'edits', resultTokens: 2_600 }],
] as const)(
  "a client that runs past its window and %s pays less than with the provider's compaction, and keeps no less",
  async (_, settings) => {
    const [beta, managed] = [await run('compaction beta', settings), await run('Tidemark', settings)]
    expect([beta.error, managed.error]).toEqual([null, null])
    expect(managed.dollars).toBeLessThan(beta.dollars)
    for (const kind of ['words', 'reasons', 'files', 'findings'] as const)
      expect(managed[kind].kept, kind).toBeGreaterThanOrEqual(beta[kind].kept)
    expect(managed.words).toEqual({ kept: 6, all: 6 })
  },
)

it('what a compaction attaches after the messages of a client is cached with the next request', async () => {
  const { host, simulator, events } = startClient({})
  while (!events.some(({ type }) => type === 'compact')) await host.step()
  expect(simulator.requests.at(-1)?.usage?.input).toBe(0)
})

it('under a client, the notes have at most the tokens that its policy gives them', async () => {
  const sizes = [12_000, 500].map(async (notesTokens) => {
    const { host, simulator, events } = startClient({ policy: { dropIn: { notesTokens } } })
    while (!events.some(({ type }) => type === 'compact')) await host.step()
    const usage = simulator.requests.at(-1)?.usage
    return usage == null ? 0 : sumPrompt(usage)
  })
  const [long = 0, short = 0] = await Promise.all(sizes)
  expect(short).toBeLessThan(0.8 * long)
})

it('after a restart a client whose window was full is still compacted at the line', async () => {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-long-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }))
  const before = startClient({ home })
  while (!before.events.some(({ type }) => type === 'rewritten')) await before.host.step()
  await before.tide.close()
  const after = startClient({ home })
  after.host.messages = before.host.messages
  while (!after.events.some(({ type }) => type === 'rewritten') && (await after.host.step()));
  await after.tide.close()
  const prompts = after.simulator.requests.map(({ usage }) => (usage === null ? 0 : sumPrompt(usage)))
  expect(after.events.map(({ type }) => type)).toContain('compact')
  expect(Math.max(...prompts)).toBeLessThan(0.75 * WINDOW)
  expect(sumRequests(after).refused).toBe(0)
})

const WINDOW = 60_000

function startClient(options: DropInOptions) {
  const world = createDropInWorld({ window: WINDOW, turns: 300, resultTokens: 1_400, ...options })
  const fetch = world.tide.fetch({ session: 'talk', fetch: world.upstream })
  const host = new ClientAgent(fetch, world.coder, { prepare: withMarkers })
  host.messages.push({ role: 'user', content: 'Fix the sums.' })
  return { ...world, host }
}

function sumPrompt({
  input,
  cacheRead,
  write5m,
  write1h,
}: Record<'input' | 'cacheRead' | 'write5m' | 'write1h', number>) {
  return input + cacheRead + write5m + write1h
}
