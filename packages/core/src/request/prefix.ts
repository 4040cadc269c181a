/**
 * When an epoch begins and what it is made of. Within it the prefix stays byte for byte the same; the present
 * texts, tools and parameters move into the next one, which begins where the cache is lost anyway.
 */
import { type Block, blocksOf, isThinking } from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import type { Epoch, EpochSection, EpochTtl, KnownRecord } from '../log/record.ts'
import type { BetaRule, Profile } from '../policy/provider-profile.ts'
import type { StandingEpoch } from './announced-prefix.ts'
import { ATTRIBUTION, IDENTITY, joinTexts } from './system-prompt.ts'

/** What the host would have the prefix say now. */
export interface Present {
  readonly sections: readonly EpochSection[]
  readonly tools: readonly JsonObject[]
  readonly model: string
  /** All other fields of a request but its messages: `max_tokens`, `thinking`, `betas` … */
  readonly parameters: JsonObject
  /** Lifetime of the markers, decided for the epoch that would begin. */
  readonly ttl?: EpochTtl
  readonly isUserTool?: IsUserTool
}

/**
 * The epoch that begins with the session. The betas that adding tools later would take are named from the
 * start: naming them when the first such tool comes would itself lose the cache.
 */
export function openEpoch(present: Present, profile: Profile): Epoch {
  const { sections, tools, model, isUserTool, ttl } = present
  const parameters = withBetas(present.parameters, profile)
  const epoch = { sections, tools: orderTools(tools, isUserTool), model, parameters }
  return ttl === undefined ? epoch : { ...epoch, ttl }
}

/** The epoch that takes the place of another: what is constant for the session stays. */
export function nextEpoch(current: Epoch, present: Present, profile: Profile): Epoch {
  const isConstant = ({ name }: EpochSection): boolean => CONSTANT.has(name)
  const sections = [
    ...current.sections.filter(isConstant),
    ...present.sections.filter((section) => !isConstant(section)),
  ]
  return openEpoch({ ...present, sections }, profile)
}

/** Sections that stand in front of everything and never change. */
export const CONSTANT: ReadonlySet<string> = new Set([ATTRIBUTION, IDENTITY])

function withBetas(parameters: JsonObject, profile: Profile): JsonObject {
  const needed = profile.capabilities.toolChanges ? toolChangeBetas(profile) : []
  const given = betasIn(parameters)
  const missing = needed.filter((beta) => !given.includes(beta))
  return missing.length === 0 ? parameters : { ...parameters, betas: [...given, ...missing] }
}

export function betasIn({ betas }: JsonObject): readonly string[] {
  return Array.isArray(betas) ? betas.filter((beta) => typeof beta === 'string') : []
}

const TOOL_CHANGES = new Set(['tool_addition', 'tool_removal'])

/** Every beta that a rule on changes of tools names: which of them a definition needs, the rule does not say. */
export function toolChangeBetas({ betas }: Profile): readonly string[] {
  const isAbout = ({ where, name }: BetaRule): boolean => where === 'block' && TOOL_CHANGES.has(name)
  return [...new Set(betas.filter(isAbout).flatMap((rule) => rule.betas))]
}

export type EpochTurn =
  | { readonly turns: true; readonly epoch: Epoch }
  /** The prefix stays as it is, because it must or because it is what it would become. */
  | { readonly turns: false; readonly because: 'bound-thinking' | 'unchanged' }

/**
 * The epoch that begins with a compaction which keeps `kept`. Thinking that is bound to the prefix would be
 * lost with it, so where any is kept the epoch does not turn.
 */
export function turnEpoch(
  current: Epoch,
  present: Present,
  kept: { readonly records: readonly KnownRecord[]; readonly profile: Profile },
): EpochTurn {
  if (hasBoundThinking(kept.records, kept.profile)) return { turns: false, because: 'bound-thinking' }
  const added = toolsAddedBy(kept.records)
  const tools = present.tools.filter((tool) => !added.has(toolName(tool)))
  const epoch = nextEpoch(current, { ...present, tools }, kept.profile)
  const same = JSON.stringify(bytesOf(epoch)) === JSON.stringify(bytesOf(current))
  return same ? { turns: false, because: 'unchanged' } : { turns: true, epoch }
}

function bytesOf({ sections, tools, model, parameters }: Epoch): readonly unknown[] {
  return [sections.map(({ name, part, text }) => [name, part, text]), tools, model, parameters]
}

/** Is there thinking among `records` that a change of the prefix would make void? */
export function hasBoundThinking(records: Iterable<KnownRecord>, { thinking }: Profile): boolean {
  if (thinking.binding !== 'prefix') return false
  for (const record of records) {
    if (record.type === 'assistant' && blocksOf(record.message.content).some(isThinking)) return true
  }
  return false
}

/** Tools that kept messages define themselves: declaring them in front as well would name them twice. */
function toolsAddedBy(records: readonly KnownRecord[]): ReadonlySet<string> {
  const blocks = records.flatMap((record) =>
    record.type === 'user' && record.message.role === 'system' ? blocksOf(record.message.content) : [],
  )
  const definitions = blocks.flatMap(({ type, tool }) =>
    type === 'tool_addition' && isObject(tool) && isObject(tool.definition) ? [tool.definition] : [],
  )
  return new Set(definitions.map(({ name }) => String(name)))
}

// What stands in front of the messages for as long as an epoch does: tools, the blocks of the system prompt and
// the parameters. The same object while nothing about it changed, so that all that is made of it can be kept.

export type FrontPart = 'attribution' | 'identity' | 'static' | 'dynamic'

/** A block of the system prompt: which part it is, and the sections that make it up. */
export interface FrontBlock {
  readonly part: FrontPart
  readonly sections: readonly string[]
  readonly block: Block
}

export interface Front {
  readonly model: string
  readonly parameters: JsonObject
  readonly tools: readonly JsonObject[]
  /** At most four. */
  readonly system: readonly FrontBlock[]
  /** Index of the last tool that everybody has; null where there is none. */
  readonly lastSharedTool: number | null
  /** No tool is one user's alone, so the prefix can be shared beyond an account. */
  readonly isShareable: boolean
  readonly standing: StandingEpoch
}

const PARTS: readonly FrontPart[] = ['attribution', 'identity', 'static', 'dynamic']

/** `previous`: what was made for an earlier request; given back where it still holds. */
export function frontOf(
  standing: StandingEpoch,
  options: { readonly previous?: Front | undefined; readonly isUserTool?: IsUserTool | undefined } = {},
): Front {
  const { previous, isUserTool = isConnectedTool } = options
  const { epoch, parameters } = standing
  if (previous?.standing.epoch === epoch && previous.parameters === parameters) return previous
  const { model, tools, sections } = epoch
  const shared = tools.findLastIndex((tool) => !isUserTool(tool) && isOffered(tool))
  return {
    model,
    parameters,
    tools,
    system: PARTS.flatMap((part) => frontBlock(part, sections)),
    lastSharedTool: shared === -1 ? null : shared,
    isShareable: !tools.some(isUserTool),
    standing,
  }
}

/** A tool whose loading is deferred is no part of the prefix. */
export function isOffered(tool: JsonObject): boolean {
  return tool.defer_loading !== true
}

function frontBlock(part: FrontPart, all: readonly EpochSection[]): readonly FrontBlock[] {
  const sections = all.filter((section) => section.text.trim() !== '' && partOf(section) === part)
  if (sections.length === 0) return []
  const text = joinTexts(sections.map((section) => section.text))
  return [{ part, sections: sections.map(({ name }) => name), block: { type: 'text', text } }]
}

function partOf({ name, part }: EpochSection): FrontPart {
  if (name === ATTRIBUTION) return 'attribution'
  if (name === IDENTITY) return 'identity'
  return part === 'static' ? 'static' : 'dynamic'
}

// The order of tools in a request: the same for the same tools, however they came in. A tool that moves takes
// the whole cache with it, so the order is by name, and what is one user's alone stands behind what everybody has.

/** Tells tools of one user's own setup (connected servers) from those that everybody has. */
export type IsUserTool = (tool: JsonObject) => boolean

const CONNECTED = 'mcp__'

export const isConnectedTool: IsUserTool = (tool) => toolName(tool).startsWith(CONNECTED)

export function orderTools(
  tools: readonly JsonObject[],
  isUserTool: IsUserTool = isConnectedTool,
): readonly JsonObject[] {
  const byName = tools.toSorted((one, other) => compare(toolName(one), toolName(other)))
  return [...byName.filter((tool) => !isUserTool(tool)), ...byName.filter(isUserTool)]
}

/** The provider's own tools may have no name; their type stands for it. */
export function toolName({ name, type }: JsonObject): string {
  if (typeof name === 'string') return name
  return typeof type === 'string' ? type : ''
}

/** By code units: the same on every machine. */
function compare(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

// The parts of a request that a provider's prompt cache depends on, and which part each parameter belongs to.

/** In request order. A change loses the cache of its own part and of those behind it, never of those before. */
export type Level = 'tools' | 'system' | 'messages'

/** Parameters that do not belong to the messages; null: the cache does not depend on them. */
const LEVELS: ReadonlyMap<string, Level | null> = new Map([
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
export function cacheLevel(parameter: string): Level | null {
  const level = LEVELS.get(parameter)
  return level === undefined ? 'messages' : level
}
