import { EMPTY_PLAN_TRACKING } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Situation, text, warm } from '../../test/clear/situation.ts'
import { DEFAULT_POLICY } from '../policy/create-policy.ts'
import { computeScaledLimits } from '../policy/scale-policy.ts'
import { findNotesCompactionThreshold, judgeCompaction, makeContextPlan } from './context-plan.ts'
import type { CompactionResultSizes, ContextPlanInput } from './plan-input.ts'

/** So full by the provider's count, with so many results of so many tokens that could go. */
function filled(
  tokens: number,
  [count, each]: readonly [number, number] = [0, 0],
  overrides = {},
): Situation {
  const situation = new Situation(overrides)
  situation.reads(count, each)
  situation.measure(tokens)
  return situation
}

const acts = (situation: Situation, overrides: Partial<ContextPlanInput> = {}) =>
  makeContextPlan(situation.planContext(overrides)).act

describe('plan', () => {
  it.each([
    ['below the warning line', 146_999, [10, 10_000], 'wait'],
    ['at the warning line, with results to clear', 147_000, [10, 10_000], 'clear'],
    ['at the warning line, with none', 147_000, [0, 0], 'wait'],
    ['below the auto-compact line, with none', 166_999, [0, 0], 'wait'],
    ['at the auto-compact line, with none', 167_000, [0, 0], 'compact'],
    ['at it, and clearing is enough', 167_000, [10, 10_000], 'clear'],
    ['at it, and clearing would leave it above', 215_000, [8, 10_000], 'compact'],
  ] as const)('%s', (_, tokens, results, act) => {
    expect(acts(filled(tokens, results))).toBe(act)
  })

  it.each([
    ['fits, far above all thresholds', 196_000, 196_000, 'wait'],
    ['does not fit, with results to clear', 196_001, 196_000, 'clear'],
  ] as const)('waits under a host whose next request %s', (_, tokens, limit, act) => {
    const plan = makeContextPlan(
      filled(tokens, [10, 10_000]).planContext({ clientLimit: { tokens: limit, isPassed: false } }),
    )
    expect(plan).toMatchObject({ act, prepare: act !== 'wait', refusal: null })
  })

  it('goes by the lower bound under a host for the first rewrite, because a refusal costs nothing, then by the upper', () => {
    const situation = filled(200_000, [20, 10_000])
    situation.reads(4, 10_000)
    const { expected, high } = makeContextPlan(situation.planContext()).context
    expect(high).toBeGreaterThan(expected)
    const decide = (tokens: number, isPassed: boolean) =>
      acts(situation, { clientLimit: { tokens, isPassed } })
    const least = 2 * expected - high
    expect([decide(least, false), decide(least - 1, false)]).toEqual(['wait', 'clear'])
    expect([decide(high, true), decide(high - 1, true)]).toEqual(['wait', 'clear'])
  })

  it('compacts with the notes at the line of hosts once the context of a host was rewritten, and not before', () => {
    const decide = (tokens: number, given: Partial<ContextPlanInput> = {}) => {
      const situation = new Situation()
      situation.measure(tokens)
      const expectedResult = { after: 30_000, summary: 0, reattached: 0 }
      const usual = { hasNotes: true, prefixTokens: 20_000, growthPerCall: 1_000, expectedResult }
      const clientLimit = { tokens: 196_000, isPassed: true }
      return acts(situation, { cache: warm(), ...usual, clientLimit, ...given })
    }
    expect([decide(59_000), decide(60_000)]).toEqual(['wait', 'compact'])
    expect(decide(166_000, { clientLimit: { tokens: 196_000, isPassed: false } })).toBe('wait')
    expect(decide(195_000, { hasNotes: false })).toBe('wait')
  })

  it('before the window of a client is full, compacts from the threshold on if the next request then costs no more', () => {
    const decide = (tokens: number, given: Partial<ContextPlanInput> = {}, freeRewrites = true) => {
      const situation = new Situation({ dropIn: { freeRewrites } })
      situation.measure(tokens)
      const usual = { cache: warm(), hasNotes: true, prefixTokens: 20_000, growthPerCall: 1_000 }
      const clientLimit = { tokens: 196_000, isPassed: false }
      return makeContextPlan(situation.planContext({ ...usual, clientLimit, ...given })).compact
    }
    // 10 tokens of the last response are written in any case; the rest is read, and a write costs as much as 12.5 reads.
    const mostTokens = Math.floor(10 + (150_000 - 10) / 12.5)
    expect(decide(170_000)).toEqual({ cause: 'price', hard: false, mostTokens })
    // Half a percent of ten dollars is the price of 4,000 tokens.
    const spent = { tokens: 196_000, isPassed: false, spent: 10 }
    expect(decide(170_000, { clientLimit: spent })).toMatchObject({ mostTokens: mostTokens + 4_000 })
    expect(decide(166_999)).toBeUndefined()
    expect(decide(170_000, { hasNotes: false })).toBeUndefined()
    expect(decide(170_000, { rates: null })).toBeUndefined()
    expect(decide(170_000, {}, false)).toBeUndefined()
    const tried = { tokens: 196_000, isPassed: false, freeFrom: 185_000 }
    expect(decide(184_999, { clientLimit: tried })).toBeUndefined()
    expect(decide(185_000, { clientLimit: tried })).toMatchObject({ cause: 'price' })
    // An expired cache is written again in any case.
    const expired = warm({ isWarm: false })
    expect(decide(170_000, { cache: expired })).toMatchObject({ mostTokens: 150_000 })
  })

  it('does not clear first if the notes can replace the conversation, under a client or not, and with free reads', () => {
    const clientLimit = { tokens: 196_000, isPassed: false }
    const decide = (more: Partial<ContextPlanInput>) => acts(filled(196_001, [10, 10_000]), more)
    expect([decide({ clientLimit }), decide({ clientLimit, hasNotes: true })]).toEqual(['clear', 'compact'])
    const rates = { input: 1, cacheRead: 0, writeShort: 1.25, writeLong: 2, output: 5 }
    const atThreshold = (hasNotes: boolean) => acts(filled(167_000, [10, 10_000]), { hasNotes, rates })
    expect([atThreshold(false), atThreshold(true)]).toEqual(['clear', 'compact'])
  })

  it('leaves the first judgement of a size that no response has told to the provider, under a host', () => {
    const situation = new Situation()
    situation.reads(24, 10_000)
    expect(acts(situation, { clientLimit: { tokens: 1_000, isPassed: false } })).toBe('wait')
    expect(acts(situation, { clientLimit: { tokens: 1_000, isPassed: true } })).toBe('clear')
  })

  it('takes a clearing that leaves it above the warning line only where the cache is cold, and nothing is lost', () => {
    const situation = filled(195_000, [8, 10_000])
    expect(acts(situation)).toBe('clear')
    expect(acts(situation, { cache: warm({ expectedCalls: 1_000 }) })).toBe('compact')
  })

  it('takes the margin of what is cleared away with it', () => {
    // Nothing is measured: 270,000 by estimate, up to 360,000; of 240,000 that can go 200,000 do.
    const situation = new Situation()
    situation.reads(24, 10_000)
    situation.say()
    const context = situation.planContext({ prefixTokens: 30_000, cache: warm({ expectedCalls: 1_000 }) })
    const { act, context: tokens } = makeContextPlan(context)
    expect([tokens.expected > 270_000, tokens.high > 360_000, act]).toEqual([true, true, 'clear'])
  })

  it('says what it would do, what it costs and why', () => {
    const planned = makeContextPlan(filled(150_000, [10, 10_000]).planContext())
    expect(planned.trace).toEqual([
      {
        tier: 'clear',
        before: 150_000,
        after: 150_000 - 59_856,
        price: 0,
        breakEven: 0,
        why: '150,000 of 167,000 tokens are in use, above the warning line: clearing 6 old results frees 59,856 tokens; nothing is written again',
        chosen: true,
      },
      {
        tier: 'compact',
        before: 150_000,
        after: 33_000,
        price: null,
        breakEven: null,
        why: '17,000 tokens are left before compaction must start, and what it would save is not known yet',
        chosen: false,
      },
      {
        tier: 'wait',
        before: 150_000,
        after: 150_000,
        price: 0,
        breakEven: null,
        why: 'to clear is due',
        chosen: false,
      },
    ])
    expect(planned).toMatchObject({
      way: 'budget',
      prepare: true,
      refusal: null,
      context: { expected: 150_000, high: 150_000, source: 'measured' },
      ladder: { isAboveWarningThreshold: true, isAboveAutoCompactThreshold: false },
    })
  })

  it('prepares a summary from the warning line on where policy lets it', () => {
    const prepares = (tokens: number, background: boolean) => {
      const situation = new Situation({}, { background })
      situation.measure(tokens)
      return makeContextPlan(situation.planContext()).prepare
    }
    expect([prepares(146_000, true), prepares(150_000, true), prepares(150_000, false)]).toEqual([
      false,
      true,
      false,
    ])
  })

  it('clears nothing while a summary is prepared or being prepared, which the clearing would make stale', () => {
    const situation = filled(150_000, [10, 10_000])
    expect(acts(situation)).toBe('clear')
    expect(acts(situation, { isPreparing: true })).toBe('wait')
    expect(acts(situation, { hasPreparedSummary: true })).toBe('wait')
    expect(acts(filled(167_000, [10, 10_000]), { hasPreparedSummary: true })).toBe('compact')
  })

  it('carries the figures it was decided by', () => {
    const context = filled(150_000).planContext()
    expect(makeContextPlan(context).scaled).toBe(context.scaled)
  })

  it.each(['compact', 'session_memory'])('never stops or rewrites %s, which carries it all', (source) => {
    const planned = makeContextPlan(filled(178_000, [10, 10_000]).planContext({ source }))
    expect([planned.act, planned.refusal, planned.native, planned.prepare]).toEqual([
      'wait',
      null,
      null,
      false,
    ])
  })

  it.each([
    ['the breaker is open', { failures: 3 }, 'wait'],
    ['two failures are none too many', { failures: 2 }, 'compact'],
    ['calls are open', { openCalls: 1 }, 'wait'],
    ['nothing has come since the last one', { justCompacted: true }, 'wait'],
    ['an act was undone', { waitsForPrompt: true }, 'wait'],
  ])('over the line, and %s', (_, tracking, act) => {
    expect(acts(filled(170_000), { tracking: { ...EMPTY_PLAN_TRACKING, ...tracking } })).toBe(act)
  })

  it('waits after an undo until the person speaks, with clearing too', () => {
    const tracking = { ...EMPTY_PLAN_TRACKING, waitsForPrompt: true }
    expect(acts(filled(150_000, [10, 10_000]), { tracking })).toBe('wait')
    expect(acts(filled(150_000, [10, 10_000]), { tracking, moment: 'prompt' })).toBe('clear')
    expect(acts(filled(170_000), { tracking, moment: 'prompt' })).toBe('compact')
  })

  it('does again what was undone only where it must be, until something has been answered', () => {
    const tracking = { ...EMPTY_PLAN_TRACKING, justUndone: true }
    const moment = 'prompt'
    expect(acts(filled(150_000, [10, 10_000]), { tracking, moment })).toBe('wait')
    expect(acts(filled(168_000), { tracking, moment })).toBe('compact')
    expect(acts(filled(168_000), { tracking: { ...tracking, waitsForPrompt: true }, moment: 'call' })).toBe(
      'wait',
    )
  })

  it('rewrites nothing between a call and its answer', () => {
    const tracking = { ...EMPTY_PLAN_TRACKING, openCalls: 2 }
    const planned = makeContextPlan(filled(150_000, [10, 10_000]).planContext({ tracking }))
    expect([planned.act, planned.trace[0]?.why]).toEqual([
      'wait',
      'tool calls are still without their answers',
    ])
  })

  it.each([
    [
      'auto-compaction is off',
      { switches: { autoCompactEnabled: false } },
      {},
      177_000,
      'compacting by itself is switched off by switches.autoCompactEnabled',
    ],
    [
      'the breaker is open',
      {},
      { failures: 3 },
      177_000,
      '3 compactions in a row have failed; compact by hand, or rewind',
    ],
  ])('refuses a new message at the blocking line where %s', (_, policy, tracking, tokens, cause) => {
    const told = { tracking: { ...EMPTY_PLAN_TRACKING, ...tracking } }
    const refusal = (at: number) => makeContextPlan(filled(at, [0, 0], policy).planContext(told)).refusal
    expect(refusal(tokens - 1)).toBeNull()
    expect(refusal(tokens)).toBe(
      `177,000 of 180,000 tokens are in use and ${cause}. Compact the conversation (session.compact) or go back to an earlier message (session.rewind). What was appended is kept.`,
    )
  })

  it.each([
    [{ set: ['DISABLE_COMPACT'] as const, autoCompactPercent: null }, {}, 'DISABLE_COMPACT'],
    [undefined, { switches: { compactEnabled: false } }, 'switches.compactEnabled'],
  ])(
    'names the switch that also stops manual compactions, and does not advise one',
    (switches, policy, name) => {
      const more = switches === undefined ? {} : { switches }
      const { refusal } = makeContextPlan(filled(177_000, [0, 0], policy).planContext(more))
      expect(refusal).toBe(
        `177,000 of 180,000 tokens are in use and compacting by itself is switched off by ${name}. Switch compaction on again (${name}) or go back to an earlier message (session.rewind). What was appended is kept.`,
      )
    },
  )

  it('does nothing by itself where the window is not known, and says so', () => {
    const situation = filled(900_000)
    const scaled = computeScaledLimits(situation.policy, { window: null, maxOutput: null })
    const planned = makeContextPlan(situation.planContext({ scaled }))
    expect([planned.act, planned.ladder, planned.refusal]).toEqual(['wait', null, null])
    expect(planned.trace[1]?.why).toMatch(/window of this model is not known/)
  })
})

it('counts what the provider keeps cleared as gone where nothing has been measured since', () => {
  const situation = new Situation()
  const ids = situation.reads(6, 10_000)
  const all = makeContextPlan(situation.planContext()).context.expected
  situation.clear({
    trigger: 'auto',
    way: 'native',
    preTokens: 70_000,
    tokensSaved: 40_000,
    compactedToolIds: ids.slice(0, 4),
    clearedAttachmentUUIDs: [],
  })
  situation.builder.notice('epoch', {})
  const left = makeContextPlan(situation.planContext()).context.expected
  expect(Math.round((all - left) / 1_000)).toBe(40)
})

describe('where the provider clears results', () => {
  const profile = defineMessagesProfile({
    thinking: { binding: 'prefix', firstInModes: [] },
    contextEdits: { clearThinking: 'clear_thinking_x', clearToolUses: 'clear_tool_uses_x' },
  })
  function planNative(overrides: Partial<ContextPlanInput> = {}, tokens = 150_000) {
    const situation = new Situation()
    situation.reads(12, 10_000)
    situation.measure(tokens)
    return makeContextPlan(situation.planContext({ profile, thinks: true, cache: warm(), ...overrides }))
  }

  it('no summary is begun where the provider is about to bring the context below the warning threshold', () => {
    const planned = planNative()
    expect(planned.native?.price?.freedTokens).toBeGreaterThan(20_000)
    expect(planned.prepare).toBe(false)
  })

  it.each([{ hasPreparedSummary: true }, { isPreparing: true }])(
    'the provider clears nothing more while a summary is being written or ready: %o',
    (phase) => {
      const planned = planNative(phase)
      expect([planned.native?.price, planned.prepare]).toEqual([null, true])
    },
  )

  it('a provider that was asked above its trigger and cleared nothing is not relied on', () => {
    const lastEdits = planNative().native
    expect(planNative({ lastEdits }).prepare).toBe(true)
  })
})

describe('the soft trigger', () => {
  /** Grows by 1,000 a call; a compaction leaves 33,000. */
  function growing(unfinished: Partial<ContextPlanInput['policy']['compact']> = {}): Situation {
    const situation = new Situation({}, unfinished)
    for (let tokens = 70_000; tokens <= 100_000; tokens += 1_000) {
      situation.measure(tokens)
      situation.builder.user('go on')
    }
    return situation
  }
  const cache = warm()
  const economy = { economy: true }
  const pays = { cache, moment: 'turn-end', hasPreparedSummary: true } as const

  it('price alone compacts nothing by default: it advises, with what is saved and what is dropped', () => {
    const planned = makeContextPlan(growing().planContext(pays))
    expect([planned.act, planned.trace[1]?.why]).toEqual([
      'wait',
      '66,999 tokens are left before compaction must start; to compact now would pay, but price alone compacts nothing',
    ])
    expect(planned.advice?.droppedTokens).toBe(67_001)
    expect(planned.advice?.savedPer100Calls).toBeGreaterThan(5)
    expect(planned.advice?.sentence).toMatch(
      /^Compacting now would save \$\d+\.\d\d over the next 100 calls\. A summary would replace 67,001 tokens/,
    )
  })

  it('advises nothing where it would not pay', () => {
    expect(makeContextPlan(filled(40_000).planContext(pays)).advice).toBeNull()
    expect(makeContextPlan(growing().planContext({ ...pays, rates: null })).advice).toBeNull()
  })

  it.each([
    ['call', 'wait'],
    ['prompt', 'compact'],
    ['turn-end', 'compact'],
    ['todo-done', 'compact'],
  ] as const)('with policy economy and a prepared summary, at %s: %s, for its price', (moment, act) => {
    const planned = makeContextPlan(growing(economy).planContext({ ...pays, moment }))
    expect([planned.act, planned.compact]).toEqual([
      act,
      act === 'compact' ? { cause: 'price', hard: false } : undefined,
    ])
  })

  it('with policy economy compacts with the notes where no summary is prepared and their line is off', () => {
    const given = { ...pays, hasPreparedSummary: false, hasNotes: true }
    const { notesLine } = DEFAULT_POLICY.compact
    const usual = { notesLine: { ...notesLine, enabled: false } }
    expect(makeContextPlan(growing({ ...economy, ...usual }).planContext(given)).compact).toEqual({
      cause: 'price',
      hard: false,
    })
    expect(makeContextPlan(growing(usual).planContext(given)).compact).toBeUndefined()
  })

  it('with policy economy still waits for a prepared summary, for its floor, and for as much new content', () => {
    const why = (overrides: Partial<ContextPlanInput>) => {
      const planned = makeContextPlan(growing(economy).planContext({ ...pays, ...overrides }))
      return [planned.act, planned.advice !== null, planned.trace[1]?.why.split('would pay, but ')[1]]
    }
    const wide = computeScaledLimits(growing(economy).policy, { window: 400_000, maxOutput: 64_000 })
    const after = (tokens: number) => ({ ...EMPTY_PLAN_TRACKING, priceCompactedAt: tokens })
    expect(why({ hasPreparedSummary: false })).toEqual(['wait', true, 'no summary is prepared'])
    const prepares = (overrides: Partial<ContextPlanInput>, with_ = economy) =>
      makeContextPlan(growing(with_).planContext({ ...pays, hasPreparedSummary: false, ...overrides }))
        .prepare
    // It is prepared once nothing else is missing, and only then.
    expect([
      prepares({}),
      prepares({ moment: 'call' }),
      prepares({ cache: warm({ expectedCalls: 5 }) }),
    ]).toEqual([true, true, false])
    expect(prepares({}, { economy: false })).toBe(false)
    expect(why({ scaled: wide })).toEqual([
      'wait',
      true,
      expect.stringContaining('compacts nothing below 183,500'),
    ])
    const lower = growing({ ...economy, economyFloorPercent: 20 }).policy
    expect(why({ scaled: wide, policy: lower })[0]).toBe('compact')
    expect(why({ tracking: after(100_002) })).toEqual([
      'wait',
      true,
      expect.stringContaining('less has come since'),
    ])
    expect(why({ tracking: after(100_001) })[0]).toBe('compact')
  })

  it('waits where it would not pay, and below its size', () => {
    expect(acts(growing(economy), { ...pays, cache: warm({ expectedCalls: 5 }) })).toBe('wait')
    const outlook: CompactionResultSizes = { after: 90_000, summary: 3_000, reattached: 20_000 }
    expect(acts(growing(economy), { ...pays, expectedResult: outlook })).toBe('wait')
    expect(acts(growing(economy), { ...pays, rates: null })).toBe('wait')
  })

  it('goes by the size as expected, not by the one that is only possible', () => {
    const context = growing(economy).planContext(pays)
    const size = judgeCompaction(context, makeContextPlan(context).context).optimalTrigger?.tokens ?? 0
    const judged = (expected: number) =>
      judgeCompaction(context, { expected, high: expected + 50_000, source: 'both' }).act
    expect([judged(size - 10_000), judged(size + 30_000)]).toEqual(['none', 'soft'])
  })

  it('the hard one does not wait for the end of a turn', () => {
    const planned = makeContextPlan(filled(170_000).planContext({ moment: 'call' }))
    expect(planned.compact).toEqual({ cause: 'threshold', hard: true })
  })
})

describe('the line of a compaction with notes', () => {
  const PREFIX = 20_000

  /** Plans at so many tokens, at the turn's end, with notes and a warm cache unless given. */
  function planAt(tokens: number, given: Partial<ContextPlanInput> = {}, situation = new Situation()) {
    situation.measure(tokens - 1_000)
    situation.builder.user('go on')
    situation.measure(tokens)
    return makeContextPlan(
      situation.planContext({ cache: warm(), hasNotes: true, prefixTokens: PREFIX, ...given }),
    )
  }
  const after = (tokens: number): Partial<ContextPlanInput> => ({
    expectedResult: { after: tokens, summary: 0, reattached: 0 },
  })

  it('is the system prompt and tools with 65,000 tokens of conversation, where little was written before', () => {
    const { notesLine } = DEFAULT_POLICY.compact
    const line = PREFIX + notesLine.conversationTokens
    expect([planAt(line - 1, after(30_000)).act, planAt(line, after(30_000)).act]).toEqual([
      'wait',
      'compact',
    ])
    expect(planAt(line, after(30_000)).compact).toEqual({ cause: 'threshold', hard: false })
  })

  it('is where reading and writing cost least together, where much is written again', () => {
    // √(2 · 1,000 · (12.5 − 1) / 1 · (80,000 − 20,000)) = 37,148 tokens above 80,000.
    expect([planAt(117_100, after(80_000)).act, planAt(117_200, after(80_000)).act]).toEqual([
      'wait',
      'compact',
    ])
  })

  it('leaves room for 35,000 tokens after a large result, and never goes above the auto-compact threshold', () => {
    const free = { rates: { input: 10, cacheRead: 1, writeShort: 0, writeLong: 0, output: 50 } }
    expect(planAt(114_000, { ...after(80_000), ...free }).act).toBe('wait')
    expect(planAt(115_000, { ...after(80_000), ...free }).act).toBe('compact')
    expect(planAt(167_000, after(160_000)).compact).toEqual({ cause: 'threshold', hard: true })
  })

  it('is not there without notes, if the policy is off, and if the window is not known', () => {
    const off = new Situation({ compact: { notesLine: { enabled: false } } })
    expect(planAt(120_000, { ...after(30_000), hasNotes: false }).act).toBe('wait')
    expect(planAt(120_000, after(30_000), off).act).toBe('wait')
    const scaled = computeScaledLimits(DEFAULT_POLICY, { window: null, maxOutput: null })
    expect(planAt(120_000, { ...after(30_000), scaled }).act).toBe('wait')
  })

  it('behind an expired cache is 10,000 tokens above what the last compaction left, before any clearing', () => {
    const cache = warm({ isWarm: false })
    const cold = (tokens: number) => {
      const situation = new Situation()
      for (let run = 0; run < 12; run += 1) situation.call('Bash', { command: `make ${run}` }, text(2_000))
      return planAt(tokens, { ...after(45_000), cache, idleMs: 3_600_000 }, situation).act
    }
    expect([cold(54_000), cold(55_000)]).toEqual(['clear', 'compact'])
  })

  it('waits while files were read and not edited since, until the threshold', () => {
    const reading = (edits: boolean, tokens = 120_000, more = {}) => {
      const situation = new Situation()
      for (const path of ['/a', '/b', '/c', '/d']) situation.read(path, 5_000)
      if (edits)
        for (const file_path of ['/a', '/b', '/c', '/d'])
          situation.call('Edit', { file_path, old_string: 'abc', new_string: 'x' }, 'done')
      return planAt(tokens, { ...after(30_000), ...more }, situation).act
    }
    expect([reading(false), reading(true), reading(false, 167_000)]).toEqual(['wait', 'compact', 'compact'])
    // Behind an expired cache what was read would be written again.
    expect(reading(false, 120_000, { cache: warm({ isWarm: false }) })).toBe('compact')
  })

  it('is the threshold where nothing is saved: reads are free, or writes behind an expired cache', () => {
    const priced = (cacheRead: number, written: number): Partial<ContextPlanInput> => ({
      ...after(70_000),
      rates: { input: 10, cacheRead, writeShort: written, writeLong: written, output: 50 },
    })
    expect(planAt(166_000, priced(0, 12.5)).act).toBe('wait')
    expect(planAt(166_000, priced(0, 0)).act).toBe('wait')
    expect(planAt(106_000, priced(1, 1)).act).toBe('compact')
    const cold = { cache: warm({ isWarm: false }), idleMs: 3_600_000 }
    expect(planAt(120_000, { ...priced(1, 0), ...cold }).act).toBe('wait')
    expect(planAt(120_000, { ...priced(0, 12.5), ...cold }).act).toBe('compact')
  })

  it('lies between what the last compaction left and the threshold, in every window and at every price', () => {
    const price = fc.oneof(fc.constant(0), fc.constant(null), fc.double({ min: 0.01, max: 100, noNaN: true }))
    const draws = fc.record({
      window: fc.integer({ min: 8_000, max: 2_000_000 }),
      wider: fc.integer({ min: 0, max: 1_000_000 }),
      prefixShare: fc.double({ min: 0, max: 0.95, noNaN: true }),
      afterShare: fc.double({ min: 0, max: 1, noNaN: true }),
      growth: fc.option(fc.integer({ min: 0, max: 100_000 })),
      rates: fc.record({
        input: price,
        cacheRead: price,
        writeShort: price,
        writeLong: price,
        output: price,
      }),
      isWarm: fc.boolean(),
    })
    const base = new Situation().planContext({ hasNotes: true })
    fc.assert(
      fc.property(draws, ({ window, wider, prefixShare, afterShare, growth, rates, isWarm }) => {
        const prefixTokens = Math.round(window * prefixShare)
        const left = Math.round(prefixTokens + (window - prefixTokens) * afterShare)
        const find = (tokens: number) => {
          const scaled = computeScaledLimits(DEFAULT_POLICY, { window: tokens, maxOutput: 64_000 })
          const line = findNotesCompactionThreshold(
            { ...base, scaled, prefixTokens, rates, cache: warm({ isWarm }) },
            left,
            growth,
          )
          return { line: line ?? Number.NaN, most: scaled.known ? scaled.lines.autoCompact : 0 }
        }
        const { line, most } = find(window)
        const { growthTokens, coldTokens } = DEFAULT_POLICY.compact.notesLine
        const least = left + ((isWarm ? growthTokens : coldTokens) * window) / 200_000
        expect(Number.isSafeInteger(line)).toBe(true)
        expect(line).toBeLessThanOrEqual(most)
        expect(line).toBeGreaterThanOrEqual(Math.floor(Math.min(most, least)))
        expect(find(window + wider).line).toBeGreaterThanOrEqual(line)
      }),
    )
  })

  it('is the same share of every window', () => {
    const scaled = computeScaledLimits(DEFAULT_POLICY, { window: 1_000_000, maxOutput: 64_000 })
    const at = (tokens: number) => planAt(tokens, { ...after(30_000), scaled }).act
    expect([at(PREFIX + 324_000), at(PREFIX + 325_000)]).toEqual(['wait', 'compact'])
  })
})
