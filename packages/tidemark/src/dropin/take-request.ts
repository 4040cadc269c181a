/**
 * Implements `session.take`: a client passes its whole request, the new messages are appended to the log, and the
 * request to send instead is returned. A request that cannot be taken is to be sent unchanged.
 */
import type { PendingModelCall } from '@tidemark/core/engine/call-model'
import type { RefusedRewrite } from '@tidemark/core/engine/events'
import type { WriteLock } from '@tidemark/core/engine/session-writer'
import { describeThrown } from '@tidemark/core/errors'
import { isHostNotice } from '@tidemark/core/facts/host-texts'
import {
  isTextBlock,
  isToolResult,
  isToolUse,
  type MessageContent,
  toBlocks,
  withoutCacheMarker,
} from '@tidemark/core/log/block'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import { isKnownRecord } from '@tidemark/core/log/record'
import { findRecordIndex, listBranchRecords, type SessionLog } from '@tidemark/core/log/session-log'
import { toHostSections } from '@tidemark/core/request/system-prompt'
import type { ClientMessage, ClientRequest, SplitClientList } from '@tidemark/wire/providers/client-request'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { createClientNamedModel, findCodec } from '../models/providers.ts'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import { createWriteLock, pauseForEvents } from '../platform/node-ports.ts'
import { appendClientMessages } from '../session/append.ts'
import { rewindSession, startNewConversation } from '../session/branches.ts'
import {
  type ConversationPart,
  isSameJsonValue,
  isSamePart,
  listInputParts,
  listLoggedParts,
  readLoggedResponse,
} from '../session/conversation-parts.ts'
import type { HistoryChange } from '../session/events.ts'
import {
  prepareAwaitedRequest,
  type ReadyRequest,
  type RequestBody,
  toReadyRequest,
} from '../session/next-request.ts'
import { checkSessionOpen, type OpenSession, refreshFromLog } from '../session/open-session.ts'
import { compactForClient, pinSessionRecord } from '../session/rewrite.ts'
import { switchModel } from '../session/switch-model.ts'
import type { Toolset } from '../session/tools.ts'
import { createTurnContext } from '../session/turn-host.ts'
import {
  copyJson,
  findResponseEnd,
  findUnchangedClientList,
  type HistoryMatch,
  inlineStoredItems,
  matchMessagesAfter,
  matchRequest,
  toLoggedClientList,
} from './client-history.ts'
import { findCompactionToRepeat, repeatCompactionOnBranch } from './repeated-compaction.ts'

export interface TakeOptions {
  /** The betas of the request: the header that lists them as text, or a list of names. */
  readonly betas?: string | readonly string[]
  readonly signal?: AbortSignal
}

/** The request to send instead of the client's, or why the client's own is to be sent unchanged. */
export type TakeOutcome<Body = RequestBody> = ReadyRequest<Body> | RequestNotTaken

export interface RequestNotTaken {
  readonly ok: false
  /**
   * `side-call`: not a request of the conversation. `not-yet`: a first request that may stay the only one; the conversation is
   * recorded with its second. `prefill`: it ends with an assistant message. `unreadable`: no request that the engine can read.
   * `failed`: the engine could not make a request. `limit`: a limit of the session is reached, and nothing is to be sent.
   */
  readonly reason: 'side-call' | 'not-yet' | 'prefill' | 'unreadable' | 'failed' | 'limit'
  readonly message: string
}

const queues = new WeakMap<OpenSession, WriteLock>()

/** Implements `session.take` for an unparsed body, which is copied. Throws `bad-option` and `closed`. */
export async function takeRequestBody<Body = RequestBody>(
  session: OpenSession,
  body: unknown,
  options: TakeOptions = {},
): Promise<TakeOutcome<Body>> {
  checkOptionNames('take', options, ['betas', 'signal'])
  checkSessionOpen(session)
  // The session keeps the messages, and the client may change its objects later.
  const copy: unknown = copyJson(body)
  const { client } = findCodec(session.model.choice)
  const betas = readBetaNames(options.betas).join(',')
  const headers = { get: (name: string) => (name === client.betaHeader ? betas : null) }
  const request = isObject(copy) ? client.readRequest({ body: copy as JsonObject, headers }) : null
  if (request === null) return emitPassed(session, refuseToTake('unreadable', UNREADABLE))
  const outcome = await takeClientRequest(session, request, options.signal)
  return outcome.ok ? toTakenBody<Body>(session, request, outcome) : outcome
}

/** Adds the fields that belong to this one request of the client, such as `stream` and `metadata`. */
function toTakenBody<Body>(
  session: OpenSession,
  request: ClientRequest,
  { pending, list }: TakenRequest,
): ReadyRequest<Body> {
  const { client } = findCodec(session.model.choice)
  const ready = toReadyRequest<JsonObject>(session, pending, list)
  const { headers, betas, forecast, context } = ready
  return {
    ok: true,
    headers,
    betas,
    forecast,
    context,
    body: { ...ready.body, ...request.ownFields } as Body,
    get text() {
      return client.writeRequest({ text: ready.text, headers, state: null }, request).text
    },
  }
}

/** A request that was recorded, with the one to send instead. */
export interface TakenRequest {
  readonly ok: true
  readonly pending: PendingModelCall
  /** The parts of the client's list that are sent as the client wrote them. */
  readonly list?: SplitClientList
}

/**
 * Records a parsed request of a client. Returns the request to send instead, or why it was not taken. Keeps `request`
 * without a copy: do not change it afterwards. `codec`: the protocol in which the request came.
 */
export async function takeClientRequest(
  session: OpenSession,
  request: ClientRequest,
  signal: AbortSignal | undefined,
  codec: ProviderCodec = findCodec(session.model.choice),
): Promise<TakenRequest | RequestNotTaken> {
  checkSessionOpen(session)
  const outcome = await runInOrder(session, () => recordAndAnswer(session, request, codec, signal))
  return outcome.ok || outcome.reason === 'limit' ? outcome : emitPassed(session, outcome)
}

function emitPassed({ listeners }: OpenSession, outcome: RequestNotTaken): RequestNotTaken {
  const { reason, message } = outcome
  listeners.emit({ type: 'request-passed', reason, message })
  return outcome
}

const UNREADABLE = 'It is no request that the engine can read.'

/** Records the request and prepares the engine's. An error becomes a reason to pass the client's request on. */
async function recordAndAnswer(
  session: OpenSession,
  given: ClientRequest,
  codec: ProviderCodec,
  signal: AbortSignal | undefined,
): Promise<TakenRequest | RequestNotTaken> {
  try {
    const request = readStoredItems(session, given)
    const match = await followClientList(session, request)
    return 'ok' in match ? match : await answerTaken(session, request, codec, signal)
  } catch (thrown) {
    return refuseToTake('failed', describeThrown(thrown))
  }
}

function readStoredItems({ state }: OpenSession, request: ClientRequest): ClientRequest {
  return request.namesItems === true ? inlineStoredItems(state.session, request) : request
}

/** Records the messages of a request that is sent unchanged. Returns false if nothing was recorded. */
export async function recordObservedRequest(
  session: OpenSession,
  request: ClientRequest,
  codec: ProviderCodec,
): Promise<boolean> {
  return runInOrder(session, async () => {
    const match = await followClientList(session, readStoredItems(session, request))
    if ('ok' in match) return false
    // The request is sent to the client's model in any case. If the model is unknown, only the price is missing.
    await adoptModel(session, request.model, codec).catch(() => null)
    return true
  })
}

/**
 * For a client that asks for a compaction: records the messages of its request, which has its last tool results, then
 * compacts the log. No other request of the client is handled in between.
 */
export async function recordThenCompact(
  session: OpenSession,
  request: ClientRequest,
  codec: ProviderCodec = findCodec(session.model.choice),
): Promise<Awaited<ReturnType<typeof compactForClient>> | RequestNotTaken> {
  checkSessionOpen(session)
  return runInOrder(session, async () => {
    const refusal = await recordForCompaction(session, request, codec).catch((thrown: unknown) =>
      refuseToTake('failed', describeThrown(thrown)),
    )
    if (refusal !== null) return emitPassed(session, refusal)
    // A request that only asks for a compaction may omit tools and system prompt. The session then keeps its own.
    const { tools, system } = request
    if (tools !== null && tools.length > 0) session.tools = createClientToolset(session, tools)
    if (system !== null && system.length > 0) session.sections = toHostSections(system)
    return compactForClient(session)
  })
}

async function recordForCompaction(
  session: OpenSession,
  request: ClientRequest,
  codec: ProviderCodec,
): Promise<RequestNotTaken | null> {
  const match = await followClientList(session, readStoredItems(session, request))
  return 'ok' in match ? match : adoptModel(session, request.model, codec)
}

function runInOrder<T>(session: OpenSession, work: () => Promise<T>): Promise<T> {
  const queue = queues.get(session) ?? createWriteLock()
  queues.set(session, queue)
  return queue(work)
}

function readBetaNames(betas: TakeOptions['betas']): readonly string[] {
  if (betas === undefined) return []
  const names = typeof betas === 'string' ? betas.split(',') : betas
  if (!Array.isArray(names) || names.some((name) => typeof name !== 'string'))
    throw badOptionError(
      'betas',
      'take: betas: expected the text of the header that lists them, or a list of names.',
    )
  return names.map((name) => name.trim()).filter((name) => name !== '')
}

/**
 * Makes the log match the client's list: starts a branch where the list has changed, appends new messages, pins what
 * compactions must keep, and repeats a compaction that is still valid.
 */
async function followClientList(
  session: OpenSession,
  request: ClientRequest,
): Promise<HistoryMatch | RequestNotTaken> {
  // The client sends its next request, so the response to the last one will not come.
  session.awaited.abandon()
  const client = noteClientRequest(session, request)
  session.client = client
  await refreshFromLog(session, createTurnContext(session))
  await pauseForEvents()
  const before = findMatch(session, request)
  const refusal = 'ok' in before ? before : refuseMatch(session, request, before)
  if (refusal !== null || 'ok' in before) return refusal as RequestNotTaken
  const start = findStart(session, request, before)
  // Each of these steps may read thousands of messages, so other work runs in between.
  await pauseForEvents()
  const compaction = findCompactionToRepeat(session, request, before)
  await pauseForEvents()
  // A compaction whose texts the client changed is repeated on a branch that has the client's whole list.
  const isVoid = compaction !== null && compaction.changeText !== null
  const match = before.divergesAt === null ? before : await branchOff(session, request, before, isVoid)
  if ('ok' in match) return match
  const isOlder = before.amends === 'earlier' || before.amends === 'hidden'
  const change = before.change ?? (isOlder ? 'edited' : null)
  if (change !== null) announceChange(session, change, before.divergesAt !== null)
  const asked = { ...client, repeatedUntil: findRepeated(session, request, before), history: null }
  session.client = asked
  const written = session.state.session.records.length
  const added = start === 'compacted' ? separateNotices(match.news) : match.news
  const news = withKnownUsage(session, added, before.divergesAt)
  if (news.length > 0) await appendClientMessages(session, news, createExactSearch(session, request))
  if (request.continues === null)
    session.client = { ...asked, history: toLoggedClientList(session.state, request.messages, match) }
  for (const uuid of listRecordsToPin(session, start, written)) await pinSessionRecord(session, uuid, true)
  if (compaction !== null) await repeatCompactionOnBranch(session, compaction)
  return match
}

/** Looks for the exact text of a call in the request, and in the response that it continues. */
function createExactSearch(
  { state }: OpenSession,
  { continues, compacted, findExactBlock }: ClientRequest,
): ClientRequest['findExactBlock'] {
  const response =
    continues === null || compacted !== undefined ? null : readLoggedResponse(state.session, continues)
  return response === null
    ? findExactBlock
    : (block) => findExactBlock?.(block) ?? response.findExactBlock(block)
}

/**
 * Sets the logged usage on responses that are recorded again after a change: on the one before the change, and on the last one if
 * only the message that it answered changed, for example by a reminder. Without usage, their size is only estimated.
 */
function withKnownUsage(
  { state: { session } }: OpenSession,
  news: readonly ClientMessage[],
  changed: string | null,
): readonly ClientMessage[] {
  if (changed === null) return news
  const index = findRecordIndex(session, changed)
  const record = index === undefined ? undefined : session.records.at(index)
  const hasResults =
    record !== undefined &&
    isKnownRecord(record) &&
    record.type === 'user' &&
    toBlocks(record.message.content).some(isToolResult)
  const responses = news.filter(({ role }) => role === 'assistant')
  const before = hasResults ? 1 : 0
  const measured = new Set(responses.slice(0, responses.length <= before + 1 ? before + 1 : before))
  return news.map((message) => {
    const usage = measured.has(message) ? findLoggedUsage(session, message) : undefined
    return usage === undefined ? message : { ...message, usage }
  })
}

/** Returns the usage of the logged response, on any branch, that made the same call. */
function findLoggedUsage(session: SessionLog, { content }: ClientMessage): JsonObject | undefined {
  const call = typeof content === 'string' ? undefined : content.find(isToolUse)
  const index = call === undefined ? undefined : session.callRecords.get(call.id)
  const record = index === undefined ? undefined : session.records.at(index)
  const isResponse = record !== undefined && isKnownRecord(record) && record.type === 'assistant'
  return isResponse ? record.message.usage : undefined
}

/** Number of pauses between requests that are remembered. */
const MAX_PAUSES = 8

/** Returns the state of the client with the time, markers and cache lifetime of its new request. Stores nothing. */
function noteClientRequest(
  { client, settings }: OpenSession,
  { ttl, markers }: ClientRequest,
): NonNullable<OpenSession['client']> {
  const askedAt = settings.clock.now()
  const pauses = client === null ? [] : [...client.pauses, askedAt - client.askedAt].slice(-MAX_PAUSES)
  return { ttl, markers, askedAt, pauses, repeatedUntil: undefined, history: client?.history ?? null }
}

/**
 * Returns up to which record the next request should repeat this one: a uuid, null for nothing, undefined for everything. Called
 * before new messages are recorded. A client that changed a message may change it in every request, such as a reminder in its
 * last message: only what is before the change should be repeated. A first request without cache markers may stay the only one.
 */
function findRepeated(
  { state }: OpenSession,
  { ttl }: ClientRequest,
  { isEmpty, divergesAt, change, amends }: HistoryMatch,
): string | null | undefined {
  if (isEmpty) return ttl === undefined ? null : undefined
  // The newest response does not change again, and the request has no messages that the model is not shown.
  if (divergesAt === null || amends === 'hidden' || (change === null && amends === 'newest')) return undefined
  const last = listBranchRecords(state.session).findLast(
    ({ type }) => type === 'user' || type === 'assistant',
  )
  return last?.uuid ?? null
}

/**
 * Returns the uuids of the new records to pin. The client sends them once and does not know when the engine compacts: its system
 * messages; what it sends before the first response, such as rules, memory files and environment; and after a compaction of its
 * own, what it adds to its summary and the prompts. `written`: number of records before the new ones.
 */
function listRecordsToPin(
  session: OpenSession,
  start: ReturnType<typeof findStart>,
  written: number,
): readonly string[] {
  const news = session.state.session.records.toArray(written).filter(isKnownRecord)
  const answer = news.findIndex(({ type }) => type === 'assistant')
  const opening = new Set(start === 'opening' ? news.slice(0, answer === -1 ? news.length : answer) : [])
  const { estimator } = createTurnContext(session).host.compaction ?? {}
  let left = session.settings.policy.dropIn.pinTokens
  return news.flatMap((record) => {
    if (record.type !== 'user') return []
    if (record.message.role === 'system' || opening.has(record)) return [record.uuid]
    if (start !== 'compacted' || !isProgramText(record.message.content)) return []
    const tokens = estimator?.content(record.message.content) ?? 0
    if (tokens > left) return []
    left -= tokens
    return [record.uuid]
  })
}

/**
 * Returns what the new messages are. `opening`: the start of the conversation, perhaps edited. `compacted`: the
 * client's replacement for earlier messages, whose first response is gone. Null: a continuation.
 */
function findStart(
  { state }: OpenSession,
  { messages, continues }: ClientRequest,
  { isEmpty, change, shared, divergesAt }: HistoryMatch,
): 'opening' | 'compacted' | null {
  if (isEmpty || change === 'new') return 'opening'
  if (continues !== null || (change === null && divergesAt === null) || shared > 0) return null
  const isResponse = ({ role }: ConversationPart): boolean => role === 'assistant'
  const first = listLoggedParts(listBranchRecords(state.session)).find(isResponse)
  return isSamePart(first, listInputParts(messages).find(isResponse)) ? 'opening' : 'compacted'
}

/** True if a message has texts and all were written by a program, so that it is neither a prompt nor a summary. */
function isProgramText(content: MessageContent): boolean {
  const texts = toBlocks(content).filter(isTextBlock)
  return texts.length > 0 && texts.every(({ text }) => isHostNotice(text))
}

/** Splits messages before the first response that have a program's text, so that it can be pinned without the rest. */
function separateNotices(messages: readonly ClientMessage[]): readonly ClientMessage[] {
  const answer = messages.findIndex(({ role }) => role === 'assistant')
  return messages.flatMap((message, index) => {
    const blocks = toBlocks(message.content)
    const isFront = message.role === 'user' && (answer === -1 || index < answer)
    const hasNotice = isFront && blocks.some((block) => isProgramText([block]))
    return hasNotice ? blocks.map((block) => ({ ...message, content: [block] })) : [message]
  })
}

function findMatch(session: OpenSession, request: ClientRequest): HistoryMatch | RequestNotTaken {
  const { continues, compacted } = request
  const match = matchRequest(session, request)
  if (match !== null) return match
  return compacted === undefined
    ? refuseToTake('side-call', `It continues ${continues}, which is no longer part of the conversation.`)
    : refuseToTake('failed', 'It continues a compaction that is no longer part of the conversation.')
}

/** Returns why a request is not taken; null if it is. */
function refuseMatch(
  session: OpenSession,
  { tools, messages, model, ttl, asksCompaction }: ClientRequest,
  { isKnown, isEmpty, news }: HistoryMatch,
): RequestNotTaken | null {
  if (asksCompaction === true && (isKnown || isEmpty)) return null
  const isSingle = messages.every(({ role }) => role !== 'assistant')
  const hasTools = tools === null || tools.length > 0
  if (isEmpty && isSingle && !hasTools && ttl === undefined)
    return refuseToTake('not-yet', 'A first request without tools and cache markers may be the only one.')
  const isOther = model !== session.model.choice.id || (!hasTools && session.tools.definitions.length > 0)
  if (!isEmpty && !isKnown && isSingle && isOther)
    return refuseToTake('side-call', 'It has nothing in common with the conversation.')
  if (news.at(-1)?.role === 'assistant')
    return refuseToTake('prefill', 'It ends with an assistant message that the model is to continue.')
  return null
}

/** Goes back to where the client's list and the log differ; if `isVoid`, to the start, where no compaction is in effect. */
async function branchOff(
  session: OpenSession,
  request: ClientRequest,
  { shared, divergesAt }: HistoryMatch,
  isVoid: boolean,
): Promise<HistoryMatch | RequestNotTaken> {
  // A request with `continues` names a place in the log, so both share everything before it, even if `shared` is 0.
  const end =
    (shared === 0 && request.continues === null) || isVoid
      ? await startNewConversation(session, { abandon: true })
      : await rewindSession(session, divergesAt ?? '', { abandon: true }, true)
  if (!end.ok) return refuseToTake('failed', (end as RefusedRewrite).message)
  const match = matchAfterLeftResponse(session, request) ?? findMatch(session, request)
  if ('ok' in match) return match
  return match.divergesAt === null
    ? match
    : refuseToTake('failed', 'The conversation could not be brought back to what the client has.')
}

/**
 * Handles other results for the calls of a response that the branch has left: a copy of the response precedes them.
 * Returns null if the branch still has that response.
 */
function matchAfterLeftResponse(
  { state }: OpenSession,
  { continues, compacted, messages }: ClientRequest,
): HistoryMatch | null {
  if (continues === null || compacted !== undefined) return null
  if (findResponseEnd(state.session, continues) !== undefined) return null
  const response = readLoggedResponse(state.session, continues)
  const end = listBranchRecords(state.session).at(-1)?.uuid
  const list = response === null ? messages : [response.message, ...messages]
  return matchMessagesAfter(state, list, end)
}

const CHANGES: Readonly<Record<HistoryChange, string>> = {
  rewound: 'went back in its conversation',
  edited: 'changed an earlier message',
  pruned: 'dropped messages at the start',
  new: 'began another conversation',
}

function announceChange({ listeners }: OpenSession, change: HistoryChange, isBranch: boolean): void {
  const what = isBranch ? 'the log keeps the old branch' : 'the model is no longer shown that part'
  listeners.emit({
    type: 'host-history-changed',
    change,
    isBranch,
    message: `The client ${CHANGES[change]}; ${what}.`,
  })
}

async function answerTaken(
  session: OpenSession,
  request: ClientRequest,
  codec: ProviderCodec,
  signal: AbortSignal | undefined,
): Promise<TakenRequest | RequestNotTaken> {
  const refusal = await adoptModel(session, request.model, codec)
  if (refusal !== null) return refusal
  session.offersHistory = false
  const ready = await prepareAwaitedRequest(session, 'take', {
    tools: request.tools === null ? null : createClientToolset(session, request.tools),
    sections: request.system === null ? null : toHostSections(request.system),
    parameters: toParameterChanges(session, request.parameters),
    signal,
  })
  if (!('ok' in ready))
    return { ok: true, pending: ready, ...findUnchangedClientList(session, request, ready) }
  return refuseToTake(ready.reason === 'limit' ? 'limit' : 'failed', ready.message)
}

/** Switches to the client's model, in the client's protocol. Returns null, or why that is not possible. */
async function adoptModel(
  session: OpenSession,
  model: string,
  codec: ProviderCodec,
): Promise<RequestNotTaken | null> {
  const { choice } = session.model
  const speaksAsClient = findCodec(choice).paths.reply === codec.paths.reply
  if (speaksAsClient && model === choice.id) return null
  const create = speaksAsClient
    ? choice.sibling
    : (id: string) => createClientNamedModel(codec, id, id === choice.id ? choice.window : null)
  if (create === undefined)
    return refuseToTake('failed', `The session has the model ${choice.id}, and cannot create ${model}.`)
  const end = await switchModel(session, create(model))
  return end.ok ? null : refuseToTake('failed', end.message)
}

/** Returns the client's tools in the order and with the bytes in which they were first sent: clients may vary both. */
function createClientToolset({ state }: OpenSession, tools: readonly JsonObject[]): Toolset {
  const known = state.prefix.current?.epoch.tools ?? []
  const order = known.map(({ name, type }) => name ?? type)
  const findPlace = ({ name, type }: JsonObject): number => {
    const place = order.indexOf(name ?? type)
    return place === -1 ? order.length : place
  }
  const definitions = tools.map((tool) => {
    const plain = withoutCacheMarker(tool)
    const first = known[findPlace(tool)]
    return first !== undefined && isSameJsonValue(first, plain) ? first : tool
  })
  return {
    definitions: definitions.toSorted((one, other) => findPlace(one) - findPlace(other)),
    run: ({ name }) => ({ content: `The client runs ${name} itself.`, is_error: true }),
  }
}

/**
 * Returns the parameters as changes to those of the last request. Parameters that the client does not send are removed,
 * also defaults such as the output limit.
 */
function toParameterChanges({ model }: OpenSession, parameters: JsonObject): JsonObject {
  const known = Object.keys({ ...model.parameters, ...model.parameterChanges })
  const gone = known.filter((name) => !Object.hasOwn(parameters, name))
  const { beta } = model.choice.profile.compaction
  const betas = new Set([...((parameters.betas ?? []) as string[]), ...(beta === null ? [] : [beta])])
  return {
    ...Object.fromEntries(gone.map((name) => [name, null])),
    ...parameters,
    ...(betas.size === 0 ? {} : { betas: [...betas] }),
  }
}

function refuseToTake(reason: RequestNotTaken['reason'], message: string): RequestNotTaken {
  return { ok: false, reason, message: `The request is to be sent as it is. ${message}` }
}
