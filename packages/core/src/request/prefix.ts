/**
 * Prefix snapshots (`epoch` records): system prompt, tools and parameters, frozen byte for byte. Changes enter the next
 * snapshot, which starts where the cache is lost anyway.
 */
import { type Block, isThinking, toBlocks } from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import type { KnownRecord, PrefixSnapshot, SnapshotSection, SnapshotTtl } from '../log/record.ts'
import type { BetaRule, ProviderProfile } from '../policy/provider-profile.ts'
import type { CurrentPrefix } from './announced-prefix.ts'
import { ATTRIBUTION_SECTION, IDENTITY_SECTION, joinSectionTexts } from './system-prompt.ts'

/** The prefix that the host wants now. */
export interface DesiredPrefix {
  readonly sections: readonly SnapshotSection[]
  readonly tools: readonly JsonObject[]
  readonly model: string
  /** All other request fields except messages: `max_tokens`, `thinking`, `betas` … */
  readonly parameters: JsonObject
  /** Lifetime of the markers, chosen for a snapshot that would start now. */
  readonly ttl?: SnapshotTtl
  readonly isUserTool?: UserToolPredicate
}

/**
 * The first snapshot of a session. The betas that adding tools later needs are named from the start: naming them when
 * the first such tool comes would itself lose the cache.
 */
export function createSnapshot(present: DesiredPrefix, profile: ProviderProfile): PrefixSnapshot {
  const { sections, tools, model, isUserTool, ttl } = present
  const parameters = withToolChangeBetas(present.parameters, profile)
  const epoch = { sections, tools: orderTools(tools, isUserTool), model, parameters }
  return ttl === undefined ? epoch : { ...epoch, ttl }
}

/** The snapshot that replaces another; sections that are constant for the session stay. */
export function createNextSnapshot(
  current: PrefixSnapshot,
  present: DesiredPrefix,
  profile: ProviderProfile,
): PrefixSnapshot {
  const isConstant = ({ name }: SnapshotSection): boolean => CONSTANT_SECTIONS.has(name)
  const sections = [
    ...current.sections.filter(isConstant),
    ...present.sections.filter((section) => !isConstant(section)),
  ]
  return createSnapshot({ ...present, sections }, profile)
}

/** Sections before all others that never change. */
export const CONSTANT_SECTIONS: ReadonlySet<string> = new Set([ATTRIBUTION_SECTION, IDENTITY_SECTION])

function withToolChangeBetas(parameters: JsonObject, profile: ProviderProfile): JsonObject {
  const needed = profile.capabilities.toolChanges ? listToolChangeBetas(profile) : []
  const given = readBetas(parameters)
  const missing = needed.filter((beta) => !given.includes(beta))
  return missing.length === 0 ? parameters : { ...parameters, betas: [...given, ...missing] }
}

export function readBetas({ betas }: JsonObject): readonly string[] {
  return Array.isArray(betas) ? betas.filter((beta) => typeof beta === 'string') : []
}

const TOOL_CHANGE_BLOCKS = new Set(['tool_addition', 'tool_removal'])

/** All betas named by rules on tool changes: the rules do not say which of them a definition needs. */
export function listToolChangeBetas({ betas }: ProviderProfile): readonly string[] {
  const isAbout = ({ where, name }: BetaRule): boolean => where === 'block' && TOOL_CHANGE_BLOCKS.has(name)
  return [...new Set(betas.filter(isAbout).flatMap((rule) => rule.betas))]
}

export type ReplaceSnapshotResult =
  | { readonly turns: true; readonly epoch: PrefixSnapshot }
  /** The prefix stays: bound thinking forbids a change, or there is none. */
  | { readonly turns: false; readonly because: 'bound-thinking' | 'unchanged' }

/**
 * The snapshot that starts with a compaction which keeps `kept`. Thinking bound to the prefix would become invalid, so
 * if any is kept the snapshot is not replaced.
 */
export function replaceSnapshot(
  current: PrefixSnapshot,
  present: DesiredPrefix,
  kept: { readonly records: readonly KnownRecord[]; readonly profile: ProviderProfile },
): ReplaceSnapshotResult {
  if (hasBoundThinking(kept.records, kept.profile)) return { turns: false, because: 'bound-thinking' }
  const added = listAddedTools(kept.records)
  const tools = present.tools.filter((tool) => !added.has(toolName(tool)))
  const epoch = createNextSnapshot(current, { ...present, tools }, kept.profile)
  const same = JSON.stringify(toSentParts(epoch)) === JSON.stringify(toSentParts(current))
  return same ? { turns: false, because: 'unchanged' } : { turns: true, epoch }
}

function toSentParts({ sections, tools, model, parameters }: PrefixSnapshot): readonly unknown[] {
  return [sections.map(({ name, part, text }) => [name, part, text]), tools, model, parameters]
}

/** `records` contain thinking that a change of the prefix would invalidate. */
export function hasBoundThinking(records: Iterable<KnownRecord>, { thinking }: ProviderProfile): boolean {
  if (thinking.binding !== 'prefix') return false
  for (const record of records) {
    if (record.type === 'assistant' && toBlocks(record.message.content).some(isThinking)) return true
  }
  return false
}

/** Tools that kept messages define: declaring them in the prefix too would define them twice. */
function listAddedTools(records: readonly KnownRecord[]): ReadonlySet<string> {
  const blocks = records.flatMap((record) =>
    record.type === 'user' && record.message.role === 'system' ? toBlocks(record.message.content) : [],
  )
  const definitions = blocks.flatMap(({ type, tool }) =>
    type === 'tool_addition' && isObject(tool) && isObject(tool.definition) ? [tool.definition] : [],
  )
  return new Set(definitions.map(({ name }) => String(name)))
}

// What comes before the messages while a snapshot is current: tools, system prompt blocks, parameters. It stays the same
// object while nothing changes, so that everything derived from it can be reused.

type SystemPromptPart = 'attribution' | 'identity' | 'static' | 'dynamic'

/** A block of the system prompt: its part, and the sections it is made of. */
interface SystemPromptBlock {
  readonly part: SystemPromptPart
  readonly sections: readonly string[]
  readonly block: Block
}

export interface RequestPrefix {
  readonly model: string
  readonly parameters: JsonObject
  readonly tools: readonly JsonObject[]
  /** At most four. */
  readonly system: readonly SystemPromptBlock[]
  /** Index of the last tool that is the same for all users; null if there is none. */
  readonly lastSharedTool: number | null
  /** No tool is user-specific, so the prefix can be shared across accounts. */
  readonly isShareable: boolean
  readonly current: CurrentPrefix
}

const PROMPT_PART_ORDER: readonly SystemPromptPart[] = ['attribution', 'identity', 'static', 'dynamic']

/** `previous`: that of an earlier request, returned if it still holds. */
export function buildRequestPrefix(
  standing: CurrentPrefix,
  options: {
    readonly previous?: RequestPrefix | undefined
    readonly isUserTool?: UserToolPredicate | undefined
  } = {},
): RequestPrefix {
  const { previous, isUserTool = isConnectedTool } = options
  const { epoch, parameters } = standing
  if (previous?.current.epoch === epoch && previous.parameters === parameters) return previous
  const { model, tools, sections } = epoch
  const shared = tools.findLastIndex((tool) => !isUserTool(tool) && isLoadedUpfront(tool))
  return {
    model,
    parameters,
    tools,
    system: PROMPT_PART_ORDER.flatMap((part) => toPromptBlocks(part, sections)),
    lastSharedTool: shared === -1 ? null : shared,
    isShareable: !tools.some(isUserTool),
    current: standing,
  }
}

/** A tool with deferred loading is not part of the prefix. */
export function isLoadedUpfront(tool: JsonObject): boolean {
  return tool.defer_loading !== true
}

function toPromptBlocks(
  part: SystemPromptPart,
  all: readonly SnapshotSection[],
): readonly SystemPromptBlock[] {
  const sections = all.filter((section) => section.text.trim() !== '' && findPromptPart(section) === part)
  if (sections.length === 0) return []
  const text = joinSectionTexts(sections.map((section) => section.text))
  return [{ part, sections: sections.map(({ name }) => name), block: { type: 'text', text } }]
}

function findPromptPart({ name, part }: SnapshotSection): SystemPromptPart {
  if (name === ATTRIBUTION_SECTION) return 'attribution'
  if (name === IDENTITY_SECTION) return 'identity'
  return part === 'static' ? 'static' : 'dynamic'
}

// Tools are sent in a fixed order, by name, user-specific ones last: a tool that moves breaks the whole cache.

/** True for tools of the user's own setup (connected servers). */
type UserToolPredicate = (tool: JsonObject) => boolean

const CONNECTED_TOOL_PREFIX = 'mcp__'

const isConnectedTool: UserToolPredicate = (tool) => toolName(tool).startsWith(CONNECTED_TOOL_PREFIX)

export function orderTools(
  tools: readonly JsonObject[],
  isUserTool: UserToolPredicate = isConnectedTool,
): readonly JsonObject[] {
  const byName = tools.toSorted((one, other) => compareCodeUnits(toolName(one), toolName(other)))
  return [...byName.filter((tool) => !isUserTool(tool)), ...byName.filter(isUserTool)]
}

/** Provider-defined tools may have only a type. */
export function toolName({ name, type }: JsonObject): string {
  if (typeof name === 'string') return name
  return typeof type === 'string' ? type : ''
}

/** By code units, so the same on every machine. */
function compareCodeUnits(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

// The parts of a request that a provider's prompt cache depends on, and which part each parameter belongs to.

/** In request order. A change loses the cache of its own part and of those behind it, never of those before. */
export type CacheLevel = 'tools' | 'system' | 'messages'

/** Parameters that do not belong to the messages; null: the cache does not depend on them. */
const PARAMETER_LEVELS: ReadonlyMap<string, CacheLevel | null> = new Map([
  ['model', 'tools'],
  ['speed', 'system'],
  ['cache_control', null],
  ['compaction', null],
  ['context_management', null],
  ['diagnostics', null],
  ['max_tokens', null],
  ['metadata', null],
  ['service_tier', null],
  ['stop_sequences', null],
  ['stream', null],
])

/** The level that a change of this parameter loses; null if none. An unknown parameter counts as the messages'. */
export function findCacheLevel(parameter: string): CacheLevel | null {
  const level = PARAMETER_LEVELS.get(parameter)
  return level === undefined ? 'messages' : level
}
