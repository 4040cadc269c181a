/**
 * The models that the simulator offers: limits, cache minimum, thinking modes and thinking binding. The figures come
 * from the catalogue of `@tidemark/wire`; a missing figure has a default, which the `models` option can override.
 */
import type { ModelPrices } from '@tidemark/core/cost/prices'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import type { ModelEntry, ThinkingMode } from '@tidemark/wire/catalogue/model-entry'

/** The levels of effort, from low to high. */
export const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const

type Effort = (typeof EFFORTS)[number]
/** A part of the prompt, in the order of the cache: a change invalidates its own level and the later ones. */
export type CacheLevel = 'tools' | 'system' | 'messages'

export interface SimulatedModel {
  readonly id: string
  readonly aliases?: readonly string[]
  readonly displayName: string
  /** Release date in ISO format, for `GET /v1/models`. */
  readonly createdAt: string
  readonly window: number
  readonly maxOutput: number
  /** Minimum size of a cached prefix in tokens. Shorter prefixes are not cached. */
  readonly cacheMinimum: number
  readonly thinking: readonly ThinkingMode[]
  /** Thinking mode of a request that does not set `thinking`. */
  readonly thinkingDefault: 'adaptive' | 'disabled'
  /**
   * Highest effort that can be combined with the thinking modes `disabled` and `between_tools`; undefined if every
   * effort can.
   */
  readonly leastUpTo?: Effort
  readonly displayDefault: 'summarized' | 'omitted'
  readonly defaultEffort: Effort
  /**
   * What must match when a client sends thinking back to this model: nothing, the model, or also everything before
   * the thinking block.
   */
  readonly binding: 'none' | 'model' | 'prefix'
  /** True if this model drops thinking that was created for another organization. */
  readonly accountBound: boolean
  /** Ids of the other models that can read this model's thinking. Default: all models. */
  readonly readers?: readonly string[]
  /** Ids of the models whose thinking this model cannot read. */
  readonly cannotRead?: readonly string[]
  /** True if thinking of earlier turns stays in the prompt. Otherwise a new user prompt removes it. */
  readonly keepsThinking: boolean
  /**
   * Cache level at which thinking and effort are part of the cache key. Changing them invalidates cached prefixes of
   * this level and of later levels.
   */
  readonly settingsLevel: CacheLevel
  readonly prefill: boolean
  readonly forcedToolChoice: boolean
  readonly systemMessages: boolean
  readonly toolChanges: boolean
  readonly messageEffort: boolean
  /** True if the model accepts `temperature`, `top_p` and `top_k`. */
  readonly sampling: boolean
  readonly contextEditing: boolean
  readonly compaction: boolean
  readonly maxImages: number
  /**
   * What happens if prompt tokens plus `max_tokens` exceed the context window. `error` rejects the request; `stop`
   * ends the output when the window is full.
   */
  readonly overflow: 'error' | 'stop'
  readonly prices: ModelPrices | null
}

/** Creates a simulated model from an entry of the model catalogue. Unknown figures get defaults. */
function toSimulatedModel(entry: ModelEntry): SimulatedModel {
  const { thinking, capabilities, cache, limits } = entry
  const modes = thinking.modes ?? []
  const always = modes.length > 0 && !modes.includes('disabled')
  const readers = THINKING_READERS[entry.id]
  return {
    id: entry.id,
    aliases: entry.aliases,
    displayName: formatModelName(entry.id),
    createdAt: `${RELEASE_DATES[entry.id] ?? '2026-01-01'}T00:00:00Z`,
    window: entry.window ?? 200_000,
    maxOutput: entry.maxOutput ?? 64_000,
    cacheMinimum: cache.minimum ?? 512,
    thinking: modes,
    thinkingDefault: (thinking.isOnByDefault ?? always) ? 'adaptive' : 'disabled',
    ...(isEffort(thinking.leastUpTo) ? { leastUpTo: thinking.leastUpTo } : {}),
    displayDefault: modes.includes('enabled') ? 'summarized' : 'omitted',
    defaultEffort: entry.id === 'claude-opus-5-5' ? 'medium' : 'high',
    binding: thinking.binding ?? 'prefix',
    accountBound: thinking.isAccountBound ?? false,
    ...(readers === undefined ? {} : { readers }),
    ...(entry.id === 'claude-opus-5-5' ? { cannotRead: ['claude-fable-5', 'claude-mythos-5'] } : {}),
    keepsThinking: thinking.keepsPrior ?? true,
    settingsLevel: 'messages',
    prefill: capabilities.prefill ?? false,
    forcedToolChoice: capabilities.forcedToolChoice ?? true,
    systemMessages: capabilities.systemMessages ?? true,
    toolChanges: capabilities.toolChanges ?? true,
    messageEffort: capabilities.messageEffort ?? true,
    sampling: capabilities.sampling ?? false,
    contextEditing: capabilities.contextEditing ?? true,
    compaction: capabilities.onDemandCompaction ?? true,
    maxImages: limits.images ?? 600,
    overflow: capabilities.endsAtWindow === false ? 'error' : 'stop',
    prices: entry.prices,
  }
}

function isEffort(value: string | undefined): value is Effort {
  return EFFORTS.some((effort) => effort === value)
}

/** Checks whether the model `reader` accepts thinking that the model `author` created. */
export function canReadThinking(reader: SimulatedModel, author: SimulatedModel): boolean {
  if (reader.id === author.id) return true
  if (reader.cannotRead?.includes(author.id)) return false
  return author.readers?.includes(reader.id) ?? true
}

export interface ModelTable {
  /** All models, in the order of `GET /v1/models`. */
  readonly all: readonly SimulatedModel[]
  /** Finds a model by id, alias, dated id or `-latest` id. */
  find(name: string): SimulatedModel | undefined
}

/**
 * Creates a table of Anthropic's models from the model catalogue. `own` adds models, or replaces models with the same
 * id. `window` overrides the context window of every model, in tokens.
 */
export function createModelTable(own: readonly SimulatedModel[] = [], window?: number): ModelTable {
  const byId = new Map<string, SimulatedModel>()
  const built = modelCatalogue.models.filter((entry) => entry.vendor === 'anthropic').map(toSimulatedModel)
  for (const model of [...built, ...own])
    byId.set(model.id, window === undefined ? model : { ...model, window })
  const byName = new Map<string, SimulatedModel>()
  for (const model of byId.values())
    for (const name of [model.id, ...(model.aliases ?? [])]) byName.set(name, model)
  return {
    all: [...byId.values()],
    find: (name) => byName.get(name) ?? byName.get(name.replace(/-(\d{8}|latest)$/, '')),
  }
}

// Facts about models that are not in the model catalogue: display names, release dates, and which models can read a
// model's thinking.

/** Returns the display name of a model id: `claude-opus-5-5` becomes `Claude Opus 5.5`. */
function formatModelName(id: string): string {
  const words = id.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return words.join(' ').replace(/(\d+) (\d+)/, '$1.$2')
}

const RELEASE_DATES: Readonly<Record<string, string>> = {
  'claude-fable-5-2': '2026-11-09',
  'claude-mythos-5-2': '2026-11-09',
  'claude-haiku-5-5': '2026-10-07',
  'claude-sonnet-5-5': '2026-09-28',
  'claude-opus-5-5': '2026-09-21',
  'claude-fable-5-1': '2026-09-01',
  'claude-mythos-5-1': '2026-09-01',
  'claude-sonnet-5': '2026-06-29',
  'claude-opus-4-5': '2025-11-24',
  'claude-haiku-4-5': '2025-10-15',
  'claude-sonnet-4-5': '2025-09-29',
}

const NEWER_FABLES: readonly string[] = ['claude-fable-5-2', 'claude-mythos-5-2']
const FABLES: readonly string[] = ['claude-fable-5-1', 'claude-mythos-5-1', ...NEWER_FABLES]

/**
 * For each model id, the ids of the other models that can read its thinking. If a model is not listed, every model
 * can read its thinking.
 */
const THINKING_READERS: Readonly<Record<string, readonly string[]>> = {
  'claude-fable-5-2': NEWER_FABLES,
  'claude-mythos-5-2': NEWER_FABLES,
  'claude-fable-5-1': FABLES,
  'claude-mythos-5-1': FABLES,
  'claude-opus-5-5': FABLES,
  'claude-sonnet-5-5': [],
  'claude-haiku-5-5': [],
}
