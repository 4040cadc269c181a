/** Events of a session, the listeners that receive them, the stream that `session.run` returns, and the status they give. */
import type { TurnEvent } from '@tidemark/core/engine/events'
import { describeThrown } from '@tidemark/core/errors'
import type { Damage } from '@tidemark/core/log/decode-log'
import { badOptionError, unknownNameError } from '../platform/argument-errors.ts'
import { withFormerPriceNamesInEvent } from './former-price-names.ts'

/**
 * How a client's list differs from the log. `rewound`: it ends earlier. `edited`: a message has changed. `pruned`:
 * messages at the start are missing. `new`: it shares nothing with the log.
 */
export type HistoryChange = 'rewound' | 'edited' | 'pruned' | 'new'

export type SessionEvent =
  | TurnEvent
  /** A message to the user about the settings, such as an unknown environment switch or an uncertain context window. */
  | { readonly type: 'notice'; readonly message: string }
  /** The log is damaged. The session continues with the records that could be read. */
  | { readonly type: 'log-damaged'; readonly damage: readonly Damage[] }
  /** Another process appended to the session, and its records were read. `from` and `to` are positions in the log. */
  | { readonly type: 'caught-up'; readonly from: number; readonly to: number }
  /** The status of the session has changed. */
  | { readonly type: 'status'; readonly status: SessionStatus }
  /** A client's messages differ from the log. `isBranch`: the session went back to the first difference. */
  | {
      readonly type: 'host-history-changed'
      readonly change: HistoryChange
      readonly isBranch: boolean
      readonly message: string
    }
  /** A client's request is sent unchanged, or its response could not be recorded (`unrecorded`). `message` says why. */
  | { readonly type: 'request-passed'; readonly reason: string; readonly message: string }
  | { readonly type: 'model-switched'; readonly from: string; readonly to: string }
  /** A listener threw an exception. The operation and the other listeners are not affected. */
  | { readonly type: 'listener-failed'; readonly about: string; readonly message: string }

export type SessionEventType = SessionEvent['type']

export type EventOf<Type extends SessionEventType> = Extract<SessionEvent, { readonly type: Type }>

/**
 * The events of an operation that is already running. Events are buffered until they are read. Leaving the loop early
 * aborts the operation.
 */
export interface EventStream<Event, End> extends AsyncIterable<Event> {
  /** The result of the operation. Rejects only for an unexpected failure, such as a disk error. */
  readonly outcome: Promise<End>
}

/** Starts an operation at once, whether or not its events are read, and returns the stream of its events. */
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
  const outcome = drainEvents(work, (event) => {
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

/** Runs an operation to its end and returns its result. Each event is passed to `onEvent`, then to `also`. */
export async function drainEvents<Event, End>(
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

export interface SessionListeners {
  readonly emit: Listener
  /** Emits an event now, and once more to the first listener for its type that is added later. */
  readonly keep: Listener
  /** Adds a listener and returns a function that removes it. Throws `bad-option` for an unknown event type. */
  on<Type extends SessionEventType>(type: Type | '*', listener: (event: EventOf<Type>) => void): () => void
}

/**
 * Creates the listeners of a session. If a listener throws, `listener-failed` is emitted and the other listeners are
 * not affected.
 */
export function createListeners(always: readonly Listener[] = []): SessionListeners {
  const listeners = new Set<Listener>(always)
  const emit = (event: SessionEvent): void => {
    const emitted = event.type === 'priced' ? withFormerPriceNamesInEvent(event) : event
    for (const listener of [...listeners]) notify(listener, emitted)
  }
  const notify = (listener: Listener, event: SessionEvent): void => {
    try {
      listener(event)
    } catch (thrown) {
      if (event.type === 'listener-failed') return
      const message = describeThrown(thrown)
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

/** All event types. Adding a listener for an unknown type is an error, because that listener would never be called. */
const EVENT_TYPES: Readonly<Record<SessionEventType, true>> = {
  'accounting-failed': true,
  'act-paid': true,
  'answer-continued': true,
  answered: true,
  appended: true,
  'branch-switched': true,
  'breaker-open': true,
  'cache-break': true,
  'cache-edits-dropped': true,
  'cache-judged': true,
  'cache-kept-warm': true,
  'calls-settled': true,
  'caught-up': true,
  compact: true,
  'compact-failed': true,
  'compaction-advised': true,
  'context-restored': true,
  'epoch-opened': true,
  fork: true,
  'hook-failed': true,
  'hook-said': true,
  'host-history-changed': true,
  'keep-alive': true,
  'listener-failed': true,
  'log-damaged': true,
  'media-dropped': true,
  microcompact: true,
  'model-switched': true,
  'notes-failed': true,
  'notes-tool-refused': true,
  'notes-updated': true,
  notice: true,
  phase: true,
  planned: true,
  'prefix-changed': true,
  priced: true,
  'reactive-compact': true,
  reply: true,
  'prompt-truncated': true,
  'request-passed': true,
  'reply-dropped': true,
  'request-sent': true,
  'restore-failed': true,
  'resume-cost': true,
  retrying: true,
  rewritten: true,
  'side-reply': true,
  'side-sent': true,
  'spill-failed': true,
  'sm-compact': true,
  'sm-compact-refused': true,
  'sm-compact-threshold-exceeded': true,
  spilled: true,
  'summary-dropped': true,
  'summary-prepared': true,
  'summary-preparing': true,
  'summary-progress': true,
  status: true,
  'thinking-dropped': true,
  'tool-ended': true,
  'tool-progress': true,
  'tool-started': true,
  'turn-ended': true,
  undone: true,
  'veto-overruled': true,
}

// What a session is doing, for a status line: its operation, its phase, and how much of a reply has arrived.

export interface SessionStatus {
  /** The operation that has reserved the session, such as `run` or `compact`; null if it is idle. */
  readonly operation: string | null
  /** The step of a rewrite or of hooks, as text for the user; null between such steps. */
  readonly phase: string | null
  /** `responding` from the first text of a reply or summary to its end, otherwise `requesting`. */
  readonly stream: 'requesting' | 'responding'
  /** Characters of the reply or summary that have arrived. */
  readonly received: number
  /** Changes with each rewrite of the context, so that a screen can drop what it has drawn. */
  readonly viewId: string
  /** The summary that is prepared beside the turns: there is none, it is being written, or it can be swapped in. */
  readonly preparedSummary: 'none' | 'preparing' | 'ready'
}

/** The part of the status that events change. */
export type StreamStatus = Pick<SessionStatus, 'phase' | 'stream' | 'received'>

export const IDLE_STATUS: StreamStatus = { phase: null, stream: 'requesting', received: 0 }

/** Returns the status after an event. Returns `status` itself if the event does not change it. */
export function updateStatus(status: StreamStatus, event: TurnEvent): StreamStatus {
  switch (event.type) {
    case 'phase':
      return event.phase === 'done' ? IDLE_STATUS : { ...status, phase: event.phase }
    case 'summary-progress': {
      const { characters } = event
      return { ...status, stream: characters > 0 ? 'responding' : 'requesting', received: characters }
    }
    case 'request-sent':
    case 'reply-dropped':
    case 'answered':
      return { ...status, stream: 'requesting', received: 0 }
    case 'turn-ended':
      return IDLE_STATUS
    case 'reply': {
      const { event: part } = event
      if (part.type !== 'block-grew') return status
      const { delta } = part
      const length = delta.kind === 'text' || delta.kind === 'thinking' ? delta.text.length : 0
      const added = delta.kind === 'input' ? delta.json.length : length
      const stream = delta.kind === 'text' ? 'responding' : status.stream
      return { ...status, stream, received: status.received + added }
    }
    default:
      return status
  }
}

/** True if the phase or the kind of stream has changed, which is worth an event. More characters of the same reply are not. */
export function hasVisibleStatusChange(before: StreamStatus, after: StreamStatus): boolean {
  return before.phase !== after.phase || before.stream !== after.stream
}
