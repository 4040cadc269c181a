/**
 * What a host says without the cache markers it brought along. Where the engine does the caching all markers are
 * its own: those of others would come on top of the four there may be, with lifetimes that need not fit, and what
 * is once in the log would be sent for ever. What stays the same stays the same object.
 */
import { type Block, isToolResult } from '../conversation/block.ts'
import { isObject, type JsonObject } from '../conversation/json.ts'
import { List } from '../conversation/list.ts'
import type { FlatMessage } from '../view/draft.ts'
import { blocksIn, type MessageList } from './count.ts'

const EMPTY = List.of<FlatMessage>()

export interface Unmarked extends MessageList {
  /** The frozen messages as they were given. */
  readonly given: List<FlatMessage>
}

/** `from`: what was made of an earlier state; only what has come since is looked at. */
export function unmarkedMessages({ frozen: given, tail }: MessageList, from?: Unmarked): Unmarked {
  const isGrown = from !== undefined && given.extends(from.given)
  const known = isGrown ? from.given.length : 0
  const isPlain = !isGrown || from.frozen === from.given
  return {
    given,
    frozen: isPlain && !isMarkedFrom(given, known) ? given : withNews(given, isGrown ? from : undefined),
    tail: tail.some(isMarked) ? tail.map(unmarkedMessage) : tail,
  }
}

function isMarkedFrom(messages: List<FlatMessage>, start: number): boolean {
  for (let index = start; index < messages.length; index += 1) {
    const message = messages.at(index)
    if (message !== undefined && isMarked(message)) return true
  }
  return false
}

function withNews(given: List<FlatMessage>, from: Unmarked | undefined): List<FlatMessage> {
  let frozen = from?.frozen ?? EMPTY
  for (const message of given.toArray(frozen.length)) frozen = frozen.push(unmarkedMessage(message))
  return frozen
}

export function unmarkedMessage(message: FlatMessage): FlatMessage {
  if (!isMarked(message)) return message
  const blocks = blocksIn(message)
  const kept = [...(message.raw ?? [])].filter(([at]) => !hasMarker(blocks[at]))
  const { raw: _, ...rest } = message
  const plain = { ...rest, message: { ...message.message, content: blocks.map(unmarkedBlock) } }
  return kept.length === 0 ? plain : { ...plain, raw: new Map(kept) }
}

function isMarked(message: FlatMessage): boolean {
  return typeof message.message.content !== 'string' && message.message.content.some(hasMarker)
}

/** Markers inside a result count like any other. */
function hasMarker(block: Block | undefined): boolean {
  if (block === undefined) return false
  return 'cache_control' in block || innerOf(block).some((held) => isObject(held) && 'cache_control' in held)
}

function innerOf(block: Block): readonly unknown[] {
  return isToolResult(block) && Array.isArray(block.content) ? block.content : []
}

function unmarkedBlock(block: Block): Block {
  if (!hasMarker(block)) return block
  const { cache_control: _, ...plain } = block
  const inner = innerOf(block)
  return inner.length === 0 ? plain : { ...plain, content: inner.map(bare) }
}

function bare(value: unknown): unknown {
  if (!isObject(value) || !('cache_control' in value)) return value
  const { cache_control: _, ...plain } = value
  return plain
}

/** Tools and parameters likewise: a marker on the whole request is one more. */
export function unmarkedFields<T extends JsonObject>(fields: T): T {
  if (!('cache_control' in fields)) return fields
  return Object.fromEntries(Object.entries(fields).filter(([name]) => name !== 'cache_control')) as T
}
