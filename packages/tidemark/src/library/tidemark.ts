/** The entry point of the library: `createTidemark` returns an object that opens any number of sessions. */
import type { SessionStartSource } from '@tidemark/core/engine/hooks'
import { TidemarkError } from '@tidemark/core/errors'
import { omitUndefined } from '@tidemark/core/log/json'
import { orderPromptSections } from '@tidemark/core/request/system-prompt'
import { createPassedReplyPricer } from '../dropin/client-billing.ts'
import type { ClosableSession } from '../dropin/client-conversation.ts'
import type { SessionSelector } from '../dropin/client-conversations.ts'
import { type ClientFetchOptions, createClientFetch, type FetchServices } from '../dropin/client-fetch.ts'
import { findCodec } from '../models/providers.ts'
import { badOptionError } from '../platform/argument-errors.ts'
import { startBackgroundWork } from '../session/background.ts'
import {
  type OpenOptions,
  type OpenSession,
  openSessionById,
  type SessionOptions,
} from '../session/open-session.ts'
import {
  checkOpenOptions,
  createTidemarkSettings,
  type TidemarkOptions,
  type TidemarkSettings,
} from '../session/options.ts'
import { withCommandHooks } from '../session/session-hooks.ts'
import { checkLimitsPriced } from '../session/session-limits.ts'
import {
  createSeparateSummaryModel,
  createSessionModel,
  listModelNotices,
  type SessionModel,
} from '../session/session-model.ts'
import { createNotesServices, listNotesNotices, startNotesUpdate } from '../session/session-notes.ts'
import { createToolset, type ToolOptions, type Toolset } from '../session/tools.ts'
import { checkSessionId } from '../storage/home-paths.ts'
import { createPublicSession, findOpenSession, type Session } from './session.ts'

/** Options of `tidemark.fetch`. */
export interface FetchOptions extends Omit<ClientFetchOptions, 'session'> {
  /**
   * The session: its id, an open session, or a function that returns the id for a request. Further conversations under
   * one id get `id.2`, `id.3` … Default: the id that the request names in a header or in its metadata, else a new one.
   */
  readonly session?: Session | SessionSelector
}

export interface Tidemark {
  /**
   * Opens a session by its id; a session that does not exist yet is empty. A session that `fetch` has opened is returned
   * as it is, if no options are given. Throws `busy` if this object has opened it before.
   *
   * @example const session = await tide.open('fix-login')
   */
  open(id: string, options?: OpenOptions): Promise<Session>
  /** Returns the ids of the existing sessions, sorted. */
  sessions(): Promise<readonly string[]>
  /**
   * Returns a `fetch` for a client that sends its whole conversation with every request. It keeps the conversation in a
   * session, and sends that session's requests instead.
   *
   * @example const client = new Anthropic({ fetch: tide.fetch({ session: 'fix-login' }) })
   */
  fetch(options?: FetchOptions): typeof globalThis.fetch
  /** Closes all open sessions and the journal. Rejects with the first error after all of them were closed. */
  close(): Promise<void>
}

/** Emits notices about the settings and the log, now and to the first listener that is added later. */
function announceOpening({ settings, state, listeners, options, model }: OpenSession): void {
  const notes = listNotesNotices(settings, options)
  for (const message of [...settings.notices, ...listModelNotices(model, settings), ...notes])
    listeners.keep({ type: 'notice', message })
  const { damage } = state
  if (damage.length > 0) listeners.keep({ type: 'log-damaged', damage })
}

/** Returns the options that a session has unless `open` overrides them. */
function pickSessionOptions(options: TidemarkOptions): SessionOptions {
  const {
    carriers,
    hooks,
    hookCommands,
    canUseTool,
    cleanups,
    source,
    cwd,
    interactive,
    autonomous,
    notes,
    limits,
  } = options
  const base = { carriers, hooks, hookCommands, canUseTool, cleanups, source }
  return omitUndefined({ ...base, cwd, interactive, autonomous, notes, limits })
}

function checkNodeVersion(): void {
  // As of Node 22; types know it from their library, old versions lack it.
  if (typeof (Promise as Partial<PromiseConstructor>).withResolvers === 'function') return
  throw new TidemarkError(
    'old-node',
    `tidemark needs Node 22.12 or newer; this is Node ${process.versions.node}.`,
  )
}

/**
 * Creates a context engine for a model. Sessions can grow without limit; each API request contains only what fits the
 * context window.
 *
 * Throws `bad-option` for wrong options, and `old-node` on a version of Node that lacks what sessions use; otherwise
 * the first request would fail there, and a client's would be sent unmanaged.
 *
 * @example const tide = createTidemark({ model: anthropic('claude-sonnet-5-5'), system: 'You are a coder.' })
 */
export function createTidemark(options: TidemarkOptions): Tidemark {
  const settings = createCheckedSettings(options)
  const defaultModel = createSessionModel(options.model, settings)
  const summarizer = createSeparateSummaryModel(settings)
  const defaults = pickSessionOptions(options)
  const sessions: OpenSessions = new Map()
  let isClosed = false

  async function openSession(
    id: string,
    own: OpenOptions,
    startSource?: SessionStartSource,
  ): Promise<Session> {
    const { tools, runTool, findTool, system, model, onEvent, ...rest } = own
    const sessionOptions = { ...defaults, ...rest }
    checkLimits(settings, sessionOptions.limits, model)
    const session = await openSessionById(id, {
      settings,
      summarizer,
      model: model === undefined ? defaultModel : createSessionModel(model, settings),
      options: withCommandHooks(id, sessionOptions, settings),
      listeners: [(event) => onEvent?.(event), (event) => options.onEvent?.(event, id)],
      tools: createGivenToolset(omitUndefined({ tools, runTool, findTool })),
      sections: system === undefined ? settings.sections : orderPromptSections(system),
      notes: createNotesServices(settings, sessionOptions),
      background: [startNotesUpdate],
    })
    if (tools === undefined && runTool !== undefined)
      session.tools = createToolset({ tools: session.tools.definitions, runTool })
    if (startSource !== undefined) session.startSource = startSource
    startBackgroundWork(session)
    announceOpening(session)
    return createPublicSession(
      session,
      () => sessions.delete(id),
      (fork, more) => open(fork, { ...own, ...more }, 'fork'),
    )
  }

  async function open(id: string, own: OpenOptions, startSource?: SessionStartSource): Promise<Session> {
    checkSessionId(id)
    checkOpenOptions(own)
    return addSession(sessions, id, own, () => openSession(id, own, startSource))
  }

  const services = createFetchServices(settings, defaultModel, sessions, (id) =>
    isClosed ? Promise.reject(closedError()) : openSession(id, {}),
  )
  const tide: Tidemark = {
    open: (id, own = {}) => open(id, own),
    fetch: (own = {}) => createClientFetch(toClientOptions(own), services),
    sessions: async () => [...(await settings.journal.list())].sort(),
    close() {
      isClosed = true
      return closeAll(sessions, settings)
    },
  }
  openSessions.set(tide, sessions)
  return tide
}

/** Throws on an old Node, for bad options, and for limits of dollars that no price can count. */
function createCheckedSettings(options: TidemarkOptions): TidemarkSettings {
  checkNodeVersion()
  const settings = createTidemarkSettings(options)
  if (options.limits !== undefined) checkLimits(settings, options.limits)
  return settings
}

/** Throws if dollars are limited and a model has no price. `model`: that of the session, if it is not the default one. */
function checkLimits(
  { options, summariser, clock }: TidemarkSettings,
  limits: TidemarkOptions['limits'],
  model: TidemarkOptions['model'] = options.model,
): void {
  if (limits !== undefined) checkLimitsPriced(limits, [model, summariser], clock.now())
}

const openSessions = new WeakMap<Tidemark, OpenSessions>()

/** Returns a session that is open in a Tidemark object, without becoming its owner; null if it is not open there. */
export async function findSessionInUse(tide: Tidemark, id: string): Promise<Session | null> {
  return (
    (await openSessions
      .get(tide)
      ?.get(id)
      ?.opening.catch(() => null)) ?? null
  )
}

/** The open sessions of one Tidemark object by their ids, and who has opened them. */
type OpenSessions = Map<string, { readonly opening: Promise<Session>; openedBy: 'caller' | 'fetch' }>

/** Opens a session for the caller of `open`. A session that `fetch` has opened then belongs to the caller, too. */
async function addSession(
  sessions: OpenSessions,
  id: string,
  own: OpenOptions,
  start: () => Promise<Session>,
): Promise<Session> {
  const known = sessions.get(id)
  if (known === undefined) return startSession(sessions, id, 'caller', start)
  if (known.openedBy === 'caller') throw new TidemarkError('busy', describeOpenAlready(id))
  if (await waitForClosing(known.opening)) return addSession(sessions, id, own, start)
  if (Object.keys(own).length > 0) throw new TidemarkError('busy', describeOfFetch(id))
  known.openedBy = 'caller'
  return known.opening
}

/** Waits until a session that is being closed is closed. Returns false for a session that stays open. */
async function waitForClosing(opening: Promise<Session>): Promise<boolean> {
  const closing = findOpenSession(await opening)?.closing ?? null
  await closing?.catch(() => undefined)
  return closing !== null
}

/** Starts to open a session. Its id is taken at once, so that a second `open` of the same session fails. */
function startSession(
  sessions: OpenSessions,
  id: string,
  openedBy: 'caller' | 'fetch',
  start: () => Promise<Session>,
): Promise<Session> {
  const opening = start()
  sessions.set(id, { opening, openedBy })
  opening.catch(() => sessions.delete(id))
  return opening
}

/** Returns the tools that `open` was called with; null if there are none. */
function createGivenToolset(given: ToolOptions): Toolset | null {
  return given.tools === undefined && given.findTool === undefined ? null : createToolset(given)
}

/** Replaces the public `Session` in the options of `fetch` by its open session. Other values are checked later. */
function toClientOptions(own: FetchOptions): ClientFetchOptions {
  const { session, ...rest } = Object(own) as FetchOptions
  if (typeof session !== 'object') return own as ClientFetchOptions
  return { ...rest, session: findOpened(session) }
}

function findOpened(session: Session): ClosableSession {
  const open = findOpenSession(session)
  if (open === null)
    throw badOptionError(
      'session',
      'fetch: session: expected an open session of this Tidemark object, or an id.',
    )
  return { open, close: () => session.close() }
}

/** Returns what `fetch` needs. Its `close` leaves a session open that the caller has opened, too. */
function createFetchServices(
  { journal, ids, clock, options, findRecent, locksSessions: locks }: TidemarkSettings,
  model: SessionModel,
  sessions: OpenSessions,
  openSession: (id: string) => Promise<Session>,
): FetchServices {
  const pricePassed = createPassedReplyPricer(model)
  async function open(id: string): Promise<ClosableSession> {
    const known = sessions.get(id)?.opening
    if (known !== undefined && (await waitForClosing(known))) return open(id)
    const session = await (known ?? startSession(sessions, id, 'fetch', () => openSession(id)))
    const close = async (): Promise<void> =>
      sessions.get(id)?.openedBy === 'fetch' ? session.close() : undefined
    return { ...findOpened(session), close }
  }
  return {
    open,
    codec: findCodec(model.choice),
    list: (prefix) => journal.list(prefix),
    async borrow(id, use) {
      const isOpen = sessions.has(id)
      const { open: session, close } = await open(id)
      try {
        return await use(session)
      } finally {
        if (!isOpen) await close()
      }
    },
    isShared: !locks,
    hasLimits: options.limits !== undefined,
    findRecent: async (texts) =>
      (await findRecent(texts)).filter((id) => sessions.get(id)?.openedBy !== 'fetch'),
    createId: () => ids.next('session'),
    onPassed: (reason, message) => options.onEvent?.({ type: 'request-passed', reason, message }, ''),
    onPassedReply: (reply) => options.onEvent?.(pricePassed(reply, new Date(clock.now()).toISOString()), ''),
  }
}

/**
 * The error if a client sends a request after `close`. The request is then passed on: nobody would close a session that
 * is opened for it.
 */
function closedError(): TidemarkError {
  return new TidemarkError('closed', 'fetch: this Tidemark object is closed.')
}

function describeOpenAlready(id: string): string {
  return `open: the session ${id} is open already. Use that one, or close it first.`
}

function describeOfFetch(id: string): string {
  return `open: the session ${id} is managed by fetch already. Open it without options, or before its first request.`
}

async function closeAll(sessions: OpenSessions, settings: TidemarkSettings): Promise<void> {
  const opened = await Promise.allSettled([...sessions.values()].map(({ opening }) => opening))
  const closing = await Promise.allSettled(
    opened.map((end) => (end.status === 'fulfilled' ? end.value.close() : undefined)),
  )
  await settings.close()
  const failed = closing.find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}
