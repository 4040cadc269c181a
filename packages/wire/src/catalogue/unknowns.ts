/** What is not known, said: every null of the catalogue, by model and field. */
import type { Catalogue } from './catalogue.ts'
import type { ModelEntry } from './model-entry.ts'
import { TOKENIZER_FAMILIES } from './tokenizers.ts'

export interface Unknown {
  /** A model, or `tokenizer` and its family. */
  readonly model: string
  /** Path of the field, as in `prices.tiers.0.write1h`. */
  readonly field: string
}

/** In the order of the catalogue; tokenizers whose weights were not fitted to sessions come last. */
export function knownUnknowns(catalogue: Catalogue): readonly Unknown[] {
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
