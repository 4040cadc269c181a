/**
 * A request as it was really sent, after every hook, in the pieces a cache can keep or lose. It is made of what
 * the engine has at hand anyway: a flattened view fits as it is, and tools and system sections stay the same
 * objects for an epoch, so most of a comparison is a look at references. Nothing in it may be changed later.
 */

import type { FlatMessage } from '../context/message-parts.ts'
import type { Block } from '../log/block.ts'
import { isObject, type Json, type JsonObject } from '../log/json.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import { blocksIn, levelOf, type MessageList, messageAt, messageCount } from '../request/block-index.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import type { PlannedMarker } from '../request/cache-markers.ts'
import { type Front, toolName } from '../request/prefix.ts'

export interface SentRequest {
  /** The query source: `repl_main_thread`, `agent:…`, `compact` … */
  readonly source: string
  /** When it was sent, in milliseconds: a cache counts its lifetime from here. */
  readonly at: number
  readonly tools: readonly SentPiece[]
  readonly system: readonly SentPiece[]
  readonly messages: MessageList
  readonly parameters: SentParameters
  /** In the order of the request. */
  readonly markers: readonly SentMarker[]
  /**
   * The source whose cache it reads: the request repeats that source's last one and adds messages that nobody
   * will send again. Where absent, a `compact` is a fork of the main thread.
   */
  readonly forkOf?: string
  /**
   * Messages, by index, that are other than their records say, and who made them so. For hosts that watch requests
   * of their own making; a turn of the engine sends what its records say, and no hook comes between.
   */
  readonly touched?: ReadonlyMap<number, Exclude<Hand, 'unknown'>>
}

/** A tool or a section of the system prompt: its text without any cache marker. */
export interface SentPiece {
  readonly name: string
  readonly text: string
}

/** Who changed what had been sent. */
export type Hand = 'clearing' | 'compaction' | 'hook' | 'host' | 'unknown'

/** What else a provider caches by, each as text. What it does not cache by (`max_tokens`, `metadata`) stays out. */
export interface SentParameters {
  readonly model: string
  readonly speed?: string | undefined
  readonly effort?: string | undefined
  readonly thinking?: string | undefined
  readonly toolChoice?: string | undefined
  readonly betas?: readonly string[] | undefined
  /** By name: extra body, context management, output format; also what is not sent and may tell why (overage, mode). */
  readonly others?: Readonly<Record<string, string>> | undefined
}

export type Zone = 'tools' | 'system' | 'messages'

export interface SentMarker {
  readonly zone: Zone
  /** Which tool, section or message. */
  readonly index: number
  /** Which block of the message. */
  readonly block?: number
  /** The lifetime, as the provider names it and in seconds. */
  readonly ttl: string
  readonly seconds: number
  readonly scope?: string
}

// From a request as the engine puts it together to what is watched of it. Costs nothing while the front is the same.

/** What is known only when a request goes out. */
export interface Sending extends Pick<SentRequest, 'source' | 'at' | 'forkOf' | 'touched'> {
  readonly cache: Pick<CacheRules, 'ttls' | 'defaultTtl'>
  /** Facts that are not sent and may tell why a cache is lost: overage, mode, strategy. */
  readonly circumstances?: Readonly<Record<string, string>>
  /** What was made of the request before: pieces of a front that still stands are taken over. */
  readonly previous?: WatchedRequest
}

export interface WatchedRequest extends SentRequest {
  readonly front: Front
}

export function sentRequest(request: AssembledRequest, sending: Sending): WatchedRequest {
  const { cache, previous, circumstances, ...given } = sending
  const { front, messages, markers, extra } = request
  const pieces = previous?.front === front ? previous : piecesOf(front)
  return {
    ...given,
    front,
    tools: pieces.tools,
    system: pieces.system,
    messages,
    parameters: sentParameters(front.model, { ...front.parameters, ...extra }, circumstances),
    markers: markers.map((marker) => markerOf(marker, cache)),
  }
}

/** Section by section, in the order in which they are sent. */
function piecesOf({ tools, system, standing }: Front): Pick<SentRequest, 'tools' | 'system'> {
  const texts = new Map(standing.epoch.sections.map(({ name, text }) => [name, text]))
  const names = system.flatMap(({ sections }) => sections)
  return {
    tools: tools.map((tool): SentPiece => ({ name: toolName(tool), text: JSON.stringify(tool) })),
    system: names.map((name): SentPiece => ({ name, text: texts.get(name) ?? '' })),
  }
}

const OWN = new Set(['speed', 'thinking', 'tool_choice', 'betas', 'output_config'])

/** What a provider caches by of the fields around the messages, in the shape in which it is compared. */
export function sentParameters(
  model: string,
  fields: JsonObject,
  circumstances: Sending['circumstances'] = {},
): SentParameters {
  const { effort, ...output } = isObject(fields.output_config) ? fields.output_config : {}
  const rest = Object.entries(fields).filter(([name]) => !OWN.has(name) && isKeyed(name))
  const others = { ...Object.fromEntries(rest), ...(Object.keys(output).length === 0 ? {} : { output }) }
  return {
    model,
    speed: textOf(fields.speed),
    effort: typeof effort === 'string' ? effort : undefined,
    thinking: textOf(fields.thinking),
    toolChoice: textOf(fields.tool_choice),
    betas: Array.isArray(fields.betas) ? fields.betas.map(String) : undefined,
    others: {
      ...Object.fromEntries(Object.entries(others).map(([name, value]) => [name, JSON.stringify(value)])),
      ...circumstances,
    },
  }
}

/** What a provider edits by itself is no key of its cache, and explains much. */
function isKeyed(name: string): boolean {
  return levelOf(name) !== null || name === 'context_management'
}

function textOf(value: Json | undefined): string | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function markerOf({ place, control }: PlannedMarker, { ttls, defaultTtl }: Sending['cache']): SentMarker {
  const ttl = typeof control.ttl === 'string' ? control.ttl : defaultTtl
  const seconds = ttls.find(({ name }) => name === ttl)?.seconds ?? 0
  return { ...place, ttl, seconds, ...(typeof control.scope === 'string' ? { scope: control.scope } : {}) }
}

// Where one request stops repeating another. Messages that are frozen are the same objects from request to
// request, so this costs what is new since, and only where references differ is anything read.

/** A block of a request: which message, and which of its blocks. */
export interface Place {
  readonly message: number
  readonly block: number
}

export function isBefore(one: Place, other: Place): boolean {
  return one.message < other.message || (one.message === other.message && one.block < other.block)
}

/** The first block of `before` that `after` does not repeat; null where it repeats them all. */
export function partingOf(before: MessageList, after: MessageList): Place | null {
  const start = after.frozen.extends(before.frozen) ? before.frozen.length : 0
  for (let index = start; index < messageCount(before); index += 1) {
    const block = partingBlock(messageAt(before, index), messageAt(after, index))
    if (block !== null) return { message: index, block }
  }
  return null
}

/** A message that only grew repeats what it was. */
function partingBlock(before: FlatMessage | undefined, after: FlatMessage | undefined): number | null {
  if (before === undefined || before === after) return null
  if (after === undefined || !sameHead(before, after)) return 0
  const blocks = blocksIn(before)
  const others = blocksIn(after)
  const parting = blocks.findIndex((block, index) => {
    const other = others[index]
    return other === undefined || !sameSent([before, block], [after, other], index)
  })
  return parting === -1 ? null : parting
}

/** Role, and the fields of a system message in mid-conversation. */
function sameHead(one: FlatMessage, other: FlatMessage): boolean {
  const { content: _, ...head } = one.message
  const { content: __, ...otherHead } = other.message
  return sameJson(head, otherHead)
}

type Placed = readonly [message: FlatMessage, block: Block]

function sameSent([one, block]: Placed, [other, otherBlock]: Placed, index: number): boolean {
  const raw = one.raw?.get(index)
  const otherRaw = other.raw?.get(index)
  if (raw === undefined && otherRaw === undefined) return sameBlock(block, otherBlock)
  return (raw ?? JSON.stringify(block)) === (otherRaw ?? JSON.stringify(otherBlock))
}

/** The text of a block as it is sent, markers and all; empty where there is none. */
export function textAt(messages: MessageList, { message, block }: Place): string {
  const found = messageAt(messages, message)
  return found === undefined || block >= blocksIn(found).length ? '' : blockText(found, block)
}

export function blockText(message: FlatMessage, index: number): string {
  return message.raw?.get(index) ?? JSON.stringify(blocksIn(message)[index] ?? null)
}

// Equality of what is sent. The order of keys counts: a provider caches bytes. Cache markers do not count.

const MARKER = 'cache_control'
/** Where blocks lie inside a block, and may have markers of their own. */
const INNER = new Set(['content', 'source'])

export function sameBlock(one: Block, other: Block): boolean {
  return same(one, other, true)
}

export function sameJson(one: unknown, other: unknown): boolean {
  return same(one, other, false)
}

/** `bare`: markers are left out of the comparison here, and where blocks lie further in. */
function same(one: unknown, other: unknown, bare: boolean): boolean {
  if (one === other) return true
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, index) => same(item, other[index], bare))
  }
  if (!isObject(one) || !isObject(other)) return false
  return sameFields(one, other, bare)
}

type Fields = { readonly [field: string]: unknown }

function sameFields(one: Fields, other: Fields, bare: boolean): boolean {
  const keys = keysOf(one, bare)
  const others = keysOf(other, bare)
  if (keys.length !== others.length) return false
  return keys.every(
    (key, index) => key === others[index] && same(one[key], other[key], bare && INNER.has(key)),
  )
}

/** What is undefined is not sent. */
function keysOf(fields: Fields, bare: boolean): readonly string[] {
  return Object.keys(fields).filter((key) => fields[key] !== undefined && !(bare && key === MARKER))
}
