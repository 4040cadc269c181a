/**
 * What stands in front of the messages for as long as an epoch does: tools, the blocks of the system prompt and
 * the parameters. The same object while nothing about it changed, so that all that is made of it can be kept.
 */
import type { Block } from '../conversation/block.ts'
import type { JsonObject } from '../conversation/json.ts'
import type { EpochSection } from '../conversation/record.ts'
import { ATTRIBUTION, IDENTITY, joinTexts } from './system-prompt.ts'
import type { StandingEpoch } from './told.ts'
import { type IsUserTool, isConnectedTool } from './tool-order.ts'

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
