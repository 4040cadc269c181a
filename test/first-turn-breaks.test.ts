/** What loses the cache, done to a running session against the simulator: each is told for what it is, and priced. */

import type { TurnEvent } from '@tidemark/core/engine/events'
import type { TurnHost } from '@tidemark/core/engine/host'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import { runSingleTurn } from '@tidemark/core/testing'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { changingWorld } from './first-turn/changing-world.ts'
import { findModel } from './support/simulated-host.ts'
import { SimulatedSession } from './support/simulated-session.ts'

async function twelveCalls({ ttl = '1h', isStill = true }: Change): Promise<SimulatedSession> {
  const session = await new SimulatedSession(changingWorld({ ttl, isStill })).until(12)
  await session.clock.advance(45_000)
  return session
}

interface Change {
  readonly ttl?: '5m' | '1h'
  readonly isStill?: boolean
  /** What the host is from now on. */
  readonly host?: (host: TurnHost) => Partial<TurnHost>
  /** What happens to the world. */
  readonly before?: (session: SimulatedSession) => void | Promise<void>
  readonly prompt?: JsonObject
}

/** The events of the first call behind the change, and what the simulator says of it. */
async function after(change: Change) {
  const { host, before, prompt } = change
  const session = await twelveCalls(change)
  const { requests } = session
  const state = await session.open()
  await before?.(session)
  const changed = { ...session.host, ...host?.(session.host) }
  const count = requests.length
  const said = { type: 'text', text: 'Go on.' }
  const events: TurnEvent[] = []
  const asked = { prompt: prompt === undefined ? [said] : [said, { ...prompt, type: String(prompt.type) }] }
  for await (const event of runSingleTurn(state, asked, changed)) {
    events.push(event)
    if (event.type === 'answered') break
    if (event.type === 'turn-ended' && !event.outcome.ok)
      throw new Error(JSON.stringify(event.outcome.reason))
  }
  return { events, record: requests[count], state, session }
}

function withParameters(more: JsonObject): Change {
  return {
    host: ({ readOfferedPrefix: offered }) => ({
      readOfferedPrefix: () => {
        const { parameters, ...rest } = offered()
        const output = isObject(more.output_config) ? { output_config: more.output_config } : {}
        return { ...rest, parameters: { ...parameters, ...more, ...output } }
      },
    }),
  }
}

const evict = async ({ simulator }: SimulatedSession): Promise<void> => {
  await simulator.fetch('http://simulator.test/_simulator/cache', { method: 'DELETE' })
}

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } }
const commit = ({ world }: SimulatedSession): void => {
  world.commits += 5
}
const connect = ({ world }: SimulatedSession): void => {
  world.extraTools += 3
}
const waits =
  (ms: number) =>
  async ({ clock }: SimulatedSession) =>
    clock.advance(ms)
const inline = { cache: { ttl: '1h', tailTtl: 'same', volatile: 'inline' } } as const

const BREAKS: readonly (readonly [name: string, change: Change, reason: string, act: string | null])[] = [
  [
    'effort',
    withParameters({ output_config: { effort: 'low' } }),
    'effort-changed',
    'changed parameter output_config',
  ],
  [
    'thinking',
    withParameters({ thinking: { type: 'disabled' } }),
    'thinking-changed',
    'changed parameter thinking',
  ],
  [
    'tool choice',
    withParameters({ tool_choice: { type: 'none' } }),
    'tool-choice-changed',
    'changed parameter tool_choice',
  ],
  [
    'a beta',
    withParameters({ betas: ['context-1m-2025-08-07'] }),
    'betas-changed',
    'changed parameter betas',
  ],
  [
    'the model',
    {
      host: ({ readOfferedPrefix: offered }) => ({
        readOfferedPrefix: () => ({ ...offered(), model: 'claude-sonnet-5' }),
        profile: createProviderProfile(findModel('claude-sonnet-5')),
      }),
    },
    'model-changed',
    'changed the model from claude-opus-5 to claude-sonnet-5',
  ],
  [
    'a section at once',
    { host: () => ({ policy: createPolicy(inline) }), before: commit },
    'section-changed',
    'rewrote section git',
  ],
  ['an image', { prompt: image }, 'image-added', null],
  ['five minutes', { ttl: '5m', before: waits(300_000) }, 'expired', null],
  ['an hour', { before: waits(3_600_000) }, 'expired', null],
  ['eviction', { before: evict }, 'evicted', null],
]

describe('a cache that is lost', () => {
  it.each(BREAKS)(
    'by %s is told with its reason, its tokens and its price',
    async (_, change, reason, act) => {
      const { events, record, session, state } = await after(change)
      const broke = events.flatMap((event) => (event.type === 'cache-break' ? [event.event] : []))
      expect(broke.map((event) => [event.reason.kind, event.ours?.act ?? null])).toEqual([[reason, act]])
      const [event] = broke
      const left = session.calls.at(-1)?.usage
      const cached = left === undefined ? 0 : left.read + left.writes.short + left.writes.long
      expect([event?.expected, event?.read]).toEqual([cached, record?.usage?.cacheRead])
      expect(event?.tokensLost).toBe(cached - (record?.usage?.cacheRead ?? 0))
      const { current: standing } = state.prefix
      const prices = session.host.pricesOf(record?.model ?? '', record?.at ?? '')
      const write = change.ttl === '5m' ? prices?.writeShort : prices?.writeLong
      const price = ((event?.tokensLost ?? 0) * ((write ?? 0) - (prices?.cacheRead ?? 0))) / 1e6
      expect(standing?.epoch.ttl?.name).toBe(change.ttl ?? '1h')
      expect(event?.moneyLost).toBeCloseTo(price, 9)
    },
  )
})

const QUIET: readonly (readonly [name: string, change: Change])[] = [
  ['a section that changed', { before: commit }],
  ['a tool that came late', { before: connect }],
  [
    'tools in another order',
    {
      host: ({ readOfferedPrefix: offered }) => ({
        readOfferedPrefix: () => ({ ...offered(), tools: offered().tools.toReversed() }),
      }),
    },
  ],
  [
    'a tool that is gone',
    {
      host: ({ readOfferedPrefix: offered }) => ({
        readOfferedPrefix: () => ({ ...offered(), tools: offered().tools.slice(1) }),
      }),
    },
  ],
  ['more output', withParameters({ max_tokens: 9_000 })],
  ['a pause within its life', { before: waits(3_000_000) }],
]

describe('a cache that is kept', () => {
  it.each(QUIET)('over %s is no news', async (_, change) => {
    const { events } = await after(change)
    const told = events.flatMap((event) => (event.type === 'cache-judged' ? [event.outcome] : []))
    expect(told).toMatchObject([{ kind: 'read' }])
    expect(events.filter(({ type }) => type === 'cache-break' || type === 'act-paid')).toEqual([])
  })
})

describe('an epoch behind words that are no longer true', () => {
  it('has the new words itself, so that nothing need be announced', async () => {
    const policy = createPolicy(inline)
    const { events, session } = await after({ isStill: false, host: () => ({ policy }), before: commit })
    const changes = events.flatMap((event) => (event.type === 'prefix-changed' ? [event.change] : []))
    expect(changes).toMatchObject([{ kind: 'epoch' }])
    expect(JSON.stringify(changes)).toContain(`"${session.world.commits} commits ahead"`)
  })
})

describe("the provider's own diagnosis", () => {
  it.each([
    ['the model', BREAKS[4]?.[1] ?? {}, 'model', 'agrees'],
    ['a section at once', BREAKS[5]?.[1] ?? {}, 'system', 'agrees'],
    ['effort', BREAKS[0]?.[1] ?? {}, 'other', 'may agree'],
  ])('of %s stands beside ours', async (_, change, zone, verdict) => {
    const { events } = await after(change)
    const broke = events.flatMap((event) => (event.type === 'cache-break' ? [event.event] : []))
    expect(
      broke.map(({ provider, evidence }) => [provider?.zone, evidence.includes(`the provider ${verdict}: `)]),
    ).toEqual([[zone, true]])
  })
})
