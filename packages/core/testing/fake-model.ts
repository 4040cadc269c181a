/** A model that answers with the replies it is given, streamed event by event as a provider does. */
import type { Model, ModelCall } from '../src/engine/ports.ts'
import { type BlockEnded, collectReply, type ModelFailure, type ReplyEvent } from '../src/engine/reply.ts'
import type { Block } from '../src/log/block.ts'
import type { JsonObject } from '../src/log/json.ts'

export interface FakeReply {
  readonly blocks: readonly Block[]
  /** Id of the message; `message-1`, `message-2`, … unless given. */
  readonly id?: string
  /** `end_turn` unless given. */
  readonly stop?: string
  /** The reply fails after its blocks. */
  readonly failure?: ModelFailure
  /** Index of the tool call whose input is cut off. */
  readonly cut?: number
  /** Figures beside the output tokens. */
  readonly usage?: JsonObject
  /** Further fields of the message. */
  readonly fields?: JsonObject
}

export interface FakeModel extends Model {
  /** Every call so far. */
  readonly calls: readonly ModelCall[]
}

/** Answers with the replies in order, then with `Done.`; or with what a function makes of each call. */
export function createFakeModel(
  replies: readonly FakeReply[] | ((call: ModelCall) => FakeReply) = [],
): FakeModel {
  const calls: ModelCall[] = []
  return {
    calls,
    async *stream(call) {
      calls.push(call)
      const reply =
        typeof replies === 'function'
          ? replies(call)
          : (replies[calls.length - 1] ?? { blocks: [{ type: 'text', text: 'Done.' }] })
      yield* streamReply(reply, calls.length)
    },
  }
}

function* streamReply(given: FakeReply, number: number): Generator<ReplyEvent> {
  const { blocks, id = `message-${number}`, stop = 'end_turn', failure, cut, fields } = given
  const usage = { input_tokens: 10, output_tokens: 1, ...given.usage }
  const message = { ...fields, id, role: 'assistant' as const, model: 'model-a' }
  const events: ReplyEvent[] = [{ type: 'reply-started', message: { ...message, content: [], usage } }]
  for (const [index, block] of blocks.entries()) {
    const ended: BlockEnded = { type: 'block-ended', index, block }
    events.push(
      { type: 'block-started', index, block },
      index === cut ? { ...ended, cutInput: '{"pa' } : ended,
    )
  }
  if (failure === undefined)
    events.push({ type: 'reply-updated', fields: { stop_reason: stop }, usage: { output_tokens: 5 } })
  const reply = collectReply(events)
  yield* events
  if (failure !== undefined) yield { type: 'reply-failed', failure, reply }
  else if (reply !== null) yield { type: 'reply-ended', reply }
}
