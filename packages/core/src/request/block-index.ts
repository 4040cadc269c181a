/**
 * Messages counted the way a cache looks back over them: block by block, calls in a row and results in a row as
 * one position where the provider counts so. Keeps pace with flattening: what is frozen is counted once.
 */

import type { FlatMessage } from '../context/message-parts.ts'
import type { Role } from '../context/payload.ts'
import { List } from '../log/append-list.ts'
import { type Block, blocksOf, isThinking } from '../log/block.ts'
import { isObject, type Json, type JsonObject } from '../log/json.ts'
import { goesBeyondResults } from '../log/record.ts'
import { type Front, isOffered } from './prefix.ts'

/** Messages by reference: those that will not change, and those behind them as they would be sent now. */
export interface MessageList {
  readonly frozen: List<FlatMessage>
  readonly tail: readonly FlatMessage[]
}

/** What of the messages as a whole a cache depends on. */
export interface Traits {
  readonly hasImages: boolean
  /** A document that is to be cited. */
  readonly cites: boolean
  /** Tools are defined in mid-conversation. */
  readonly definesTools: boolean
}

/** How far a list has come. */
export interface Count {
  readonly blocks: number
  readonly positions: number
  /** Blocks of thinking among them. */
  readonly thoughts: number
  /** The run that the next block may belong to. */
  readonly run: string | null
  /** Blocks before the newest one that ended a turn. */
  readonly prompt: number
  readonly traits: Traits
}

/** The messages with the count before each. */
export interface Counted {
  readonly messages: MessageList
  readonly starts: List<Count>
  readonly tailStarts: readonly Count[]
  /** Behind what is frozen. */
  readonly frozenEnd: Count
  readonly end: Count
  readonly collapses: boolean
}

const NO_TRAITS: Traits = { hasImages: false, cites: false, definesTools: false }
const START: Count = { blocks: 0, positions: 0, thoughts: 0, run: null, prompt: 0, traits: NO_TRAITS }

/** `collapses`: runs of calls and of results are one position. `from`: the count of an earlier state. */
export function countMessages(messages: MessageList, collapses: boolean, from?: Counted): Counted {
  const isGrown = from?.collapses === collapses && messages.frozen.extends(from.messages.frozen)
  let [starts, frozenEnd] = isGrown ? [from.starts, from.frozenEnd] : [List.of<Count>(), START]
  for (let index = starts.length; index < messages.frozen.length; index += 1) {
    starts = starts.push(frozenEnd)
    frozenEnd = countMessage(frozenEnd, messages.frozen.at(index), collapses)
  }
  const tailStarts: Count[] = []
  let end = frozenEnd
  for (const message of messages.tail) {
    tailStarts.push(end)
    end = countMessage(end, message, collapses)
  }
  return { messages, starts, tailStarts, frozenEnd, end, collapses }
}

export function messageCount({ frozen, tail }: MessageList): number {
  return frozen.length + tail.length
}

export function messageAt({ frozen, tail }: MessageList, index: number): FlatMessage | undefined {
  return index < frozen.length ? frozen.at(Math.max(0, index)) : tail[index - frozen.length]
}

/** A string is one block, an empty one none: as it is sent. */
export function blocksIn({ message: { content } }: FlatMessage): readonly Block[] {
  return content === '' ? [] : blocksOf(content)
}

/** The count before the message at `index`; behind the last one it is that of the end. */
export function countBefore(counted: Counted, index: number): Count {
  const { starts, tailStarts, end } = counted
  return starts.at(index) ?? tailStarts[index - starts.length] ?? end
}

/** The count up to and including a block. */
export function countThrough(counted: Counted, index: number, block: number): Count {
  const message = messageAt(counted.messages, index)
  let count = countBefore(counted, index)
  if (message === undefined) return count
  for (const each of blocksIn(message).slice(0, block + 1)) {
    count = countBlock(count, { block: each, role: message.message.role }, counted.collapses)
  }
  return count
}

function countMessage(before: Count, message: FlatMessage | undefined, collapses: boolean): Count {
  if (message === undefined) return before
  const { role } = message.message
  return blocksIn(message).reduce((count, block) => countBlock(count, { block, role }, collapses), before)
}

const RUNS = new Set(['tool_use', 'tool_result'])

interface Said {
  readonly role: Role
  readonly block: Block
}

function countBlock(count: Count, { role, block }: Said, collapses: boolean): Count {
  // A word to the provider about its cache, and no part of the prompt.
  if (block.type === 'cache_edits') return { ...count, blocks: count.blocks + 1 }
  const run = collapses && RUNS.has(block.type) ? `${role} ${block.type}` : null
  const goesOn = run !== null && run === count.run
  return {
    blocks: count.blocks + 1,
    positions: count.positions + (goesOn ? 0 : 1),
    thoughts: count.thoughts + (isThinking(block) ? 1 : 0),
    run,
    prompt: role === 'user' && goesBeyondResults(block) ? count.blocks : count.prompt,
    traits: withTraits(count.traits, block),
  }
}

function withTraits(traits: Traits, block: Block): Traits {
  const inner: readonly unknown[] = Array.isArray(block.content) ? block.content : []
  const all = block.type === 'tool_result' ? [block, ...inner.filter(isObject)] : [block]
  const hasImages = traits.hasImages || all.some(({ type }) => type === 'image')
  const cites = traits.cites || all.some(({ citations }) => isObject(citations) && citations.enabled === true)
  const definesTools = traits.definesTools || definesTool(block)
  const isSame =
    hasImages === traits.hasImages && cites === traits.cites && definesTools === traits.definesTools
  return isSame ? traits : { hasImages, cites, definesTools }
}

function definesTool({ type, tool }: Block): boolean {
  return type === 'tool_addition' && isObject(tool) && isObject(tool.definition)
}

// How far two requests say the same, block by block: tools, system prompt, messages. References are compared
// first; a request that grew out of the other is looked at only from where it grew.

export interface SaidBlocks {
  readonly front: Front
  readonly counted: Counted
}

/** Blocks in front of the messages, in order. */
export function frontBlocks({ tools, system }: Front): readonly (JsonObject | Block)[] {
  return [...tools.filter(isOffered), ...system.map(({ block }) => block)]
}

/** How many leading blocks of the two are the same. */
export function sharedBlocks(one: SaidBlocks, other: SaidBlocks): number {
  const front = frontBlocks(one.front)
  const theirs = one.front === other.front ? front : frontBlocks(other.front)
  const differs = front.findIndex((block, index) => !sameValue(block, theirs[index]))
  if (differs !== -1) return differs
  return theirs.length > front.length
    ? front.length
    : front.length + sharedInMessages(one.counted, other.counted)
}

function sharedInMessages(one: Counted, other: Counted): number {
  const start = sharedMessages(one, other)
  const before = countBefore(one, start).blocks
  const theirs = blocksFrom(other, start)
  let same = 0
  for (const block of blocksFrom(one, start)) {
    const { value } = theirs.next()
    if (value === undefined || !sameBlock(block, value)) break
    same += 1
  }
  return before + same
}

/** Messages that are the same for certain, since one list grew out of the other. */
function sharedMessages({ messages: one }: Counted, { messages: other }: Counted): number {
  const [short, long] = one.frozen.length <= other.frozen.length ? [one, other] : [other, one]
  return long.frozen.extends(short.frozen) ? short.frozen.length : 0
}

interface SaidBlock {
  readonly role: Role
  readonly block: Block
  readonly raw: string | undefined
}

function* blocksFrom({ messages }: Counted, start: number): Generator<SaidBlock, undefined> {
  for (let index = start; index < messageCount(messages); index += 1) {
    const message = messageAt(messages, index)
    if (message !== undefined) yield* blocksOfMessage(message)
  }
}

function* blocksOfMessage(message: FlatMessage): Generator<SaidBlock, undefined> {
  const { role } = message.message
  for (const [index, block] of blocksIn(message).entries()) {
    yield { role, block, raw: message.raw?.get(index) }
  }
}

function sameBlock(one: SaidBlock, other: SaidBlock): boolean {
  if (one.role !== other.role) return false
  if (one.block === other.block) return true
  return (one.raw ?? JSON.stringify(one.block)) === (other.raw ?? JSON.stringify(other.block))
}

function sameValue(one: object, other: object | undefined): boolean {
  return one === other || (other !== undefined && JSON.stringify(one) === JSON.stringify(other))
}

// What besides the blocks of a request a provider's cache depends on, level by level: a change on one level
// loses that level and those behind it, never those before. What no cache depends on may change at any time.

/** The order of a prefix: tools first, then the system prompt, then the messages. */
export type Level = 'tools' | 'system' | 'messages'

export type CacheKey = Readonly<Record<Level, string>>

/** Parameters on another level than the messages'; null: on none. */
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

/** The level that a change of this parameter loses; null where it loses nothing. One nobody knows counts as the messages'. */
export function levelOf(parameter: string): Level | null {
  const level = LEVELS.get(parameter)
  return level === undefined ? 'messages' : level
}

/** What a request says that its cache depends on, its blocks aside. */
export interface Keyed {
  /** The model among them. */
  readonly parameters: JsonObject
  readonly traits: Traits
  /** Tools are declared in front: where none is, the first that comes later changes how everything begins. */
  readonly declaresTools: boolean
}

export function cacheKey({ parameters, traits, declaresTools }: Keyed): CacheKey {
  const on = (level: Level): readonly string[] =>
    Object.keys(parameters)
      .filter((name) => levelOf(name) === level)
      .sort()
      .map((name) => `${name}=${spelled(name, parameters[name] ?? null)}`)
  const tools = [...on('tools'), traits.definesTools && !declaresTools ? 'tools in messages' : '']
  const system = [...on('system'), traits.cites ? 'citations' : '']
  const messages = [...on('messages'), traits.hasImages ? 'images' : '']
  return { tools: tools.join('\n'), system: system.join('\n'), messages: messages.join('\n') }
}

/** Betas are a set. */
function spelled(name: string, value: Json): string {
  const isSet = name === 'betas' && Array.isArray(value)
  return JSON.stringify(isSet ? value.toSorted() : value)
}

const LEVEL_ORDER: readonly Level[] = ['tools', 'system', 'messages']

/** Would a prefix that ends on `level` be found under the other key? */
export function sameKey(one: CacheKey, other: CacheKey, level: Level): boolean {
  const levels = LEVEL_ORDER.slice(0, LEVEL_ORDER.indexOf(level) + 1)
  return levels.every((each) => one[each] === other[each])
}
