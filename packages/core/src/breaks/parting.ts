/**
 * Where one request stops repeating another. Messages that are frozen are the same objects from request to
 * request, so this costs what is new since, and only where references differ is anything read.
 */
import type { Block } from '../conversation/block.ts'
import { blocksIn, type MessageList, messageAt, messageCount } from '../prompt/count.ts'
import type { FlatMessage } from '../view/draft.ts'
import { sameBlock, sameJson } from './same-json.ts'

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
