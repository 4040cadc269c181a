/**
 * The models the simulator offers: limits, cache minimum, thinking modes and how thinking is bound. The figures
 * come from the catalogue of `@tidemark/wire`. Where it has none the simulator uses a default, which the
 * `models` option can override.
 */
import type { ModelPrices } from '@tidemark/core'
import { type ModelEntry, modelCatalogue, type ThinkingMode } from '@tidemark/wire'

export type Effort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'
export type CacheLevel = 'tools' | 'system' | 'messages'

export interface SimulatedModel {
  readonly id: string
  readonly aliases?: readonly string[]
  readonly displayName: string
  /** ISO date, for `GET /v1/models`. */
  readonly createdAt: string
  readonly window: number
  readonly maxOutput: number
  /** Prefixes with fewer tokens are not cached. */
  readonly cacheMinimum: number
  readonly thinking: readonly ThinkingMode[]
  /** The mode of a request without `thinking`. */
  readonly thinkingDefault: 'adaptive' | 'disabled'
  /** Highest effort at which `disabled` and `between_tools` are accepted; without it there is no limit. */
  readonly leastUpTo?: Effort
  readonly displayDefault: 'summarized' | 'omitted'
  readonly defaultEffort: Effort
  /** What a thinking block is checked against when it is sent back. */
  readonly binding: 'none' | 'model' | 'prefix'
  /** Thinking that was created for another organisation is dropped. */
  readonly accountBound: boolean
  /** The only other models that can read its thinking. Default: all models. */
  readonly readers?: readonly string[]
  /** Models whose thinking this model cannot read although others can. */
  readonly cannotRead?: readonly string[]
  /** Thinking of earlier turns stays in the prompt. Otherwise a new user prompt removes it. */
  readonly keepsThinking: boolean
  /** First level of the prompt at which thinking and effort settings are part of the cache key. */
  readonly settingsLevel: CacheLevel
  readonly prefill: boolean
  readonly forcedToolChoice: boolean
  readonly systemMessages: boolean
  readonly toolChanges: boolean
  readonly messageEffort: boolean
  /** Accepts `temperature`, `top_p` and `top_k`. */
  readonly sampling: boolean
  readonly contextEditing: boolean
  readonly compaction: boolean
  readonly maxImages: number
  /** If input plus `max_tokens` exceeds the window: refuse the request, or stop the output at the window. */
  readonly overflow: 'error' | 'stop'
  readonly prices: ModelPrices | null
}

/** The simulated model for an entry of the catalogue, unknown figures replaced by defaults. */
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
  return value !== undefined && ['low', 'medium', 'high', 'xhigh', 'max'].includes(value)
}

/** Whether `reader` accepts thinking that `author` created. */
export function canReadThinking(reader: SimulatedModel, author: SimulatedModel): boolean {
  if (reader.id === author.id) return true
  if (reader.cannotRead?.includes(author.id)) return false
  return author.readers?.includes(reader.id) ?? true
}

export interface ModelTable {
  /** In the order of `GET /v1/models`. */
  readonly all: readonly SimulatedModel[]
  /** By id, alias, dated id or `-latest` id. */
  find(name: string): SimulatedModel | undefined
}

/** Anthropic's models from the catalogue, then `own`, which replace models of the same id. `window` overrides all windows. */
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

// Facts that the catalogue does not have: display names, release dates, and which model reads whose thinking.

/** `claude-opus-5-5` → `Claude Opus 5.5`. */
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

/** The models that read a model's thinking besides itself. A model that is not listed is read by all. */
const THINKING_READERS: Readonly<Record<string, readonly string[]>> = {
  'claude-fable-5-2': NEWER_FABLES,
  'claude-mythos-5-2': NEWER_FABLES,
  'claude-fable-5-1': FABLES,
  'claude-mythos-5-1': FABLES,
  'claude-opus-5-5': FABLES,
  'claude-sonnet-5-5': [],
  'claude-haiku-5-5': [],
}
