/** The shared state of an open session: its log, model and tools, and the operations in progress. */
import type { TurnEvent } from '@tidemark/core/engine/events'
import type { SessionStartSource } from '@tidemark/core/engine/hooks'
import type { CompactionServices, NotesServices, SeparateSummaryModel } from '@tidemark/core/engine/host'
import type { StoredNotes } from '@tidemark/core/engine/ports'
import type { ModelFailure } from '@tidemark/core/engine/reply'
import { readSessionState, type SessionState } from '@tidemark/core/engine/session-state'
import {
  type PreparedSummarySlot,
  refreshSession,
  type TurnContext,
  type WriteLock,
} from '@tidemark/core/engine/session-writer'
import { TidemarkError } from '@tidemark/core/errors'
import { createHistoryToolDefinition } from '@tidemark/core/history/history-tool'
import { type JsonObject, omitUndefined } from '@tidemark/core/log/json'
import type { ClientMarker } from '@tidemark/core/request/cache-markers'
import type { PlacedSection } from '@tidemark/core/request/system-prompt'
import type { RemedyCounts } from '@tidemark/core/turn/recover-refusal'
import type { ClientMessage } from '@tidemark/wire/providers/client-request'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { type BodyEncoder, createBodyEncoder } from '../models/http-model.ts'
import { findCodec } from '../models/providers.ts'
import { createWriteLock } from '../platform/node-ports.ts'
import { withDefaultSources } from '../sources/log-sources.ts'
import type { SessionTelemetry } from '../telemetry/telemetry.ts'
import {
  createListeners,
  drainEvents,
  hasVisibleStatusChange,
  IDLE_STATUS,
  type SessionEvent,
  type SessionListeners,
  type SessionStatus,
  type StreamStatus,
  updateStatus,
} from './events.ts'
import { readContextSources, type TidemarkOptions, type TidemarkSettings } from './options.ts'
import { createLimitsInForce, type LimitsInForce } from './session-limits.ts'
import { type AwaitedResponse, createAwaitedResponse } from './session-locks.ts'
import {
  nameTelemetryProvider,
  type SessionModel,
  withSessionConnection,
  withSummarizerConnection,
} from './session-model.ts'
import { isHistoryToolInLog, readToolsFromLog, type ToolOptions, type Toolset } from './tools.ts'

/** Options of `createTidemark` that can differ between sessions. */
export interface SessionOptions
  extends Pick<TidemarkOptions, 'carriers' | 'hooks' | 'hookCommands' | 'canUseTool' | 'cleanups' | 'source'>,
    Pick<TidemarkOptions, 'cwd' | 'interactive' | 'autonomous' | 'notes' | 'limits'> {
  readonly onEvent?: (event: SessionEvent) => void
}

/** Options of one session; they override those of `createTidemark`. */
export interface OpenOptions extends SessionOptions, ToolOptions, Pick<TidemarkOptions, 'system'> {
  readonly model?: TidemarkOptions['model']
}

/** A client's list that the log has completely. The next list usually begins with it, so only what follows it is compared. */
export interface LoggedClientList {
  readonly messages: readonly ClientMessage[]
  readonly branch: SessionState['session']['branch']
  /** Number of equal blocks at the start of the log and the list. */
  readonly shared: number
  /** True if the log has one of the tool calls of the list, on any branch. */
  readonly sharesCalls: boolean
}

/** An open session, as the functions of this folder share it. They change its fields; callers get the public `Session`. */
export interface OpenSession {
  readonly id: string
  /** Path of the log; null if the session is not stored in a file. */
  readonly log: string | null
  readonly settings: TidemarkSettings
  readonly options: SessionOptions
  /** What the engine needs for compaction, without the parts that depend on the current model and tools. */
  readonly compactionHost: Omit<CompactionServices, 'estimator' | 'scaled' | 'rules' | 'retrieval'>
  /**
   * The current state of the session. If a new state contains a newly sent request, the gate is closed until the reply has ended.
   */
  state: SessionState
  /** Runs log writes one at a time and in order, so that no two of them use the same position in the log. */
  readonly withLock: WriteLock
  readonly listeners: SessionListeners
  /** Null if the option `telemetry` is not given. */
  readonly telemetry: SessionTelemetry | null
  /**
   * The request of `next` or `take` whose response has not been appended yet. Its gate is closed while a reply is streamed:
   * a prompt that is appended between the blocks of the reply would split the response.
   */
  readonly awaited: AwaitedResponse
  model: SessionModel
  tools: Toolset
  /** Definition of the history tool; null if the option `history` turns it off. */
  readonly historyTool: JsonObject | null
  /** True if the history tool is declared; without the option `history`, that is since `run` first ran the tools. */
  offersHistory: boolean
  sections: readonly PlacedSection[]
  /** What is known of the client whose request was taken last; null if the session has taken none. */
  client: {
    /**
     * The list of its last request, for the comparison with the next one; null if none, or if that list had only new messages.
     */
    readonly history: LoggedClientList | null
    /** The cache lifetime that the cache markers of its last request ask for. */
    readonly ttl: string | undefined
    /** Time of its last request, in milliseconds since 1970. */
    readonly askedAt: number
    /** The newest pauses between its requests, in milliseconds. */
    readonly pauses: readonly number[]
    /** uuid of the last record that its next request should repeat; null if it should repeat none, undefined if all. */
    readonly repeatedUntil: string | null | undefined
    /** The cache markers of its last request. */
    readonly markers: readonly ClientMarker[]
  } | null
  /** How the session began, for the SessionStart hooks; null once their context is in the log. */
  startSource: SessionStartSource | null
  /** Encodes the bodies of the requests that `next` returns. Messages of earlier requests are not encoded again. */
  readonly encodeBody: BodyEncoder
  /** The refusal by the provider since the last response; null if there was none. */
  refusal: RequestRefusal | null
  /** Ids of the tool calls whose results are being appended. */
  readonly arrivingResults: Set<string>
  /** The name of the operation that has reserved the session, such as `run`; null if none has. */
  busyWith: string | null
  streamStatus: StreamStatus
  /** Names the present context: the position of the log at the opening or at the last rewrite, as text. */
  viewId: string
  /** The summary that is prepared beside the turns; null if policy turns this off. */
  prepared: PreparedSummarySlot | null
  /** Promises of all operations in progress. Each resolves when its operation ends, even after a failure. */
  readonly pendingWork: Set<Promise<unknown>>
  /**
   * Running updates of the notes, which do not count as operations in progress. Closing the session stops them and waits for
   * them.
   */
  readonly backgroundWork: Set<Promise<unknown>>
  readonly notes: KnownNotes
  /** Called after each response, to start background work; each function returns at once. */
  readonly background: OpenSessionInput['background']
  readonly limits: LimitsInForce
  /** Aborts all operations in progress when the session is closed. */
  readonly stop: AbortController
  /**
   * True if this process has written to the session. If the journal locks sessions (`settings.locks`), the process then
   * holds the write lock, and no other process can write.
   */
  isWriter: boolean
  /** Null while the session is open. Otherwise a promise that resolves when the session has been closed. */
  closing: Promise<void> | null
}

/** What an open session keeps about its notes. */
interface KnownNotes {
  /** The stored notes as far as this process knows them; undefined until they were read. */
  stored: StoredNotes | null | undefined
  /** uuid of the last record at the last attempt to update, so that a failed update is not repeated after every response. */
  triedUuid: string | null
  /** The update that is running; null if none is. */
  update: AbortController | null
  /** The session at the end of a turn that ended while an update was running, for the next update; null if none did. */
  pauseAt: SessionState | null
  /** Number of successive failed updates by the model, and the newest compaction at the last failure. */
  failures: { readonly count: number; readonly compaction: string | null }
}

/** A request of `next` or `take` that the provider refused, and what was done about it. */
export interface RequestRefusal {
  /** What was sent of the refused request, as `toComparableRequestText` returns it. Empty if an equal request may be sent again. */
  readonly text: string
  readonly failure: ModelFailure
  /** The remedies tried since the last response. */
  readonly tried: RemedyCounts
  /** How many waits were planned for the caller since the last response. */
  readonly waits: number
  /** True if a client's request was too long and the planner has already been asked for a rewrite after it. */
  readonly isReplanned: boolean
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
  readonly notes: NotesServices
  readonly background: readonly ((
    session: OpenSession,
    state: SessionState,
    moment: 'response' | 'turn-end',
  ) => void)[]
}

/** Reads the log of a session and creates its state; a session without a log is empty. Takes no lock: the first append does. */
export async function openSessionById(id: string, input: OpenSessionInput): Promise<OpenSession> {
  const { settings, options, tools, sections } = input
  let state = await readSessionState(settings.journal, id)
  const awaited = createAwaitedResponse()
  const telemetry = observeSession(id, input, (name) => isToolOffered(session, name))
  const listeners = createListeners(listListeners(telemetry, input))
  const notes: KnownNotes = {
    stored: undefined,
    triedUuid: null,
    update: null,
    pauseAt: null,
    failures: { count: 0, compaction: null },
  }
  const place = { id, log: settings.logPath(id) }
  const session: OpenSession = {
    ...place,
    settings,
    options,
    compactionHost: createCompactionHost(
      place,
      { ...input, notes: { ...input.notes, readStored: () => notes.stored ?? null } },
      listeners,
      telemetry,
    ),
    get state() {
      return state
    },
    set state(next) {
      if (next.lastRequest !== state.lastRequest && next.lastRequest !== null) awaited.gate.shut()
      state = next
    },
    withLock: createWriteLock(),
    listeners,
    telemetry,
    awaited,
    model: withSessionConnection(input.model, settings, { id, listeners, telemetry }),
    tools: tools ?? readToolsFromLog(state, settings),
    historyTool: settings.historyTool === null ? null : createHistoryToolDefinition(settings.historyTool),
    offersHistory: settings.isHistoryAutomatic ? isHistoryToolInLog(state) : settings.historyTool !== null,
    sections,
    client: null,
    startSource: state.position === 0 ? 'startup' : 'resume',
    encodeBody: createSessionEncoder(() => findCodec(session.model.choice)),
    refusal: null,
    arrivingResults: new Set(),
    busyWith: null,
    streamStatus: IDLE_STATUS,
    viewId: String(state.position),
    prepared: null,
    pendingWork: new Set(),
    backgroundWork: new Set(),
    notes,
    background: input.background,
    limits: openLimits(options),
    stop: new AbortController(),
    isWriter: false,
    closing: null,
  }
  return session
}

function openLimits({ limits }: SessionOptions): LimitsInForce {
  if (limits !== undefined) return createLimitsInForce(limits)
  return { own: [], isInForce: false, run: null, running: new Set() }
}

/** Lists the listeners of a session: telemetry comes first. */
function listListeners(
  telemetry: SessionTelemetry | null,
  { listeners }: OpenSessionInput,
): OpenSessionInput['listeners'] {
  return telemetry === null ? listeners : [telemetry.countEvent, ...listeners]
}

/** Returns an encoder that uses the protocol of the session's current model at each call. */
function createSessionEncoder(readCodec: () => ProviderCodec): BodyEncoder {
  const encoders = new Map<ProviderCodec, BodyEncoder>()
  return (call, list) => {
    const codec = readCodec()
    const encode = encoders.get(codec) ?? createBodyEncoder(codec, {})
    encoders.set(codec, encode)
    return encode(call, list)
  }
}

function observeSession(
  id: string,
  { settings, options, model }: OpenSessionInput,
  hasTool: (name: string) => boolean,
): SessionTelemetry | null {
  const observed = {
    id,
    source: options.source ?? 'sdk',
    provider: nameTelemetryProvider(model.choice),
    hasTool,
  }
  return settings.options.telemetry?.observeSession(observed) ?? null
}

function isToolOffered({ settings, tools }: OpenSession, name: string): boolean {
  return name === settings.historyTool || tools.definitions.some((tool) => tool.name === name)
}

function createCompactionHost(
  { id, log }: Pick<OpenSession, 'id' | 'log'>,
  input: OpenSessionInput,
  listeners: SessionListeners,
  telemetry: SessionTelemetry | null,
): OpenSession['compactionHost'] {
  const { settings, options } = input
  const { carriers = [], hooks, cleanups, autonomous } = options
  const summarizer = withSummarizerConnection(input.summarizer, settings, {
    id,
    listeners,
    telemetry,
  })
  const given = readContextSources(carriers, { id, log })
  return {
    deadlines: settings.deadlines,
    sources: withDefaultSources(given, log, settings.blobs),
    notes: input.notes,
    ...omitUndefined({ hooks, cleanups, isAutonomous: autonomous }),
    ...(settings.blobs === null ? {} : { blobs: settings.blobs }),
    ...(summarizer === null ? {} : { summaryModel: summarizer }),
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
    session.awaited.gate.open()
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

/** Throws `closed` if the session is closed or closing. */
export function checkSessionOpen({ closing, id }: OpenSession): void {
  if (closing !== null) throw new TidemarkError('closed', `The session ${id} was closed: open it again.`)
}

/**
 * Reads the records that other processes appended to the log. Skipped while this process holds the write lock, because
 * no other process can write then.
 */
export async function refreshFromLog(session: OpenSession, run: TurnContext): Promise<void> {
  if (session.isWriter && session.settings.locksSessions) return
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
  return drainEvents({
    events: traceOperation(session, 'operation', events),
    onEvent: (event) => emitSessionEvent(session, event),
  })
}

/** Returns the operation with its spans, if the session has telemetry. */
export function traceOperation<Event extends SessionEvent, End>(
  { telemetry }: OpenSession,
  operation: string,
  events: AsyncGenerator<Event, End>,
): AsyncGenerator<Event, End> {
  return telemetry === null ? events : telemetry.traceOperation(operation, events)
}

/**
 * Emits an event of the engine to the listeners. Before that, notes whether this process has written to the log, and
 * opens the reply gate if a reply has ended.
 */
export function emitSessionEvent(session: OpenSession, event: SessionEvent): void {
  if (event.type === 'appended') session.isWriter = true
  if (REPLY_OVER.has(event.type)) session.awaited.gate.open()
  const isRewritten = event.type === 'rewritten'
  if (isRewritten) session.viewId = String(session.state.position)
  session.listeners.emit(event)
  const status = updateStatus(session.streamStatus, event as TurnEvent)
  if (isRewritten || hasVisibleStatusChange(session.streamStatus, status)) changeStatus(session, status)
  else session.streamStatus = status
}

/** Changes the status and emits it. */
function changeStatus(session: OpenSession, status: StreamStatus): void {
  session.streamStatus = status
  session.listeners.emit({ type: 'status', status: readStatus(session) })
}

/** Emits the present status, after a change of the summary that is prepared in the background. */
export function emitStatus(session: OpenSession): void {
  changeStatus(session, session.streamStatus)
}

export function readStatus({ busyWith, streamStatus, viewId, prepared }: OpenSession): SessionStatus {
  return { operation: busyWith, ...streamStatus, viewId, preparedSummary: prepared?.phase ?? 'none' }
}

const REPLY_OVER: ReadonlySet<string> = new Set([
  'answered',
  'reply-dropped',
  'reactive-compact',
  'turn-ended',
])
