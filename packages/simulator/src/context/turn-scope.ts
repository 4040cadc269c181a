/** System messages for one turn only: in the request for ever, before the model until the person speaks again. */
import type { MessageParam } from '../api.ts'
import type { Piece } from './piece.ts'

export function withoutCleared(
  pieces: readonly Piece[],
  messages: readonly MessageParam[],
): readonly Piece[] {
  if (!messages.some((message) => message.clear_at === 'next_user_message')) return pieces
  const lastUser = messages.findLastIndex((message) => message.role === 'user')
  return pieces.filter(
    ({ message }) => messages[message]?.clear_at !== 'next_user_message' || message > lastUser,
  )
}
