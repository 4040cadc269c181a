/** The models that are known, and every name they go by. */
import { ANTHROPIC_MODELS } from './anthropic-models.ts'
import { ANTHROPIC_OLDER_MODELS } from './anthropic-older-models.ts'
import { GOOGLE_MODELS } from './google-models.ts'
import type { ModelEntry } from './model-entry.ts'
import { OPENAI_MODELS } from './openai-models.ts'

export interface Catalogue {
  readonly models: readonly ModelEntry[]
  /** Ids and aliases. */
  readonly byName: ReadonlyMap<string, ModelEntry>
}

/** Where two models claim a name, the later one has it. */
export function catalogueOf(models: readonly ModelEntry[]): Catalogue {
  const names = models.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model] as const))
  return { models, byName: new Map(names) }
}

/** What this version of Tidemark was shipped with. `withModels` lays a user's own figures over it. */
export const modelCatalogue: Catalogue = catalogueOf([
  ...ANTHROPIC_MODELS,
  ...ANTHROPIC_OLDER_MODELS,
  ...OPENAI_MODELS,
  ...GOOGLE_MODELS,
])
