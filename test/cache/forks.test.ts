/** Forks on the simulator: they read what their parent left, write nothing, and their parent does not notice them. */
import { withAnnouncedRewrite } from '@tidemark/core/cache/cache-monitor'

import type { Block } from '@tidemark/core/log/block'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import { type AssembledRequest, toPayload } from '@tidemark/core/request/build-request'
import { createForkRequest, listMessagesAfterRequest } from '@tidemark/core/request/fork-request'
import { sampleCases } from '@tidemark/core/testing'
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import { describe, expect, it } from 'vitest'
import { CacheTalk, type CacheTalkOptions, MAIN, type Seen } from './cache-talk.ts'

const QUESTION = { role: 'user', content: 'Sum up what was done so far.' } as const
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const IMAGE: Block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } }
const EDITS: CacheTalkOptions = { cacheEdits: true, simulator: { cachedClearing: true } }

const EDITED: CacheTalkOptions = {
  parameters: { betas: ['context-management-2025-06-27'] },
  extra: { context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] } },
  simulator: { cacheKey: { contextManagement: true } },
}

/** Twelve calls, the last one's answered: what a parent has said since its last request. */
async function parent(
  options: CacheTalkOptions = {},
  befall?: (talk: CacheTalk) => void,
): Promise<CacheTalk> {
  const talk = new CacheTalk(options)
  await talk.goOn(11)
  befall?.(talk)
  await talk.goOn(1)
  talk.answerCalls()
  await talk.clock.advance(10_000)
  return talk
}

function lastOf(talk: CacheTalk): Seen {
  if (talk.last === null) throw new Error('nothing was sent')
  return talk.last
}

/** What was said since goes with it, and a question. */
function forkOf(talk: CacheTalk, ttl: string = talk.ttl): AssembledRequest {
  const { request } = lastOf(talk)
  const since = listMessagesAfterRequest(request, talk.told.flat) ?? []
  return createForkRequest(request, [...since, QUESTION], { profile: talk.profile, ttl })
}

async function entriesIn({ simulator }: CacheTalk): Promise<number> {
  const response = await simulator.fetch('http://simulator/_simulator')
  return Number(Object(await response.json()).cache_entries)
}

const readIn = (usage: TokenUsage): number => usage.read

interface Parent {
  readonly name: string
  readonly options?: CacheTalkOptions
  readonly befall?: (talk: CacheTalk) => void
  /** The lifetime its fork asks for, where it is another. */
  readonly ttl?: string
}

const PARENTS: readonly Parent[] = [
  { name: 'that thinks' },
  { name: 'that does not think', options: { parameters: { thinking: { type: 'disabled' } } } },
  { name: 'whose thinking is bound to its prefix', options: { model: 'claude-opus-5-5' } },
  { name: 'of an hour', options: { ttl: '1h' } },
  { name: 'of an hour, itself of five minutes', options: { ttl: '1h' }, ttl: '5m' },
  { name: 'with the fields of one request alone', options: EDITED },
  { name: 'without tier 1', options: { clears: false } },
  {
    name: 'with an image',
    befall: ({ told }) => {
      told.builder.user([{ type: 'text', text: 'See here.' }, IMAGE])
    },
  },
  {
    name: 'that has deleted from the cached prefix',
    options: EDITS,
    befall: ({ told }) => told.delete(told.clearable.slice(0, 4)),
  },
  {
    name: 'that has cleared',
    befall: ({ told }) => told.clear(told.clearable.slice(0, 4)),
  },
]

describe.each(sampleCases(PARENTS, 5))('a fork of a parent $name', ({ options, befall, ttl }) => {
  it('reads all that the parent left, and writes nothing', async () => {
    const talk = await parent(options, befall)
    const left = readReportedContextTokens(lastOf(talk).usage)
    const entries = await entriesIn(talk)
    const { usage, record, outcome } = await talk.send(forkOf(talk, ttl), { source: 'compact' })
    expect(outcome).toEqual({ kind: 'read', expected: left, read: left })
    expect([readIn(usage), usage.writes.short + usage.writes.long]).toEqual([left, 0])
    expect(record.cache?.breakpoints.map(({ fate }) => fate)).toEqual(['read'])
    expect(await entriesIn(talk)).toBe(entries)
  })

  it('leaves the next call of the parent as it would have been', async () => {
    const [talk, twin] = [await parent(options, befall), await parent(options, befall)]
    await talk.send(forkOf(talk, ttl), { source: 'compact' })
    const [one, other] = [await talk.ask(), await twin.ask()]
    expect([one.usage, one.outcome, one.forecast.read]).toEqual([
      other.usage,
      other.outcome,
      other.forecast.read,
    ])
    expect(one.forecast.read).toBe(readIn(one.usage))
  })
})

describe('a fork', () => {
  it('keeps alive what its parent left', async () => {
    const talk = await parent()
    const left = readReportedContextTokens(lastOf(talk).usage)
    await talk.clock.advance(280_000)
    await talk.send(forkOf(talk), { source: 'compact' })
    await talk.clock.advance(299_000)
    const { outcome, forecast } = await talk.ask()
    expect([outcome, forecast.read]).toEqual([{ kind: 'read', expected: left, read: left }, left])
  })

  it('of an entry that lives an hour keeps it so, though it asks for five minutes', async () => {
    const talk = await parent({ ttl: '1h' })
    const left = readReportedContextTokens(lastOf(talk).usage)
    await talk.send(forkOf(talk, '5m'), { source: 'compact' })
    await talk.clock.advance(3_500_000)
    const { outcome, forecast } = await talk.ask()
    expect([outcome, forecast.read]).toEqual([{ kind: 'read', expected: left, read: left }, left])
  })

  it('takes along a deletion that its parent has not sent yet, and that is no break of either', async () => {
    const talk = await parent(EDITS)
    const left = readReportedContextTokens(lastOf(talk).usage)
    talk.told.delete(talk.told.clearable.slice(0, 6))
    talk.watch = withAnnouncedRewrite(talk.watch, MAIN, {
      kind: 'cache-edits',
      act: 'deleted 6 results',
      deletedBefore: 0,
    })
    const { usage, outcome } = await talk.send(forkOf(talk), { source: 'compact' })
    const kept = left - Number(usage.removed)
    expect(kept).toBeLessThan(left - 4_000)
    expect([outcome, usage.writes.short + usage.writes.long]).toEqual([
      { kind: 'read', expected: kept, read: kept },
      0,
    ])
    expect((await talk.ask()).outcome).toEqual({ kind: 'read', expected: kept, read: kept })
  })

  it.each([
    ['evicted', '5m', 0, { kind: 'evicted' }],
    ['evicted', '1h', 0, { kind: 'evicted' }],
    ['expired', '5m', 300_000, { kind: 'expired', ttl: '5m', gapMs: 310_000 }],
    ['expired', '1h', 3_600_000, { kind: 'expired', ttl: '1h', gapMs: 3_610_000 }],
  ] as const)('that misses is told with the reason: %s, parent of %s', async (_, ttl, ms, reason) => {
    const talk = await parent({ ttl })
    if (ms === 0) await talk.evict()
    await talk.clock.advance(ms)
    const { outcome, usage } = await talk.send(forkOf(talk, '5m'), { source: 'compact' })
    expect(outcome.kind === 'broke' && [outcome.event.source, outcome.event.reason]).toEqual([
      'compact',
      reason,
    ])
    // What it had to write is there for its parent.
    const next = await talk.ask()
    expect([readIn(next.usage), next.outcome.kind]).toEqual([usage.writes.short + usage.writes.long, 'read'])
    expect(next.forecast.read).toBe(readIn(next.usage))
  })

  it('says nothing to the provider of the tools it may not call', async () => {
    const talk = await parent()
    const { tools, tool_choice, ...body } = toPayload(forkOf(talk))
    const { tools: given, ...sent } = toPayload(lastOf(talk).request)
    const bare = (list: typeof tools): unknown => list?.map(({ cache_control: _, ...tool }) => tool)
    expect([bare(tools), tool_choice]).toEqual([bare(given), undefined])
    expect([body.thinking, body.betas, body.max_tokens]).toEqual([sent.thinking, sent.betas, sent.max_tokens])
  })
})

describe('a fork that is sent after the next request of its parent was answered', () => {
  it('reads what the parent had cached when it was built, and that is no break', async () => {
    const talk = await parent()
    talk.told.builder.user('and mind this: '.repeat(2_000))
    const fork = forkOf(talk)
    const cached = readReportedContextTokens(lastOf(talk).usage)
    await talk.ask()
    expect(readReportedContextTokens(lastOf(talk).usage) - cached).toBeGreaterThan(4_000)
    const { usage, outcome } = await talk.send(fork, { source: 'compact' })
    expect(outcome).toEqual({ kind: 'read', expected: cached, read: cached })
    expect(readIn(usage)).toBe(cached)
  })
})
