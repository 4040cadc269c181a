import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Catalogue, catalogueOf, modelCatalogue } from './catalogue.ts'
import { UNKNOWN_MODEL, withModels } from './custom-models.ts'
import { type ModelEntry, TOKENIZER_FAMILIES } from './model-entry.ts'

const page = readFileSync(new URL('../../../../docs/catalogue.md', import.meta.url), 'utf8')

interface Unknown {
  /** A model, or `tokenizer` and its family. */
  readonly model: string
  /** Path of the field, as in `prices.tiers.0.write1h`. */
  readonly field: string
}

/** In the order of the catalogue; tokenizers whose weights were not fitted to sessions come last. */
function listUnknowns(catalogue: Catalogue): readonly Unknown[] {
  const models = catalogue.models.flatMap((model) => unknownsIn(model.id, factsOf(model)))
  const families = Object.entries(TOKENIZER_FAMILIES).filter(([, basis]) => basis !== 'fitted')
  return [
    ...models,
    ...families.map(([family]) => ({ model: `tokenizer ${family}`, field: 'fitted weights' })),
  ]
}

/** Without the day of a user's own figures: nobody has to say it. */
function factsOf({ asOf, ...facts }: ModelEntry): object {
  return facts
}

function unknownsIn(model: string, facts: object): readonly Unknown[] {
  return nullsIn(facts, '').map((field) => ({ model, field }))
}

function nullsIn(value: unknown, path: string): readonly string[] {
  if (value === null) return [path]
  if (typeof value !== 'object') return []
  return Object.entries(value).flatMap(([key, part]) => nullsIn(part, path === '' ? key : `${path}.${key}`))
}

/** The rows of the table under a heading, cell by cell, without its two head lines. */
function rowsUnder(heading: string): readonly (readonly string[])[] {
  const section = page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const lines = section.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  )
}

describe('what the catalogue does not know', () => {
  it('names every null, however deep, and nothing else', () => {
    const { prices, cache } = UNKNOWN_MODEL
    const entry = {
      ...UNKNOWN_MODEL,
      id: 'half-known',
      window: 1,
      maxInput: 1,
      maxOutput: 1,
      prices: {
        ...prices,
        input: 1,
        cacheRead: 1,
        write5m: 1,
        output: 0,
        tiers: [{ ...prices, above: 9, input: 2 }],
      },
      cache: { ...cache, minimum: 0, markers: 0, lookBack: 1 },
      thinking: {
        modes: [],
        isOnByDefault: false,
        efforts: [],
        keepsPrior: false,
        binding: null,
        isAccountBound: false,
      },
      capabilities: { ...UNKNOWN_MODEL.capabilities, images: false },
      limits: { bodyBytes: 1, images: 0 },
    } as const
    const fields = listUnknowns(catalogueOf([entry])).filter(({ model }) => model === 'half-known')
    expect(fields.map(({ field }) => field)).toEqual([
      'prices.write1h',
      'prices.tiers.0.cacheRead',
      'prices.tiers.0.write5m',
      'prices.tiers.0.write1h',
      'prices.tiers.0.output',
      'cache.ttls',
      'thinking.binding',
      'capabilities.forcedToolChoice',
      'capabilities.prefill',
      'capabilities.sampling',
      'capabilities.systemMessages',
      'capabilities.toolChanges',
      'capabilities.messageEffort',
      'capabilities.contextEditing',
      'capabilities.thresholdCompaction',
      'capabilities.onDemandCompaction',
      'capabilities.endsAtWindow',
      'tokenizer',
    ])
  })
})

describe('docs/catalogue.md', () => {
  it('lists what is not known, all of it and nothing else', () => {
    const listed = rowsUnder('What is not known').flatMap(([field, models]) =>
      (models ?? '').split(', ').map((model) => `${model}: ${field}`),
    )
    const unknown = listUnknowns(modelCatalogue).map(({ model, field }) => `${model}: ${field}`)
    expect(listed.toSorted()).toEqual(unknown.toSorted())
  })

  it('lists what is doubted', () => {
    const listed = rowsUnder('What is doubted').flatMap(([models, field, note]) =>
      (models ?? '').split(', ').map((model) => [model, field, note].join(' | ')),
    )
    const doubted = modelCatalogue.models.flatMap(({ id, doubts }) =>
      doubts.map(({ field, note }) => [id, field, note].join(' | ')),
    )
    expect(listed.toSorted()).toEqual(doubted.toSorted())
  })

  it('lists every model', () => {
    const listed = rowsUnder('Which models').flatMap(([, models]) => (models ?? '').split(', '))
    expect(listed).toEqual(modelCatalogue.models.map(({ id }) => id))
  })

  it('has an example of a file that is accepted as it stands', () => {
    const example = /```json\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
    expect(withModels(modelCatalogue, JSON.parse(example)).ok).toBe(true)
  })
})
