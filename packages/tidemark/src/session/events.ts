/** What a session tells: all that the engine does, and what happens around it. */
import type { Damage, TurnEvent } from '@tidemark/core'
import type { Retry } from '../models/model-choice.ts'
import { badOption, noSuch } from '../platform/argument-errors.ts'

export type SessionEvent =
  | TurnEvent
  /** Something about the settings that a person should know: a switch nobody understands, a window not sure. */
  | { readonly type: 'notice'; readonly message: string }
  /** The log had damage; what could be read counts. */
  | { readonly type: 'log-damaged'; readonly damage: readonly Damage[] }
  /** Another process has written to the session; what it wrote is taken in. */
  | { readonly type: 'caught-up'; readonly from: number; readonly to: number }
  /** The provider or the network failed before anything came: it is tried again after a wait. */
  | ({ readonly type: 'retrying' } & Retry)
  | { readonly type: 'model-switched'; readonly from: string; readonly to: string }
  /** A listener threw. Nothing else was touched by it. */
  | { readonly type: 'listener-failed'; readonly about: string; readonly message: string }

export type SessionEventType = SessionEvent['type']

export type EventOf<Type extends SessionEventType> = Extract<SessionEvent, { readonly type: Type }>

// The names of all that a session tells, so that a listener for something that never comes is a mistake and not a silence.

const NAMES: Readonly<Record<SessionEventType, true>> = {
  'act-paid': true,
  answered: true,
  appended: true,
  'breaker-open': true,
  'cache-broke': true,
  'cache-edits-dropped': true,
  'cache-judged': true,
  'calls-settled': true,
  'caught-up': true,
  compact: true,
  'compact-failed': true,
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
  restored: true,
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

/** Throws `bad-option` where no event has this name. */
export function checkListening(type: unknown, listener: unknown): void {
  if (type !== '*' && !(typeof type === 'string' && Object.hasOwn(NAMES, type)))
    throw noSuch('on', String(type), ['*', ...Object.keys(NAMES)], 'event')
  if (typeof listener !== 'function')
    throw badOption('listener', `on("${String(type)}", listener): expected a function.`)
}

// Events of an act that goes on by itself: they are kept until somebody reads them, so that whoever watches may wait
// for something else of the same session. Who stops watching calls the act off.

export interface EventStream<Event, End> extends AsyncIterable<Event> {
  /** How it ended. Rejects only where something broke: a disk, a listener of yours. */
  readonly outcome: Promise<End>
}

export interface StreamWork<Event, End> {
  readonly events: AsyncGenerator<Event, End>
  readonly onEvent: (event: Event) => void
  readonly callOff: () => void
}

export function streamOf<Event, End>(work: StreamWork<Event, End>): EventStream<Event, End> {
  const kept: Event[] = []
  let more = Promise.withResolvers<void>()
  let isOver = false
  const wake = (): void => {
    more.resolve()
    more = Promise.withResolvers()
  }
  const outcome = drain(work, (event) => {
    kept.push(event)
    wake()
  }).finally(() => {
    isOver = true
    wake()
  })
  outcome.catch(() => {})
  async function* read(): AsyncGenerator<Event, void> {
    try {
      for (;;) {
        const event = kept.shift()
        if (event !== undefined) yield event
        else if (isOver) break
        else await more.promise
      }
      await outcome
    } finally {
      if (!isOver) work.callOff()
      await outcome.catch(() => {})
    }
  }
  return { outcome, [Symbol.asyncIterator]: read }
}

/** Runs a generator to its end, telling every event. */
export async function drain<Event, End>(
  { events, onEvent }: Pick<StreamWork<Event, End>, 'events' | 'onEvent'>,
  also: (event: Event) => void = () => {},
): Promise<End> {
  for (;;) {
    const step = await events.next()
    if (step.done === true) return step.value
    onEvent(step.value)
    also(step.value)
  }
}

// Those who listen to a session. One that throws is told to the others and stops nobody.

export type Listener = (event: SessionEvent) => void

export interface Listeners {
  readonly emit: Listener
  /** Tells at once those who listen already, and later the first who asks for the type by `on`. */
  readonly keep: Listener
  /** Gives back what ends it. */
  on<Type extends SessionEventType>(type: Type | '*', listener: (event: EventOf<Type>) => void): () => void
}

export function createListeners(always?: Listener): Listeners {
  const all = new Set<Listener>(always === undefined ? [] : [always])
  const emit = (event: SessionEvent): void => {
    for (const listener of [...all]) told(listener, event)
  }
  const told = (listener: Listener, event: SessionEvent): void => {
    try {
      listener(event)
    } catch (thrown) {
      if (event.type !== 'listener-failed') emit(failed(event, thrown))
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
      checkListening(type, listener)
      const own: Listener = (event) => {
        if (type === '*' || event.type === type) listener(event as Parameters<typeof listener>[0])
      }
      all.add(own)
      const asked = kept.filter((event) => type === '*' || event.type === type)
      kept = kept.filter((event) => !asked.includes(event))
      for (const event of asked) told(own, event)
      return () => all.delete(own)
    },
  }
}

function failed({ type }: SessionEvent, thrown: unknown): SessionEvent {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return { type: 'listener-failed', about: type, message }
}
