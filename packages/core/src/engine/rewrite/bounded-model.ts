/** A model whose replies cannot take for ever: silence that is too long, or too long in all, ends them as a failure. */
import type { AskDeadlines } from '../../summarize/ask.ts'
import type { Deadlines } from '../deadlines.ts'
import type { FailureKind } from '../failure.ts'
import type { Clock, Model, ModelCall, Signal } from '../ports.ts'
import type { ReplyEvent, ReplyFailed } from '../reply.ts'

export interface Bounds {
  readonly deadlines: Deadlines
  readonly clock: Clock
  readonly limits: AskDeadlines
}

export function boundedModel(model: Model, bounds: Bounds): Model {
  return { stream: (call, signal) => boundedStream(model, { call, signal }, bounds) }
}

interface Asked {
  readonly call: ModelCall
  readonly signal: Signal | undefined
}

/**
 * The reply is read inside one bounded piece of work, so that whatever the model began ends with it, and handed out
 * through a queue. A model that never comes back is left where it is.
 */
async function* boundedStream(
  model: Model,
  { call, signal }: Asked,
  { deadlines, limits }: Bounds,
): AsyncGenerator<ReplyEvent, void> {
  const queue = eventQueue()
  const reading = deadlines
    .within(
      limits.attemptMs,
      async (inner) => {
        const wait: Waiting['wait'] = (next) => deadlines.within(limits.stallMs, () => next, inner)
        return await readThrough(model.stream(call, inner), queue.push, { wait })
      },
      signal,
    )
    .then(
      (end) => queue.close(end.ok ? end.value : failure(end.why, TOO_LONG[end.why])),
      (thrown: unknown) =>
        queue.close(failure('timeout', thrown instanceof Error ? thrown.message : String(thrown))),
    )
  try {
    yield* queue.events()
  } finally {
    queue.close(null)
  }
  await reading
}

interface Waiting {
  readonly wait: (
    next: Promise<IteratorResult<ReplyEvent>>,
  ) => Promise<{ ok: true; value: IteratorResult<ReplyEvent> } | { ok: false; why: 'timeout' | 'aborted' }>
}

/** Null where the reply told its own end. */
async function readThrough(
  stream: AsyncIterable<ReplyEvent>,
  push: (event: ReplyEvent) => boolean,
  { wait }: Waiting,
): Promise<ReplyFailed | null> {
  const events = stream[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await wait(events.next())
      if (!next.ok) return failure(next.why, 'Nothing came for too long.')
      if (next.value.done === true) return failure('timeout', 'The reply stopped without an end.')
      const { value } = next.value
      const isHeard = push(value)
      if (!isHeard || value.type === 'reply-ended' || value.type === 'reply-failed') return null
    }
  } finally {
    // Whoever reads no further says so: a connection and its timers end with it. Not waited for: it may hang.
    events.return?.().catch(() => {})
  }
}

const TOO_LONG = { timeout: 'It took too long.', aborted: 'It was called off.' } as const

function failure(why: 'timeout' | 'aborted', message: string): ReplyFailed {
  const kind: FailureKind = why
  return { type: 'reply-failed', failure: { kind, retryable: why === 'timeout', message }, reply: null }
}

interface EventQueue {
  /** False where nobody listens any more. */
  readonly push: (event: ReplyEvent) => boolean
  /** With a last event, where the reply did not tell its own. */
  readonly close: (last: ReplyFailed | null) => void
  readonly events: () => AsyncGenerator<ReplyEvent, void>
}

function eventQueue(): EventQueue {
  const waiting: ReplyEvent[] = []
  let isClosed = false
  let wake = (): void => {}
  return {
    push: (event) => {
      if (!isClosed) waiting.push(event)
      wake()
      return !isClosed
    },
    close: (last) => {
      if (last !== null && !isClosed) waiting.push(last)
      isClosed = true
      wake()
    },
    events: async function* () {
      for (;;) {
        for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) yield event
        if (isClosed) return
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}
