import { COLD_CACHE } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { BINDING, PLAIN, POLICY, Situation, text, warm } from '../../test/clear/situation.ts'
import type { ClearMode } from '../log/record.ts'
import { computeScaledLimits } from '../policy/scale-policy.ts'
import { NO_SWITCHES } from '../policy/switches.ts'
import { mustClearAtAnyCost } from './clear-proposal.ts'
import {
  type ClearingDecisionInput,
  type ClearModeInput,
  chooseClearMode,
  explainNotIdle,
  isBudgetClearingDue,
  proposeBudgetClearing,
  proposeIdleClearing,
} from './propose-clearing.ts'

const EDITS = { clearThinking: 'a', clearToolUses: 'b' }
const DELETES = defineMessagesProfile({ capabilities: { cacheEdits: true }, thinking: { binding: 'none' } })
const NATIVE = defineMessagesProfile({ contextEdits: EDITS, thinking: { binding: 'none' } })
const BOUND = defineMessagesProfile({ contextEdits: EDITS, thinking: { binding: 'prefix' } })
const LOW = { expected: 1, high: 1 }
const HIGH = { expected: 147_000, high: 147_000 }
const HOUR = 61 * 60_000
const ALL: readonly ClearMode[] = ['idle', 'budget', 'cached', 'native']

function way(ways: readonly ClearMode[], overrides: Partial<ClearModeInput>): ClearMode | null {
  return chooseClearMode(new Situation({ clear: { ways } }).question(overrides)).way
}

describe('the way in force', () => {
  it.each<readonly [string, readonly ClearMode[], Partial<ClearModeInput>, ClearMode | null]>([
    ['warm and low', ALL, { cache: warm(), context: LOW }, null],
    ['warm and high', ALL, { cache: warm(), context: HIGH }, 'budget'],
    ['cold and high', ALL, { cache: COLD_CACHE, context: HIGH }, 'budget'],
    ['idle and low', ALL, { cache: COLD_CACHE, idleMs: HOUR, context: LOW }, 'idle'],
    ['idle and high', ALL, { cache: COLD_CACHE, idleMs: HOUR, context: HIGH }, 'idle'],
    ['idle, policy without it', ['budget'], { cache: COLD_CACHE, idleMs: HOUR, context: HIGH }, 'budget'],
    ['deletes, warm', ALL, { profile: DELETES, cache: warm(), context: LOW }, 'cached'],
    ['deletes, warm and high', ALL, { profile: DELETES, cache: warm(), context: HIGH }, 'cached'],
    ['deletes, cold and high', ALL, { profile: DELETES, cache: COLD_CACHE, context: HIGH }, 'budget'],
    ['deletes, policy without it', ['budget'], { profile: DELETES, cache: warm(), context: HIGH }, 'budget'],
    ['native, unbound', ALL, { profile: NATIVE, thinks: true, context: HIGH }, 'budget'],
    ['native alone', ['native'], { profile: NATIVE, context: LOW }, 'native'],
    ['native, bound and thinking', ALL, { profile: BOUND, thinks: true, context: LOW }, 'native'],
    [
      'native, bound, and the request does not name what it takes',
      ALL,
      { profile: BOUND, thinks: true, canEdit: false, context: HIGH },
      'budget',
    ],
    ['native, bound, idle', ALL, { profile: BOUND, thinks: true, idleMs: HOUR, cache: COLD_CACHE }, 'native'],
    ['native, bound, not thinking', ALL, { profile: BOUND, context: HIGH }, 'budget'],
    ['bound, but not native', ALL, { profile: BINDING, thinks: true, context: HIGH }, 'budget'],
    ['native alone, and not offered', ['native'], { profile: PLAIN, context: HIGH }, null],
    ['none allowed', [], { context: HIGH }, null],
    ['a person asks', [], { context: LOW, target: 5 }, 'budget'],
  ])('%s', (_, ways, overrides, expected) => {
    expect(way(ways, overrides)).toBe(expected)
  })

  it('is none where a switch is off, and the switch is named', () => {
    const off = new Situation({ switches: { microcompactEnabled: false } })
    expect(chooseClearMode(off.question({ context: HIGH, target: 1 }))).toEqual({
      way: null,
      why: 'clearing is switched off by switches.microcompactEnabled',
    })
    const switches = { ...NO_SWITCHES, set: ['DISABLE_COMPACT' as const] }
    expect(chooseClearMode(new Situation().question({ context: HIGH, switches })).why).toBe(
      'clearing is switched off by DISABLE_COMPACT',
    )
  })
})

const MINUTE = 60_000

describe('idle', () => {
  it.each([
    [60, 60, true],
    [60, 59, false],
    ['ttl', 5, true],
    ['ttl', 4, false],
  ] as const)('after %s: idle for %i minutes: %s', (afterMinutes, waited, expected) => {
    const situation = new Situation({ clear: { idle: { afterMinutes } } })
    const cache = { ...COLD_CACHE, ttlMs: 5 * MINUTE }
    expect(explainNotIdle(situation.question({ cache, idleMs: waited * MINUTE })) === null).toBe(expected)
  })

  it('is not while the cache is warm, nor before anything was said', () => {
    const situation = new Situation()
    expect(explainNotIdle(situation.question({ cache: warm(), idleMs: 90 * MINUTE }))).toBe(
      'the cache is still warm',
    )
    expect(explainNotIdle(situation.question({ idleMs: null }))).toBe('there is no response yet')
  })

  it('clears all but the five newest, however full the window is', () => {
    const situation = new Situation()
    const all = situation.reads(9, 2_000)
    situation.say()
    const question = situation.question({ idleMs: 61 * MINUTE, context: { expected: 20, high: 20 } })
    const { proposal } = proposeIdleClearing(question)
    expect(proposal?.metadata).toMatchObject({
      way: 'idle',
      trigger: 'auto',
      compactedToolIds: all.slice(0, 4),
    })
    expect(proposal?.freedTokens).toBe(4 * 1_976)
    expect(proposal?.why).toBe(
      'the newest response is 61 min old and the cache has expired: clearing 4 old results frees 7,904 tokens; nothing is written again',
    )
  })

  it.each([
    [2_524, 5_000],
    [2_523, null],
  ])('frees 5,000 or nothing: two of %i tokens', (tokens, freed) => {
    const situation = new Situation()
    situation.reads(2, tokens)
    situation.reads(5, 10)
    situation.say()
    const { proposal } = proposeIdleClearing(situation.question({ idleMs: 61 * MINUTE }))
    expect(proposal?.freedTokens ?? null).toBe(freed)
  })
})

const STUB = 24

function cleared(question: ClearingDecisionInput): readonly string[] | null {
  return proposeBudgetClearing(question).proposal?.metadata.compactedToolIds ?? null
}

describe('budget', () => {
  it('clears the oldest results until the clearable total is within 40,000 tokens', () => {
    const situation = new Situation()
    const all = situation.reads(10, 10_000)
    situation.say()
    const { proposal } = proposeBudgetClearing(situation.question())
    expect(proposal).toMatchObject({
      way: 'budget',
      freedTokens: 6 * (10_000 - STUB),
      rewrittenTokens: 0,
      cost: 0,
      breakEvenCalls: 0,
      metadata: {
        trigger: 'auto',
        way: 'budget',
        preTokens: 150_000,
        tokensSaved: 6 * (10_000 - STUB),
        compactedToolIds: all.slice(0, 6),
        clearedAttachmentUUIDs: [],
      },
      firstChange: { toolUseId: all[0], part: 'result' },
    })
  })

  it.each([
    ['nothing while 40,000 are clearable', 4, 10_000, 0],
    ['nothing where what is over the mark is too little', 4, 14_000, 0],
    ['two of six where one would leave too much', 6, 12_000, 3],
    ['the three newest stay, however large', 4, 60_000, 1],
    ['and nothing where they are all there is', 3, 60_000, 0],
  ])('%s', (_, count, tokens, expected) => {
    const situation = new Situation()
    const all = situation.reads(count, tokens)
    situation.say()
    expect(cleared(situation.question()) ?? []).toEqual(all.slice(0, expected))
  })

  it('frees at least 20,000 or nothing', () => {
    const just = new Situation()
    const all = [...just.reads(1, 20_000 + STUB), ...just.reads(4, 10_000)]
    just.say()
    expect(cleared(just.question())).toEqual(all.slice(0, 1))
    const short = new Situation()
    short.reads(1, 20_000 + STUB - 1)
    short.reads(4, 10_000)
    short.say()
    expect(proposeBudgetClearing(short.question())).toEqual({
      proposal: null,
      why: '150,000 of 167,000 tokens are in use, above the warning line, but clearing would free 19,999 tokens of the 20,000 that a rewrite must be worth',
    })
  })

  it('takes the target a person gives, as manual, whatever the lines and the price say', () => {
    const situation = new Situation()
    const all = situation.reads(8, 10_000)
    situation.say()
    const cache = warm({ countTokensToRewrite: () => 1_000_000 })
    const question = situation.question({ target: 50_000, cache, context: { expected: 9, high: 9 } })
    const { proposal } = proposeBudgetClearing(question)
    expect(proposal?.metadata).toMatchObject({ trigger: 'manual', compactedToolIds: all.slice(0, 3) })
  })

  it.each([
    [true, ['/twice']],
    [false, ['/old', '/twice']],
  ])('takes what a later call made worthless before what is merely old: %s', (supersededFirst, expected) => {
    const situation = new Situation({ clear: { supersededFirst } })
    const names = new Map([
      [situation.read('/old', 10_000), '/old'],
      [situation.read('/twice', 30_000), '/twice'],
    ])
    situation.reads(3, 10_000)
    situation.read('/twice', 10_000)
    situation.reads(2, 10_000)
    situation.say()
    const chosen = cleared(situation.question({ target: 70_000 })) ?? []
    expect(chosen.map((id) => names.get(id))).toEqual(expected)
  })

  it('leaves what is pinned, what the model has not seen, and what is not clearable', () => {
    const situation = new Situation()
    const { builder } = situation
    const pinned = situation.read('/pinned', 30_000)
    const target = builder.records.at(-1)?.uuid ?? ''
    situation.call('TodoWrite', { todos: [] }, text(30_000))
    situation.call('Unknown', {}, text(30_000))
    const old = situation.reads(2, 30_000)
    builder.notice('pin', { pin: { target, pinned: true } })
    situation.reads(3, 10)
    // A wide turn that nobody has answered: fifteen results, all of them new.
    const wide = Array.from({ length: 15 }, () => builder.id('call'))
    builder.assistant(
      'wide',
      wide.map((id) => ({ type: 'tool_use', id, name: 'Read', input: { file_path: `/${id}` } })),
    )
    for (const id of wide) builder.result(id, text(10_000))
    expect(cleared(situation.question())).toEqual(old)
    expect(cleared(situation.question())).not.toContain(pinned)
  })

  it('clears large inputs of write-like tools with their results, and leaves small ones', () => {
    const situation = new Situation()
    const big = situation.call('Write', { file_path: '/a', content: text(30_000) }, 'ok')
    const small = situation.call('Edit', { file_path: '/b', old_string: 'x', new_string: 'y' }, text(40_000))
    situation.reads(3, 10_000)
    situation.say()
    const { proposal } = proposeBudgetClearing(situation.question())
    expect(proposal?.metadata.clearedInputs).toEqual([{ toolUseId: big, field: 'content' }])
    expect(proposal?.metadata.compactedToolIds).toEqual([small])
    expect(proposal?.firstChange).toEqual({ toolUseId: big, part: 'call' })
    expect(proposal?.released).toEqual({ toolUseIds: [small], filePaths: ['/b', '/a'] })
    const off = new Situation({ clear: { inputs: false } })
    off.call('Write', { file_path: '/a', content: text(90_000) }, 'ok')
    off.reads(3, 10_000)
    off.say()
    expect(proposeBudgetClearing(off.question()).proposal).toBeNull()
  })

  it('waits until 20,000 more have come, unless need overrides it', () => {
    const situation = new Situation()
    situation.reads(6, 30_000)
    situation.say()
    const first = proposeBudgetClearing(situation.question()).proposal
    if (first === null) throw new Error('nothing to clear')
    situation.clear(first.metadata)
    situation.reads(1, 100)
    situation.say()
    // The oldest of the three that were kept is no longer among the newest.
    expect(proposeBudgetClearing(situation.question()).why).toBe(
      '150,000 of 167,000 tokens are in use, above the warning line, but only 100 tokens were added since the last clearing',
    )
    expect(cleared(situation.question({ context: { expected: 167_000, high: 167_000 } }))).toHaveLength(1)
    situation.reads(1, 19_900)
    situation.say()
    expect(cleared(situation.question())).toHaveLength(2)
  })

  it('says where the text is, and lets the host forget what it had read', () => {
    const situation = new Situation()
    const read = situation.read('/a', 30_000)
    const part = situation.call('Read', { file_path: '/b', offset: 10, limit: 5 }, text(30_000))
    situation.read('/b', 10_000)
    situation.reads(2, 10_000)
    situation.say()
    const retrieval = { historyTool: 'history', transcript: '/t.jsonl' }
    const { proposal } = proposeBudgetClearing(situation.question({ retrieval }))
    expect(proposal?.metadata.notes).toEqual({
      [read]: `To read it, call history with {"id":"${read}"}.`,
      [part]: `To read it, call history with {"id":"${part}"}.`,
    })
    // All of /b is still shown further on.
    expect(proposal?.released).toEqual({ toolUseIds: [read, part], filePaths: ['/a'] })
  })

  it('takes an answer that only says "unchanged" along with the text it speaks of, or leaves both', () => {
    const situation = new Situation()
    const base = situation.read('/a', 60_000)
    const [other] = situation.reads(1, 20_000)
    const unchanged = situation.call('Read', { file_path: '/a' }, 'File unchanged since last read.')
    situation.reads(3, 10_000)
    situation.say()
    expect(cleared(situation.question())).toEqual([base, other, unchanged])
    const kept = new Situation()
    kept.read('/a', 60_000)
    const [free] = kept.reads(1, 20_100)
    kept.reads(2, 10_000)
    kept.call('Read', { file_path: '/a' }, 'File unchanged since last read.')
    kept.say()
    expect(cleared(kept.question())).toEqual([free])
  })

  it('drops memory files that were attached again or overwritten, and the host loads them anew', () => {
    const situation = new Situation()
    const attach = (path: string): string =>
      situation.builder.attachment({ type: 'nested_memory', path, content: 'rules' }).uuid
    const [older, over] = [attach('/a/CLAUDE.md'), attach('/b/CLAUDE.md')]
    attach('/c/CLAUDE.md')
    situation.reads(3, 30_000)
    attach('/a/CLAUDE.md')
    situation.call('Write', { file_path: '/b/CLAUDE.md', content: 'new' }, 'ok')
    situation.reads(3, 10_000)
    situation.say()
    const { proposal } = proposeBudgetClearing(situation.question())
    expect(proposal?.metadata.clearedAttachmentUUIDs).toEqual([older, over])
    expect(proposal?.released.filePaths.slice(-2)).toEqual(['/a/CLAUDE.md', '/b/CLAUDE.md'])
  })

  it.each([
    [146_999, false, false],
    [147_000, true, false],
    [166_999, true, false],
    [167_000, true, true],
  ])('at %i tokens: over budget %s, needed %s', (high, over, needed) => {
    const question = new Situation().question({ context: { expected: 0, high } })
    expect([isBudgetClearingDue(question), mustClearAtAnyCost(question)]).toEqual([over, needed])
  })

  it('scales with the window', () => {
    const situation = new Situation()
    const all = situation.reads(10, 1_000)
    situation.say()
    const scaled = computeScaledLimits(POLICY, { window: 16_000, maxOutput: 4_000 })
    const { proposal } = proposeBudgetClearing(situation.question({ scaled }))
    expect(scaled.budgets.clear).toMatchObject({ target: 2_760, minimumFreed: 2_760 })
    expect(proposal?.metadata.compactedToolIds).toEqual(all.slice(0, 7))
  })

  it('names the responses behind that lose their bound thinking, oldest first', () => {
    const situation = new Situation()
    situation.reads(2, 30_000, { thinks: true })
    situation.reads(3, 10_000, { thinks: true })
    situation.say()
    const thinkingResponses = [...situation.register.thinkingResponses].map(({ id }) => id)
    const { proposal } = proposeBudgetClearing(situation.question({ profile: BINDING }))
    expect(proposal?.metadata.clearedThinking).toEqual(thinkingResponses.slice(1))
    const left = new Situation({ clear: { boundThinking: 'provider' } })
    left.reads(2, 30_000, { thinks: true })
    left.reads(3, 10_000, { thinks: true })
    left.say()
    const provider = proposeBudgetClearing(left.question({ profile: BINDING })).proposal?.metadata
    expect([provider?.clearedThinking, provider?.compactedToolIds.length]).toEqual([undefined, 2])
  })
})

describe('price gate of a clearing', () => {
  const situation = new Situation()
  situation.reads(10, 10_000)
  situation.say()
  const freed = 6 * (10_000 - STUB)

  it.each([
    [24, true],
    [23, false],
  ])('with %i calls expected and 2 tokens to write again for each freed: %s', (expectedCalls, clears) => {
    // 11.5 × 2 = 23 calls: it must have paid before they are over.
    const cache = warm({ expectedCalls, countTokensToRewrite: () => 3 * freed })
    expect(cleared(situation.question({ cache })) !== null).toBe(clears)
  })

  it('does not count where the cache is cold, the line is reached, or policy has it off', () => {
    const cache = warm({ countTokensToRewrite: () => 100 * freed })
    expect(cleared(situation.question({ cache }))).toBeNull()
    expect(cleared(situation.question({ cache: { ...cache, isWarm: false } }))).toHaveLength(6)
    expect(cleared(situation.question({ cache, context: { expected: 0, high: 167_000 } }))).toHaveLength(6)
    const off = new Situation({ clear: { priceGate: false }, shares: { clearableResults: 25 } })
    off.reads(10, 10_000)
    off.say()
    expect(cleared(off.question({ cache }))).toHaveLength(6)
  })

  it('is told in words and figures', () => {
    const cache = warm({ countTokensToRewrite: () => 10 * freed })
    expect(proposeBudgetClearing(situation.question({ cache })).why).toBe(
      '150,000 of 167,000 tokens are in use, above the warning line, but the 538,704 tokens behind would be written to the cache again, which pays only after 104 calls and some 27 are expected',
    )
    const { proposal } = proposeBudgetClearing(
      situation.question({ cache: warm({ countTokensToRewrite: () => 2 * freed }) }),
    )
    expect(proposal).toMatchObject({ rewrittenTokens: freed, breakEvenCalls: 11.5 })
    expect(proposal?.cost).toBeCloseTo((freed * 11.5) / 1_000_000)
    expect(proposal?.why).toBe(
      '150,000 of 167,000 tokens are in use, above the warning line: clearing 6 old results frees 59,856 tokens; 59,856 tokens are written again, paid back in 12 calls',
    )
  })
})
