/**
 * The models that the simulator offers on OpenAI's APIs: limits, efforts, kind of prompt cache and prices. The figures
 * come from the catalogue of `@tidemark/wire`; a missing figure has a default.
 */
import type { ModelPrices } from '@tidemark/core/cost/prices'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import type { ModelEntry } from '@tidemark/wire/catalogue/model-entry'

export interface OpenaiModel {
  readonly id: string
  readonly aliases: readonly string[]
  readonly window: number
  /** Most tokens of a prompt. */
  readonly maxInput: number
  readonly maxOutput: number
  /** Levels of `reasoning.effort`; empty if the model does not reason. */
  readonly efforts: readonly string[]
  /** True if the model accepts `temperature` and `top_p`. */
  readonly hasSampling: boolean
  /** True if requests can set cache breakpoints (GPT-5.6 and later). Otherwise the cache is implicit. */
  readonly hasBreakpoints: boolean
  readonly prices: ModelPrices | null
}

export interface OpenaiModelTable {
  readonly all: readonly OpenaiModel[]
  /** Finds a model by id, alias or dated id. */
  find(name: string): OpenaiModel | undefined
}

function toOpenaiModel(entry: ModelEntry, window: number | undefined): OpenaiModel {
  const own = entry.window ?? 128_000
  return {
    id: entry.id,
    aliases: entry.aliases,
    window: window ?? own,
    maxInput: window ?? entry.maxInput ?? own,
    maxOutput: entry.maxOutput ?? 16_384,
    efforts: entry.thinking.efforts ?? [],
    hasSampling: entry.capabilities.sampling ?? false,
    hasBreakpoints: (entry.cache.markers ?? 0) > 0,
    prices: entry.prices,
  }
}

/** Creates a table of OpenAI's models from the model catalogue. `window` overrides the context window of every model. */
export function createOpenaiModelTable(window?: number): OpenaiModelTable {
  const all = modelCatalogue.models
    .filter((entry) => entry.vendor === 'openai')
    .map((entry) => toOpenaiModel(entry, window))
  const byName = new Map(all.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model])))
  return {
    all,
    find: (name) => byName.get(name) ?? byName.get(name.replace(/-\d{4}-\d{2}-\d{2}$|-latest$/, '')),
  }
}

/**
 * Creates a model that another server offers under any name: it has no prices and reports no efforts. `window` is its
 * context window.
 */
export function createUnlistedModel(id: string, window: number): OpenaiModel {
  return {
    id,
    aliases: [],
    window,
    maxInput: window,
    maxOutput: Math.min(window, 32_768),
    efforts: [],
    hasSampling: true,
    hasBreakpoints: false,
    prices: null,
  }
}
