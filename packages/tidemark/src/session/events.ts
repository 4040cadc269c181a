/** Events of a session, the listeners that receive them, and the event stream of a run. */
import type { Damage, TurnEvent } from '@tidemark/core'
import type { RetryInfo } from '../models/model-choice.ts'
import { badOptionError, unknownNameError } from '../platform/argument-errors.ts'

export type SessionEvent =
  | TurnEvent
  /** About the settings, for the user: an unknown switch, an uncertain window. */
  | { readonly type: 'notice'; readonly message: string }
  /** The log is damaged; what could be read is used. */
  | { readonly type: 'log-damaged'; readonly damage: readonly Damage[] }
  /** Another process appended to the session; its records were read. */
  | { readonly type: 'caught-up'; readonly from: number; readonly to: number }
  /** A call failed before any data arrived and is retried after a wait. */
  | ({ readonly type: 'retrying' } & RetryInfo)
  | { readonly type: 'model-switched'; readonly from: string; readonly to: string }
  /** A listener threw. The operation and the other listeners are not affected. */
  | { readonly type: 'listener-failed'; readonly about: string; readonly message: string }

export type SessionEventType = SessionEvent['type']

export type EventOf<Type extends SessionEventType> = Extract<SessionEvent, { readonly type: Type }>

/** Events of an operation that runs by itself. They are kept until they are read. Leaving the loop aborts the operation. */
export interface EventStream<Event, End> extends AsyncIterable<Event> {
  /** How it ended. Rejects only for an unexpected failure, such as that of a disk. */
  readonly outcome: Promise<End>
}

/** Starts the operation at once. */
export function createEventStream<Event, End>(work: {
  readonly events: AsyncGenerator<Event, End>
  readonly onEvent: (event: Event) => void
  readonly abort: () => void
}): EventStream<Event, End> {
  const unread: Event[] = []
  let more = Promise.withResolvers<void>()
  let isOver = false
  const wake = (): void => {
    more.resolve()
    more = Promise.withResolvers()
  }
  const outcome = drain(work, (event) => {
    unread.push(event)
    wake()
  }).finally(() => {
    isOver = true
    wake()
  })
  outcome.catch(() => {})
  async function* read(): AsyncGenerator<Event, void> {
    try {
      for (;;) {
        const event = unread.shift()
        if (event !== undefined) yield event
        else if (isOver) break
        else await more.promise
      }
      await outcome
    } finally {
      if (!isOver) work.abort()
      await outcome.catch(() => {})
    }
  }
  return { outcome, [Symbol.asyncIterator]: read }
}

/** Runs the operation to its end; each event goes to `onEvent`, then to `also`. */
export async function drain<Event, End>(
  {
    events,
    onEvent,
  }: { readonly events: AsyncGenerator<Event, End>; readonly onEvent: (event: Event) => void },
  also: (event: Event) => void = () => {},
): Promise<End> {
  for (;;) {
    const step = await events.next()
    if (step.done === true) return step.value
    onEvent(step.value)
    also(step.value)
  }
}

type Listener = (event: SessionEvent) => void

export interface Listeners {
  readonly emit: Listener
  /** Emits now, and again to the first listener that is added later for the type. */
  readonly keep: Listener
  /** Returns a function that removes the listener. Throws `bad-option` for an unknown event type. */
  on<Type extends SessionEventType>(type: Type | '*', listener: (event: EventOf<Type>) => void): () => void
}

/** A listener that throws causes a `listener-failed` event and affects no other listener. */
export function createListeners(always: readonly Listener[] = []): Listeners {
  const listeners = new Set<Listener>(always)
  const emit = (event: SessionEvent): void => {
    for (const listener of [...listeners]) notify(listener, event)
  }
  const notify = (listener: Listener, event: SessionEvent): void => {
    try {
      listener(event)
    } catch (thrown) {
      if (event.type === 'listener-failed') return
      const message = thrown instanceof Error ? thrown.message : String(thrown)
      emit({ type: 'listener-failed', about: event.type, message })
    }
  }
  let kept: readonly SessionEvent[] = []
  return {
    emit,
    keep(event) {
      kept = [...kept, event]
      emit(event)
    },
    on(type, listener) {
      checkListener(type, listener)
      const matches = (event: SessionEvent): boolean => type === '*' || event.type === type
      const forwardMatching: Listener = (event) => {
        if (matches(event)) listener(event as Parameters<typeof listener>[0])
      }
      listeners.add(forwardMatching)
      const missed = kept.filter(matches)
      kept = kept.filter((event) => !matches(event))
      for (const event of missed) notify(forwardMatching, event)
      return () => listeners.delete(forwardMatching)
    },
  }
}

function checkListener(type: unknown, listener: unknown): void {
  if (type !== '*' && !(typeof type === 'string' && Object.hasOwn(EVENT_TYPES, type)))
    throw unknownNameError('on', String(type), ['*', ...Object.keys(EVENT_TYPES)], 'event')
  if (typeof listener !== 'function')
    throw badOptionError('listener', `on("${String(type)}", listener): expected a function.`)
}

/** Every event type. A listener for an unknown type is an error, not a listener that is never called. */
const EVENT_TYPES: Readonly<Record<SessionEventType, true>> = {
  'act-paid': true,
  answered: true,
  appended: true,
  'breaker-open': true,
  'cache-break': true,
  'cache-edits-dropped': true,
  'cache-judged': true,
  'calls-settled': true,
  'caught-up': true,
  compact: true,
  'compact-failed': true,
  'context-restored': true,
  'epoch-opened': true,
  fork: true,
  'hook-failed': true,
  'hook-said': true,
  'keep-alive': true,
  'listener-failed': true,
  'log-damaged': true,
  'media-dropped': true,
  microcompact: true,
  'model-switched': true,
  notice: true,
  phase: true,
  planned: true,
  'prefix-changed': true,
  priced: true,
  'reactive-compact': true,
  reply: true,
  'request-sent': true,
  'restore-failed': true,
  retrying: true,
  rewritten: true,
  'side-reply': true,
  'side-sent': true,
  'spill-failed': true,
  spilled: true,
  'summary-progress': true,
  'thinking-dropped': true,
  'tool-ended': true,
  'tool-started': true,
  'turn-ended': true,
  undone: true,
  'veto-overruled': true,
}
