/**
 * A request as the cache sees it: every block in the order `tools`, `system`, `messages`, each a node of the
 * prompt tree, and the breakpoints among them.
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
  /** Index among the positions. */
  readonly position: number
  readonly ttl: Ttl
  /** Asked for by the request; the provider sets others itself and looks for nothing from there. */
  readonly explicit: boolean
}

export interface Prompt {
  readonly positions: readonly PromptNode[]
  readonly breakpoints: readonly Breakpoint[]
  /** Where the system prompt and the messages begin among the positions. */
  readonly starts: { readonly system: number; readonly messages: number }
  /** Of a position, where it stands in the request. */
  pathOf(position: number): string
}

export interface PromptInput {
  readonly body: MessagesBody
  readonly pieces: readonly Piece[]
  readonly markers: Markers
}

/** Toggling these changes the system prompt and leaves the tools before it as they are. */
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

  const put = (zone: Zone, block: Block, place: Location | null): void => {
    node = tree.place(node, zone, block)
    const ttl = markerOn(block) ?? (place === null || automatic === null ? null : automatic(place))
    if (ttl !== null) breakpoints.push({ position: positions.length, ttl, explicit: true })
    else if (anyMarker && zone === 'assistant' && isServerToolResult(block))
      breakpoints.push({ position: positions.length, ttl: '5m', explicit: false })
    positions.push(node)
  }

  for (const { zone, block, place } of front) put(zone, block, place)
  const messageStart = positions.length
  for (const piece of pieces) put(zoneOf(piece), piece.block, automatic === null ? null : locationOf(piece))
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

function toolBlock(tool: JsonObject): Block {
  return { ...tool, type: typeof tool.type === 'string' ? tool.type : 'custom' }
}

function placedSystem(body: MessagesBody): readonly Placed[] {
  return blocksOf(body.system).map((block, at) => ({
    zone: 'system',
    block,
    place: { zone: 'system', at, index: 0 },
  }))
}

function zoneOf({ role }: Piece): Zone {
  return role === 'system' ? 'notice' : role
}

function locationOf(piece: Piece): Location {
  return { zone: 'messages', at: piece.message, index: piece.index }
}

/** Keeps indices and not blocks: a prompt is remembered for longer than its request. */
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

/** The lifetime asked for on a block, or on something inside a result. */
function markerOn(block: Block): Ttl | null {
  if (block.cache_control != null) return ttlOf(block.cache_control)
  if (block.type !== 'tool_result' || !Array.isArray(block.content)) return null
  const inner = block.content.findLast((item) => isObject(item) && item.cache_control != null)
  return isObject(inner) ? ttlOf(inner.cache_control) : null
}

function automaticPlace(automatic: AutomaticMarker | null): ((place: Location) => Ttl | null) | null {
  const marker = automatic?.marker
  if (marker === null || marker === undefined) return null
  const { zone, at, index } = marker.place
  return (place) => (place.zone === zone && place.at === at && place.index === index ? marker.ttl : null)
}

/** The level a position belongs to, which decides what of the key must match. */
export function levelAt({ starts }: Prompt, position: number): Level {
  if (position >= starts.messages) return 'messages'
  return position >= starts.system ? 'system' : 'tools'
}

// The bill for a prompt. A is the highest position read, B the highest 1-hour breakpoint behind it, C the
// last breakpoint: read up to A, written for an hour from A to B, for five minutes from B to C, and plain
// input after that. Breakpoints on a prefix shorter than the model's minimum do not count.

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

export function splitOf(prompt: Prompt, hit: number | null, minimum: number): CacheSplit {
  const total = totalTokens(prompt)
  const a = hit === null ? 0 : tokensAt(prompt, hit)
  let b = a
  let c = a
  for (const { position, ttl } of prompt.breakpoints) {
    const tokens = tokensAt(prompt, position)
    if (tokens < minimum) continue
    c = Math.max(c, tokens)
    if (ttl === '1h') b = Math.max(b, tokens)
  }
  return { read: a, write1h: b - a, write5m: Math.max(0, c - b), input: total - Math.max(b, c) }
}
