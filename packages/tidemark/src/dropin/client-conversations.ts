/**
 * Finds the session that a client's request belongs to. One client may hold several conversations: they are distinguished by
 * an id in the request, and by the messages and tool calls that it shares with the logs.
 */
import type { WriteLock } from '@tidemark/core/engine/session-writer'
import { isTextBlock, isToolUse, toBlocks } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import { findRecordIndex } from '@tidemark/core/log/session-log'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import { sliceWholeCharacters } from '@tidemark/core/text/truncate-text'
import type { ClientRequest } from '@tidemark/wire/providers/client-request'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { createWriteLock } from '../platform/node-ports.ts'
import { copySession } from '../session/branches.ts'
import type { OpenSession } from '../session/open-session.ts'
import { isSessionId } from '../storage/home-paths.ts'
import {
  type ClientConversation,
  type ClosableSession,
  createClientConversation,
} from './client-conversation.ts'
import { type HistoryMatch, isOtherConversation, matchRequest } from './client-history.ts'

/** The parts of a request in which a conversation may be named. */
interface RequestIdentity {
  readonly headers: Headers
  readonly body: JsonObject
}

/** A request with the protocol in which it was read. */
interface ReadRequest extends RequestIdentity {
  readonly codec: ProviderCodec
  readonly request: ClientRequest
}

/** The session of a request: an id, or a function that returns the id. It returns null for a request to pass on unchanged. */
export type SessionSelector = string | ((request: RequestIdentity) => string | null)

export interface SessionSource {
  /** Returns the session with this id. Opens the session if it is not open. */
  readonly open: (id: string) => Promise<ClosableSession>
  /** Returns the ids of stored sessions that begin with `prefix`. The list may have other ids, too. */
  readonly list: (prefix: string) => Promise<readonly string[]>
  /** Runs `use` with a session. A session that is not open is opened for this call only. */
  readonly borrow: <T>(id: string, use: (session: OpenSession) => Promise<T>) => Promise<T>
  /** Returns the sessions whose logs have one of these texts near the end and that no `fetch` has open, newest first. */
  readonly findRecent: (texts: readonly string[]) => Promise<readonly string[]>
  readonly createId: () => string
  /** True if other processes may begin sessions at the same time. */
  readonly isShared: boolean
}

export interface ClientConversations {
  /** Returns the conversation that the request continues; null if there is none, or if it is in flight. */
  find(call: ReadRequest): Promise<ClientConversation | null>
  /**
   * For a request outside all conversations that names an id. Returns the first conversation under that id. If there is
   * none yet, returns null, and calls `onBegin` when it begins.
   */
  findOwner(
    call: ReadRequest,
    onBegin?: (conversation: ClientConversation) => void,
  ): Promise<ClientConversation | null>
  /** As `find`, but a request that may be the first of a conversation begins one. Marks the conversation as in flight. */
  enter(call: ReadRequest): Promise<ClientConversation | null>
}

export function createClientConversations(
  choice: ClosableSession | SessionSelector | undefined,
  source: SessionSource,
  idleMs: number | null,
): ClientConversations {
  if (typeof choice === 'object') return createFixedConversation(choice)
  const named = choice
  const byKey = new Map<string, KnownKey>()
  const idle = createIdleWatch(byKey, idleMs)

  /** Runs `use` with the conversations under an id, one request at a time. They are not closed as idle meanwhile. */
  async function withConversations<T>(key: string, use: (all: Conversations) => Promise<T>): Promise<T> {
    await idle.closing
    const known = byKey.get(key) ?? { opening: openStored(key, source), users: 0 }
    byKey.set(key, known)
    known.users += 1
    idle.start()
    try {
      const all = await known.opening.catch((thrown: unknown) => {
        if (byKey.get(key) === known) byKey.delete(key)
        throw thrown
      })
      return await all.inOrder(() => use(all))
    } finally {
      known.users -= 1
      idle.start()
    }
  }

  async function lookUp(
    call: ReadRequest,
    look: typeof findConversation,
  ): Promise<ClientConversation | null> {
    const key = readConversationKey(named, call)
    if (key === null) return null
    return withConversations(key, (all) => look(key, all, call, source))
  }

  return {
    find: (call) => lookUp(call, findConversation),
    enter: (call) => lookUp(call, enterConversation),
    async findOwner(call, onBegin) {
      const key = readConversationKey(named, call)
      if (key === null || key === '') return null
      return withConversations(key, async (all) => findFirst(all, onBegin))
    },
  }
}

async function findConversation(
  key: string,
  all: Conversations,
  { request }: ReadRequest,
  source: SessionSource,
): Promise<ClientConversation | null> {
  await Promise.all(all.list.map(({ recording }) => recording))
  const free = all.list.filter(({ isInFlight }) => !isInFlight)
  const chosen = chooseConversation(free, request, key === '')
  if (chosen !== null) return reopenIfClosed(all, chosen, source)
  return key === '' ? findStored(all, request, source) : null
}

async function enterConversation(
  key: string,
  all: Conversations,
  call: ReadRequest,
  source: SessionSource,
): Promise<ClientConversation | null> {
  const found =
    (await findConversation(key, all, call, source)) ?? (await findBegunElsewhere(key, all, call, source))
  found?.begin()
  if (found !== null) return found
  const { compacted } = call.request
  if (compacted !== undefined) return copyConversation(key, all, { ...call.request, compacted }, source)
  return call.codec.client.isSideCall(call.request) ? null : beginConversation(key, all, source)
}

/**
 * Begins a conversation with a copy of another session's log. The request continues a compaction made there, but that session has
 * a request in flight or belongs to another id. Returns null if there is no such session, or its log lacks the compacted place.
 */
async function copyConversation(
  key: string,
  all: Conversations,
  request: ClientRequest & Required<Pick<ClientRequest, 'compacted'>>,
  source: SessionSource,
): Promise<ClientConversation | null> {
  const { session: from } = request.compacted
  if (!(await source.list(from)).includes(from)) return null
  return source.borrow(from, async (session) =>
    matchRequest(session, request) === null
      ? null
      : beginConversation(key, all, source, (id) => copySession(session, id)),
  )
}

/** Opens the conversations that another process has begun under this id since they were listed here, and searches them. */
async function findBegunElsewhere(
  key: string,
  all: Conversations,
  call: ReadRequest,
  source: SessionSource,
): Promise<ClientConversation | null> {
  if (!source.isShared || key === '') return null
  const stored = await listNumbered(key, source)
  const news = stored.filter(({ id }) => !all.list.some(({ open }) => open.id === id))
  if (news.length === 0) return null
  all.list.push(...(await Promise.all(news.map(({ id }) => openConversation(id, source)))))
  all.count = Math.max(all.count, ...stored.map(({ number }) => number))
  return findConversation(key, all, call, source)
}

/**
 * Returns the conversation. If the application has closed its session (it may inspect and close one that the client
 * still uses), the session is opened again. If that fails, the conversation is forgotten and the error is thrown.
 */
async function reopenIfClosed(
  { list }: Conversations,
  conversation: ClientConversation,
  source: SessionSource,
): Promise<ClientConversation> {
  const { open } = conversation
  if (open.closing === null) return conversation
  await open.closing.catch(() => undefined)
  removeConversation(list, conversation)
  const reopened = await openConversation(open.id, source)
  list.push(reopened)
  return reopened
}

/** Removes the conversation if it is listed. It may have been removed already because it was idle. */
function removeConversation(list: ClientConversation[], conversation: ClientConversation): void {
  const place = list.indexOf(conversation)
  if (place !== -1) list.splice(place, 1)
}

async function beginConversation(
  key: string,
  all: Conversations,
  source: SessionSource,
  prepare: (id: string) => Promise<void> = async () => {},
): Promise<ClientConversation> {
  all.count += 1
  const id = key === '' ? source.createId() : all.count === 1 ? key : `${key}.${all.count}`
  await prepare(id)
  const begun = await openConversation(id, source)
  begun.begin()
  all.list.push(begun)
  for (const begin of all.waiting.splice(0)) begin(begun)
  return begun
}

/** The conversations under one id. `count`: the highest number given so far, also to a session that is still being opened. */
interface Conversations {
  readonly list: ClientConversation[]
  count: number
  /** Searches for a conversation run one at a time, so that each sees what is in flight and no session is opened twice. */
  readonly inOrder: WriteLock
  /** Called when the first conversation under this id begins. */
  readonly waiting: ((conversation: ClientConversation) => void)[]
}

/** An id that requests have named, from the first of them on. */
interface KnownKey {
  readonly opening: Promise<Conversations>
  /** Requests that look for their conversation now. */
  users: number
}

/** Most ids remembered that only side calls have named, and most such calls of each. Their cost is counted in its first conversation. */
const MOST_UNBEGUN = { ids: 100, calls: 100 }

interface IdleWatch {
  /** Resolves when the last search for idle conversations has ended. */
  readonly closing: Promise<unknown>
  /** Called before and after a request looks for its conversation: the last look of the watch may have ended meanwhile. */
  start(): void
}

/** Looks for idle conversations as long as there are any, so that no timer outlives them. */
function createIdleWatch(byKey: Map<string, KnownKey>, idleMs: number | null): IdleWatch {
  let closing: Promise<unknown> = Promise.resolve()
  let timer: NodeJS.Timeout | null = null
  function start(): void {
    if (idleMs === null || timer !== null) return
    const look = async (): Promise<void> => {
      timer = null
      if (await closeIdle(byKey, idleMs)) start()
    }
    timer = setTimeout(() => {
      closing = look()
    }, idleMs / 2).unref()
  }
  return {
    start,
    get closing() {
      return closing
    },
  }
}

/**
 * Closes the sessions of idle conversations. Conversations under an id are closed only together; a later request finds their logs
 * by the id. Those without an id are found by what the request shares with their logs. Returns true if conversations are left.
 */
async function closeIdle(byKey: Map<string, KnownKey>, idleMs: number): Promise<boolean> {
  const isIdle = ({ isInFlight, usedAt }: ClientConversation): boolean =>
    !isInFlight && Date.now() - usedAt >= idleMs
  for (const [key, known] of byKey) {
    const all = await known.opening.catch(() => null)
    if (all === null) continue
    const idle = all.list.filter(isIdle)
    if (idle.length === 0 || (key !== '' && (known.users > 0 || idle.length < all.list.length))) continue
    if (key !== '') byKey.delete(key)
    for (const conversation of idle) {
      await conversation.recording.catch(() => undefined)
      await conversation.close().catch(() => undefined)
      // If the application also uses the session, it stays open.
      if (conversation.open.closing !== null) removeConversation(all.list, conversation)
    }
  }
  return forgetUnbegun(byKey)
}

/** Forgets the oldest ids of which only side calls are known. Returns true if conversations are left. */
async function forgetUnbegun(byKey: Map<string, KnownKey>): Promise<boolean> {
  const keys = [...byKey]
  const lists = await Promise.all(keys.map(([, { opening }]) => opening.catch(() => null)))
  const isUnbegun = ([key, { users }]: (typeof keys)[number], index: number): boolean =>
    key !== '' && users === 0 && lists[index]?.list.length === 0
  for (const [key] of keys.filter(isUnbegun).slice(0, -MOST_UNBEGUN.ids)) byKey.delete(key)
  return lists.some((all) => all !== null && all.list.length > 0)
}

/** Returns the first conversation; null if it has not begun. `onBegin` is then called when it does, unless very many wait. */
function findFirst(
  { list: [first], waiting }: Conversations,
  onBegin: ((conversation: ClientConversation) => void) | undefined,
): ClientConversation | null {
  if (first === undefined && onBegin !== undefined && waiting.length < MOST_UNBEGUN.calls)
    waiting.push(onBegin)
  return first ?? null
}

async function openConversation(id: string, source: SessionSource): Promise<ClientConversation> {
  return createClientConversation(await source.open(id))
}

/** Opens the stored sessions of this id, so that its conversations continue after a restart. */
async function openStored(key: string, source: SessionSource): Promise<Conversations> {
  const stored = key === '' ? [] : await listNumbered(key, source)
  const list = await Promise.all(stored.map(({ id }) => openConversation(id, source)))
  const count = Math.max(0, ...stored.map(({ number }) => number))
  return { list, count, inOrder: createWriteLock(), waiting: [] }
}

/** Lists the stored sessions of an id `key`: `key` is the first one, `key.2` the second. */
async function listNumbered(
  key: string,
  source: SessionSource,
): Promise<readonly { readonly id: string; readonly number: number }[]> {
  const ids = (await source.list(key)).filter((id) => id === key || isNumbered(id, key))
  return ids.map((id) => ({ id, number: id === key ? 1 : Number(id.slice(key.length + 1)) }))
}

/**
 * Finds the stored session of a request that names no conversation, for example after a restart: by the calls and the
 * answer at the end of the request. Sessions that turn out to be other conversations are closed again.
 */
async function findStored(
  all: Conversations,
  request: ClientRequest,
  source: SessionSource,
): Promise<ClientConversation | null> {
  const { compacted } = request
  const ids =
    compacted === undefined
      ? await source.findRecent(listLastTexts(request))
      : (await source.list(compacted.session)).filter((id) => id === compacted.session)
  for (const id of ids) {
    const stored = await openConversation(id, source)
    const isKnown = all.list.some(({ open }) => open === stored.open)
    if (!isKnown && chooseConversation([stored], request, true) !== null) {
      all.list.push(stored)
      return stored
    }
    if (!isKnown) await stored.close()
  }
  return null
}

/** Number of newest responses of a request that logs are searched for. More than one, because the log may lack the newest. */
const SEARCHED_RESPONSES = 3

/** Returns texts, as JSON writes them, by which to find logs that have one of the last responses of the request. */
function listLastTexts({ messages, continues }: ClientRequest): readonly string[] {
  if (continues !== null) return [JSON.stringify(continues)]
  const responses = messages.filter(({ role }) => role === 'assistant').slice(-SEARCHED_RESPONSES)
  const blocks = responses.flatMap(({ content }) => [...toBlocks(content)])
  const calls = blocks.flatMap((block) => (isToolUse(block) ? [JSON.stringify(block.id)] : []))
  if (calls.length > 0) return calls
  const texts = blocks.flatMap((block) =>
    isTextBlock(block) ? [sliceWholeCharacters(block.text.trim(), 0, 200)] : [],
  )
  return texts.filter((text) => text !== '').map((text) => JSON.stringify(text).slice(1, -1))
}

function createFixedConversation(opened: ClosableSession): ClientConversations {
  const only = createClientConversation(opened)
  return {
    async find() {
      await only.recording
      return only.isInFlight ? null : only
    },
    findOwner: async () => only,
    async enter() {
      await only.recording
      if (only.isInFlight) return null
      only.begin()
      return only
    },
  }
}

function isNumbered(id: string, key: string): boolean {
  return id.startsWith(`${key}.`) && /^\d+$/.test(id.slice(key.length + 1))
}

/**
 * Returns the conversation that the request continues, preferably one whose whole log it has. `isUnnamed`: the request names no
 * conversation, so an equal first message is not enough.
 */
function chooseConversation(
  conversations: readonly ClientConversation[],
  request: ClientRequest,
  isUnnamed: boolean,
): ClientConversation | null {
  let best: { readonly conversation: ClientConversation; readonly rank: number } | null = null
  for (const conversation of conversations) {
    const { open } = conversation
    if (request.continues === null && isOtherConversation(open, request)) continue
    const match = matchRequest(open, request)
    // A request may also continue a branch that the conversation has left. Such a match has the lowest rank.
    const rank =
      match === null
        ? Number(hasPlace(open, request.continues ?? '')) * Number.EPSILON
        : rankMatch(match, isUnnamed)
    if (rank > (best?.rank ?? 0)) best = { conversation, rank }
  }
  return best?.conversation ?? null
}

/** True if the log has the response or the record that a request continues. */
function hasPlace({ state: { session } }: ClientConversation['open'], place: string): boolean {
  return session.responseStarts.get(place) !== undefined || findRecordIndex(session, place) !== undefined
}

function rankMatch(
  { isKnown, isEmpty, change, shared, sharesCalls }: HistoryMatch,
  isUnnamed: boolean,
): number {
  if (isEmpty) return Number.EPSILON
  if (!isKnown || (isUnnamed && change !== null && !sharesCalls)) return 0
  return change === null ? 1e9 + shared : 1 + shared
}

/** Returns the id that a request gives its conversation: empty if it gives none, null if the request is to be passed on. */
function readConversationKey(choice: SessionSelector | undefined, call: ReadRequest): string | null {
  if (typeof choice === 'string') return choice
  if (choice !== undefined) {
    const chosen: unknown = choice(call)
    if (chosen === null) return null
    if (typeof chosen === 'string' && chosen !== '') return toSessionId(chosen)
    throw new TypeError(
      `fetch: session(request) returned ${formatErrorValue(chosen)}; expected an id, or null to pass the request on.`,
    )
  }
  const [named = ''] = call.codec.client.readConversationNames(call.headers, call.body)
  return toSessionId(named)
}

/** Converts a name to a session id. Empty if the result is not a valid id, as for a name that begins with a sign. */
function toSessionId(name: string): string {
  const id = name.replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, 100)
  return isSessionId(id) ? id : ''
}
