/** What a turn tells of the cache and of money, and what of it the log keeps. */

import type { FakeReply } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { sumSessionCost } from '../../src/cost/session-cost.ts'
import { withSessionCosts } from '../../src/engine/call-model.ts'
import type { TurnEvent } from '../../src/engine/events.ts'
import type { TurnHost } from '../../src/engine/host.ts'
import type { NewRecord } from '../../src/engine/ports.ts'
import { readSessionState, refreshSessionState, type SessionState } from '../../src/engine/session-state.ts'
import type { Block } from '../../src/log/block.ts'
import type { JsonObject } from '../../src/log/json.ts'
import { requireRecordAt } from '../../src/log/session-log.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import { createScriptedHost, playTurn, type ScriptedHost, text } from './test-session.ts'

const PRICES = { input: 10, cacheRead: 1, writeShort: 12.5, writeLong: 20, output: 50 }
const pricesOf = () => PRICES

function spoken(
  read: number,
  written: number,
  fields: JsonObject = {},
  blocks: readonly Block[] = [],
): FakeReply {
  const usage = { read: read, short: written }
  return { blocks: [...blocks, text('Yes.')], usage, fields }
}

const FIRST: FakeReply = { ...spoken(0, 50_000), id: 'msg_1' }
const READ = spoken(50_000, 100)
const MISSED = spoken(0, 50_100)

async function answeredOnce(
  second: FakeReply,
  changes: Partial<TurnHost> = {},
): Promise<ScriptedHost & { state: SessionState }> {
  const made = createScriptedHost([FIRST, second], { pricesOf, ...changes })
  const opened = await readSessionState(made.host.journal, 's')
  const { outcome } = await playTurn(opened, { prompt: 'First.' }, made.host)
  return { ...made, state: outcome.state }
}

const of = (events: readonly TurnEvent[], ...types: readonly TurnEvent['type'][]): readonly TurnEvent[] =>
  events.filter(({ type }) => types.includes(type))

const CACHE = ['cache-judged', 'cache-break', 'act-paid'] as const

async function appended(
  state: SessionState,
  host: TurnHost,
  bodies: readonly object[],
): Promise<SessionState> {
  let parentUuid = requireRecordAt(state.session, state.session.newestRecord).uuid ?? null
  const records = bodies.map((body, index) => {
    const record = {
      parentUuid,
      uuid: `other-${index}`,
      timestamp: '2026-01-01T00:00:00Z',
      sessionId: 's',
      ...body,
    }
    parentUuid = record.uuid
    return record as unknown as NewRecord
  })
  await host.journal.append('s', state.position, records)
  return refreshSessionState(host.journal, state)
}

describe('a call whose cache was read', () => {
  it('is judged and priced, and nothing of it is in the log but the reply', async () => {
    const { host, state } = await answeredOnce(READ)
    const { events, outcome } = await playTurn(state, { prompt: 'Second.' }, host)
    expect(of(events, ...CACHE)).toEqual([
      { type: 'cache-judged', source: 'sdk', outcome: { kind: 'read', expected: 50_000, read: 50_000 } },
    ])
    expect(of(events, 'priced')).toMatchObject([{ totals: { calls: 2, unpricedCalls: 0, breaks: 0 } }])
    expect(requireRecordAt(outcome.state.session, outcome.state.session.newestRecord).type).toBe('assistant')
  })
})

describe('a call whose cache was lost', () => {
  it('is told with reason, tokens, money and a line, and kept in the log with the reply', async () => {
    const { host, state } = await answeredOnce(MISSED)
    const { events, outcome } = await playTurn(state, { prompt: 'Second.' }, host)
    const [broke] = of(events, 'cache-break')
    expect(broke).toMatchObject({
      event: { reason: { kind: 'evicted' }, tokensLost: 50_000, moneyLost: 0.575, ours: null },
      diffProblem: null,
    })
    const last = requireRecordAt(outcome.state.session, outcome.state.session.newestRecord)
    expect(last).toMatchObject({
      subtype: 'cache_loss',
      batch: { index: 1, of: 2 },
      cacheLoss: { kind: 'break', reason: 'evicted', tokens: 50_000, usd: 0.575 },
    })
  })

  it('is in the money, and again when the session is opened from its log', async () => {
    const { host, state } = await answeredOnce(MISSED)
    const { events } = await playTurn(state, { prompt: 'Second.' }, host)
    const [priced] = of(events, 'priced')
    expect(priced).toMatchObject({ totals: { breaks: 1, lostToBreaks: { total: 0.575 } } })
    const { costs: money } = withSessionCosts(await readSessionState(host.journal, 's'), pricesOf)
    const totals = priced?.type === 'priced' ? priced.totals : null
    expect(money === null ? null : sumSessionCost(money)).toEqual(totals)
  })

  it('has its diff handed to the host, without secrets', async () => {
    const diffs: string[] = []
    const key = 'sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789'
    let extra = 'one'
    const { host, state } = await answeredOnce(MISSED, {
      keepDiff: (diff) => void diffs.push(diff),
      readOfferedPrefix: () => ({ tools: [], model: 'model-a', parameters: { max_tokens: 100, extra } }),
    })
    extra = key
    const { events } = await playTurn(state, { prompt: 'Second.' }, host)
    expect(diffs.map((diff) => [diff.includes('extra'), diff.includes(key)])).toEqual([[true, false]])
    expect(JSON.stringify(of(events, 'cache-break'))).not.toContain(key)
  })

  it('goes on where the diff cannot be kept, and hands out none where policy wants none', async () => {
    const keepDiff = (): never => {
      throw new Error('disk full')
    }
    const failing = await answeredOnce(MISSED, { keepDiff })
    const { events, outcome } = await playTurn(failing.state, { prompt: 'Second.' }, failing.host)
    expect([outcome.ok, of(events, 'cache-break')]).toMatchObject([true, [{ diffProblem: 'disk full' }]])
    const policy = createPolicy({ cache: { breaks: { diffFiles: false } } })
    const silent = await answeredOnce(MISSED, { keepDiff, policy })
    const second = await playTurn(silent.state, { prompt: 'Second.' }, silent.host)
    expect(of(second.events, 'cache-break')).toMatchObject([{ diffProblem: null }])
  })

  it('with a price that nobody knows says so', async () => {
    const { host, state } = await answeredOnce(MISSED, { pricesOf: () => null })
    const { events } = await playTurn(state, { prompt: 'Second.' }, host)
    expect(of(events, 'cache-break', 'priced')).toMatchObject([
      { event: { moneyLost: null } },
      {
        totals: {
          unpricedCalls: 2,
          spent: { missing: ['prices of model-a'] },
          lostToBreaks: { total: null },
        },
      },
    ])
  })
})

describe("the engine's own acts", () => {
  const tools = [{ name: 'Read', input_schema: { type: 'object' } }]
  const asked = { parameters: { max_tokens: 100 }, model: 'model-a', tools }

  it.each([
    ['model', { ...asked, model: 'model-b' }, {}, 'changed the model from model-a to model-b'],
    [
      'parameter',
      { ...asked, parameters: { max_tokens: 100, tool_choice: { type: 'auto' } } },
      {},
      'changed parameter tool_choice',
    ],
    [
      'late tool',
      { ...asked, tools: [...tools, { name: 'Late', input_schema: { type: 'object' } }] },
      { lateTools: 'define' as const },
      'defined tool Late',
    ],
  ])('a changed %s is a break of ours', async (_, later, changes, act) => {
    let offered: ReturnType<TurnHost['readOfferedPrefix']> = asked
    const { host, state } = await answeredOnce(MISSED, { readOfferedPrefix: () => offered, ...changes })
    offered = later
    const { events } = await playTurn(state, { prompt: 'Second.' }, host)
    expect(of(events, 'cache-break')).toMatchObject([{ event: { ours: { act, breakEvenTurns: null } } }])
  })

  it('a section rewritten at once is a break of ours, and as a delta none', async () => {
    for (const volatile of ['inline', 'delta'] as const) {
      let now = 'one'
      const { host, state } = await answeredOnce(volatile === 'inline' ? MISSED : READ, {
        policy: createPolicy({ cache: { volatile } }),
        sections: [{ name: 'git', part: 'volatile', compute: () => now, volatileBecause: 'it moves' }],
      })
      now = 'two'
      const { events } = await playTurn(state, { prompt: 'Second.' }, host)
      const acts = of(events, 'cache-break').map(
        (event) => event.type === 'cache-break' && event.event.ours?.act,
      )
      expect(acts).toEqual(volatile === 'inline' ? ['rewrote section git'] : [])
    }
  })

  it('a compaction that another process wrote leaves nothing to expect', async () => {
    const { host, state } = await answeredOnce(spoken(0, 9_000))
    const compactMetadata = { trigger: 'manual', preTokens: 50_000 }
    const compacted = await appended(state, host, [
      { type: 'system', subtype: 'compact_boundary', compactMetadata, parentUuid: null },
      { type: 'user', isCompactSummary: true, message: { role: 'user', content: 'It said yes.' } },
    ])
    const { events } = await playTurn(compacted, { prompt: 'Second.' }, host)
    expect(of(events, ...CACHE)).toMatchObject([{ type: 'cache-judged', outcome: { kind: 'first' } }])
  })

  it('a clearing is paid for as announced, and is in the money', async () => {
    const use: Block = { type: 'tool_use', id: 'call-1', name: 'Read', input: {} }
    const { host } = createScriptedHost(
      [spoken(0, 20_000, {}, [use]), spoken(20_000, 30_000), spoken(20_000, 22_000)],
      {
        pricesOf,
      },
    )
    const opened = await readSessionState(host.journal, 's')
    const { outcome } = await playTurn(opened, { prompt: 'First.' }, host)
    const microcompactMetadata = {
      trigger: 'auto',
      preTokens: 50_000,
      tokensSaved: 10_000,
      compactedToolIds: ['call-1'],
      clearedAttachmentUUIDs: [],
    }
    const body = { type: 'system', subtype: 'microcompact_boundary', microcompactMetadata }
    const cleared = await appended(outcome.state, host, [body])
    const { events } = await playTurn(cleared, { prompt: 'Second.' }, host)
    const [paid] = of(events, ...CACHE)
    expect(paid).toMatchObject({
      type: 'act-paid',
      act: { act: 'cleared 1 result', tokensRewritten: 20_000 },
    })
    expect(of(events, 'priced')).toMatchObject([
      { totals: { breaks: 0, spentOnClearing: { total: expect.any(Number) } } },
    ])
  })
})

describe("the provider's own word", () => {
  const profile = defineMessagesProfile({ capabilities: { cacheDiagnostics: true } })
  const diagnostics = { cache_miss_reason: { type: 'system_changed', cache_missed_input_tokens: 49_000 } }

  it('is asked for with the response before, and joined with ours', async () => {
    const { host, state, asked } = await answeredOnce({ ...MISSED, fields: { diagnostics } }, { profile })
    const { events } = await playTurn(state, { prompt: 'Second.' }, host)
    expect(asked.map(({ payload }) => payload.diagnostics)).toEqual([
      { previous_message_id: null },
      { previous_message_id: 'msg_1' },
    ])
    const provider = { zone: 'system', missedTokens: 49_000, said: 'system_changed' }
    expect(of(events, 'cache-break')).toMatchObject([
      { event: { provider, reason: { kind: 'told-by-provider', zone: 'system' } } },
    ])
  })

  it('is not asked for where policy forbids or the provider cannot', async () => {
    const policy = createPolicy({ cache: { breaks: { askProvider: false } } })
    const forbidden = await answeredOnce(READ, { profile, policy })
    const unable = await answeredOnce(READ)
    const asked = [...forbidden.asked, ...unable.asked]
    expect(asked.filter(({ payload }) => 'diagnostics' in payload)).toEqual([])
  })

  it('that it edited the request itself leaves nothing to judge', async () => {
    const context_management = { applied_edits: [{ type: 'clear_tool_uses' }] }
    const { host, state } = await answeredOnce({ ...MISSED, fields: { context_management } })
    const { events } = await playTurn(state, { prompt: 'Second.' }, host)
    expect(of(events, ...CACHE)).toMatchObject([
      { outcome: { kind: 'not-judged', why: 'edited-by-provider' } },
    ])
  })
})
