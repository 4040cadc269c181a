/** A session in which a scheduler decides when each wait ends: log, model, carriers, hooks and tools. */

import type { SessionHooks } from '@tidemark/core/engine/hooks'
import type { IdGenerator, Journal, Model } from '@tidemark/core/engine/ports'
import type { ReplyEvent } from '@tidemark/core/engine/reply'
import type { ContextSource } from '@tidemark/core/sources/context-source'
import { createCountingIds, createFakeClock } from '@tidemark/core/testing'
import { createDefaultWeights } from '@tidemark/core/tokens/estimator'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import type fc from 'fast-check'
import { createTidemark, type ModelChoice, type Session } from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import {
  createCarriers,
  createOutsideState,
  createReadingModel,
  fileText,
  SESSION,
  WINDOW,
} from './rewrite-host.ts'

export type Wait = (label: string) => Promise<void>

export function createWait(scheduler: fc.Scheduler): Wait {
  return (label) => scheduler.schedule(Promise.resolve(), label).then(() => {})
}

export const AT_ONCE: Wait = () => Promise.resolve()

export interface ScheduledOptions {
  readonly store: MemoryStore
  readonly wait: Wait
  readonly prefix: string
  /** Replaces the stream of a call; unchanged unless given. */
  readonly spoken?: (events: AsyncIterable<ReplyEvent>, call: number) => AsyncIterable<ReplyEvent>
}

export async function openScheduledSession(given: ScheduledOptions): Promise<Session> {
  const { store, wait, prefix } = given
  const ids = createPrefixedIds(prefix)
  const tide = createTidemark({
    model: createModelChoice(waitingModel(createReadingModel(ids), given)),
    journal: waitingJournal(createUnlockedJournal(store), wait),
    blobs: null,
    env: {},
    system: 'Work with care.',
    carriers: createCarriers(createOutsideState()).map((carrier) => waitingCarrier(carrier, wait)),
    hooks: waitingHooks(wait),
    clock: createFakeClock(),
    ids,
  })
  return tide.open(SESSION, {
    tools: {
      Read: {
        run: async ({ file_path }: { readonly file_path?: string }) => {
          await wait('tool')
          return fileText(String(file_path))
        },
      },
    },
  })
}

function createPrefixedIds(prefix: string): IdGenerator {
  const ids = createCountingIds()
  return { next: (kind) => `${prefix}-${ids.next(kind)}` }
}

function createModelChoice(model: Model): ModelChoice {
  return {
    id: 'model-a',
    profile: defineMessagesProfile({ window: WINDOW.window, maxOutput: WINDOW.maxOutput }),
    ...WINDOW,
    priceList: () => null,
    weights: (policy) => createDefaultWeights(policy),
    connect: () => model,
    parameters: {},
    notes: [],
  }
}

function waitingJournal(journal: Journal, wait: Wait): Journal {
  return {
    ...journal,
    read: async (...given) => {
      await wait('read')
      return journal.read(...given)
    },
    append: async (...given) => {
      await wait('append')
      const outcome = await journal.append(...given)
      await wait('appended')
      return outcome
    },
  }
}

function waitingModel(model: Model, { wait, spoken = (events) => events }: ScheduledOptions): Model {
  let calls = 0
  return {
    async *stream(call, signal) {
      const events = spoken(model.stream(call, signal), calls)
      calls += 1
      for await (const event of events) {
        await wait('model')
        if (signal?.aborted === true) {
          const failure = { kind: 'aborted' as const, retryable: false, message: 'called off' }
          yield { type: 'reply-failed', failure, reply: null }
          return
        }
        yield event
      }
    },
  }
}

function waitingCarrier(carrier: ContextSource, wait: Wait): ContextSource {
  return {
    ...carrier,
    limit: (context) => carrier.limit(context),
    render: async function* (context) {
      await wait(`carrier ${carrier.name}`)
      yield* carrier.render(context)
    },
  }
}

function waitingHooks(wait: Wait): SessionHooks {
  const hook = <Output>(name: string, output?: Output) => ({
    name,
    run: async () => {
      await wait(`hook ${name}`)
      return output
    },
  })
  return {
    preCompact: [hook('pre')],
    sessionStart: [hook('start')],
    postCompact: [hook('post', { additionalContext: 'Mind the gap.' })],
  }
}

/** A copy of a store as it is now. */
export function copyStore(store: MemoryStore): MemoryStore {
  return new Map([...store].map(([id, { lines }]) => [id, { lines: [...lines], holder: null }]))
}

export function readLines(store: MemoryStore): readonly string[] {
  return store.get(SESSION)?.lines ?? []
}

/** A journal that releases the session after every append, so that only compare-and-swap separates writers. */
export function createUnlockedJournal(store: MemoryStore): Journal {
  const journal = createMemoryJournal(store)
  return {
    ...journal,
    append: async (session, after, records) => {
      const outcome = await journal.append(session, after, records)
      await journal.release(session)
      return outcome
    },
  }
}
