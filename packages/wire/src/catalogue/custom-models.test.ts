import { describe, expect, it } from 'vitest'
import { type Catalogue, lookUpModel, modelCatalogue, pricesAtDate } from './catalogue.ts'
import { UNKNOWN_MODEL, withModels } from './custom-models.ts'
import type { ModelEntry } from './model-entry.ts'

function given(file: unknown): Catalogue {
  const outcome = withModels(modelCatalogue, JSON.parse(JSON.stringify(file)))
  if (!outcome.ok)
    throw new Error(outcome.problems.map(({ path, message }) => `${path}: ${message}`).join('\n'))
  return outcome.catalogue
}

function model(catalogue: Catalogue, id: string): ModelEntry {
  const looked = lookUpModel(catalogue, id)
  if (!looked.found) throw new Error(looked.reason)
  return looked.model
}

function problems(file: unknown): readonly string[] {
  const outcome = withModels(modelCatalogue, file)
  return outcome.ok ? [] : outcome.problems.map(({ path, message }) => `${path}: ${message}`)
}

describe('a correction', () => {
  const file = { asOf: '2026-11-20', models: { 'claude-sonnet-5-5': { prices: { cacheRead: 0.2 } } } }

  it('changes what it names and nothing else, and settles its doubt', () => {
    const before = model(modelCatalogue, 'claude-sonnet-5-5')
    expect(model(given(file), 'anthropic/claude-sonnet-5-5')).toEqual({
      ...before,
      prices: { ...before.prices, cacheRead: 0.2 },
      doubts: [],
      source: `given by the user, over: ${before.source}`,
      asOf: '2026-11-20',
    })
  })

  it('keeps doubts about what it does not name', () => {
    const changed = given({ models: { 'claude-sonnet-5-5': { window: 500_000 } } })
    expect(model(changed, 'claude-sonnet-5-5').doubts).toHaveLength(1)
  })

  it('leaves the catalogue it is laid over as it was', () => {
    const snapshot = JSON.stringify(modelCatalogue.models)
    given(file)
    expect(JSON.stringify(modelCatalogue.models)).toBe(snapshot)
    expect(given(file).models).toHaveLength(modelCatalogue.models.length)
  })

  it('can be made by an alias', () => {
    const changed = given({ models: { 'gpt-5-codex': { window: 300_000 } } })
    expect(model(changed, 'gpt-5')).toMatchObject({ id: 'gpt-5', window: 300_000, maxInput: 300_000 })
  })

  it('can take a figure back', () => {
    expect(model(given({ models: { 'gpt-5': { window: null } } }), 'gpt-5').window).toBeNull()
  })

  it('of prices holds on every day, also where the list had other prices in the past', () => {
    const day = '2026-01-15'
    const before = model(modelCatalogue, 'claude-opus-4-6')
    expect(pricesAtDate(before, day).tiers).toHaveLength(1)
    const priced = given({ models: { 'claude-opus-4-6': { prices: { cacheRead: 0 } } } })
    expect(pricesAtDate(model(priced, 'claude-opus-4-6'), day)).toEqual({ ...before.prices, cacheRead: 0 })
    const widened = given({ models: { 'claude-opus-4-6': { window: 500_000 } } })
    expect(pricesAtDate(model(widened, 'claude-opus-4-6'), day)).toEqual(pricesAtDate(before, day))
  })

  it('replaces lists and tables whole', () => {
    const factors = { speed: { fast: 3 } }
    const changed = given({ models: { 'claude-opus-5': { prices: { factors } } } })
    expect(model(changed, 'claude-opus-5').prices.factors).toEqual(factors)
  })
})

describe('a new model', () => {
  it('starts from nothing known', () => {
    const changed = given({
      source: 'measured here',
      models: { 'qwen3-32b': { window: 32_768, maxOutput: 8_192 } },
    })
    expect(model(changed, 'qwen3-32b')).toEqual({
      ...UNKNOWN_MODEL,
      id: 'qwen3-32b',
      window: 32_768,
      maxInput: 32_768,
      maxOutput: 8_192,
      source: 'measured here',
    })
  })

  it('starts from the model it is like, without its names', () => {
    const changed = given({
      models: {
        'my-gateway/best': { like: 'anthropic/claude-opus-4.5', aliases: ['best'], limits: { images: 20 } },
      },
    })
    const base = model(modelCatalogue, 'claude-opus-4-5')
    expect(model(changed, 'best')).toMatchObject({
      id: 'my-gateway/best',
      aliases: ['best'],
      prices: base.prices,
      limits: { ...base.limits, images: 20 },
    })
    expect(model(changed, 'claude-opus-4-5')).toEqual(base)
  })

  it('starts from the one its spelling names, so that one endpoint can have its own price', () => {
    const id = 'us.anthropic.claude-opus-4-5-20251101-v1:0'
    const changed = given({ models: { [id]: { prices: { input: 4 } } } })
    expect(model(changed, id)).toMatchObject({ id, window: 200_000, prices: { input: 4, output: 27.5 } })
    expect(model(changed, 'claude-opus-4-5').prices.input).toBe(5)
  })

  it('does not take the other names of the model it is like', () => {
    const changed = given({ models: { mine: { like: 'gpt-5' } } })
    expect(model(changed, 'mine').aliases).toEqual([])
    expect(model(changed, 'gpt-5-codex').id).toBe('gpt-5')
  })

  it('may be like one given before it', () => {
    const changed = given({ models: { a: { window: 1_000 }, b: { like: 'a', maxOutput: 100 } } })
    expect(model(changed, 'b')).toMatchObject({ window: 1_000, maxOutput: 100 })
  })

  it('may cost nothing: a price of 0 is a price', () => {
    const prices = { input: 0, cacheRead: 0, writeShort: 0, writeLong: 0, output: 0 }
    expect(model(given({ models: { local: { prices } } }), 'local').prices).toEqual(prices)
  })
})

describe('all problems are reported at once', () => {
  it.each<[string, unknown, readonly string[]]>([
    ['no file', null, ['models: expected an object with a model id for each key; got nothing']],
    ['a list', { models: [] }, ['models: expected an object with a model id for each key; got []']],
    [
      'a model that is none',
      { models: { a: 3 } },
      ['models.a: expected an object with the fields of a model; got 3'],
    ],
    [
      'several wrong figures',
      {
        asOf: 'today',
        models: { a: { window: 0, prices: { input: -1 }, thinking: 'on' }, b: { maxOutput: 1.5 } },
      },
      [
        'asOf: expected a day as YYYY-MM-DD; got "today"',
        'models.a.window: expected a whole number of 1 or more, or null if it is not known; got 0',
        'models.a.prices.input: expected dollars per million tokens, 0 or more, or null if it is not known; got -1',
        'models.a.thinking: expected an object with any of modes, leastUpTo, efforts, binding, isOnByDefault, keepsPrior, isAccountBound; got "on"',
        'models.b.maxOutput: expected a whole number of 1 or more, or null if it is not known; got 1.5',
      ],
    ],
    [
      'a field nobody knows',
      { models: { a: { limits: { bytes: 1 } } } },
      ['models.a.limits.bytes: no such field; the fields are bodyBytes, images'],
    ],
    [
      'a price step with a rate missing',
      { models: { a: { prices: { tiers: [{ above: 1, input: 1 }] } } } },
      [
        'models.a.prices.tiers: expected a list, each item an object with above, input, cacheRead, writeShort, writeLong, output; got [{"above":1,"input":1}]',
      ],
    ],
    [
      'one like nobody',
      { models: { a: { like: 'claude-opus-9' } } },
      ['models.a.like: expected the name of a model in the catalogue; got "claude-opus-9"'],
    ],
    [
      'a name that is taken',
      { models: { a: { aliases: ['claude-opus-5'] } } },
      ['models.a.aliases: "claude-opus-5" is already a name of claude-opus-5'],
    ],
    [
      'new rates beside old price steps',
      { models: { 'claude-haiku-5-5': { prices: { input: 0.2 } } } },
      [
        'models.claude-haiku-5-5.prices: has other prices over 100000 tokens: give prices.tiers too, [] for none',
      ],
    ],
    [
      'a prototype for a field',
      JSON.parse('{"models":{"a":{"__proto__":{}}}}'),
      [expect.stringMatching(/^models\.a\.__proto__: no such field/)],
    ],
  ])('%s', (_, file, expected) => {
    expect(problems(file)).toEqual(expected)
  })

  it('and nothing is changed by half', () => {
    expect(problems({ models: { good: { window: 1 }, bad: { window: 0 } } })).toHaveLength(1)
  })

  it('new rates may stand with new steps, or with none', () => {
    expect(problems({ models: { 'claude-haiku-5-5': { prices: { input: 0.2, tiers: [] } } } })).toEqual([])
  })
})

it('prices in a file may have the names of earlier versions, also in tiers', () => {
  const rates = { input: 1, cacheRead: 0.1, write5m: 1.25, write1h: 2, output: 5 }
  const { prices } = model(
    given({ models: { mine: { prices: { ...rates, tiers: [{ above: 9, ...rates }] } } } }),
    'mine',
  )
  const present = { input: 1, cacheRead: 0.1, writeShort: 1.25, writeLong: 2, output: 5 }
  expect(prices).toEqual({ ...present, tiers: [{ above: 9, ...present }] })
})
