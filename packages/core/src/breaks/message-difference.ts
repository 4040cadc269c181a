/** What became of messages that had been sent: rewritten, taken out, something put between; or taken back by a rewind. */
import { CLEARED_TEXT } from '../conversation/boundary.ts'
import { blocksIn, type MessageList, messageAt, messageCount } from '../prompt/count.ts'
import { blockText, type Place, textAt } from './parting.ts'
import type { MessageDifference } from './reason.ts'
import type { Hand, SentRequest } from './sent.ts'

export interface Parting {
  readonly before: SentRequest
  readonly after: SentRequest
  /** Where `after` stops repeating `before`. */
  readonly place: Place
}

/**
 * Null where nothing of what was sent behind the parting is sent again: the conversation was taken back to there
 * and went another way, and nobody can expect the rest to be read.
 */
export function messageDifference(parting: Parting): MessageDifference | null {
  const { before, after, place } = parting
  const gone = saidFrom(before.messages, place)
  const sent = saidFrom(after.messages, place)
  const still = new Set(sent.map(({ id }) => id))
  if (!gone.some(({ id }) => still.has(id))) return null
  const [was, is] = [gone[0], sent[0]]
  const shared = { index: place.message, by: handOf(parting, (is ?? was)?.origin ?? null) }
  if (was?.id !== is?.id && was !== undefined && still.has(was.id))
    return {
      kind: 'message-inserted',
      origin: is?.origin ?? null,
      ...shared,
      characters: sizeFrom(after.messages, place),
    }
  const origin = was?.origin ?? null
  if (was?.id !== is?.id && gone.some(({ id }) => id === is?.id))
    return { kind: 'message-removed', origin, ...shared, characters: -sizeFrom(before.messages, place) }
  const characters = textAt(after.messages, place).length - textAt(before.messages, place).length
  return { kind: 'message-changed', origin, ...shared, characters }
}

interface SaidBlock {
  /** The record it comes from; where there is none, what it says. */
  readonly id: string
  readonly origin: string | null
}

/** What stands at that place and behind it. */
function saidFrom(messages: MessageList, place: Place): readonly SaidBlock[] {
  const said: SaidBlock[] = []
  for (let index = place.message; index < messageCount(messages); index += 1) {
    const message = messageAt(messages, index)
    if (message === undefined) break
    blocksIn(message).forEach((_, block) => {
      if (index === place.message && block < place.block) return
      const origin = message.origins[block] ?? ''
      said.push(origin === '' ? { id: blockText(message, block), origin: null } : { id: origin, origin })
    })
  }
  return said
}

/** Whoever made the message other than its records say; else what it now says tells. */
function handOf({ before, after, place }: Parting, origin: string | null): Hand {
  const touched = after.touched?.get(place.message) ?? before.touched?.get(place.message)
  if (touched !== undefined) return touched
  const isCleared = ({ messages }: SentRequest): boolean => textAt(messages, place).includes(CLEARED_TEXT)
  if (isCleared(after) && !isCleared(before)) return 'clearing'
  return origin === null ? 'host' : 'unknown'
}

/** Characters of the message from that block on. */
function sizeFrom(messages: MessageList, { message, block }: Place): number {
  const found = messageAt(messages, message)
  if (found === undefined) return 0
  return blocksIn(found).reduce((sum, _, at) => sum + (at < block ? 0 : blockText(found, at).length), 0)
}
