/** What should be read: what the last call left behind, as far as this request repeats it. */
import { type Block, isThinking } from '../conversation/block.ts'
import { partsOfBlock } from '../measure/estimate-parts.ts'
import { blocksIn, type Counted, messageAt, messageCount } from '../prompt/count.ts'
import { messageHolding } from '../prompt/marks.ts'
import type { PricedAnnouncement } from './announcement.ts'
import { lastMarked, readableEntry } from './entries.ts'
import type { CacheFigures } from './figures.ts'
import { messageDifference } from './message-difference.ts'
import { isBefore, type Place, partingOf } from './parting.ts'
import type { MessageDifference } from './reason.ts'
import type { Answered, Pending } from './watch.ts'

export interface ReadingRules {
  /** Positions a marker looks back. */
  readonly lookBack: number
  /** The provider leaves out the thinking of finished turns, and with it their tokens. */
  readonly stripsFinishedTurns: boolean
}

export interface Expectation {
  readonly tokens: number
  /** Where the request stops repeating the last one within what was cached; null where it repeats it all. */
  readonly parting: Place | null
  /** What became of the messages there; null where they are as they were, or were taken back by a rewind. */
  readonly change: MessageDifference | null
  /** What can still be read in front of the parting, for certain. */
  readonly floor: number
}

export interface ExpectationQuestion {
  readonly pending: Pending
  readonly against: Answered
  /** The messages of what is pending. */
  readonly counted: Counted
  readonly rules: ReadingRules
}

export function expectationOf({ pending, against, counted, rules }: ExpectationQuestion): Expectation {
  const { sent, announced } = pending
  const isClearing = announced.some(({ kind }) => kind === 'clearing')
  const found = partingOf(against.sent.messages, sent.messages)
  if (found === null || isBefore(lastMarked(against.sent), found)) {
    // Announced, and not in the messages: it is the provider that clears, and nobody knows where.
    const tokens = isClearing ? 0 : whole(against, counted, rules)
    return { tokens, parting: null, change: null, floor: 0 }
  }
  const floor =
    readableEntry({ entries: against.entries, sent, counted, lookBack: rules.lookBack, limit: found })
      ?.tokens ?? 0
  const change = messageDifference({ before: against.sent, after: sent, place: found })
  const tokens = change === null || isClearing ? floor : whole(against, counted, rules)
  return { tokens, parting: found, change, floor }
}

/** Less what the provider was asked to delete, and says it did; null where it does not say. */
export function withoutDeleted(
  expected: number,
  announced: readonly PricedAnnouncement[],
  { deleted }: CacheFigures,
): number | null {
  const edits = announced.find((announcement) => announcement.kind === 'cache-edits')
  if (edits === undefined) return expected
  return deleted === null ? null : Math.max(0, expected - Math.max(0, deleted - edits.deletedBefore))
}

/** Counted while the request was made: where nothing is left out, nothing has to be looked for. */
function whole(against: Answered, counted: Counted, { stripsFinishedTurns }: ReadingRules): number {
  const isOver = stripsFinishedTurns && counted.end.prompt > against.counted.end.prompt
  return Math.max(0, against.cached - (isOver ? thinkingTokens(against.counted) : 0))
}

/** Seen on real sessions, a little high: better to expect too little than to see a break where there is none. */
const TEXT_PER_TOKEN = 3
const CIPHER_PER_TOKEN = 4.9

/** The thinking of the turn that the request went on with: what stands behind the newest end of one. */
function thinkingTokens(counted: Counted): number {
  let tokens = 0
  const { messages, end } = counted
  for (let index = messageHolding(counted, end.prompt + 1); index < messageCount(messages); index += 1) {
    const message = messageAt(messages, index)
    const blocks = message === undefined ? [] : blocksIn(message)
    for (const block of blocks) if (isThinking(block)) tokens += thoughtTokens(block)
  }
  return Math.ceil(tokens)
}

/** A signature grows with all that was thought, shown or not. */
function thoughtTokens(block: Block): number {
  const { texts, cipher } = partsOfBlock(block, 'json')
  const characters = texts.reduce((sum, text) => sum + text.length, 0)
  return Math.max(characters / TEXT_PER_TOKEN, cipher / CIPHER_PER_TOKEN)
}
