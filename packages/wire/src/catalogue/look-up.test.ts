import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { modelCatalogue } from './catalogue.ts'
import { type FoundModel, lookUpModel } from './look-up.ts'
import { pricesOn } from './model-prices.ts'

function find(id: string): FoundModel {
  const looked = lookUpModel(modelCatalogue, id)
  if (!looked.found) throw new Error(looked.reason)
  return looked
}

describe('spellings', () => {
  it.each([
    ['claude-opus-4-5', 'claude-opus-4-5'],
    ['claude-opus-4-5-20251101', 'claude-opus-4-5'],
    ['claude-opus-4-20250514', 'claude-opus-4'],
    ['claude-opus-4-0', 'claude-opus-4'],
    ['claude-sonnet-4-20250514', 'claude-sonnet-4'],
    ['claude-fable-5-20260609', 'claude-fable-5'],
    ['claude-3-5-sonnet-latest', 'claude-3-5-sonnet'],
    ['claude-3-5-sonnet-20241022', 'claude-3-5-sonnet'],
    ['claude-3-7-sonnet-20250219', 'claude-3-7-sonnet'],
    ['claude-3-opus-20240229', 'claude-3-opus'],
    ['claude-opus-4-6[1m]', 'claude-opus-4-6'],
    ['claude-sonnet-4-5-20250929[1m]', 'claude-sonnet-4-5'],
    ['Claude-Opus-4-6[1M] ', 'claude-opus-4-6'],
    ['anthropic/claude-opus-4-8', 'claude-opus-4-8'],
    ['anthropic/claude-sonnet-4.5', 'claude-sonnet-4-5'],
    ['anthropic/claude-3.7-sonnet:thinking', 'claude-3-7-sonnet'],
    ['openrouter/anthropic/claude-opus-5.5', 'claude-opus-5-5'],
    ['anthropic:claude-haiku-4-5', 'claude-haiku-4-5'],
    ['claude-4-5-sonnet-20250929', 'claude-sonnet-4-5'],
    ['claude-4.5-opus', 'claude-opus-4-5'],
    ['claude-4-sonnet', 'claude-sonnet-4'],
    ['claude-sonnet-3-7', 'claude-3-7-sonnet'],
    ['claude-sonnet-3.5', 'claude-3-5-sonnet'],
    ['claude-haiku-3', 'claude-3-haiku'],
    ['claude-opus-4-5-20251101-thinking', 'claude-opus-4-5'],
    ['us.anthropic.claude-opus-4-5-20251101-v1:0', 'claude-opus-4-5'],
    ['anthropic.claude-3-5-sonnet-20241022-v2:0', 'claude-3-5-sonnet'],
    ['anthropic.claude-3-haiku-20240307-v1:0:200k', 'claude-3-haiku'],
    ['global.anthropic.claude-opus-4-6-v1', 'claude-opus-4-6'],
    ['us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0', 'claude-sonnet-4-5'],
    ['bedrock/us.anthropic.claude-sonnet-5-5', 'claude-sonnet-5-5'],
    [
      'arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0',
      'claude-haiku-4-5',
    ],
    ['claude-haiku-4-5@20251001', 'claude-haiku-4-5'],
    ['claude-3-5-sonnet-v2@20241022', 'claude-3-5-sonnet'],
    ['vertex_ai/claude-opus-4-1@20250805', 'claude-opus-4-1'],
    ['projects/p/locations/us-east5/publishers/anthropic/models/claude-opus-4-8', 'claude-opus-4-8'],
    ['gpt-6.1-sol-2026-09-29', 'gpt-6.1-sol'],
    ['openai/gpt-5.4', 'gpt-5.4'],
    ['gpt-5-codex', 'gpt-5'],
    ['gpt-4o-2024-08-06', 'gpt-4o'],
    ['gpt-4o-2024-05-13', 'gpt-4o-2024-05-13'],
    ['models/gemini-2.5-pro', 'gemini-2.5-pro'],
  ])('%s is %s', (spelt, id) => {
    expect(find(spelt).model.id).toBe(id)
  })

  it.each([
    [
      'us.anthropic.claude-opus-4-5-20251101-v1:0',
      { platform: 'bedrock', region: 'us', snapshot: '20251101' },
    ],
    ['anthropic.claude-opus-5', { platform: 'bedrock', region: null, snapshot: null }],
    ['claude-haiku-4-5@20251001', { platform: 'vertex', region: null, snapshot: '20251001' }],
    [
      'publishers/anthropic/models/claude-opus-5@default',
      { platform: 'vertex', region: null, snapshot: null },
    ],
    [
      'projects/p/locations/global/publishers/anthropic/models/claude-opus-5',
      { platform: 'vertex', region: 'global' },
    ],
    ['anthropic/claude-opus-5', { platform: null, region: null, snapshot: null }],
  ])('%s says where it runs', (spelt, spelling) => {
    expect(find(spelt).spelling).toMatchObject({ isLong: false, ...spelling })
  })
})

describe('what nobody knows stays unknown', () => {
  it.each([
    'claude-opus-5-6',
    'claude-fable-5-3',
    'claude-opus-4-50',
    'claude-opus-4-5-mini',
    'claude-opus-5-fast',
    'anthropic/claude-opus-5:free',
    'us.meta.llama4-maverick-v1:0',
    'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123',
    'gemini-2.5-flash-preview-05-20',
    'gpt-5.4-pro',
    'my-model',
    '<synthetic>',
    '',
  ])('%s', (id) => {
    expect(lookUpModel(modelCatalogue, id)).toMatchObject({ found: false, asked: id })
  })

  it('says what was tried', () => {
    expect(lookUpModel(modelCatalogue, 'us.anthropic.claude-opus-9-20270101-v1:0')).toEqual({
      found: false,
      asked: 'us.anthropic.claude-opus-9-20270101-v1:0',
      tried: [
        'us.anthropic.claude-opus-9-20270101-v1:0',
        'anthropic.claude-opus-9-20270101-v1:0',
        'claude-opus-9-20270101-v1:0',
        'claude-opus-9-20270101',
        'claude-opus-9',
      ],
      reason:
        'no model of the catalogue goes by "us.anthropic.claude-opus-9-20270101-v1:0": give its figures with withModels',
    })
  })

  it.each(['opus', 'sonnet[1m]', 'haiku'])('%s is a family, which means another model next year', (id) => {
    expect(lookUpModel(modelCatalogue, id)).toMatchObject({
      found: false,
      reason: expect.stringContaining('family'),
    })
  })

  it('whatever the id, the answer is a value', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (id) => {
        expect(lookUpModel(modelCatalogue, id).found).toBe(modelCatalogue.byName.has(id))
      }),
    )
  })
})

describe('what an id asks for', () => {
  it('a larger window, where there was one', () => {
    const { model, notes } = find('claude-sonnet-4-5-20250929[1m]')
    expect([model.window, model.maxInput, notes]).toEqual([
      1_000_000,
      1_000_000,
      ['[1m]: a window of 1000000'],
    ])
    expect(find('claude-sonnet-4-5-20250929').model.window).toBe(200_000)
  })

  it('one that is not known, which is said and not believed', () => {
    const { model, notes } = find('claude-opus-4-5[1m]')
    expect(model.window).toBe(200_000)
    expect(notes).toEqual(['[1m]: no window larger than 200000 is known of claude-opus-4-5'])
  })

  it('the prices of a regional endpoint, steps and past ones too', () => {
    const { model, notes } = find('eu.anthropic.claude-haiku-5-5')
    expect(model.prices).toMatchObject({
      input: 0.11,
      cacheRead: 0.011,
      write5m: 0.1375,
      write1h: 0.22,
      output: 0.55,
      tiers: [{ above: 100_000, input: 0.55, cacheRead: 0.055, write5m: 0.6875, write1h: 1.1, output: 2.75 }],
    })
    expect(notes).toContain('prices are 1.1 times the global ones: the endpoint is tied to "eu"')
    expect(pricesOn(find('us.anthropic.claude-opus-4-6-v1').model, '2026-02-10').tiers?.[0]?.input).toBe(11)
  })

  it.each([
    ['global.anthropic.claude-opus-4-5-20251101-v1:0', 5, []],
    [
      'anthropic.claude-opus-4-5-20251101-v1:0',
      5,
      ['prices are the global ones; an endpoint tied to a region costs 1.1 times as much'],
    ],
    ['us.anthropic.claude-sonnet-4-20250514-v1:0', 3, []],
  ])('%s', (id, input, notes) => {
    expect([find(id).model.prices.input, find(id).notes]).toEqual([input, notes])
  })
})

describe('old logs', () => {
  it.each([
    ['2026-03-12T23:59:59.000Z', 10],
    ['2026-03-13', undefined],
  ])('of %s were billed at the prices of their day', (day, above200k) => {
    expect(pricesOn(find('claude-opus-4-6').model, day).tiers?.[0]?.input).toBe(above200k)
  })

  it('of a model whose price never changed are billed at that', () => {
    const { model } = find('claude-opus-4-5')
    expect(pricesOn(model, '2025-12-01')).toBe(model.prices)
  })
})
