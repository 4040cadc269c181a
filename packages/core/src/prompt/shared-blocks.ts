/**
 * How far two requests say the same, block by block: tools, system prompt, messages. References are compared
 * first; a request that grew out of the other is looked at only from where it grew.
 */
import type { Block } from '../conversation/block.ts'
import type { JsonObject } from '../conversation/json.ts'
import type { FlatMessage } from '../view/draft.ts'
import type { Role } from '../view/payload.ts'
import { blocksIn, type Counted, countBefore, messageAt, messageCount } from './count.ts'
import { type Front, isOffered } from './front.ts'

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
