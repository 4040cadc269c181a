import { describe, expect, it } from 'vitest'
import { lookUpModel, modelCatalogue } from '../catalogue/catalogue.ts'
import { UNKNOWN_MODEL } from '../catalogue/custom-models.ts'
import type { ModelEntry } from '../catalogue/model-entry.ts'
import { createProviderProfile, strictProfile } from './provider-profile.ts'

function model(id: string): ModelEntry {
  const looked = lookUpModel(modelCatalogue, id)
  if (!looked.found) throw new Error(looked.reason)
  return looked.model
}

describe('every model of the catalogue', () => {
  it.each(modelCatalogue.models.map((entry) => [entry.id, entry] as const))(
    '%s has a profile',
    (_, entry) => {
      for (const anthropicVersion of ['2023-06-01', '2026-10-21'] as const) {
        const profile = createProviderProfile(entry, { anthropicVersion })
        const { spelling: _, ...rules } = profile
        expect(JSON.parse(JSON.stringify(rules))).toEqual(rules)
        expect(profile.window).toBe(Math.min(entry.window ?? Number.NaN, entry.maxInput ?? Number.NaN))
        expect(profile.cache.minimumTokens).toBe(entry.cache.minimum)
        expect(profile.capabilities.cacheEdits).toBe(false)
      }
    },
  )
})

describe('the Messages API', () => {
  it('binds thinking, refuses forced calls and compacts on demand on the newest models', () => {
    expect(createProviderProfile(model('claude-opus-5-5'))).toMatchObject({
      name: 'claude-opus-5-5 (anthropic 2026-10-21)',
      window: 1_000_000,
      maxOutput: 128_000,
      roles: {
        prefill: 'refused',
        consecutive: 'merged',
        system: 'placed',
        turnScoped: true,
        messageEffort: true,
      },
      tools: { forcedChoice: 'refused', declaredWhenUsed: true, resultsFirst: true },
      thinking: {
        modes: ['adaptive'],
        whenAbsent: 'adaptive',
        binding: 'prefix',
        signed: true,
        stripsFinishedTurns: false,
        disabledEfforts: null,
      },
      cache: { maxMarkers: 4, lookBack: 20, minimumTokens: 512, defaultTtl: '5m', automatic: true },
      sizes: { bodyBytes: 32_000_000, images: 600 },
      contextEdits: {
        clearThinking: 'clear_thinking_20251015',
        clearToolUses: 'clear_tool_uses_20250919',
        compact: 'compact_20260112',
      },
      compaction: { blocks: true, onDemand: true, beta: 'compact-2026-09-04' },
      capabilities: { cacheDiagnostics: true, toolChanges: true, prewarm: true },
    })
  })

  it('is the older one of 4.5: budgets, prefill, no compaction', () => {
    expect(
      createProviderProfile(model('claude-sonnet-4-5-20250929'), { anthropicVersion: '2023-06-01' }),
    ).toMatchObject({
      window: 200_000,
      maxOutput: 64_000,
      roles: { prefill: 'allowed', system: 'refused', turnScoped: false, messageEffort: false },
      tools: { forcedChoice: 'allowed' },
      thinking: {
        modes: ['enabled', 'disabled'],
        whenAbsent: 'disabled',
        binding: 'none',
        stripsFinishedTurns: true,
        unforcedInModes: ['enabled'],
      },
      sizes: { images: 100 },
      contextEdits: { clearToolUses: 'clear_tool_uses_20250919', compact: null },
      compaction: { blocks: false, onDemand: false, beta: null },
      refusedFields: [],
      refusedBlocks: [{ role: 'assistant', type: 'image' }],
    })
  })

  it.each([
    ['claude-opus-4-5', '2023-06-01', []],
    ['claude-opus-4-5', '2026-10-21', ['temperature', 'top_p', 'top_k']],
    ['claude-opus-4-7', '2023-06-01', ['temperature', 'top_p', 'top_k']],
  ] as const)('%s at %s refuses %j', (id, anthropicVersion, refused) => {
    expect(createProviderProfile(model(id), { anthropicVersion }).refusedFields).toEqual(refused)
  })

  it('refuses more blocks in its newer version', () => {
    expect(createProviderProfile(model('claude-opus-4-6')).refusedBlocks).toEqual([
      { role: 'assistant', type: 'image' },
      { role: 'assistant', type: 'document' },
      { role: 'user', type: 'text', field: 'citations' },
    ])
  })

  it.each([
    ['claude-opus-5', 'adaptive', ['low', 'medium', 'high']],
    ['claude-haiku-5-5', 'adaptive', ['low', 'medium', 'high']],
    ['claude-opus-4-8', 'disabled', null],
    ['claude-sonnet-5-5', 'adaptive', null],
    ['claude-3-5-sonnet', 'disabled', null],
  ])('%s: %s where a request does not say, disabled at %j', (id, whenAbsent, disabledEfforts) => {
    expect(createProviderProfile(model(id)).thinking).toMatchObject({ whenAbsent, disabledEfforts })
  })

  it('takes compaction blocks where the provider makes them in either way', () => {
    const opus = model('claude-opus-5-5')
    const without = (name: 'thresholdCompaction' | 'onDemandCompaction') =>
      createProviderProfile({ ...opus, capabilities: { ...opus.capabilities, [name]: null } })
    expect(without('thresholdCompaction')).toMatchObject({
      contextEdits: { compact: null },
      compaction: { blocks: true, onDemand: true },
    })
    expect(without('onDemandCompaction').compaction).toMatchObject({
      blocks: true,
      onDemand: false,
      beta: null,
    })
  })

  it('asks for a beta where the API does', () => {
    const { betas, compaction } = createProviderProfile(model('claude-fable-5-1'))
    const named = (name: string) =>
      betas.filter((rule) => rule.name === name).map((rule) => [rule.where, rule.betas])
    expect(compaction.beta).toBe('compact-2026-09-04')
    expect(named('compaction')).toEqual([['block', ['compact-2026-09-04', 'compact-2026-01-12']]])
    expect(named('thinking.block_binding')).toEqual([['field', ['thinking-binding-controls-2026-08-01']]])
  })
})

describe('other providers', () => {
  it('OpenAI: the longest prompt, and cache markers if the model has them', () => {
    expect(createProviderProfile(model('gpt-6-sol'))).toMatchObject({
      name: 'gpt-6-sol (openai)',
      window: 922_000,
      maxOutput: 128_000,
      roles: { first: 'any', consecutive: 'merged', system: 'placed' },
      tools: { forcedChoice: 'allowed', declaredWhenUsed: false },
      thinking: { modes: ['adaptive', 'disabled'], whenAbsent: 'adaptive', binding: 'model', signed: false },
      cache: {
        maxMarkers: 4,
        ttls: [
          { name: '12h', seconds: 43_200 },
          { name: '30m', seconds: 1_800 },
        ],
        defaultTtl: '30m',
        minimumTokens: 1_024,
        lookBack: Number.MAX_SAFE_INTEGER,
      },
      contextEdits: { clearToolUses: null },
      compaction: { onDemand: false },
    })
    expect(createProviderProfile(model('gpt-5')).window).toBe(272_000)
    expect(createProviderProfile(model('gpt-5')).cache.maxMarkers).toBe(0)
  })

  it('Gemini: no cache markers, no system messages in mid-conversation', () => {
    expect(createProviderProfile(model('gemini-3.8-flash'))).toMatchObject({
      window: 1_048_576,
      maxOutput: 65_536,
      roles: { first: 'user', consecutive: 'merged', system: 'refused' },
      cache: { maxMarkers: 0, minimumTokens: 4_096 },
    })
  })
})

describe('a model of an unknown provider', () => {
  it('gets the strict profile', () => {
    const { name, thinking, ...rest } = createProviderProfile(UNKNOWN_MODEL)
    expect(name).toBe('unknown (unknown)')
    expect({ ...rest, thinking, name: 'strict' }).toEqual(strictProfile)
  })

  it('uses the figures that the user gave', () => {
    const own = { ...UNKNOWN_MODEL, id: 'local', vendor: 'ours', window: 32_768, maxOutput: 8_192 }
    const facts = { ...own, thinking: { ...own.thinking, modes: [], binding: 'none' as const } }
    expect(createProviderProfile(facts)).toMatchObject({
      name: 'local (ours)',
      window: 32_768,
      maxOutput: 8_192,
      thinking: { modes: ['disabled'], whenAbsent: 'disabled', binding: 'none' },
    })
  })
})
