/**
 * The prompt of a request as the cache sees it: blocks in the order `tools`, `system`, `messages`, and the cache
 * breakpoints among them. Also splits the prompt's tokens into read, written and uncached.
 */
import { runStepsAtOnce, type WorkInSteps } from '@tidemark/core/log/work-steps'
import {
  type AutomaticMarker,
  type BlockLocation,
  type CacheMarkers,
  type CacheTtl,
  readCacheTtl,
} from '../protocol/cache-markers.ts'
import {
  type Block,
  isObject,
  isServerToolResult,
  type JsonObject,
  type MessagesBody,
  type RequestBlock,
  toBlocks,
} from '../protocol/messages-request.ts'
import type { CacheLevel } from '../protocol/models.ts'
import { isToolInPrompt } from './cache-key.ts'
import type { PromptTree, PromptTreeNode, PromptZone } from './prompt-tree.ts'

export interface CacheBreakpoint {
  /** Index of the marked block in `Prompt.positions`, the list of all prompt blocks. */
  readonly position: number
  readonly ttl: CacheTtl
  /**
   * True if the request set the breakpoint. At breakpoints that the provider adds, cache entries are written, but no
   * search for a cache entry starts.
   */
  readonly explicit: boolean
}

export interface Prompt {
  readonly positions: readonly PromptTreeNode[]
  readonly breakpoints: readonly CacheBreakpoint[]
  /** Index of the first system block and index of the first message block. */
  readonly starts: { readonly system: number; readonly messages: number }
  /** Returns the path of a prompt block in the request, such as `messages.2.content.0`. */
  formatPath(position: number): string
}

interface PromptParts {
  readonly body: MessagesBody
  readonly pieces: readonly RequestBlock[]
  readonly markers: CacheMarkers
}

/**
 * Matches web search and web fetch tools. They are part of the system prompt for the cache, so adding or removing one
 * does not invalidate the cached prefix of the other tools.
 */
const WEB_TOOL_TYPE = /^web_(search|fetch)_/

interface PlacedBlock {
  readonly zone: PromptZone
  readonly block: Block
  readonly place: BlockLocation
}

export function buildPrompt(tree: PromptTree, input: PromptParts): Prompt {
  return runStepsAtOnce(buildPromptInSteps(tree, input))
}

/** As `buildPrompt`, in steps of one message block, so that a long prompt does not block other requests. */
export function* buildPromptInSteps(tree: PromptTree, input: PromptParts): WorkInSteps<Prompt> {
  const { body, pieces, markers } = input
  const front = [...placeTools(body, false), ...placeTools(body, true), ...placeSystemBlocks(body)]
  const positions: PromptTreeNode[] = []
  const breakpoints: CacheBreakpoint[] = []
  const automatic = matchAutomaticMarker(markers.automatic)
  const anyMarker = markers.explicit.length > 0 || markers.automatic !== null
  let node = tree.root

  const add = (zone: PromptZone, block: Block, place: BlockLocation): void => {
    node = tree.addBlock(node, zone, block)
    const ttl = findMarkerTtl(block) ?? automatic(place)
    if (ttl !== null) breakpoints.push({ position: positions.length, ttl, explicit: true })
    else if (anyMarker && zone === 'assistant' && isServerToolResult(block))
      breakpoints.push({ position: positions.length, ttl: '5m', explicit: false })
    positions.push(node)
  }

  for (const { zone, block, place } of front) add(zone, block, place)
  const messageStart = positions.length
  for (const piece of pieces) {
    const { bytes } = node
    add(toPromptZone(piece), piece.block, { zone: 'messages', at: piece.message, index: piece.index })
    yield node.bytes - bytes
  }
  return {
    positions,
    breakpoints,
    starts: { system: front.filter(({ zone }) => zone === 'tools').length, messages: messageStart },
    formatPath: createPathFormatter(front, pieces),
  }
}

function placeTools(body: MessagesBody, web: boolean): readonly PlacedBlock[] {
  const placed: PlacedBlock[] = []
  for (const [at, tool] of (body.tools ?? []).entries()) {
    if (!isToolInPrompt(tool) || WEB_TOOL_TYPE.test(String(tool.type)) !== web) continue
    placed.push({
      zone: web ? 'system' : 'tools',
      block: toToolBlock(tool),
      place: { zone: 'tools', at, index: 0 },
    })
  }
  return placed
}

export function toToolBlock(tool: JsonObject): Block {
  return { ...tool, type: typeof tool.type === 'string' ? tool.type : 'custom' }
}

function placeSystemBlocks(body: MessagesBody): readonly PlacedBlock[] {
  return toBlocks(body.system).map((block, at) => ({
    zone: 'system',
    block,
    place: { zone: 'system', at, index: 0 },
  }))
}

export function toPromptZone({ role }: RequestBlock): PromptZone {
  return role === 'system' ? 'notice' : role
}

/**
 * Creates a function that returns the path of a prompt block in the request. The function stores only indexes,
 * because it stays in memory longer than the request.
 */
function createPathFormatter(
  front: readonly PlacedBlock[],
  pieces: readonly RequestBlock[],
): (position: number) => string {
  const before = front.map(({ place }) => `${place.zone}.${place.at}`)
  const messages = Int32Array.from(pieces, ({ message }) => message)
  const indices = Int32Array.from(pieces, ({ index }) => index)
  return (position) => {
    const at = position - before.length
    if (at < 0) return before[position] ?? ''
    return at < messages.length ? `messages.${messages[at]}.content.${indices[at]}` : ''
  }
}

/**
 * Returns the TTL of the cache marker on a block, or of the last marker inside a tool result; null if there is none.
 */
function findMarkerTtl(block: Block): CacheTtl | null {
  if (block.cache_control != null) return readCacheTtl(block.cache_control)
  if (block.type !== 'tool_result' || !Array.isArray(block.content)) return null
  const inner = block.content.findLast((item) => isObject(item) && item.cache_control != null)
  return isObject(inner) ? readCacheTtl(inner.cache_control) : null
}

function matchAutomaticMarker(automatic: AutomaticMarker | null): (place: BlockLocation) => CacheTtl | null {
  const marker = automatic?.marker
  if (marker == null) return () => null
  const { zone, at, index } = marker.location
  return (place) => (place.zone === zone && place.at === at && place.index === index ? marker.ttl : null)
}

/**
 * Returns the cache level of a prompt position: `tools`, `system` or `messages`. The level decides which settings of
 * the cache key must match.
 */
export function findCacheLevel({ starts }: Prompt, position: number): CacheLevel {
  if (position >= starts.messages) return 'messages'
  return position >= starts.system ? 'system' : 'tools'
}

/** The tokens of a prompt by price class: cache read, cache writes and uncached input. */
export interface PromptTokenSplit {
  readonly read: number
  readonly write5m: number
  readonly write1h: number
  readonly input: number
}

export function countPromptTokens({ positions }: Prompt): number {
  return positions.at(-1)?.tokens ?? 0
}

export function countPrefixTokens({ positions }: Prompt, position: number): number {
  return positions[position]?.tokens ?? 0
}

/**
 * Splits the tokens of a prompt. Tokens up to the cache hit are read. Tokens after it are written for an hour up to
 * the last 1-hour breakpoint, then for five minutes up to the last breakpoint. The rest is uncached. A breakpoint
 * does not count if its prefix has fewer than `minimum` tokens.
 */
export function splitPromptTokens(prompt: Prompt, hit: number | null, minimum: number): PromptTokenSplit {
  const read = hit === null ? 0 : countPrefixTokens(prompt, hit)
  let hourEnd = read
  let writeEnd = read
  for (const { position, ttl } of prompt.breakpoints) {
    const tokens = countPrefixTokens(prompt, position)
    if (tokens < minimum) continue
    writeEnd = Math.max(writeEnd, tokens)
    if (ttl === '1h') hourEnd = Math.max(hourEnd, tokens)
  }
  return {
    read,
    write1h: hourEnd - read,
    write5m: writeEnd - hourEnd,
    input: countPromptTokens(prompt) - writeEnd,
  }
}
