/** A rule of the API that a shape cannot say. Each looks at the whole request and finds the first breach. */

import type { Refusal } from '../protocol/answer.ts'
import { type Block, blocksOf, type MessageParam, type MessagesBody } from '../protocol/api.ts'
import type { Markers } from '../protocol/cache-markers.ts'
import type { SimulatedModel } from '../protocol/models.ts'
import type { Gate } from './shape.ts'

export interface CheckedRequest {
  readonly body: MessagesBody
  readonly gate: Gate
  readonly model: SimulatedModel
  readonly endpoint: 'messages' | 'count_tokens'
  readonly settings: RuleSettings
  /** The messages as turns, and the markers: looked at by many rules, worked out once. */
  readonly turns: readonly Turn[]
  readonly markers: Markers
}

/** What is not certain about the provider's rules, and so can be set. */
export interface RuleSettings {
  /** Whether a conversation must begin with the person; a compaction block may always stand first. */
  readonly firstRole: 'user' | 'any'
}

export type Rule = (request: CheckedRequest) => Refusal | null

/** Messages of one role in a row are one turn; a system message stands by itself. */
export interface Turn {
  readonly role: MessageParam['role']
  readonly blocks: readonly PlacedBlock[]
  /** Index of the last message of the turn. */
  readonly lastMessage: number
}

export interface PlacedBlock {
  readonly block: Block
  readonly message: number
  readonly index: number
}

export function pathOf(placed: PlacedBlock): string {
  return `messages.${placed.message}.content.${placed.index}`
}

export function turnsOf(messages: readonly MessageParam[]): readonly Turn[] {
  const turns: { role: Turn['role']; blocks: PlacedBlock[]; lastMessage: number }[] = []
  for (const [message, { role, content }] of messages.entries()) {
    let turn = turns.at(-1)
    if (turn === undefined || turn.role !== role) {
      turn = { role, blocks: [], lastMessage: message }
      turns.push(turn)
    }
    turn.lastMessage = message
    for (const [index, block] of blocksOf(content).entries()) turn.blocks.push({ block, message, index })
  }
  return turns
}
