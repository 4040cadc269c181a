/** Rules of the API that a shape cannot express. A rule sees the whole request and returns the first violation. */

import type { Refusal } from '../protocol/answer.ts'
import { blocksOf, type MessageParam, type MessagesBody, type Piece } from '../protocol/api.ts'
import type { Markers } from '../protocol/cache-markers.ts'
import type { SimulatedModel } from '../protocol/models.ts'
import type { Gate } from './shape.ts'

export interface CheckedRequest {
  readonly body: MessagesBody
  readonly features: Gate
  readonly model: SimulatedModel
  readonly endpoint: 'messages' | 'count_tokens'
  readonly settings: RuleSettings
  /** Turns, blocks and markers are derived from the body once, because many rules read them. */
  readonly turns: readonly Turn[]
  readonly pieces: readonly Piece[]
  readonly markers: Markers
}

/** Behaviour of the provider that is not documented and can therefore be set. */
export interface RuleSettings {
  /** Whether a conversation must begin with a user message. A compaction block may come first in any case. */
  readonly firstRole: 'user' | 'any'
}

export type Rule = (request: CheckedRequest) => Refusal | null

/** Consecutive messages of one role. */
export interface Turn {
  readonly role: MessageParam['role']
  readonly blocks: readonly Piece[]
}

export function turnsOf(messages: readonly MessageParam[]): readonly Turn[] {
  const turns: { role: Turn['role']; blocks: Piece[] }[] = []
  for (const [message, { role, content }] of messages.entries()) {
    let turn = turns.at(-1)
    if (turn === undefined || turn.role !== role) {
      turn = { role, blocks: [] }
      turns.push(turn)
    }
    for (const [index, block] of blocksOf(content).entries())
      turn.blocks.push({ role, message, index, block })
  }
  return turns
}

export function asksForCompaction({ body }: CheckedRequest): boolean {
  return body.compaction != null
}
