/**
 * A request as the cache sees it: its blocks in the order `tools`, `system`, `messages`, each a node of the prompt
 * tree, the breakpoints among them, and the split of its tokens into read, written and uncached.
 */
import {
  type Block,
  blocksOf,
  isObject,
  isServerToolResult,
  type JsonObject,
  type MessagesBody,
  type Piece,
} from '../protocol/api.ts'
import {
  type AutomaticMarker,
  type Location,
  type Markers,
  type Ttl,
  ttlOf,
} from '../protocol/cache-markers.ts'
import type { Level } from '../protocol/models.ts'
import { isOffered } from './cache-key.ts'
import type { PromptNode, PromptTree, Zone } from './prompt-tree.ts'

export interface Breakpoint {
  /** Index in `Prompt.positions`. */
  readonly position: number
  readonly ttl: Ttl
  /** Set by the request. The provider writes entries at further breakpoints of its own, but does not search from them. */
  readonly explicit: boolean
}

export interface Prompt {
  readonly positions: readonly PromptNode[]
  readonly breakpoints: readonly Breakpoint[]
  /** Positions at which the system prompt and the messages begin. */
  readonly starts: { readonly system: number; readonly messages: number }
  /** The path of a position in the request, such as `messages.2.content.0`. */
  pathOf(position: number): string
}

interface PromptInput {
  readonly body: MessagesBody
  readonly pieces: readonly Piece[]
  readonly markers: Markers
}

/** Adding or removing one of these changes the system prompt and not the tools. */
const WEB_TOOL = /^web_(search|fetch)_/

interface Placed {
  readonly zone: Zone
  readonly block: Block
  readonly place: Location
}

export function buildPrompt(tree: PromptTree, input: PromptInput): Prompt {
  const { body, pieces, markers } = input
  const front = [...placedTools(body, false), ...placedTools(body, true), ...placedSystem(body)]
  const positions: PromptNode[] = []
  const breakpoints: Breakpoint[] = []
  const automatic = automaticPlace(markers.automatic)
  const anyMarker = markers.explicit.length > 0 || markers.automatic !== null
  let node = tree.root

  const add = (zone: Zone, block: Block, place: Location): void => {
    node = tree.place(node, zone, block)
    const ttl = markerOn(block) ?? automatic(place)
    if (ttl !== null) breakpoints.push({ position: positions.length, ttl, explicit: true })
    else if (anyMarker && zone === 'assistant' && isServerToolResult(block))
      breakpoints.push({ position: positions.length, ttl: '5m', explicit: false })
    positions.push(node)
  }

  for (const { zone, block, place } of front) add(zone, block, place)
  const messageStart = positions.length
  for (const piece of pieces)
    add(zoneOf(piece), piece.block, { zone: 'messages', at: piece.message, index: piece.index })
  return {
    positions,
    breakpoints,
    starts: { system: front.filter(({ zone }) => zone === 'tools').length, messages: messageStart },
    pathOf: pathsOf(front, pieces),
  }
}

function placedTools(body: MessagesBody, web: boolean): readonly Placed[] {
  const placed: Placed[] = []
  for (const [at, tool] of (body.tools ?? []).entries()) {
    if (!isOffered(tool) || WEB_TOOL.test(String(tool.type)) !== web) continue
    placed.push({
      zone: web ? 'system' : 'tools',
      block: toolBlock(tool),
      place: { zone: 'tools', at, index: 0 },
    })
  }
  return placed
}

export function toolBlock(tool: JsonObject): Block {
  return { ...tool, type: typeof tool.type === 'string' ? tool.type : 'custom' }
}

function placedSystem(body: MessagesBody): readonly Placed[] {
  return blocksOf(body.system).map((block, at) => ({
    zone: 'system',
    block,
    place: { zone: 'system', at, index: 0 },
  }))
}

export function zoneOf({ role }: Piece): Zone {
  return role === 'system' ? 'notice' : role
}

/** Holds indices instead of blocks, because a prompt stays in memory longer than its request. */
function pathsOf(front: readonly Placed[], pieces: readonly Piece[]): (position: number) => string {
  const before = front.map(({ place }) => `${place.zone}.${place.at}`)
  const messages = Int32Array.from(pieces, ({ message }) => message)
  const indices = Int32Array.from(pieces, ({ index }) => index)
  return (position) => {
    const at = position - before.length
    if (at < 0) return before[position] ?? ''
    return at < messages.length ? `messages.${messages[at]}.content.${indices[at]}` : ''
  }
}

/** The TTL of the marker on a block, or of the last marker inside a tool result. */
function markerOn(block: Block): Ttl | null {
  if (block.cache_control != null) return ttlOf(block.cache_control)
  if (block.type !== 'tool_result' || !Array.isArray(block.content)) return null
  const inner = block.content.findLast((item) => isObject(item) && item.cache_control != null)
  return isObject(inner) ? ttlOf(inner.cache_control) : null
}

function automaticPlace(automatic: AutomaticMarker | null): (place: Location) => Ttl | null {
  const marker = automatic?.marker
  if (marker == null) return () => null
  const { zone, at, index } = marker.location
  return (place) => (place.zone === zone && place.at === at && place.index === index ? marker.ttl : null)
}

/** The level of a position, which decides how much of the key must match. */
export function levelAt({ starts }: Prompt, position: number): Level {
  if (position >= starts.messages) return 'messages'
  return position >= starts.system ? 'system' : 'tools'
}

/** The tokens of a prompt by price class. */
export interface CacheSplit {
  readonly read: number
  readonly write5m: number
  readonly write1h: number
  readonly input: number
}

export function totalTokens({ positions }: Prompt): number {
  return positions.at(-1)?.tokens ?? 0
}

export function tokensAt({ positions }: Prompt, position: number): number {
  return positions[position]?.tokens ?? 0
}

/**
 * Tokens are read up to the hit, written for an hour from there to the last 1-hour breakpoint, written for five
 * minutes from there to the last breakpoint, and uncached input after it. Breakpoints after a prefix shorter than
 * the model's minimum do not count.
 */
export function splitOf(prompt: Prompt, hit: number | null, minimum: number): CacheSplit {
  const read = hit === null ? 0 : tokensAt(prompt, hit)
  let hourEnd = read
  let writeEnd = read
  for (const { position, ttl } of prompt.breakpoints) {
    const tokens = tokensAt(prompt, position)
    if (tokens < minimum) continue
    writeEnd = Math.max(writeEnd, tokens)
    if (ttl === '1h') hourEnd = Math.max(hourEnd, tokens)
  }
  return {
    read,
    write1h: hourEnd - read,
    write5m: writeEnd - hourEnd,
    input: totalTokens(prompt) - writeEnd,
  }
}
