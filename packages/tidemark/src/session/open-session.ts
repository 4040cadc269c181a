/** An open session as its parts see it: its state, its model, its tools, and who is at work on it. */
import {
  type Alone,
  historyTool,
  type JsonObject,
  type OpenedCall,
  type OtherSummariser,
  openSession,
  type PlacedSection,
  type Room,
  refresh,
  type SessionState,
  type Signal,
  TidemarkError,
  type TurnHost,
  type TurnRun,
} from '@tidemark/core'
import { badOption } from '../platform/argument-errors.ts'
import { createListeners, type Listeners, type SessionEvent } from './events.ts'
import type { Carriers, SessionPlace, Settings, TidemarkOptions } from './options.ts'
import { type FittedModel, heardModel, heardSummariser } from './session-model.ts'
import type { Toolset } from './tools.ts'

/** What may differ from session to session. */
export interface DeskOptions
  extends Pick<TidemarkOptions, 'carriers' | 'hooks' | 'cleanups' | 'source' | 'interactive' | 'autonomous'> {
  readonly onEvent?: (event: SessionEvent) => void
}

export interface Desk {
  readonly id: string
  readonly settings: Settings
  readonly options: DeskOptions
  readonly carriers: Room['carriers']
  /** The model that writes summaries, where it is another; null where it is the session's. */
  readonly summariser: OtherSummariser | null
  readonly shared: SharedSession
  readonly listeners: Listeners
  /** Shut while a reply comes in: a prompt between its blocks would tear it apart. */
  readonly gate: Gate
  fitted: FittedModel
  tools: Toolset
  sections: readonly PlacedSection[]
  /** The request that was handed out and whose response has not come. */
  pending: OpenedCall | null
  /** Calls whose results are on their way into the log. */
  readonly arriving: Set<string>
  /** The act that has the session; null where none does. */
  busyWith: string | null
  /** Everything under way: each resolves when it is over, however it ends. */
  readonly works: Set<Promise<unknown>>
  /** Calls off everything that is under way; done once, when the session is closed. */
  readonly stop: AbortController
  /** We have written, so that nobody else can until we let go. */
  isWriter: boolean
  /** Resolves when it is closed; null while it is open. */
  closing: Promise<void> | null
}

export interface DeskStart {
  readonly settings: Settings
  readonly fitted: FittedModel
  readonly summariser: OtherSummariser | null
  readonly options: DeskOptions
  readonly tools: Toolset | null
  readonly sections: readonly PlacedSection[]
}

export async function openDesk(id: string, start: DeskStart): Promise<Desk> {
  const { settings, options, fitted, summariser, tools, sections } = start
  const state = await openSession(settings.journal, id)
  const gate = createGate()
  const listeners = createListeners(options.onEvent)
  return {
    id,
    settings,
    options,
    carriers: carriersFor(options.carriers, { id, log: settings.logOf(id) }),
    summariser: heardSummariser(summariser, settings, listeners),
    shared: gated(shareSession(state), gate),
    listeners,
    gate,
    fitted: heardModel(fitted, settings, listeners),
    tools: tools ?? rememberedTools(state, settings),
    sections,
    pending: null,
    arriving: new Set(),
    busyWith: null,
    works: new Set(),
    stop: new AbortController(),
    isWriter: false,
    closing: null,
  }
}

/** A request that goes out is seen by its mark on the state: from that moment on, prompts wait. */
function gated(shared: SharedSession, gate: Gate): SharedSession {
  let { state } = shared
  return {
    get state() {
      return state
    },
    set state(next) {
      if (next.sent !== state.sent && next.sent !== null) gate.shut()
      state = next
    },
    alone: shared.alone,
  }
}

function carriersFor(given: Carriers | undefined, place: SessionPlace): Room['carriers'] {
  return typeof given === 'function' ? given(place) : (given ?? [])
}

/** Those the log says were declared: what is compacted before the first turn keeps them. */
function rememberedTools({ told }: SessionState, { historyTool: own }: Settings): Toolset {
  const definitions = (told.standing?.epoch.tools ?? []).filter(({ name }) => name !== own)
  return {
    definitions,
    run: ({ name }) => ({ content: `The tool ${name} is not connected.`, is_error: true }),
  }
}

export function deskRun(desk: Desk, signal?: Signal): TurnRun {
  return runOn(desk.shared, hostOf(desk), signal === undefined ? {} : { signal })
}

/** The same for an act that whoever closes the session calls off. */
export function actRun(desk: Desk, ...signals: readonly (AbortSignal | undefined)[]): TurnRun {
  const given = signals.filter((signal) => signal !== undefined)
  if (!given.every((signal) => signal instanceof AbortSignal))
    throw badOption('signal', 'signal: expected an AbortSignal, as new AbortController().signal.')
  return deskRun(desk, AbortSignal.any([desk.stop.signal, ...given]))
}

/** Work that `close` waits for. */
export async function working<T>(desk: Desk, work: () => Promise<T>): Promise<T> {
  checkOpen(desk)
  const done = work()
  tracked(desk, done)
  return done
}

function tracked({ works }: Desk, work: Promise<unknown>): void {
  const over: Promise<unknown> = work.catch(() => {}).finally(() => works.delete(over))
  works.add(over)
}

/** For what is said from outside: it waits where a reply is coming in. */
export function promptRun(desk: Desk): TurnRun {
  const { shared, gate } = desk
  const alone: Alone = async (work) => {
    for (;;) {
      await gate.passed()
      const done = await shared.alone(async () => (gate.isShut ? null : { value: await work() }))
      if (done !== null) return done.value
    }
  }
  return runOn(shared, hostOf(desk), { alone })
}

export function hostOf(desk: Desk): TurnHost & { readonly room: Room } {
  const { settings, fitted, options } = desk
  const { choice, parameters } = fitted
  return {
    journal: settings.journal,
    model: fitted.port,
    clock: settings.clock,
    ids: settings.ids,
    policy: settings.policy,
    profile: choice.profile,
    switches: settings.switches,
    source: options.source ?? 'sdk',
    isInteractive: options.interactive ?? false,
    pricesOf: choice.pricesOf,
    sections: desk.sections,
    offered: () => ({ tools: offeredTools(desk), model: choice.id, parameters }),
    runTool: desk.tools.run,
    room: roomOf(desk),
  }
}

function offeredTools({ tools, settings }: Desk): readonly JsonObject[] {
  const { historyTool: name } = settings
  return name === null ? tools.definitions : [...tools.definitions, historyTool(name)]
}

function roomOf({ settings, fitted, options, carriers, summariser, id }: Desk): Room {
  const { estimator, scaled, rules } = fitted
  const { hooks, cleanups, autonomous } = options
  const transcript = settings.options.transcript === true ? settings.logOf(id) : null
  return {
    estimator,
    scaled,
    rules,
    deadlines: settings.deadlines,
    retrieval: { historyTool: settings.historyTool, transcript },
    ...(settings.blobs === null ? {} : { blobs: settings.blobs }),
    ...(carriers === undefined ? {} : { carriers }),
    ...(hooks === undefined ? {} : { hooks }),
    ...(cleanups === undefined ? {} : { cleanups }),
    ...(autonomous === undefined ? {} : { isAutonomous: autonomous }),
    ...(summariser === null ? {} : { summariser }),
  }
}

/** Takes the session for an act; what it gives back lets go of it. */
export function claim(desk: Desk, act: string): () => void {
  checkOpen(desk)
  if (desk.busyWith !== null) throw busy(desk, act)
  desk.busyWith = act
  const over = Promise.withResolvers<void>()
  tracked(desk, over.promise)
  return () => {
    desk.busyWith = null
    desk.gate.open()
    over.resolve()
  }
}

export function checkOpen({ closing, id }: Desk): void {
  if (closing !== null) throw new TidemarkError('closed', `The session ${id} was closed: open it again.`)
}

function busy({ id, busyWith }: Desk, act: string): TidemarkError {
  const message = `${act}: the session ${id} is busy with ${busyWith}. Wait for that to end; append works meanwhile.`
  return new TidemarkError('busy', message, { details: { act, busyWith } })
}

/** With what other processes have written since; nobody can while the session is ours. */
export async function takeIn(desk: Desk, run: TurnRun): Promise<void> {
  if (desk.isWriter && desk.settings.locks) return
  const from = desk.shared.state.position
  await refresh(run)
  const to = desk.shared.state.position
  if (to > from) desk.listeners.emit({ type: 'caught-up', from, to })
}

/** Tells an event of the engine, and heeds it. */
export function told(desk: Desk, event: SessionEvent): void {
  if (event.type === 'appended') desk.isWriter = true
  if (REPLY_OVER.has(event.type)) desk.gate.open()
  desk.listeners.emit(event)
}

const REPLY_OVER: ReadonlySet<string> = new Set(['answered', 'reactive-compact', 'turn-ended'])

// One session, many hands: a turn under way, a summary in the making, messages that arrive. All of them work on one
// state, and whatever they write goes through one queue, so that no two use the same position of the log.

export interface SharedSession {
  state: SessionState
  readonly alone: Alone
}

export function shareSession(state: SessionState): SharedSession {
  return { state, alone: createQueue() }
}

/** A run whose state is the session's. */
export function runOn(
  shared: SharedSession,
  host: TurnHost,
  { signal, alone = shared.alone }: { readonly signal?: Signal; readonly alone?: Alone } = {},
): TurnRun {
  return {
    get state() {
      return shared.state
    },
    set state(next) {
      shared.state = next
    },
    host,
    signal,
    alone,
  }
}

/** One after the other, in the order in which they were asked for; one that throws holds up nobody. */
export function createQueue(): Alone {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work)
    last = next.catch(() => {})
    return next
  }
}

/** A door that can be shut for a while: those who come meanwhile wait for it. */
export interface Gate {
  readonly isShut: boolean
  shut(): void
  open(): void
  passed(): Promise<void>
}

export function createGate(): Gate {
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
    async passed() {
      while (waiting !== null) await waiting.promise
    },
  }
}
