/**
 * A provider's prompt cache, written apart from the detector that it tests: entries only where a marker stood, a
 * look-back, lifetimes refreshed by use, and a key made of all that a real one is made of, zone by zone.
 */

import type { SentMarker, SentRequest } from '../../src/cache/sent-request.ts'
import { type Block, blocksOf } from '../../src/log/block.ts'
import type { Usage } from '../../src/log/record.ts'

export interface CacheHabits {
  /** Some providers take lifetime and scope of the markers into the key. */
  readonly keysByMarker?: boolean
}

export interface HonestCache {
  answer(sent: SentRequest): Usage
  /** Forgets everything, as a provider may at any time. */
  evict(): void
}

interface Entry {
  readonly expiresAt: number
  readonly seconds: number
}

/** One position of a request: the key of all up to it, and the tokens. */
interface Position {
  readonly key: number
  readonly tokens: number
  readonly run: string | null
}

const LOOK_BACK = 20

export function createHonestCache(habits: CacheHabits = {}): HonestCache {
  const entries = new Map<number, Entry>()
  function lives(key: number, now: number): boolean {
    const entry = entries.get(key)
    return entry !== undefined && now <= entry.expiresAt
  }
  return {
    answer(sent) {
      const { positions, places } = layOut(sent, habits)
      const marks = sent.markers.map((marker) => ({ marker, at: places(marker) }))
      const hits = marks.map(({ at }) => hitFrom(positions, at, (key) => lives(key, sent.at)))
      const hit = Math.max(-1, ...hits)
      const touched = [
        ...marks,
        ...(hit >= 0 ? [{ marker: refreshing(entries, positions[hit]?.key), at: hit }] : []),
      ]
      for (const { marker, at } of touched) {
        const key = positions[at]?.key
        if (key === undefined || marker === null) continue
        entries.set(key, { expiresAt: sent.at + marker.seconds * 1000, seconds: marker.seconds })
      }
      return usageOf(positions, hit, marks)
    },
    evict: () => entries.clear(),
  }
}

/** An entry that is read lives as long again as it was given. */
function refreshing(
  entries: Map<number, Entry>,
  key: number | undefined,
): { readonly seconds: number } | null {
  return key === undefined ? null : (entries.get(key) ?? null)
}

function hitFrom(positions: readonly Position[], from: number, lives: (key: number) => boolean): number {
  let looked = 1
  for (let at = from; at >= 0; at -= 1) {
    if (lives(positions[at]?.key ?? Number.NaN)) return at
    const isRun = positions[at]?.run !== null && positions[at]?.run === positions[at - 1]?.run
    if (!isRun) looked += 1
    if (looked > LOOK_BACK) return -1
  }
  return -1
}

function usageOf(
  positions: readonly Position[],
  hit: number,
  marks: readonly { readonly marker: SentMarker; readonly at: number }[],
): Usage {
  const total = positions.at(-1)?.tokens ?? 0
  const read = positions[hit]?.tokens ?? 0
  const end = (seconds: number): number =>
    Math.max(
      read,
      ...marks.filter(({ marker }) => marker.seconds >= seconds).map(({ at }) => positions[at]?.tokens ?? 0),
    )
  const [hour, last] = [end(3600), end(0)]
  return {
    input_tokens: total - last,
    output_tokens: 10,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: last - read,
    cache_creation: { ephemeral_1h_input_tokens: hour - read, ephemeral_5m_input_tokens: last - hour },
  }
}

interface Layout {
  readonly positions: readonly Position[]
  readonly places: (marker: SentMarker) => number
}

function layOut({ tools, system, messages, parameters, markers }: SentRequest, habits: CacheHabits): Layout {
  const positions: Position[] = []
  const marks = habits.keysByMarker === true ? markers.map(({ ttl, scope }) => [ttl, scope]) : []
  let key = mixed(hashed(JSON.stringify([parameters.model, parameters.betas, parameters.others, marks])), 1)
  let tokens = 0
  const add = (text: number, size: number, run: string | null): void => {
    key = mixed(key, text)
    tokens += size
    positions.push({ key, tokens, run })
  }
  for (const { text } of tools) add(hashed(text), tokensIn(text), null)
  key = mixed(key, hashed(`speed ${parameters.speed}`))
  for (const { text } of system) add(hashed(text), tokensIn(text), null)
  const all = [...messages.frozen, ...messages.tail]
  const hasImages = all.some(({ message }) => JSON.stringify(message).includes('"type":"image"'))
  key = mixed(
    key,
    hashed(JSON.stringify([parameters.thinking, parameters.effort, parameters.toolChoice, hasImages])),
  )
  const starts = all.map(({ message }) => {
    const start = positions.length
    for (const block of blocksOf(message.content)) add(hashOf(block), sizeOf(block), runOf(block))
    return start
  })
  const places = ({ zone, index, block = 0 }: SentMarker): number => {
    if (zone === 'messages') return (starts[index] ?? 0) + block
    return zone === 'tools' ? index : tools.length + index
  }
  return { positions, places }
}

function runOf({ type }: Block): string | null {
  return type === 'tool_use' || type === 'tool_result' ? type : null
}

const known = new WeakMap<Block, { readonly hash: number; readonly size: number }>()

function measured(block: Block): { readonly hash: number; readonly size: number } {
  const text = JSON.stringify(block)
  const found = known.get(block) ?? { hash: hashed(text), size: tokensIn(text) }
  known.set(block, found)
  return found
}

function hashOf(block: Block): number {
  return (known.get(block) ?? measured(block)).hash
}

function sizeOf(block: Block): number {
  return (known.get(block) ?? measured(block)).size
}

function tokensIn(text: string): number {
  return Math.ceil(text.length / 4)
}

function mixed(one: number, other: number): number {
  return (Math.imul(one ^ (other >>> 3), 0x5bd1e995) ^ Math.imul(other + 0x9e3779b9, 0x85ebca6b)) >>> 0
}

function hashed(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}
