/** Places in a request, and where in its messages a thing stands. */
import { isToolResult } from '../conversation/block.ts'
import type { CacheRules } from '../policy/profile.ts'
import type { FlatMessage } from '../view/draft.ts'
import { canCarry } from '../view/validate/cache.ts'
import { isTurnScoped } from '../view/validate/system.ts'
import { blocksIn, type MessageList, messageAt, messageCount } from './count.ts'

/** A block of a message. */
export interface MessagePlace {
  readonly zone: 'messages'
  /** Which message. */
  readonly index: number
  readonly block: number
}

export type Place = { readonly zone: 'tools' | 'system'; readonly index: number } | MessagePlace

const ZONES = ['tools', 'system', 'messages']

/** In the order of a request. */
export function comparePlaces(one: Place, other: Place): number {
  const [left, right] = [numbersOf(one), numbersOf(other)]
  const differs = left.findIndex((part, index) => part !== right[index])
  return differs === -1 ? 0 : (left[differs] ?? 0) - (right[differs] ?? 0)
}

function numbersOf(place: Place): readonly number[] {
  return [ZONES.indexOf(place.zone), place.index, place.zone === 'messages' ? place.block : 0]
}

/** The last block in front of `before` that may carry a marker; without `before`, of all. */
export function lastMarkable(
  messages: MessageList,
  cache: CacheRules,
  before: Omit<MessagePlace, 'zone'> = { index: messageCount(messages), block: 0 },
): MessagePlace | null {
  for (let index = Math.min(before.index, messageCount(messages) - 1); index >= 0; index -= 1) {
    const message = messageAt(messages, index)
    if (message === undefined || isTurnScoped(message.message)) continue
    const blocks = index === before.index ? blocksIn(message).slice(0, before.block) : blocksIn(message)
    const block = blocks.findLastIndex((each) => canCarry(each, cache))
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}

/** Where the newest response begins: what the request that asked for it ended before. Null where there is none. */
export function lastResponse(messages: MessageList): number | null {
  for (let index = messageCount(messages) - 1; index >= 0; index -= 1) {
    if (messageAt(messages, index)?.message.role === 'assistant') return index
  }
  return null
}

/** Messages with the place of each tool call known, as flattening keeps them. */
export interface CallPlaces extends MessageList {
  readonly calls: { get(id: string): number | undefined }
}

/** The answer to a tool call. Looked for from where the call stands on. */
export function placeOfResult(messages: CallPlaces, id: string): MessagePlace | null {
  const from = messages.calls.get(id) ?? messages.frozen.length
  for (let index = from; index < messageCount(messages); index += 1) {
    const block = resultIn(messageAt(messages, index), id)
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}

function resultIn(message: FlatMessage | undefined, id: string): number {
  if (message === undefined) return -1
  return blocksIn(message).findIndex((block) => isToolResult(block) && block.tool_use_id === id)
}

/** The last block that comes from the record `uuid`, looked for from the front. */
export function placeOfRecord(messages: MessageList, uuid: string): MessagePlace | null {
  for (let index = 0; index < messageCount(messages); index += 1) {
    const block = messageAt(messages, index)?.origins.lastIndexOf(uuid) ?? -1
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}
