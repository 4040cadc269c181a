/** Section 6, "All user messages": word for word, the newest and the first before the others where room is short. */
import { beginning } from './cut-text.ts'
import { type MessageRules, type PersonMessage, shownText } from './person-message.ts'
import type { Piece } from './piece.ts'

export const MESSAGES = 'messages'
const SHORT = 200

/** The newest and the first request have `rank`, the rest the next one, from new to old. */
export function messagePieces(
  messages: readonly PersonMessage[],
  rank: number,
  rules: MessageRules,
): readonly Piece[] {
  const pieces = messages.map((message, index) => messagePiece(message, index, rules))
  return pieces
    .map((piece, index) => ({ ...piece, rank: index === 0 || index === pieces.length - 1 ? rank : rank + 1 }))
    .toReversed()
}

function messagePiece(message: PersonMessage, index: number, rules: MessageRules): Omit<Piece, 'rank'> {
  const { text, uuid } = message
  const full = `[${index + 1}] ${shownText(message, rules)}`
  const short = `[${index + 1}] ${beginning(text, SHORT)} (in full in record ${uuid})`
  const isShort = text.length <= SHORT
  return { section: 6, order: index, full, short: isShort ? null : short, group: MESSAGES, id: uuid }
}
