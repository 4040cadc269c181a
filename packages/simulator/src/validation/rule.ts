/**
 * Types for validation rules that a shape cannot express. A rule sees the whole request and returns the first
 * violation, or null.
 */

import type { ApiError } from '../protocol/answer.ts'
import type { CacheMarkers } from '../protocol/cache-markers.ts'
import {
  type MessageParam,
  type MessagesBody,
  type RequestBlock,
  toBlocks,
} from '../protocol/messages-request.ts'
import type { SimulatedModel } from '../protocol/models.ts'
import type { ApiFeatures } from './shape.ts'

export interface RuleContext {
  readonly body: MessagesBody
  readonly features: ApiFeatures
  readonly model: SimulatedModel
  readonly endpoint: 'messages' | 'count_tokens'
  readonly settings: RuleSettings
  /** Turns, blocks and cache markers of the body, computed once because many rules read them. */
  readonly turns: readonly ConversationTurn[]
  readonly pieces: readonly RequestBlock[]
  readonly markers: CacheMarkers
}

/** Settings for behaviour of the provider that is not documented. */
export interface RuleSettings {
  /**
   * `user` if the first message must be a user message. A message that begins with a compaction block may always be
   * first.
   */
  readonly firstRole: 'user' | 'any'
}

/**
 * Weight of one block in a pass over all blocks, for the slices in which a request is processed: the number of
 * characters that take as long to parse.
 */
export const CHARACTERS_PER_BLOCK = 20

/** Returns the error of the first violation; null if the request follows the rule. */
export type RequestRule = (request: RuleContext) => ApiError | null

/** A turn of the conversation: consecutive messages of one role. */
export interface ConversationTurn {
  readonly role: MessageParam['role']
  readonly blocks: readonly RequestBlock[]
}

export function groupTurns(messages: readonly MessageParam[]): readonly ConversationTurn[] {
  const turns: { role: ConversationTurn['role']; blocks: RequestBlock[] }[] = []
  for (const [message, { role, content }] of messages.entries()) {
    let turn = turns.at(-1)
    if (turn === undefined || turn.role !== role) {
      turn = { role, blocks: [] }
      turns.push(turn)
    }
    for (const [index, block] of toBlocks(content).entries())
      turn.blocks.push({ role, message, index, block })
  }
  return turns
}

export function isOnDemandCompaction({ body }: RuleContext): boolean {
  return body.compaction != null
}
