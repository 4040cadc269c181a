/** The shared state of an open session: its log, model and tools, and the operations in progress. */
import {
  type CompactingHost,
  type CompactionServices,
  canToolReadFiles,
  createHistoryTool,
  HISTORY_TOOL_NAME,
  isHistoryTool,
  type JsonObject,
  type ModelFailure,
  openSession,
  type PendingModelCall,
  type PlacedSection,
  type Remedies,
  type RetrievalPaths,
  refreshSession,
  type SeparateSummaryModel,
  type SessionStartSource,
  type SessionState,
  TidemarkError,
  type TurnContext,
  type TurnEvent,
  type WriteLock,
} from '@tidemark/core'
import { omitUndefined } from '@tidemark/wire'
import { createBodyEncoder } from '../models/anthropic-http.ts'
import { badOptionError } from '../platform/argument-errors.ts'
import { withDefaultSources } from '../sources/log-sources.ts'
import { createListeners, drainEvents, type SessionEvent, type SessionListeners } from './events.ts'
import type { TidemarkOptions, TidemarkSettings } from './options.ts'
import { createReplyGate, createWriteQueue, lockBetweenReplies, type ReplyGate } from './session-locks.ts'
import { type SessionModel, withRetryEvents, withSummarizerRetryEvents } from './session-model.ts'
import { hasNewStatus, IDLE_STATUS, type SessionStatus, type StreamStatus, updateStatus } from './status.ts'
import type { ToolOptions, Toolset } from './tools.ts'

/** Options of `createTidemark` that can differ between sessions. */
export interface SessionOptions
  extends Pick<
    TidemarkOptions,
    'carriers' | 'hooks' | 'canUseTool' | 'cleanups' | 'source' | 'cwd' | 'interactive' | 'autonomous'
  > {
  readonly onEvent?: (event: SessionEvent) => void
}

/** Options of one session; they override those of `createTidemark`. */
export interface OpenOptions extends SessionOptions, ToolOptions, Pick<TidemarkOptions, 'system'> {
  readonly model?: TidemarkOptions['model']
}

export interface OpenSession {
  readonly id: string
  readonly settings: TidemarkSettings
  readonly options: SessionOptions
  /** What the engine needs for compaction, without the parts that depend on the current model and tools. */
  readonly compactionHost: Omit<CompactionServices, 'estimator' | 'scaled' | 'rules' | 'retrieval'>
  /**
   * The current state of the session. If a new state contains a newly sent request, `gate` is closed until the reply
   * has ended.
   */
  state: SessionState
  /** Runs log writes one at a time and in order, so that no two of them use the same position in the log. */
  readonly withLock: WriteLock
  readonly listeners: SessionListeners
  /**
   * Closed while a reply is streamed. A prompt that is appended between the blocks of the reply would split the
   * response.
   */
  readonly gate: ReplyGate
  model: SessionModel
  tools: Toolset
  /** True if the history tool is declared; without the option `history`, that is since `run` first ran the tools. */
  offersHistory: boolean
  sections: readonly PlacedSection[]
  /** How the session began, for the SessionStart hooks; null once their context is in the log. */
  startSource: SessionStartSource | null
  /** The request returned by `next` whose response has not been appended yet; null if there is none. */
  pendingRequest: PendingModelCall | null
  /** Encodes the bodies of the requests that `next` returns. Messages of earlier requests are not encoded again. */
  readonly encodeBody: ReturnType<typeof createBodyEncoder>
  /** What the provider has refused since the last response; null if nothing. */
  refusal: Refusal | null
  /** Ids of the tool calls whose results are being appended. */
  readonly arrivingResults: Set<string>
  /** The name of the operation that has reserved the session, such as `run`; null if none has. */
  busyWith: string | null
  streamStatus: StreamStatus
  /** Changes with each rewrite of the context. */
  viewId: string
  /** Promises of all operations in progress. Each resolves when its operation ends, even after a failure. */
  readonly pendingWork: Set<Promise<unknown>>
  /** Aborts all operations in progress when the session is closed. */
  readonly stop: AbortController
  /**
   * True if this process has written to the session. It then holds the session's write lock, and no other process can
   * write.
   */
  isWriter: boolean
  /** Null while the session is open. Otherwise a promise that resolves when the session has been closed. */
  closing: Promise<void> | null
}

/** A request of `next` that the provider refused, and what was done about it. */
export interface Refusal {
  /** The JSON text of the refused request body. */
  readonly text: string
  readonly failure: ModelFailure
  /** The remedies tried since the last response, and how often the caller was told to wait. */
  readonly tried: Remedies
  readonly waits: number
}

interface OpenSessionInput {
  readonly settings: TidemarkSettings
  readonly model: SessionModel
  /** The model that writes summaries if it differs from the session's model; otherwise null. */
  readonly summarizer: SeparateSummaryModel | null
  readonly options: SessionOptions
  /** Listeners for every event; they are called before listeners that are added later. */
  readonly listeners: readonly ((event: SessionEvent) => void)[]
  /** The tools of the session. Null: the tools declared in the log are used, which cannot be run. */
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
    withLock: createWriteQueue(),
    listeners,
    gate,
    model: withRetryEvents(input.model, settings, listeners),
    tools: tools ?? toolsFromLog(state, settings),
    offersHistory: settings.isHistoryAutomatic ? isHistoryInLog(state) : settings.historyTool !== null,
    sections,
    startSource: state.position === 0 ? 'startup' : 'resume',
    pendingRequest: null,
    encodeBody: createBodyEncoder({}),
    refusal: null,
    arrivingResults: new Set(),
    busyWith: null,
    streamStatus: IDLE_STATUS,
    viewId: String(state.position),
    pendingWork: new Set(),
    stop: new AbortController(),
    isWriter: false,
    closing: null,
  }
}

function createCompactionHost(
  id: string,
  input: OpenSessionInput,
  listeners: SessionListeners,
): OpenSession['compactionHost'] {
  const { settings, options } = input
  const { carriers = [], hooks, cleanups, autonomous } = options
  const summarizer = withSummarizerRetryEvents(input.summarizer, settings, listeners)
  const log = settings.logPath(id)
  const given = typeof carriers === 'function' ? carriers({ id, log }) : carriers
  return {
    deadlines: settings.deadlines,
    sources: withDefaultSources(given, log, settings.blobs),
    ...omitUndefined({ hooks, cleanups, isAutonomous: autonomous }),
    ...(settings.blobs === null ? {} : { blobs: settings.blobs }),
    ...(summarizer === null ? {} : { summaryModel: summarizer }),
  }
}

/** Returns the tools of the newest request in the log, for a compaction before the first turn. They cannot be run. */
function toolsFromLog(state: SessionState, { historyTool, isHistoryAutomatic }: TidemarkSettings): Toolset {
  const { current, tools } = state.prefix
  const isEngines = ({ name }: JsonObject): boolean =>
    name === historyTool && (!isHistoryAutomatic || isHistoryInLog(state))
  const declared = (current?.epoch.tools ?? []).filter(({ name }) => !tools.has(String(name)))
  const changed = [...tools.values()].flatMap(({ definition }) => (definition === null ? [] : [definition]))
  const definitions = [...declared, ...changed].filter((tool) => !isEngines(tool))
  return {
    definitions,
    run: ({ name }) => ({ content: `The tool ${name} is not connected.`, is_error: true }),
  }
}

/** Checks whether the newest request of the log declared the engine's history tool, and not a tool of the same name. */
function isHistoryInLog({ prefix }: SessionState): boolean {
  const declared = prefix.current?.epoch.tools.find(({ name }) => name === HISTORY_TOOL_NAME)
  const tool = prefix.tools.get(HISTORY_TOOL_NAME)?.definition ?? declared
  return tool !== undefined && isHistoryTool(tool)
}

/** Returns how the model can read what left its context: with the history tool, or in the log if a tool reads files. */
function findRetrievalPaths({ id, settings, tools, offersHistory }: OpenSession): RetrievalPaths {
  const { historyTool, isHistoryAutomatic, options } = settings
  const isTaken = isHistoryAutomatic && tools.definitions.some(({ name }) => name === historyTool)
  const hasTranscript = options.transcript ?? tools.definitions.some(canToolReadFiles)
  return {
    historyTool: offersHistory && !isTaken ? historyTool : null,
    transcript: hasTranscript ? settings.logPath(id) : null,
  }
}

/** Creates the context of one engine operation: the session's state, host, write lock and abort signal. */
export function createTurnContext(
  session: OpenSession,
  options: {
    /** Signals that abort the operation; closing the session aborts it as well. Without this option, nothing aborts it. */
    readonly signals?: readonly (AbortSignal | undefined)[]
    /** True if writes wait while a reply is streamed. */
    readonly waitsForReply?: boolean
    readonly maxCalls?: number
  } = {},
): TurnContext {
  return {
    get state() {
      return session.state
    },
    set state(next) {
      session.state = next
    },
    host: { ...createTurnHost(session), ...omitUndefined({ maxCalls: options.maxCalls }) },
    signal: options.signals === undefined ? undefined : anySignal(session, options.signals),
    writeLock:
      options.waitsForReply === true ? lockBetweenReplies(session.gate, session.withLock) : session.withLock,
  }
}

function anySignal({ stop }: OpenSession, signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any([stop.signal, ...checkSignals(signals)])
}

/** Returns the signals that are given. Throws if one of them is not an AbortSignal. */
export function checkSignals(signals: readonly (AbortSignal | undefined)[]): readonly AbortSignal[] {
  const defined = signals.filter((signal) => signal !== undefined)
  if (defined.every((signal) => signal instanceof AbortSignal)) return defined
  throw badOptionError('signal', 'signal: expected an AbortSignal, as new AbortController().signal.')
}

export function createTurnHost(session: OpenSession): CompactingHost {
  const { settings, model, options } = session
  const { choice, parameters, estimator, scaled, rules } = model
  const { saveDiff } = settings
  const retrieval = findRetrievalPaths(session)
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
    ...omitUndefined({
      cwd: options.cwd,
      isBedrock: choice.isBedrock,
      entitlement: settings.options.entitlement,
    }),
    ...(saveDiff === null
      ? {}
      : { keepDiff: (diff: string, { at }: { at: number }) => saveDiff(session.id, diff, at) }),
    pricesOf: choice.priceList,
    chance: Math.random,
    sections: session.sections,
    modelSettings() {
      // The tools may change while a compaction runs in the background, so they are read at each call.
      const { definitions } = session.tools
      const { historyTool } = findRetrievalPaths(session)
      const offered = historyTool === null ? definitions : [...definitions, createHistoryTool(historyTool)]
      return { tools: offered, model: choice.id, parameters }
    },
    runTool: session.tools.run,
    ...omitUndefined({ isParallelTool: session.tools.isParallel, canUseTool: options.canUseTool }),
    startSource: () => session.startSource,
    noteStarted() {
      session.startSource = null
    },
    compaction: { ...session.compactionHost, estimator, scaled, rules, retrieval },
  }
}

/**
 * Reserves the session for one operation and returns a function that ends the reservation. Throws `busy` if another
 * operation has reserved the session, or `closed`.
 */
export function reserveSession(session: OpenSession, operation: string): () => void {
  checkSessionOpen(session)
  const { id, busyWith } = session
  if (busyWith !== null) {
    const message = `${operation}: the session ${id} is busy with ${busyWith}. Wait for that to end; append works meanwhile.`
    throw new TidemarkError('busy', message, { details: { act: operation, busyWith } })
  }
  session.busyWith = operation
  changeStatus(session, IDLE_STATUS)
  const over = Promise.withResolvers<void>()
  track(session, over.promise)
  return () => {
    session.busyWith = null
    changeStatus(session, IDLE_STATUS)
    session.gate.open()
    over.resolve()
  }
}

/**
 * Runs work for which the session need not be reserved. `session.close` waits until the work ends. Throws `closed` if
 * the session is closed.
 */
export async function trackWork<T>(session: OpenSession, work: () => Promise<T>): Promise<T> {
  checkSessionOpen(session)
  const result = work()
  track(session, result)
  return result
}

function track({ pendingWork }: OpenSession, work: Promise<unknown>): void {
  const over: Promise<unknown> = work.catch(() => {}).finally(() => pendingWork.delete(over))
  pendingWork.add(over)
}

export function checkSessionOpen({ closing, id }: OpenSession): void {
  if (closing !== null) throw new TidemarkError('closed', `The session ${id} was closed: open it again.`)
}

/**
 * Reads the records that other processes appended to the log. Skipped while this process holds the write lock, because
 * no other process can write then.
 */
export async function refreshFromLog(session: OpenSession, run: TurnContext): Promise<void> {
  if (session.isWriter && session.settings.locks) return
  const from = session.state.position
  await refreshSession(run)
  const to = session.state.position
  if (to > from) session.listeners.emit({ type: 'caught-up', from, to })
}

/** Runs an engine operation to its end, emits its events, and returns its result. */
export function runOperation<Event extends SessionEvent, End>(
  session: OpenSession,
  events: AsyncGenerator<Event, End>,
): Promise<End> {
  return drainEvents({ events, onEvent: (event) => emitSessionEvent(session, event) })
}

/**
 * Emits an event of the engine to the listeners. Before that, notes whether this process has written to the log, and
 * opens the reply gate if a reply has ended.
 */
export function emitSessionEvent(session: OpenSession, event: SessionEvent): void {
  if (event.type === 'appended') session.isWriter = true
  if (REPLY_OVER.has(event.type)) session.gate.open()
  const isRewritten = event.type === 'rewritten'
  if (isRewritten) session.viewId = String(session.state.position)
  session.listeners.emit(event)
  const status = updateStatus(session.streamStatus, event as TurnEvent)
  if (isRewritten || hasNewStatus(session.streamStatus, status)) changeStatus(session, status)
  else session.streamStatus = status
}

/** Changes the status and emits it. */
function changeStatus(session: OpenSession, status: StreamStatus): void {
  session.streamStatus = status
  session.listeners.emit({ type: 'status', status: readStatus(session) })
}

export function readStatus({ busyWith, streamStatus, viewId }: OpenSession): SessionStatus {
  return { operation: busyWith, ...streamStatus, viewId }
}

const REPLY_OVER: ReadonlySet<string> = new Set([
  'answered',
  'reply-dropped',
  'reactive-compact',
  'turn-ended',
])
