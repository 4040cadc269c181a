/** Properties of the whole request that change how its beginning is rendered. */
import { type Block, isObject, type JsonObject, type MessagesBody } from '../api.ts'
import type { Piece } from '../context/piece.ts'

export interface Traits {
  readonly images: boolean
  readonly citations: boolean
  /** Tools are defined in the conversation and none in front of it: the first one changes how it begins. */
  readonly onlyInlineTools: boolean
}

export function traitsOf(body: MessagesBody, pieces: readonly Piece[]): Traits {
  const tools = body.tools ?? []
  let images = false
  let citations = tools.some((tool) => isObject(tool.citations) && tool.citations.enabled === true)
  let inline = false
  for (const { block } of pieces) {
    if (PLAIN.has(block.type)) continue
    images ||= holds(block, isImage)
    citations ||= holds(block, cites)
    inline ||= definesTool(block)
  }
  return { images, citations, onlyInlineTools: inline && !tools.some(isOffered) }
}

/** Blocks that can have none of it: nearly all of a long conversation. */
const PLAIN = new Set(['text', 'tool_use', 'thinking'])

export function isOffered(tool: JsonObject): boolean {
  return tool.defer_loading !== true
}

function holds(block: Block, test: (block: Readonly<Record<string, unknown>>) => boolean): boolean {
  if (test(block)) return true
  const inner: unknown = block.type === 'tool_result' ? block.content : undefined
  return Array.isArray(inner) && inner.some((item) => isObject(item) && test(item))
}

function isImage(block: Readonly<Record<string, unknown>>): boolean {
  return block.type === 'image'
}

function cites(block: Readonly<Record<string, unknown>>): boolean {
  return isObject(block.citations) && block.citations.enabled === true
}

function definesTool(block: Block): boolean {
  return block.type === 'tool_addition' && isObject(block.tool) && block.tool.type === 'tool_definition'
}
