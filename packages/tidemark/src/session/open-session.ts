/** An open session as the operations of this folder share it: its state, model and tools, and what is under way. */
import {
  type CompactingHost,
  type CompactionHost,
  createHistoryTool,
  openSession,
  type PendingCall,
  type PlacedSection,
  refreshSession,
  type SeparateSummaryModel,
  type SessionState,
  TidemarkError,
  type TurnContext,
  type WriteLock,
} from '@tidemark/core'
import { omitUndefined } from '@tidemark/wire'
import { badOptionError } from '../platform/argument-errors.ts'
import { createListeners, drain, type Listeners, type SessionEvent } from './events.ts'
import type { Settings, TidemarkOptions } from './options.ts'
import { type SessionModel, summarizerWithRetryEvents, withRetryEvents } from './session-model.ts'
import type { Toolset } from './tools.ts'

/** Options that can differ between sessions. */
export interface SessionOptions
  extends Pick<TidemarkOptions, 'carriers' | 'hooks' | 'cleanups' | 'source' | 'interactive' | 'autonomous'> {
  readonly onEvent?: (event: SessionEvent) => void
}

export interface OpenSession {
  readonly id: string
  readonly settings: Settings
  readonly options: SessionOptions
  /** The part of the compaction host that does not depend on the current model. */
  readonly compactionHost: Omit<CompactionHost, 'estimator' | 'scaled' | 'rules'>
  /** The current state. Setting one with a newly sent request shuts the gate. */
  state: SessionState
  /** Runs writers one at a time, in order, so that no two of them use the same position of the log. */
  readonly withLock: WriteLock
  readonly listeners: Listeners
  /** Shut while a reply arrives: a prompt appended between its blocks would split it. */
  readonly gate: ReplyGate
  model: SessionModel
  tools: Toolset
  sections: readonly PlacedSection[]
  /** The request returned by `next` whose response has not been appended. */
  pendingRequest: PendingCall | null
  /** Ids of tool calls whose results are being appended. */
  readonly arrivingResults: Set<string>
  /** The operation that has reserved the session, or null. */
  busyWith: string | null
  /** Everything under way; each promise resolves at its end, also after a failure. */
  readonly pendingWork: Set<Promise<unknown>>
  /** Aborted once, when the session is closed. */
  readonly stop: AbortController
  /** We have written and hold the lock, so that no other process can write. */
  isWriter: boolean
  /** Resolves when the session is closed; null while it is open. */
  closing: Promise<void> | null
}

interface OpenSessionInput {
  readonly settings: Settings
  readonly model: SessionModel
  /** The model that writes summaries, if it is not the session's own. */
  readonly summarizer: SeparateSummaryModel | null
  readonly options: SessionOptions
  /** Called for every event, before the listeners that are added later. */
  readonly listeners: readonly ((event: SessionEvent) => void)[]
  /** Null: the tools that the log declares, without a way to run them. */
  readonly tools: Toolset | null
  readonly sections: readonly PlacedSection[]
}

export async function openSessionById(id: string, input: OpenSessionInput): Promise<OpenSession> {
  const { settings, options, tools, sections } = input
  let state = await openSession(settings.journal, id)
  const gate = createReplyGate()
  const listeners = createListeners(input.listeners)
  return {
    id,
    settings,
    options,
    compactionHost: createCompactionHost(id, input, listeners),
    get state() {
      return state
    },
    set state(next) {
      if (next.lastRequest !== state.lastRequest && next.lastRequest !== null) gate.shut()
      state = next
    },
    withLock: createQueue(),
    listeners,
    gate,
    model: withRetryEvents(input.model, settings, listeners),
    tools: tools ?? toolsFromLog(state, settings),
    sections,
    pendingRequest: null,
    arrivingResults: new Set(),
    busyWith: null,
    pendingWork: new Set(),
    stop: new AbortController(),
    isWriter: false,
    closing: null,
  }
}

function createCompactionHost(
  id: string,
  input: OpenSessionInput,
  listeners: Listeners,
): OpenSession['compactionHost'] {
  const { settings, options } = input
  const { carriers = [], hooks, cleanups, autonomous } = options
  const summarizer = summarizerWithRetryEvents(input.summarizer, settings, listeners)
  const log = settings.logPath(id)
  const transcript = settings.options.transcript === true ? log : null
  return {
    deadlines: settings.deadlines,
    retrieval: { historyTool: settings.historyTool, transcript },
    sources: typeof carriers === 'function' ? carriers({ id, log }) : carriers,
    ...omitUndefined({ hooks, cleanups, isAutonomous: autonomous }),
    ...(settings.blobs === null ? {} : { blobs: settings.blobs }),
    ...(summarizer === null ? {} : { summaryModel: summarizer }),
  }
}

/** The tools declared by the log, so that a compaction before the first turn keeps them. */
function toolsFromLog({ prefix }: SessionState, { historyTool }: Settings): Toolset {
  const definitions = (prefix.current?.epoch.tools ?? []).filter(({ name }) => name !== historyTool)
  return {
    definitions,
    run: ({ name }) => ({ content: `The tool ${name} is not connected.`, is_error: true }),
  }
}

/** What the engine needs for one operation: the session's state, host, lock and abort signal. */
export function createTurnContext(
  session: OpenSession,
  options: {
    /** The operation is aborted by these and when the session is closed. Without them nothing aborts it. */
    readonly signals?: readonly (AbortSignal | undefined)[]
    /** Writes wait while a reply arrives. */
    readonly waitsForReply?: boolean
  } = {},
): TurnContext {
  return {
    get state() {
      return session.state
    },
    set state(next) {
      session.state = next
    },
    host: turnHost(session),
    signal: options.signals === undefined ? undefined : anySignal(session, options.signals),
    writeLock: options.waitsForReply === true ? lockBetweenReplies(session) : session.withLock,
  }
}

function anySignal({ stop }: OpenSession, signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  const defined = signals.filter((signal) => signal !== undefined)
  if (!defined.every((signal) => signal instanceof AbortSignal))
    throw badOptionError('signal', 'signal: expected an AbortSignal, as new AbortController().signal.')
  return AbortSignal.any([stop.signal, ...defined])
}

/** The gate may be shut again before the lock is free, so it is checked again under the lock. */
function lockBetweenReplies({ gate, withLock }: OpenSession): WriteLock {
  return async (work) => {
    for (;;) {
      await gate.waitUntilOpen()
      const done = await withLock(async () => (gate.isShut ? null : { value: await work() }))
      if (done !== null) return done.value
    }
  }
}

export function turnHost(session: OpenSession): CompactingHost {
  const { settings, model, options } = session
  const { choice, parameters, estimator, scaled, rules } = model
  return {
    journal: settings.journal,
    model: model.port,
    clock: settings.clock,
    ids: settings.ids,
    policy: settings.policy,
    profile: choice.profile,
    switches: settings.switches,
    source: options.source ?? 'sdk',
    isInteractive: options.interactive ?? false,
    pricesOf: choice.priceList,
    sections: session.sections,
    modelSettings() {
      // Read when called: a compaction in the background may outlive a change of tools.
      const { definitions } = session.tools
      const { historyTool } = settings
      const offered = historyTool === null ? definitions : [...definitions, createHistoryTool(historyTool)]
      return { tools: offered, model: choice.id, parameters }
    },
    runTool: session.tools.run,
    compaction: { ...session.compactionHost, estimator, scaled, rules },
  }
}

/** Reserves the session for one operation; returns the function that ends the reservation. Throws `busy` or `closed`. */
export function reserveSession(session: OpenSession, operation: string): () => void {
  checkOpen(session)
  const { id, busyWith } = session
  if (busyWith !== null) {
    const message = `${operation}: the session ${id} is busy with ${busyWith}. Wait for that to end; append works meanwhile.`
    throw new TidemarkError('busy', message, { details: { act: operation, busyWith } })
  }
  session.busyWith = operation
  const over = Promise.withResolvers<void>()
  track(session, over.promise)
  return () => {
    session.busyWith = null
    session.gate.open()
    over.resolve()
  }
}

/** Runs work that needs no reservation; `close` waits for it. */
export async function trackWork<T>(session: OpenSession, work: () => Promise<T>): Promise<T> {
  checkOpen(session)
  const result = work()
  track(session, result)
  return result
}

function track({ pendingWork }: OpenSession, work: Promise<unknown>): void {
  const over: Promise<unknown> = work.catch(() => {}).finally(() => pendingWork.delete(over))
  pendingWork.add(over)
}

export function checkOpen({ closing, id }: OpenSession): void {
  if (closing !== null) throw new TidemarkError('closed', `The session ${id} was closed: open it again.`)
}

/** Reads what other processes appended. Skipped while we hold the lock: no other process can write then. */
export async function refreshFromLog(session: OpenSession, run: TurnContext): Promise<void> {
  if (session.isWriter && session.settings.locks) return
  const from = session.state.position
  await refreshSession(run)
  const to = session.state.position
  if (to > from) session.listeners.emit({ type: 'caught-up', from, to })
}

/** Runs an operation of the engine to its end and emits its events. */
export function runAndEmit<Event extends SessionEvent, End>(
  session: OpenSession,
  events: AsyncGenerator<Event, End>,
): Promise<End> {
  return drain({ events, onEvent: (event) => emit(session, event) })
}

/** Emits an event of the engine, after updating what the session derives from it. */
export function emit(session: OpenSession, event: SessionEvent): void {
  if (event.type === 'appended') session.isWriter = true
  if (REPLY_OVER.has(event.type)) session.gate.open()
  session.listeners.emit(event)
}

const REPLY_OVER: ReadonlySet<string> = new Set(['answered', 'reactive-compact', 'turn-ended'])

/** Runs work one at a time, in the order of the calls. Work that throws does not stop the work after it. */
export function createQueue(): WriteLock {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work)
    last = next.catch(() => {})
    return next
  }
}

interface ReplyGate {
  readonly isShut: boolean
  shut(): void
  open(): void
  /** Resolves when the gate is open. */
  waitUntilOpen(): Promise<void>
}

export function createReplyGate(): ReplyGate {
  let waiting: PromiseWithResolvers<void> | null = null
  return {
    get isShut() {
      return waiting !== null
    },
    shut() {
      waiting ??= Promise.withResolvers<void>()
    },
    open() {
      waiting?.resolve()
      waiting = null
    },
    async waitUntilOpen() {
      while (waiting !== null) await waiting.promise
    },
  }
}
