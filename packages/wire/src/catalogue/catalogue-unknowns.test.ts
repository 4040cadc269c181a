import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Catalogue, modelCatalogue } from './catalogue.ts'
import { withModels } from './custom-models.ts'
import type { TokenizerFamily } from './model-entry.ts'

const page = readFileSync(new URL('../../../../docs/catalogue.md', import.meta.url), 'utf8')

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

/**
 * Where the weights of each tokenizer come from: fitted to recorded sessions, derived from published figures, or a
 * fixed rule.
 */
const WEIGHTS_FROM: Readonly<Record<TokenizerFamily, 'fitted' | 'derived' | 'fixed rule'>> = {
  'claude-to-4.6': 'fitted',
  'claude-from-4.7': 'derived',
  openai: 'derived',
  gemini: 'fixed rule',
}

/** Every null in the catalogue as `model: path of the field`, and the tokenizers whose weights are not fitted. */
function listUnknowns({ models }: Catalogue): readonly string[] {
  const families = Object.entries(WEIGHTS_FROM).filter(([, basis]) => basis !== 'fitted')
  return [
    // `asOf` is null for a user's own figures: it is no fact about the model.
    ...models.flatMap(({ asOf: _, ...facts }) =>
      findNulls(facts, '').map((field) => `${facts.id}: ${field}`),
    ),
    ...families.map(([family]) => `tokenizer ${family}: fitted weights`),
  ]
}

function findNulls(value: unknown, path: string): readonly string[] {
  if (value === null) return [path]
  if (typeof value !== 'object') return []
  return Object.entries(value ?? {}).flatMap(([key, part]) =>
    findNulls(part, path === '' ? key : `${path}.${key}`),
  )
}

describe('docs/catalogue.md', () => {
  it('lists what is not known, all of it and nothing else', () => {
    const listed = rowsUnder('What is not known').flatMap(([field, models]) =>
      (models ?? '').split(', ').map((model) => `${model}: ${field}`),
    )
    expect(listed.toSorted()).toEqual(listUnknowns(modelCatalogue).toSorted())
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
