/** A model that says what it is told to, reply by reply, and a host around it. */
import { createCountingIds, createFakeClock, createFakeJournal } from '@tidemark/core/testing'
import {
  type Block,
  type BlockEnded,
  collect,
  createPolicy,
  createProfile,
  type Failure,
  type Journal,
  type JsonObject,
  type ModelCall,
  placeSections,
  type ReplyEvent,
  runTurn,
  type SessionState,
  type TurnAsked,
  type TurnEvent,
  type TurnHost,
  type TurnOutcome,
} from '../../src/index.ts'

export interface Spoken {
  readonly blocks: readonly Block[]
  readonly stop?: string
  /** The reply breaks off behind its blocks. */
  readonly failure?: Failure
  /** Index of the call whose input broke off. */
  readonly cut?: number
  /** Besides the output. */
  readonly usage?: JsonObject
  /** More fields of the message. */
  readonly fields?: JsonObject
}

export function say(...blocks: readonly Block[]): Spoken {
  return { blocks }
}

export function text(words: string): Block {
  return { type: 'text', text: words }
}

export function use(id: string, name = 'Read'): Block {
  return { type: 'tool_use', id, name, input: {} }
}

export interface Scene {
  readonly host: TurnHost
  readonly asked: ModelCall[]
}

export function scene(
  replies: readonly Spoken[],
  changes: Partial<TurnHost> = {},
  journal: Journal = createFakeJournal(),
): Scene {
  const asked: ModelCall[] = []
  const host: TurnHost = {
    journal,
    model: {
      async *stream(call) {
        asked.push(call)
        yield* eventsOf(replies[asked.length - 1] ?? say(text('Done.')), asked.length)
      },
    },
    clock: createFakeClock(),
    ids: createCountingIds(),
    policy: createPolicy({}),
    profile: createProfile({}),
    source: 'sdk',
    isInteractive: false,
    pricesOf: () => null,
    sections: placeSections('You help.'),
    offered: () => ({
      tools: [{ name: 'Read', input_schema: { type: 'object' } }],
      model: 'model-a',
      parameters: { max_tokens: 100 },
    }),
    runTool: ({ id }) => ({ content: `result of ${id}` }),
    ...changes,
  }
  return { host, asked }
}

function* eventsOf({ blocks, stop, failure, cut, ...told }: Spoken, number: number): Generator<ReplyEvent> {
  const usage = { input_tokens: 10, output_tokens: 1, ...told.usage }
  const events: ReplyEvent[] = [
    {
      type: 'reply-started',
      message: {
        ...told.fields,
        id: `message-${number}`,
        role: 'assistant',
        model: 'model-a',
        content: [],
        usage,
      },
    },
  ]
  for (const [index, block] of blocks.entries()) {
    const ended: BlockEnded = { type: 'block-ended', index, block }
    events.push(
      { type: 'block-started', index, block },
      index === cut ? { ...ended, cutInput: '{"pa' } : ended,
    )
  }
  if (failure === undefined)
    events.push({
      type: 'reply-updated',
      fields: { stop_reason: stop ?? 'end_turn' },
      usage: { output_tokens: 5 },
    })
  const reply = collect(events)
  yield* events
  if (failure !== undefined) yield { type: 'reply-failed', failure, reply }
  else if (reply !== null) yield { type: 'reply-ended', reply }
}

export interface Played {
  readonly events: readonly TurnEvent[]
  readonly outcome: TurnOutcome
}

export async function play(state: SessionState, asked: TurnAsked, host: TurnHost): Promise<Played> {
  const events: TurnEvent[] = []
  for await (const event of runTurn(state, asked, host)) {
    events.push(event)
    if (event.type === 'turn-ended') return { events, outcome: event.outcome }
  }
  throw new Error('a turn ends with its outcome')
}
