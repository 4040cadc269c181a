/**
 * When an epoch begins and what it is made of. Within it the prefix stays byte for byte the same; the present
 * texts, tools and parameters move into the next one, which begins where the cache is lost anyway.
 */
import { blocksOf, isThinking } from '../conversation/block.ts'
import { isObject, type JsonObject } from '../conversation/json.ts'
import type { Epoch, EpochSection, EpochTtl, KnownRecord } from '../conversation/record.ts'
import type { BetaRule, Profile } from '../policy/profile.ts'
import { ATTRIBUTION, IDENTITY } from './system-prompt.ts'
import { type IsUserTool, orderTools, toolName } from './tool-order.ts'

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
