/**
 * The law of `tide.fetch` for clients whose habits are drawn at random: never a request refused that direct would not get,
 * no prompt, tool or parameter that the client did not send, and no dearer than direct, by more than 1 % where the client
 * marks anything for the cache, and by more than a tenth where it does not. Where the window ends a direct run, the bills
 * up to there are compared.
 */
import { sampleCases } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { sumRequests } from './client-agent.ts'
import {
  type ClientHabits,
  type ClientRun,
  drawHabits,
  findAllowedRatio,
  runDrawnClient,
} from './drawn-clients.ts'

/** With `npm run test:full`, 450 clients, of which some 360 get to the end of their task without Tidemark. */
const SEEDS = sampleCases(
  Array.from({ length: 450 }, (_, index) => index + 1),
  4,
)

async function checkLaw(
  habits: ClientHabits,
): Promise<{ readonly direct: ClientRun; readonly managed: ClientRun }> {
  const direct = await runDrawnClient('direct', habits)
  const managed = await runDrawnClient('managed', habits)
  const label = JSON.stringify(habits)
  expect(managed.changes, label).toEqual([])
  // What the provider refuses for another reason than its length, it may refuse with Tidemark as well.
  if (direct.error !== null && !/prompt is too long/.test(direct.error)) return { direct, managed }
  expect(managed.error, label).toBeNull()
  expect(managed.refused, label).toBeLessThanOrEqual(direct.error === null ? 0 : 1)
  expect(managed.passed, label).toEqual([])
  const last = Math.min(direct.bills.length, managed.bills.length) - 1
  const ratio = (managed.bills[last] ?? 0) / (direct.bills[last] ?? 1)
  expect(ratio, label).toBeLessThanOrEqual(findAllowedRatio(habits))
  return { direct, managed }
}

it('clients with habits drawn at random pay no more than direct', async () => {
  for (const seed of SEEDS) await checkLaw(drawHabits(seed))
}, 300_000)

const PLAIN: ClientHabits = {
  markers: 'tail',
  lifetimes: ['5m', '5m'],
  reminder: false,
  date: false,
  cleared: 'never',
  slides: null,
  gaps: [0.1],
  promptTokens: 20,
  steps: 20,
  directFirst: 0,
  window: 200_000,
  resultTokens: 700,
  thinking: 'off',
  binding: 'none',
  contextManagement: false,
  inputs: 'kept',
  clock: false,
  tools: 'same',
  hasToolBetas: false,
  fields: false,
  compacts: null,
  reorders: false,
}

const CASES: Readonly<Record<string, Partial<ClientHabits>>> = {
  'a reminder that changes after the last marker': { markers: 'results', reminder: true },
  'a system prompt cached for an hour and messages for five minutes': { lifetimes: ['1h', '5m'] },
  'pauses longer than the cache lives, without markers': { markers: 'none', gaps: [6] },
  'two requests with a long prompt, without markers': { markers: 'none', promptTokens: 40_000, steps: 1 },
  'only the system prompt marked': { markers: 'system' },
  'Tidemark switched on in mid-conversation': { directFirst: 9 },
  'its own context management': { contextManagement: true, thinking: 'kept', binding: 'drops' },
  'thinking left out': { thinking: 'left-out' },
  'thinking left out, and Tidemark switched on in mid-conversation': { thinking: 'left-out', directFirst: 3 },
  'only the system prompt marked, thinking left out, and a tool added': {
    ...{ markers: 'system', thinking: 'left-out', tools: 'added', gaps: [6], steps: 6 },
  },
  'old inputs of calls redacted': { inputs: 'redacted' },
  'the time of day in the system prompt and pauses': { clock: true, gaps: [0.1, 0.1, 6] },
  'a tool that comes and goes': { tools: 'toggled' },
  'a tool that comes and goes by the betas for it': { tools: 'toggled', hasToolBetas: true },
  'unknown fields on user messages and another key order': { fields: true, reorders: true },
  'only the system prompt marked, placeholders for old results, and pauses on a model with few tokens': {
    ...{ markers: 'system', lifetimes: ['1h', '1h'], cleared: 'batches', gaps: [6, 6, 0.1] },
    ...{ steps: 40, binding: 'drops' },
  },
  'a compaction of its own': { compacts: 12 },
  'a tool withdrawn by the betas for it, a history that it changes, and pauses': {
    ...{ markers: 'system', steps: 40, gaps: [0.1, 6], compacts: 12 },
    ...{ inputs: 'redacted', tools: 'withdrawn', hasToolBetas: true },
  },
}

it.each(sampleCases(Object.entries(CASES), 8))(
  'a client with %s pays no more than direct',
  async (_, habits) => {
    await checkLaw({ ...PLAIN, ...habits })
  },
)

it.each<[string, Partial<ClientHabits>]>([
  ['without markers', { markers: 'none' }],
  [
    'that marks only its system prompt, for an hour,',
    { markers: 'system', lifetimes: ['1h', '5m'], contextManagement: true, resultTokens: 300, steps: 40 },
  ],
])(
  'a client %s that pauses for longer than the cache of its messages would live has nothing written to the cache from its third pause on',
  async (_, habits) => {
    await runDrawnClient('managed', { ...PLAIN, ...habits, gaps: [6] }, ({ simulator }) => {
      const written = simulator.requests.map(({ usage }) => (usage?.write5m ?? 0) + (usage?.write1h ?? 0))
      expect(written.length).toBeGreaterThan(20)
      expect(written.slice(3)).toEqual(written.slice(3).map(() => 0))
    })
  },
)

describe('in a window that is full', () => {
  const full: readonly (readonly [string, Partial<ClientHabits>])[] = [
    ['a reminder in its last message', { markers: 'results', reminder: true }],
    ['a reminder in its last message, which it marks', { reminder: true }],
    ['placeholders for its old results', { cleared: 'batches', promptTokens: 12_000 }],
    ['the time of day in its first message', { date: true }],
  ]
  it.each(sampleCases(full, 2))('a compaction stays while the client has %s', async (_, habits) => {
    const { direct, managed } = await checkLaw({ ...PLAIN, window: 20_000, steps: 32, ...habits })
    expect(direct.error).not.toBeNull()
    expect(managed.rewrites).toBeGreaterThan(0)
    expect(managed.rewrites).toBeLessThanOrEqual(4)
  })
})

it.each(sampleCases([8_000, 10_000, 14_000], 1))(
  'a first prompt of %i tokens goes on in a window of 20,000',
  async (promptTokens) => {
    await checkLaw({ ...PLAIN, window: 20_000, steps: 30, promptTokens })
  },
)

it('a conversation that began without Tidemark is not compacted while the provider takes it', async () => {
  const { direct, managed } = await checkLaw({ ...PLAIN, window: 30_000, steps: 39, directFirst: 36 })
  expect([direct.error, managed.rewrites]).toEqual([null, 0])
})

it('the bill of the session is the provider’s, although the client repeats responses after a change', async () => {
  const habits: ClientHabits = { ...PLAIN, markers: 'results', reminder: true, cleared: 'each' }
  await runDrawnClient('managed', habits, (world) => {
    const totals = world.events.flatMap((event) => (event.type === 'priced' ? [event.totals] : [])).at(-1)
    const { dollars, requests } = sumRequests(world)
    expect(totals?.calls).toBe(requests)
    expect(totals?.spent.total).toBeCloseTo(dollars, 9)
  })
})
