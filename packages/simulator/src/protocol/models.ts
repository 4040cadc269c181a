/**
 * The models the simulator plays: limits, cache minimum, which thinking they take and how it is bound. The
 * figures are the catalogue's; where the catalogue does not know, the simulator must still choose, and the
 * choice can be overridden.
 */
import type { Prices } from '@tidemark/core'
import { type ModelEntry, modelCatalogue, type ThinkingMode } from '@tidemark/wire'

export type Effort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'
export type Level = 'tools' | 'system' | 'messages'

export interface SimulatedModel {
  readonly id: string
  readonly aliases?: readonly string[]
  readonly displayName: string
  /** ISO date, for `GET /v1/models`. */
  readonly createdAt: string
  readonly window: number
  readonly maxOutput: number
  /** Prefixes shorter than this are not cached. */
  readonly cacheMinimum: number
  readonly thinking: readonly ThinkingMode[]
  /** What a request without `thinking` gets. */
  readonly thinkingDefault: 'adaptive' | 'disabled'
  /** The highest effort at which the least of the modes is accepted, where there is such a limit. */
  readonly leastUpTo?: Effort
  readonly displayDefault: 'summarized' | 'omitted'
  readonly defaultEffort: Effort
  /** What a thinking block sent back is checked against. */
  readonly binding: 'none' | 'model' | 'prefix'
  /** Thinking sent by another organisation is dropped. */
  readonly accountBound: boolean
  /** The only other models that can read its thinking; left out: any can. */
  readonly readers?: readonly string[]
  /** Models whose thinking it cannot read although others can. */
  readonly cannotRead?: readonly string[]
  /** Thinking of earlier turns stays in the prompt; otherwise a new prompt of the person strips it. */
  readonly keepsThinking: boolean
  /** From which level on thinking and effort settings are part of the cache key. */
  readonly settingsLevel: Level
  readonly prefill: boolean
  readonly forcedToolChoice: boolean
  readonly systemMessages: boolean
  readonly toolChanges: boolean
  readonly messageEffort: boolean
  /** `temperature` and its like. */
  readonly sampling: boolean
  readonly contextEditing: boolean
  readonly compaction: boolean
  readonly maxImages: number
  /** Input and `max_tokens` together over the window: an error, or a stop when it is reached. */
  readonly overflow: 'error' | 'stop'
  readonly prices: Prices | null
}

/** A model of the catalogue as the simulator plays it. */
export function simulatedModel(entry: ModelEntry): SimulatedModel {
  const { thinking, capabilities, cache, limits } = entry
  const modes = thinking.modes ?? []
  const always = modes.length > 0 && !modes.includes('disabled')
  const readers = readersOf(entry.id)
  const cannotRead = unreadableFor(entry.id)
  return {
    id: entry.id,
    aliases: entry.aliases,
    displayName: displayName(entry.id),
    createdAt: releasedOn(entry.id),
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
    ...(cannotRead === undefined ? {} : { cannotRead }),
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

/** Whether `reader` can use thinking that `author` wrote. */
export function canRead(reader: SimulatedModel, author: SimulatedModel): boolean {
  if (reader.id === author.id) return true
  if (reader.cannotRead?.includes(author.id)) return false
  return author.readers?.includes(reader.id) ?? true
}

export interface ModelTable {
  /** Each once, in the order they are listed to clients. */
  readonly all: readonly SimulatedModel[]
  /** By id, alias or dated id. */
  find(name: string): SimulatedModel | undefined
}

/** The catalogue's models of this vendor, then the caller's, which replace those of the same id. */
export function modelTable(own: readonly SimulatedModel[] = [], window?: number): ModelTable {
  const byId = new Map<string, SimulatedModel>()
  const built = modelCatalogue.models.filter((entry) => entry.vendor === 'anthropic').map(simulatedModel)
  for (const model of [...built, ...own])
    byId.set(model.id, window === undefined ? model : { ...model, window })
  const byName = new Map<string, SimulatedModel>()
  for (const model of byId.values())
    for (const name of [model.id, ...(model.aliases ?? [])]) byName.set(name, model)
  return {
    all: [...byId.values()],
    find: (name) => byName.get(name) ?? byName.get(canonicalName(name)),
  }
}

// What the simulator needs to know of a model and no catalogue has: names for people, dates, who reads whom.

/** An id without the date at its end, or the `-latest` that stood for one. */
export function canonicalName(id: string): string {
  return id.replace(/-(\d{8}|latest)$/, '')
}

/** `claude-opus-5-5` → `Claude Opus 5.5`. */
export function displayName(id: string): string {
  const words = id.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return words.join(' ').replace(/(\d+) (\d+)/, '$1.$2')
}

const RELEASED: Readonly<Record<string, string>> = {
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

export function releasedOn(id: string): string {
  return `${RELEASED[id] ?? '2026-01-01'}T00:00:00Z`
}

const NEWER_FABLES: readonly string[] = ['claude-fable-5-2', 'claude-mythos-5-2']
const FABLES: readonly string[] = ['claude-fable-5-1', 'claude-mythos-5-1', ...NEWER_FABLES]

/** Each model reads its own thinking; what the newest write is read by a few others at most. */
const READERS: Readonly<Record<string, readonly string[]>> = {
  'claude-fable-5-2': NEWER_FABLES,
  'claude-mythos-5-2': NEWER_FABLES,
  'claude-fable-5-1': FABLES,
  'claude-mythos-5-1': FABLES,
  'claude-opus-5-5': FABLES,
  'claude-sonnet-5-5': [],
  'claude-haiku-5-5': [],
}

export function readersOf(id: string): readonly string[] | undefined {
  return READERS[id]
}

export function unreadableFor(id: string): readonly string[] | undefined {
  return id === 'claude-opus-5-5' ? ['claude-fable-5', 'claude-mythos-5'] : undefined
}
