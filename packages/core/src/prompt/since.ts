/** What a conversation has said since a request was sent: what a fork of that request must add to show all of it. */
import type { FlatMessage } from '../view/draft.ts'
import { type AssembledRequest, unmarkedOf } from './assemble.ts'
import { blocksIn, countMessages, type MessageList, messageAt, messageCount } from './count.ts'
import { blocksOfRequest } from './marks.ts'
import { sharedBlocks } from './shared-blocks.ts'
import { unmarkedMessages } from './unmarked.ts'

/** Null where the conversation no longer begins as it was sent: then there is nothing to fork from. */
export function messagesSince(sent: AssembledRequest, said: MessageList): readonly FlatMessage[] | null {
  const made = unmarkedOf(sent)
  const now = made === undefined ? said : unmarkedMessages(said, made)
  const counted = countMessages(now, sent.counted.collapses, sent.counted)
  const all = blocksOfRequest(sent)
  if (sharedBlocks(sent, { front: sent.front, counted }) < all) return null
  const last = messageCount(sent.messages) - 1
  const since: FlatMessage[] = restOf(messageAt(sent.messages, last), messageAt(now, last))
  for (let index = last + 1; index < messageCount(now); index += 1) {
    const message = messageAt(now, index)
    if (message !== undefined) since.push(message)
  }
  return since
}

/** What came into the message that was last when the request went out. */
function restOf(sent: FlatMessage | undefined, now: FlatMessage | undefined): FlatMessage[] {
  if (sent === undefined || now === undefined) return []
  const from = blocksIn(sent).length
  const blocks = blocksIn(now).slice(from)
  if (blocks.length === 0) return []
  const raw = new Map(
    [...(now.raw ?? [])].filter(([at]) => at >= from).map(([at, text]) => [at - from, text]),
  )
  const message = { ...now.message, content: blocks }
  return [{ message, origins: now.origins.slice(from), ...(raw.size > 0 ? { raw } : {}) }]
}
