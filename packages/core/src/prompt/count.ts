/**
 * Messages counted the way a cache looks back over them: block by block, calls in a row and results in a row as
 * one position where the provider counts so. Keeps pace with flattening: what is frozen is counted once.
 */
import { type Block, blocksOf, isThinking } from '../conversation/block.ts'
import { isObject } from '../conversation/json.ts'
import { List } from '../conversation/list.ts'
import { goesBeyondResults } from '../conversation/turn-end.ts'
import type { FlatMessage } from '../view/draft.ts'
import type { Role } from '../view/payload.ts'

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
