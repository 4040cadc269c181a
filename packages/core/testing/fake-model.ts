/** A fake model that streams given replies event by event, as a provider does. */
import type { Model, ModelStreamInput } from '../src/engine/ports.ts'
import {
  addReplyEvent,
  type BlockEnded,
  emptyReplyAssembly,
  type ModelFailure,
  type Reply,
  type ReplyEvent,
  toReply,
} from '../src/engine/reply.ts'
import type { Block } from '../src/log/block.ts'
import type { JsonObject } from '../src/log/json.ts'
import { readTestReport, type TestUsage, toTestUsage } from './test-usage.ts'

/** What the fake model replies to one call. */
export interface FakeReply {
  readonly blocks: readonly Block[]
  /** Message id of the fake reply. Default: `message-1`, `message-2`, … */
  readonly id?: string
  /** Why the reply ends, as in `ReplyStop`, or in a word of the Messages API. Default: `done`. */
  readonly stop?: string
  /** Failure with which the fake reply ends after its blocks were streamed. */
  readonly failure?: ModelFailure
  /** Index of the tool-call block whose input JSON is cut off, as in an interrupted stream. */
  readonly cut?: number
  /** Text of a further block, which begins and never ends. */
  readonly openText?: string
  /** Usage fields of the fake reply, which replace or extend the default usage. */
  readonly usage?: TestUsage | JsonObject
  /** Additional fields of the fake reply's message. */
  readonly fields?: JsonObject
}

export interface FakeModel extends Model {
  /** All model calls made so far. */
  readonly calls: readonly ModelStreamInput[]
}

/**
 * Creates a fake model. `replies`: a list of replies to return in order (afterwards the text `Done.`), or a function
 * that computes the reply to each model call.
 */
export function createFakeModel(
  replies: readonly FakeReply[] | ((call: ModelStreamInput) => FakeReply) = [],
): FakeModel {
  const calls: ModelStreamInput[] = []
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
  const { blocks, id = `message-${number}`, stop = 'done', failure, cut, openText, fields } = given
  const usage = { input: 10, output: 1, ...(toTestUsage(given.usage ?? {}) as JsonObject) }
  const message = { ...fields, id, role: 'assistant' as const, model: 'model-a' }
  const started = { ...message, content: [], usage }
  const events: ReplyEvent[] = [{ type: 'reply-started', message: started, report: readTestReport(started) }]
  for (const [index, block] of blocks.entries()) {
    const ended: BlockEnded = { type: 'block-ended', index, block }
    events.push(
      { type: 'block-started', index, block },
      index === cut ? { ...ended, cutInput: '{"pa' } : ended,
    )
  }
  if (openText !== undefined)
    events.push(
      { type: 'block-started', index: blocks.length, block: { type: 'text', text: '' } },
      { type: 'block-grew', index: blocks.length, delta: { kind: 'text', text: openText } },
    )
  if (failure === undefined)
    events.push({
      type: 'reply-updated',
      fields: { stop_reason: stop },
      usage: { output: 5 },
      report: readTestReport({ stop_reason: stop, usage: { ...usage, output: 5 } }),
    })
  const reply = collectReply(events)
  yield* events
  if (failure !== undefined) yield { type: 'reply-failed', failure, reply }
  else if (reply !== null) yield { type: 'reply-ended', reply }
}

/** Assembles a reply from `events`, complete or partial; null if no reply started. */
export function collectReply(events: Iterable<ReplyEvent>): Reply | null {
  let assembly = emptyReplyAssembly
  for (const event of events) assembly = addReplyEvent(assembly, event)
  return toReply(assembly)
}
