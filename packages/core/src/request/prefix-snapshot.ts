/**
 * Creates prefix snapshots (`epoch` records): system prompt, tools and parameters of the API request, frozen byte for
 * byte. Later changes are applied in the next snapshot, which starts when the cache breaks anyway, for example at a
 * compaction.
 */
import { type Block, isThinkingBlock, toBlocks } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type { KnownRecord, PrefixSnapshot, SnapshotSection, SnapshotTtl } from '../log/record.ts'
import type { BetaRule, ProviderProfile } from '../policy/provider-profile.ts'
import type { CurrentPrefix } from './announced-prefix.ts'
import {
  ATTRIBUTION_SECTION,
  IDENTITY_SECTION,
  isHostBlock,
  PROMPT_SECTION_SEPARATOR,
} from './system-prompt.ts'

/** The system prompt, tools and parameters that the host wants in the next API request. */
export interface DesiredPrefix {
  readonly sections: readonly SnapshotSection[]
  readonly tools: readonly JsonObject[]
  /**
   * Tools that the messages use. They are declared if the host wants no tools at all, because the provider refuses tool
   * calls in a request without tools.
   */
  readonly usedTools?: readonly JsonObject[]
  readonly model: string
  /** All other fields of the API request except messages: `max_tokens`, `thinking`, `betas` … */
  readonly parameters: JsonObject
  /** Cache lifetime to store in a new prefix snapshot. */
  readonly ttl?: SnapshotTtl
  readonly isUserTool?: UserToolPredicate
  /** True if the tools keep the given order. Default: they are sorted. */
  readonly keepsToolOrder?: boolean
  /** True if no beta is added. Default: false. A conversation cached under other betas would be written again. */
  readonly keepsBetas?: boolean
}

/**
 * Creates a prefix snapshot. It already names the beta features that are required to add tools later, because naming
 * them only then would break the cache.
 */
export function createPrefixSnapshot(present: DesiredPrefix, profile: ProviderProfile): PrefixSnapshot {
  const { sections, model, isUserTool, ttl, keepsToolOrder = false } = present
  const tools = listToolsToDeclare(present)
  const parameters =
    present.keepsBetas === true ? present.parameters : withToolChangeBetas(present.parameters, profile)
  const { window } = profile
  return {
    sections,
    tools: keepsToolOrder ? tools : orderTools(tools, isUserTool),
    model,
    parameters,
    ...(ttl === undefined ? {} : { ttl }),
    ...(window === null ? {} : { window }),
  }
}

/** Returns the tools that a prefix snapshot declares: those that the host wants; if it wants none, those in use. */
export function listToolsToDeclare({ tools, usedTools = [] }: DesiredPrefix): readonly JsonObject[] {
  return tools.length === 0 ? usedTools : tools
}

/**
 * Creates the prefix snapshot that replaces `current`. Sections that never change during a session are copied from
 * `current`.
 */
export function createNextPrefixSnapshot(
  current: PrefixSnapshot,
  present: DesiredPrefix,
  profile: ProviderProfile,
): PrefixSnapshot {
  const isConstant = ({ name }: SnapshotSection): boolean => CONSTANT_SECTIONS.has(name)
  const sections = [
    ...current.sections.filter(isConstant),
    ...present.sections.filter((section) => !isConstant(section)),
  ]
  return createPrefixSnapshot({ ...present, sections }, profile)
}

/** Names of the sections that come before all others and never change during a session. */
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

/** Returns all beta features that the provider profile requires for adding or removing tools during a conversation. */
export function listToolChangeBetas({ betas }: ProviderProfile): readonly string[] {
  const isAbout = ({ where, name }: BetaRule): boolean => where === 'block' && TOOL_CHANGE_BLOCKS.has(name)
  return [...new Set(betas.filter(isAbout).flatMap((rule) => rule.betas))]
}

export type ReplaceSnapshotResult =
  | { readonly isReplaced: true; readonly epoch: PrefixSnapshot }
  /** The current prefix snapshot stays in use, because a new one would invalidate thinking or would be the same. */
  | { readonly isReplaced: false; readonly because: 'bound-thinking' | 'unchanged' }

/**
 * Creates the prefix snapshot that starts with a compaction. Some providers accept a thinking block only with an
 * unchanged prefix. If the compaction keeps such a block, the current snapshot stays in use.
 */
export function replacePrefixSnapshot(
  current: PrefixSnapshot,
  present: DesiredPrefix,
  kept: { readonly records: readonly KnownRecord[]; readonly profile: ProviderProfile },
): ReplaceSnapshotResult {
  if (hasBoundThinking(kept.records, kept.profile)) return { isReplaced: false, because: 'bound-thinking' }
  const epoch = createNextPrefixSnapshot(current, present, kept.profile)
  const same = JSON.stringify(toSentParts(epoch)) === JSON.stringify(toSentParts(current))
  return same ? { isReplaced: false, because: 'unchanged' } : { isReplaced: true, epoch }
}

function toSentParts({ sections, tools, model, parameters, ttl }: PrefixSnapshot): readonly unknown[] {
  return [sections.map(({ name, part, text }) => [name, part, text]), tools, model, parameters, ttl?.name]
}

/** True if `records` contain thinking that a change of the prefix would make invalid. */
export function hasBoundThinking(records: Iterable<KnownRecord>, { thinking }: ProviderProfile): boolean {
  if (thinking.binding !== 'prefix') return false
  for (const record of records) {
    if (record.type === 'assistant' && toBlocks(record.message.content).some(isThinkingBlock)) return true
  }
  return false
}

// The functions below build the request fields that come before the messages: tools, system prompt and parameters. The
// result stays the same object while nothing changes, so that values derived from it can be reused.

type SystemPromptPart = 'attribution' | 'identity' | 'static' | 'dynamic'

/** A block of the system prompt, with the part of the prompt that it forms and the names of the sections in it. */
interface SystemPromptBlock {
  readonly part: SystemPromptPart
  readonly sections: readonly string[]
  readonly block: Block
}

export interface RequestPrefix {
  readonly model: string
  readonly parameters: JsonObject
  readonly tools: readonly JsonObject[]
  /** Blocks of the system prompt: at most one for each of its four parts, or those that the host sent. */
  readonly system: readonly SystemPromptBlock[]
  /** Index of the last tool that is the same for all users; null if there is none. */
  readonly lastSharedTool: number | null
  /** True if no tool is user-specific, so that the cached prefix can be shared across accounts. */
  readonly isShareable: boolean
  readonly current: CurrentPrefix
}

const PROMPT_PART_ORDER: readonly SystemPromptPart[] = ['attribution', 'identity', 'static', 'dynamic']

/** Builds the prefix of an API request. Returns `previous`, the prefix of an earlier request, if it is still valid. */
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

/** True if the tool definition is loaded at the start of the API request, which is false for deferred loading. */
export function isLoadedUpfront(tool: JsonObject): boolean {
  return tool.defer_loading !== true
}

function toPromptBlocks(
  part: SystemPromptPart,
  all: readonly SnapshotSection[],
): readonly SystemPromptBlock[] {
  const sections = all.filter((section) => section.text.trim() !== '' && findPromptPart(section) === part)
  const blocks = sections.filter(({ name }) => isHostBlock(name))
  if (blocks.length > 0)
    return blocks.map(({ name, text }) => ({ part, sections: [name], block: { type: 'text', text } }))
  if (sections.length === 0) return []
  const text = sections.map((section) => section.text).join(PROMPT_SECTION_SEPARATOR)
  return [{ part, sections: sections.map(({ name }) => name), block: { type: 'text', text } }]
}

function findPromptPart({ name, part }: SnapshotSection): SystemPromptPart {
  if (name === ATTRIBUTION_SECTION) return 'attribution'
  if (name === IDENTITY_SECTION) return 'identity'
  return part === 'static' ? 'static' : 'dynamic'
}

// Tools are sent in a fixed order, because moving a tool breaks the whole cache. They are sorted by name, with
// user-specific tools last.

/** Returns true for a tool from the user's own setup, such as a connected MCP server. */
type UserToolPredicate = (tool: JsonObject) => boolean

const CONNECTED_TOOL_PREFIX = 'mcp__'

const isConnectedTool: UserToolPredicate = (tool) =>
  readToolOrTypeName(tool).startsWith(CONNECTED_TOOL_PREFIX)

export function orderTools(
  tools: readonly JsonObject[],
  isUserTool: UserToolPredicate = isConnectedTool,
): readonly JsonObject[] {
  const byName = tools.toSorted((one, other) =>
    compareCodeUnits(readToolOrTypeName(one), readToolOrTypeName(other)),
  )
  return [...byName.filter((tool) => !isUserTool(tool)), ...byName.filter(isUserTool)]
}

/** Returns the name of a tool. Some tools defined by the provider have no name; for them, returns the type. */
export function readToolOrTypeName({ name, type }: JsonObject): string {
  if (typeof name === 'string') return name
  return typeof type === 'string' ? type : ''
}

/** Compares strings by code units, which gives the same order on every machine. */
function compareCodeUnits(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

// The declarations below tell which part of the cached prefix each request parameter belongs to.

/** The parts of the cached prefix, in request order. A change breaks the cache of its own part and of the parts after it. */
export type CacheLevel = 'tools' | 'system' | 'messages'

/**
 * The part of the cached prefix that each request parameter belongs to; null if the cache does not depend on it.
 * Parameters that are not listed belong to the messages.
 */
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

/**
 * Returns the first part of the cached prefix that a change of this parameter breaks; null if it breaks none. Unknown
 * parameters belong to the messages.
 */
export function findCacheLevel(parameter: string): CacheLevel | null {
  const level = PARAMETER_LEVELS.get(parameter)
  return level === undefined ? 'messages' : level
}
