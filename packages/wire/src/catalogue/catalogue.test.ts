import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCatalogue, type FoundModel, lookUpModel, modelCatalogue, pricesAtDate } from './catalogue.ts'
import type { ModelEntry } from './model-entry.ts'

const { models } = modelCatalogue
const K = 1_000

function model(id: string): ModelEntry {
  const found = modelCatalogue.byName.get(id)
  if (found === undefined) throw new Error(`${id} is not in the catalogue`)
  return found
}

/** Id, window, largest answer, cache minimum, input, output, 5-minute write, 1-hour write, read. */
type Line = readonly [string, number, number, number | null, ...(number | null)[]]

/** The published price list and model pages, copied line by line and not from the catalogue. */
const PUBLISHED: readonly Line[] = [
  ['claude-fable-5-2', 1000 * K, 128 * K, null, 8, 40, 10, 16, 0.2],
  ['claude-mythos-5-2', 1000 * K, 128 * K, null, null, null, null, null, null],
  ['claude-fable-5-1', 1000 * K, 128 * K, 512, 10, 50, 12.5, 20, 0.25],
  ['claude-mythos-5-1', 1000 * K, 128 * K, 512, 10, 50, 12.5, 20, 0.25],
  ['claude-fable-5', 1000 * K, 128 * K, 512, 10, 50, 12.5, 20, 1],
  ['claude-mythos-5', 1000 * K, 128 * K, 512, 10, 50, 12.5, 20, 1],
  ['claude-opus-5-5', 1000 * K, 128 * K, 512, 4, 20, 5, 8, 0.2],
  ['claude-opus-5', 1000 * K, 128 * K, 512, 5, 25, 6.25, 10, 0.5],
  ['claude-opus-4-8', 1000 * K, 128 * K, 1024, 5, 25, 6.25, 10, 0.5],
  ['claude-opus-4-7', 1000 * K, 128 * K, 2048, 5, 25, 6.25, 10, 0.5],
  ['claude-opus-4-6', 1000 * K, 128 * K, 4096, 5, 25, 6.25, 10, 0.5],
  ['claude-opus-4-5', 200 * K, 64 * K, 4096, 5, 25, 6.25, 10, 0.5],
  ['claude-opus-4-1', 200 * K, 32 * K, 1024, 15, 75, 18.75, 30, 1.5],
  ['claude-opus-4', 200 * K, 32 * K, 1024, 15, 75, 18.75, 30, 1.5],
  ['claude-sonnet-5-5', 1000 * K, 128 * K, 512, 2, 10, 2.5, 4, 0.1],
  ['claude-sonnet-5', 1000 * K, 128 * K, 1024, 2, 10, 2.5, 4, 0.2],
  ['claude-sonnet-4-6', 1000 * K, 128 * K, 1024, 3, 15, 3.75, 6, 0.3],
  ['claude-sonnet-4-5', 200 * K, 64 * K, 1024, 3, 15, 3.75, 6, 0.3],
  ['claude-sonnet-4', 200 * K, 64 * K, 1024, 3, 15, 3.75, 6, 0.3],
  ['claude-haiku-5-5', 1000 * K, 128 * K, 512, 0.1, 0.5, 0.125, 0.2, 0.01],
  ['claude-haiku-4-5', 200 * K, 64 * K, 4096, 1, 5, 1.25, 2, 0.1],
  ['claude-3-7-sonnet', 200 * K, 64 * K, 1024, 3, 15, 3.75, 6, 0.3],
  ['claude-3-5-sonnet', 200 * K, 8192, 1024, 3, 15, 3.75, 6, 0.3],
  ['claude-3-5-haiku', 200 * K, 8192, 2048, 0.8, 4, 1, 1.6, 0.08],
  ['claude-3-opus', 200 * K, 4096, 1024, 15, 75, 18.75, 30, 1.5],
  ['claude-3-haiku', 200 * K, 4096, 2048, 0.25, 1.25, 0.3, 0.5, 0.03],
  ['gpt-6.1-sol', 1050 * K, 128 * K, 1024, 2, 10, 2.5, null, 0.1],
  ['gpt-6-astra', 1050 * K, 128 * K, 1024, 10, 50, 12.5, null, 1],
  ['gpt-5.6-luna', 1050 * K, 128 * K, 1024, 0.2, 1.2, 0.25, null, 0.02],
  ['gpt-5.4', 1050 * K, 128 * K, 1024, 2.5, 15, 2.5, 2.5, 0.25],
  ['gpt-5.2', 400 * K, 128 * K, 1024, 1.75, 14, 1.75, 1.75, 0.175],
  ['gemini-4-argon', 1048576, 32768, 4096, 2, 10, 2, null, 0.1],
  ['gemini-2.5-flash', 1048576, 65536, 2048, 0.3, 2.5, 0.3, null, 0.03],
]

describe('published figures', () => {
  it.each(PUBLISHED.map((line) => [line[0], line] as const))('%s', (_, [id, ...figures]) => {
    const { window, maxOutput, cache, prices } = model(id)
    const { input, output, writeShort, writeLong, cacheRead } = prices
    expect([window, maxOutput, cache.minimum, input, output, writeShort, writeLong, cacheRead]).toEqual(
      figures,
    )
  })

  it('covers every Claude of the catalogue', () => {
    const claudes = models.filter(({ vendor }) => vendor === 'anthropic').map(({ id }) => id)
    expect(claudes.toSorted()).toEqual(
      PUBLISHED.map(([id]) => id)
        .filter((id) => id.startsWith('claude'))
        .toSorted(),
    )
  })

  it.each([
    [
      'claude-haiku-5-5',
      100_000,
      { input: 0.5, cacheRead: 0.05, writeShort: 0.625, writeLong: 1, output: 2.5 },
    ],
    [
      'claude-sonnet-4-5',
      200_000,
      { input: 6, cacheRead: 0.6, writeShort: 7.5, writeLong: 12, output: 22.5 },
    ],
    ['gpt-6.1-sol', 272_000, { input: 4, cacheRead: 0.2, writeShort: 5, writeLong: null, output: 15 }],
    ['gpt-5.4', 272_000, { input: 5, cacheRead: 0.5, writeShort: 5, writeLong: 5, output: 22.5 }],
    [
      'gemini-2.5-pro',
      200_000,
      { input: 2.5, cacheRead: 0.25, writeShort: 2.5, writeLong: null, output: 15 },
    ],
  ])('%s has another price over %i tokens', (id, above, rates) => {
    expect(model(id).prices.tiers).toEqual([{ above, ...rates }])
  })

  it('writes cost 1.25 and 2 times the input on every Claude but Haiku 3', () => {
    const others = models
      .filter(({ vendor, prices }) => vendor === 'anthropic' && prices.input !== null)
      .filter(
        ({ prices }) =>
          ratio(prices.writeShort, prices.input) !== 1.25 || ratio(prices.writeLong, prices.input) !== 2,
      )
    expect(others.map(({ id }) => id)).toEqual(['claude-3-haiku'])
  })
})

function ratio(a: number | null, b: number | null): number {
  return Math.round(((a ?? NaN) / (b ?? NaN)) * 1e6) / 1e6
}

describe('thinking', () => {
  it.each([
    ['claude-fable-5-1', ['adaptive'], 'prefix', true],
    ['claude-mythos-5-1', ['adaptive'], 'model', true],
    ['claude-fable-5', ['adaptive'], 'none', true],
    ['claude-opus-5-5', ['adaptive'], 'prefix', true],
    ['claude-opus-5', ['adaptive', 'disabled'], 'none', true],
    ['claude-opus-4-7', ['adaptive', 'disabled'], 'none', true],
    ['claude-opus-4-6', ['adaptive', 'enabled', 'disabled'], 'none', true],
    ['claude-opus-4-5', ['enabled', 'disabled'], 'none', true],
    ['claude-sonnet-5-5', ['adaptive', 'between_tools'], 'prefix', true],
    ['claude-sonnet-4-6', ['adaptive', 'enabled', 'disabled'], 'none', true],
    ['claude-sonnet-4-5', ['enabled', 'disabled'], 'none', false],
    ['claude-haiku-5-5', ['adaptive', 'disabled'], 'prefix', true],
    ['claude-haiku-4-5', ['enabled', 'disabled'], 'none', false],
    ['claude-opus-4-1', ['enabled', 'disabled'], 'none', false],
    ['claude-3-5-sonnet', [], 'none', false],
  ])('%s: modes, what it is bound to, whether old thinking stays', (id, modes, binding, keepsPrior) => {
    expect(model(id).thinking).toMatchObject({ modes, binding, keepsPrior })
  })

  it('no call can be forced on the models that refuse it', () => {
    const refusing = models.filter(({ capabilities }) => capabilities.forcedToolChoice === false)
    expect(refusing.map(({ id }) => id)).toEqual([
      'claude-fable-5-2',
      'claude-fable-5-1',
      'claude-mythos-5-1',
      'claude-opus-5-5',
      'claude-sonnet-5-5',
    ])
  })

  it('the tokenizer changed with 4.7', () => {
    const older = models.filter(({ tokenizer }) => tokenizer === 'claude-to-4.6').map(({ id }) => id)
    expect(older).toContain('claude-opus-4-6')
    expect(older).not.toContain('claude-opus-4-7')
    expect(models.filter(({ tokenizer }) => tokenizer === null)).toEqual([])
  })
})

describe('every entry', () => {
  it('has names of its own', () => {
    const names = models.flatMap(({ id, aliases }) => [id, ...aliases])
    expect(new Set(names).size).toBe(names.length)
  })

  it.each(models.map((entry) => [entry.id, entry] as const))(
    '%s is plain JSON, dated and sourced',
    (_, entry) => {
      expect(JSON.parse(JSON.stringify(entry))).toEqual(entry)
      expect(entry.asOf).toMatch(/^20\d\d-\d\d-\d\d$/)
      expect(entry.source.length).toBeGreaterThan(10)
      expect(zeroPrices(entry)).toEqual([])
      expect(entry.doubts.filter(({ field }) => valueAt(entry, field) == null)).toEqual([])
      expect(entry.maxInput ?? 0).toBeLessThanOrEqual(entry.window ?? Number.POSITIVE_INFINITY)
    },
  )
})

function zeroPrices({ prices }: ModelEntry): readonly string[] {
  return Object.entries(prices)
    .filter(([, rate]) => rate === 0)
    .map(([kind]) => kind)
}

function valueAt(entry: object, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => Reflect.get(Object(value), key), entry)
}

it('gives a name that two models claim to the later one', () => {
  const [one, other] = [model('gpt-5'), model('gpt-5.1')]
  const catalogue = createCatalogue([one, { ...other, aliases: ['gpt-5'] }])
  expect(catalogue.byName.get('gpt-5')?.id).toBe('gpt-5.1')
})

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
    expect(find(spelt).nameParts).toMatchObject({ wantsLongWindow: false, ...spelling })
  })
})

describe('an unknown model stays unknown', () => {
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

  it('lists the names that were tried', () => {
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
        'no model in the catalogue is called "us.anthropic.claude-opus-9-20270101-v1:0": give its figures with withModels',
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
  it('a larger window, if the model had one', () => {
    const { model, notes } = find('claude-sonnet-4-5-20250929[1m]')
    expect([model.window, model.maxInput, notes]).toEqual([
      1_000_000,
      1_000_000,
      ['[1m]: a window of 1000000'],
    ])
    expect(find('claude-sonnet-4-5-20250929').model.window).toBe(200_000)
  })

  it('a window that is not known: noted, and not used', () => {
    const { model, notes } = find('claude-opus-4-5[1m]')
    expect(model.window).toBe(200_000)
    expect(notes).toEqual(['[1m]: no window larger than 200000 is known of claude-opus-4-5'])
  })

  it('the prices of a regional endpoint, steps and past ones too', () => {
    const { model, notes } = find('eu.anthropic.claude-haiku-5-5')
    expect(model.prices).toMatchObject({
      input: 0.11,
      cacheRead: 0.011,
      writeShort: 0.1375,
      writeLong: 0.22,
      output: 0.55,
      tiers: [
        { above: 100_000, input: 0.55, cacheRead: 0.055, writeShort: 0.6875, writeLong: 1.1, output: 2.75 },
      ],
    })
    expect(notes).toContain('prices are 1.1 times the global ones: the endpoint is tied to "eu"')
    expect(pricesAtDate(find('us.anthropic.claude-opus-4-6-v1').model, '2026-02-10').tiers?.[0]?.input).toBe(
      11,
    )
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
    expect(pricesAtDate(find('claude-opus-4-6').model, day).tiers?.[0]?.input).toBe(above200k)
  })

  it('of a model whose price never changed are billed at that', () => {
    const { model } = find('claude-opus-4-5')
    expect(pricesAtDate(model, '2025-12-01')).toBe(model.prices)
  })
})
