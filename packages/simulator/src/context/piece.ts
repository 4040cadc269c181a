/** A conversation laid flat: each block with whose it is and where in the request it came from. */
import { type Block, blocksOf, type MessageParam, type Role } from '../api.ts'

export interface Piece {
  readonly role: Role
  /** Index of the message in the request, and of the block in it. */
  readonly message: number
  readonly index: number
  readonly block: Block
}

export function piecesOf(messages: readonly MessageParam[]): readonly Piece[] {
  const pieces: Piece[] = []
  for (let message = 0; message < messages.length; message += 1) {
    const entry = messages[message]
    if (entry === undefined) continue
    const blocks = blocksOf(entry.content)
    for (let index = 0; index < blocks.length; index += 1) {
      const block = blocks[index]
      if (block !== undefined) pieces.push({ role: entry.role, message, index, block })
    }
  }
  return pieces
}

export function pathOf(piece: Piece): string {
  return `messages.${piece.message}.content.${piece.index}`
}

/** Back to messages, one for each that still has something in it. */
export function messagesFrom(pieces: readonly Piece[]): readonly MessageParam[] {
  const messages: { role: Role; content: Block[] }[] = []
  let last: Piece | undefined
  for (const piece of pieces) {
    if (last === undefined || last.message !== piece.message) messages.push({ role: piece.role, content: [] })
    messages.at(-1)?.content.push(piece.block)
    last = piece
  }
  return messages
}
