import { describe, expect, it } from 'vitest'
import { TidemarkError } from '../errors.ts'
import { createPolicy, DEFAULT_POLICY } from './create-policy.ts'
import type { Policy } from './policy.ts'
import { computeScaledLimits, type KnownWindowLimits, type ModelLimits } from './scale-policy.ts'
import { readSwitches } from './switches.ts'

function known(
  policy: Policy,
  model: ModelLimits,
  environment: Record<string, string> = {},
): KnownWindowLimits {
  const scaled = computeScaledLimits(policy, model, readSwitches(environment).switches)
  if (!scaled.known) throw new Error(scaled.why)
  return scaled
}

function refusal(policy: Policy, model: ModelLimits): TidemarkError {
  try {
    computeScaledLimits(policy, model)
  } catch (error) {
    if (error instanceof TidemarkError) return error
    throw error
  }
  throw new Error('expected an error')
}

describe('the worked table, with a maximum output of 64,000', () => {
  it.each([
    // window, effective, auto-compact, warning and error, blocking, target
    [4_000, 3_000, 2_740, 2_340, 2_940, 1_370],
    [8_000, 6_000, 5_480, 4_680, 5_880, 2_740],
    [16_000, 12_000, 10_960, 9_360, 11_760, 5_480],
    [32_000, 24_000, 21_920, 18_720, 23_520, 10_960],
    [128_000, 108_000, 99_680, 86_880, 106_080, 49_840],
    [200_000, 180_000, 167_000, 147_000, 177_000, 83_500],
    [1_000_000, 980_000, 967_000, 947_000, 977_000, 483_500],
    // Powers of two do not divide evenly: 4,096 − 1,024 − 266.24 = 2,805.76, and a line is rounded down.
    [4_096, 3_072, 2_805, 2_396, 3_010, 1_402],
    [8_192, 6_144, 5_611, 4_792, 6_021, 2_805],
    [16_384, 12_288, 11_223, 9_584, 12_042, 5_611],
    [32_768, 24_576, 22_446, 19_169, 24_084, 11_223],
    [131_072, 111_072, 102_552, 89_445, 109_105, 51_276],
    [1_048_576, 1_028_576, 1_015_576, 995_576, 1_025_576, 507_788],
  ])('%d', (window, effective, autoCompact, warning, blocking, target) => {
    expect(known(DEFAULT_POLICY, { window, maxOutput: 64_000 }).lines).toEqual({
      window,
      effective,
      autoCompact,
      limit: autoCompact,
      warning,
      error: warning,
      blocking,
      target,
    })
  })

  it.each([
    // window, files each/middle/last/total, skills each/total, notes section/total/start/growth, kept least/most
    [4_000, [840, 840, 840, 840], [420, 420], [46, 360, 690, 690], [690, 690]],
    [8_000, [1_680, 1_680, 1_200, 1_680], [840, 840], [92, 720, 1_380, 1_380], [1_380, 1_380]],
    [16_000, [3_360, 3_000, 1_200, 3_360], [1_680, 1_680], [185, 1_440, 2_760, 2_760], [1_500, 2_760]],
    [32_000, [6_720, 3_000, 1_200, 6_720], [3_360, 3_360], [371, 2_880, 5_520, 5_000], [1_500, 3_000]],
    [128_000, [7_000, 3_000, 1_200, 30_000], [5_000, 15_120], [1_672, 12_960, 10_000, 5_000], [1_500, 3_000]],
    [200_000, [7_000, 3_000, 1_200, 30_000], [5_000, 25_000], [2_000, 15_500, 10_000, 5_000], [1_500, 3_000]],
    [
      1_000_000,
      [7_000, 3_000, 1_200, 30_000],
      [5_000, 25_000],
      [2_000, 15_500, 10_000, 5_000],
      [1_500, 3_000],
    ],
  ])('%d: what comes back', (window, files, skills, notes, kept) => {
    const { budgets } = known(DEFAULT_POLICY, { window, maxOutput: 64_000 })
    expect([
      [budgets.files.each, budgets.files.middle, budgets.files.last, budgets.files.total],
      [budgets.skills.each, budgets.skills.total],
      [budgets.notes.section, budgets.notes.total, budgets.notes.start, budgets.notes.growth],
      [budgets.keptMessages.minimum, budgets.keptMessages.maximum],
    ]).toEqual([files, skills, notes, kept])
  })

  it('has every content budget of the policy in full at the usual window of 200,000', () => {
    const { budgets } = known(DEFAULT_POLICY, { window: 200_000, maxOutput: 64_000 })
    const unscaled = computeScaledLimits(DEFAULT_POLICY, { window: null, maxOutput: null })
    expect(budgets).toEqual({ ...unscaled.budgets, broughtBack: 83_500 })
  })

  it.each([
    // window, idle least, target, least, native keep, native least, large input
    [4_000, 690, 690, 690, 690, 690, 690],
    [8_000, 1_380, 1_380, 1_380, 1_380, 1_380, 1_000],
    [16_000, 2_760, 2_760, 2_760, 2_760, 2_760, 1_000],
    [32_000, 5_000, 5_520, 5_520, 5_520, 5_520, 1_000],
    [128_000, 5_000, 24_840, 20_000, 24_840, 20_000, 1_000],
    [200_000, 5_000, 40_000, 20_000, 40_000, 20_000, 1_000],
    [1_000_000, 5_000, 40_000, 20_000, 40_000, 20_000, 1_000],
  ])(
    '%d: clearing',
    (window, idleMinimumFreed, target, minimumFreed, nativeKeep, nativeClearAtLeast, largeInput) => {
      expect(known(DEFAULT_POLICY, { window, maxOutput: 64_000 }).budgets.clear).toEqual({
        idleMinimumFreed,
        target,
        minimumFreed,
        nativeKeep,
        nativeClearAtLeast,
        largeInput,
      })
    },
  )

  it.each([
    // window, reminder, ledger files/names, hook characters, summary, native trigger, images
    [4_000, 750, [150, 150], 1_200, 1_000, 2_340, 100],
    [8_000, 1_500, [300, 300], 2_400, 2_000, 4_680, 100],
    [16_000, 3_000, [600, 600], 4_800, 4_000, 9_360, 100],
    [32_000, 6_000, [1_200, 1_200], 9_600, 8_000, 18_720, 100],
    [128_000, 27_000, [2_000, 1_500], 10_000, 20_000, 86_880, 100],
    [200_000, 40_000, [2_000, 1_500], 10_000, 20_000, 147_000, 100],
    [1_000_000, 40_000, [2_000, 1_500], 10_000, 20_000, 180_000, 600],
  ])('%d: the rest', (window, ambient, ledger, hookCharacters, summary, trigger, images) => {
    const scaled = known(DEFAULT_POLICY, { window, maxOutput: 64_000 })
    const { budgets } = scaled
    expect([
      budgets.ambient,
      [budgets.ledger.files, budgets.ledger.names],
      budgets.hookOutputCharacters,
      scaled.summaryOutput,
      scaled.nativeTrigger,
      scaled.images,
    ]).toEqual([ambient, ledger, hookCharacters, summary, trigger, images])
  })

  it('has the distances between the thresholds', () => {
    const { reserve, lines } = known(DEFAULT_POLICY, { window: 200_000, maxOutput: 64_000 })
    expect(reserve).toBe(20_000)
    expect(lines).toMatchObject({
      effective: 180_000,
      autoCompact: 180_000 - 13_000,
      warning: lines.limit - 20_000,
      error: lines.limit - 20_000,
      blocking: 180_000 - 3_000,
    })
  })
})

describe('the reserve', () => {
  it.each([
    ['smaller', 64_000, 20_000],
    ['smaller', 8_192, 8_192],
    ['smaller', null, 20_000],
    ['smaller', 0, 20_000],
    ['smaller', 400_000, 20_000],
    ['larger', 32_000, 32_000],
    ['larger', 8_192, 20_000],
    ['larger', 64_000, 50_000],
    ['larger', null, 20_000],
    ['none', 64_000, 0],
  ] as const)('%s of 20,000 and %d is %d in a window of 200,000', (rule, maxOutput, reserve) => {
    const policy = createPolicy({ ladder: { reserve: { rule } } })
    const scaled = known(policy, { window: 200_000, maxOutput })
    expect([scaled.reserve, scaled.lines.effective]).toEqual([reserve, 200_000 - reserve])
  })

  it('of none puts the auto-compact threshold at 187,000', () => {
    const policy = createPolicy({ ladder: { reserve: { rule: 'none' } } })
    expect(known(policy, { window: 200_000, maxOutput: 64_000 }).lines.autoCompact).toBe(187_000)
  })
})

describe('switches', () => {
  const model = { window: 200_000, maxOutput: 64_000 }

  it('make effective the limit if automatic compaction is off', () => {
    const expected = {
      limit: 180_000,
      warning: 160_000,
      error: 160_000,
      blocking: 177_000,
      autoCompact: 167_000,
    }
    const setting = createPolicy({ switches: { autoCompactEnabled: false } })
    expect(known(DEFAULT_POLICY, model, { DISABLE_AUTO_COMPACT: '1' }).lines).toMatchObject(expected)
    expect(known(DEFAULT_POLICY, model, { DISABLE_COMPACT: '1' }).lines).toMatchObject(expected)
    expect(known(setting, model).lines).toMatchObject(expected)
    expect(known(DEFAULT_POLICY, model, { DISABLE_MICROCOMPACT: '1' }).lines.limit).toBe(167_000)
  })

  it.each([
    // per cent, auto-compact, warning: 20,000 below, but never below what a compaction aims at
    ['50', 90_000, 70_000],
    ['92', 165_600, 145_600],
    ['93', 167_000, 147_000],
    ['100', 167_000, 147_000],
    ['33.3', 59_940, 39_940],
    ['20', 36_000, 18_000],
    ['10', 18_000, 9_000],
    ['0.0001', 1, 0],
  ])(
    'draw the auto-compact line at %s%% of effective, never above its place',
    (percent, autoCompact, warning) => {
      const { lines } = known(DEFAULT_POLICY, model, { TIDEMARK_AUTOCOMPACT_PCT: percent })
      expect([lines.autoCompact, lines.limit, lines.warning]).toEqual([autoCompact, autoCompact, warning])
    },
  )

  it('win over the policy’s own percentage', () => {
    const policy = createPolicy({ ladder: { autoCompact: { percentOfEffective: 60 } } })
    expect(known(policy, model).lines.autoCompact).toBe(108_000)
    expect(known(policy, model, { TIDEMARK_AUTOCOMPACT_PCT: '50' }).lines.autoCompact).toBe(90_000)
    expect(known(policy, model, { TIDEMARK_AUTOCOMPACT_PCT: 'x' }).lines.autoCompact).toBe(108_000)
  })
})

describe('a window', () => {
  it('of unknown size has unscaled budgets and no thresholds', () => {
    const scaled = computeScaledLimits(DEFAULT_POLICY, { window: null, maxOutput: 8_192 })
    expect(scaled).toEqual({
      known: false,
      why: 'The context window of this model is not known, so nothing can be compacted by itself and no warning given. Set window.givenTokens in the policy, or name a model whose window is known.',
      images: 100,
      budgets: {
        files: { each: 7_000, middle: 3_000, last: 1_200, total: 30_000 },
        skills: { each: 5_000, total: 25_000 },
        host: { each: 5_000, total: 10_000 },
        notes: { section: 2_000, decisions: 7_000, total: 15_500, start: 10_000, growth: 5_000 },
        keptMessages: { minimum: 1_500, maximum: 3_000 },
        clear: {
          idleMinimumFreed: 5_000,
          target: 40_000,
          minimumFreed: 20_000,
          nativeKeep: 40_000,
          nativeClearAtLeast: 20_000,
          largeInput: 1_000,
        },
        ambient: 40_000,
        ledger: { files: 2_000, names: 1_500 },
        hookOutputCharacters: 10_000,
        spill: { threshold: 10_000, head: 1_500, tail: 1_500 },
        historyPage: 4_000,
        broughtBack: Number.POSITIVE_INFINITY,
      },
    })
  })

  it('can be given in the policy, for unknown models only', () => {
    const policy = createPolicy({ window: { givenTokens: 32_000, givenOutputTokens: 4_000 } })
    expect(known(policy, { window: null, maxOutput: null }).lines).toMatchObject({
      window: 32_000,
      effective: 28_000,
    })
    expect(known(policy, { window: 200_000, maxOutput: 64_000 }).lines).toMatchObject({
      window: 200_000,
      effective: 180_000,
    })
  })

  it('is used up to the cap', () => {
    const policy = createPolicy({ window: { capTokens: 200_000 } })
    const atMost = (window: number) => known(policy, { window, maxOutput: 64_000 }).lines.autoCompact
    expect([atMost(1_000_000), atMost(32_000)]).toEqual([167_000, 21_920])
  })

  it('that is too small is refused, and the error names the smallest', () => {
    expect(refusal(DEFAULT_POLICY, { window: 2_666, maxOutput: 64_000 })).toMatchObject({
      code: 'bad-policy',
      message:
        'A context window of 2666 tokens is too small: the smallest this policy works in is 2667, which leaves 2000 for input. Use a model with a larger window, or lower ladder.minimumUsableTokens.',
      details: { path: 'window', given: 2_666, minimum: 2_667 },
    })
    expect(known(DEFAULT_POLICY, { window: 2_667, maxOutput: 64_000 }).lines.effective).toBe(2_000)
    expect(known(DEFAULT_POLICY, { window: 2_100, maxOutput: 100 }).lines.effective).toBe(2_000)
  })

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('of %d is refused', (window) => {
    expect(refusal(DEFAULT_POLICY, { window, maxOutput: null })).toMatchObject({
      code: 'bad-policy',
      message: `The model's window is ${window}: expected a whole number of tokens of 1 or more, or null where it is not known.`,
    })
  })

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'with a longest answer of %d is refused',
    (maxOutput) => {
      expect(refusal(DEFAULT_POLICY, { window: 200_000, maxOutput })).toMatchObject({
        code: 'bad-policy',
        message: `The model's maxOutput is ${maxOutput}: expected a whole number of tokens of 0 or more, or null where it is not known.`,
      })
    },
  )
})
