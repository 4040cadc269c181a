/**
 * Compares a client's message list, which has the whole conversation, with the conversation in the log: which messages
 * are new, and where the client changed its history. Reads only the log, so a restart does not change the outcome.
 */
import { isMissingPromptPlaceholder } from '@tidemark/core/context/flatten-context'
import type { PendingModelCall } from '@tidemark/core/engine/call-model'
import type { SessionState } from '@tidemark/core/engine/session-state'
import {
  type Block,
  isBlankTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  PROVIDER_ITEM_TYPE,
  readBlockOrigin,
  type ToolResultBlock,
  toBlocks,
} from '@tidemark/core/log/block'
import { findJsonMember, isObject } from '@tidemark/core/log/json'
import { isKnownRecord, isSyntheticError, type KnownRecord } from '@tidemark/core/log/record'
import { listBranchRecords, type SessionLog } from '@tidemark/core/log/session-log'
import type {
  ClientMessage,
  ClientRequest,
  CompactedLogPlace,
  SplitClientList,
} from '@tidemark/wire/providers/client-request'
import {
  alignParts,
  type ConversationPart,
  isSameJsonValue,
  isSamePart,
  isSameResult,
  listInputParts,
  listLoggedParts,
  readLoggedResponse,
  sortResults,
  toPartKey,
} from '../session/conversation-parts.ts'
import type { HistoryChange } from '../session/events.ts'
import type { LoggedClientList, OpenSession } from '../session/open-session.ts'
import { leavesOutThinking, listHiddenThinkingIds, type SessionStateAndModel } from './hidden-thinking.ts'
import { listShortenedTexts } from './removed-texts.ts'

export interface HistoryMatch {
  /** Messages that are not in the log yet. If a change needs a branch, all messages from the first difference on. */
  readonly news: readonly ClientMessage[]
  /** How the client changed its history; null if it only added messages. */
  readonly change: HistoryChange | null
  /**
   * uuid of the first record that the client's list lacks, or has in another version: the new branch begins before it. Null if no
   * branch is needed, because the client only added messages, or changed only what the model is no longer shown.
   */
  readonly divergesAt: string | null
  /**
   * Set if the client has another version of a message, such as other inputs of calls or no thinking; a branch
   * continues with that version. `newest`: of the newest response, which alone is not reported as a change. `earlier`,
   * `hidden`: of an older message, reported as `edited`; the model is no longer shown a `hidden` one.
   */
  readonly amends: 'newest' | 'earlier' | 'hidden' | null
  /** Returns true if the client's list still has, in some version, everything that the compaction left in the context. */
  readonly keepsCompaction: () => boolean
  /** Number of equal blocks at the start of the log and the list. */
  readonly shared: number
  /** True if the log has the first message of the list, or one of its tool calls. */
  readonly isKnown: boolean
  /** True if the log has one of the tool calls of the list, on any branch. */
  readonly sharesCalls: boolean
  /** True if the log has no message yet. */
  readonly isEmpty: boolean
  /** The earlier list that this one begins with, if only the messages after it were compared; else null. */
  readonly follows: LoggedClientList | null
}

/** The last result for each state of a conversation, because several steps of one request need the same comparison. */
const lastMatches = new WeakMap<SessionState['view'], LastMatch>()

interface LastMatch {
  readonly session: SessionState['session']
  readonly messages: readonly ClientMessage[]
  readonly match: HistoryMatch
}

type ComparedState = Pick<SessionState, 'session' | 'view'>

/** Which differences in thinking do not count as changes of the client. */
interface ThinkingRules {
  /** Ids of the responses whose thinking was removed before the client got them. */
  readonly hidden: ReadonlySet<string>
  /** True if the provider refuses a turn that does not begin with its thinking. */
  readonly isRequired: boolean
}

/** What the comparison needs besides the messages of a request. */
interface MatchRules extends ThinkingRules, Pick<ClientRequest, 'findExactBlock'> {}

/** The parts of an open session that are compared. `history`: an earlier list of the client, which only saves time. */
interface ComparedSession extends SessionStateAndModel {
  readonly client: { readonly history: LoggedClientList | null } | null
}

/** Compares a request with the log of a session. Null if the response or compaction that it continues is not on the branch. */
export function matchRequest(session: ComparedSession, request: ClientRequest): HistoryMatch | null {
  const { state } = session
  const { continues, compacted, messages } = request
  if (continues === null) return matchHistory(session, request)
  if (compacted !== undefined) return matchCompacted(state, messages, compacted)
  const end = findResponseEnd(state.session, continues)
  return end === undefined ? null : matchMessagesAfter(state, messages, end)
}

/**
 * Compares a list in which a compaction item of Tidemark replaces the conversation up to a record. Messages before the
 * item, such as rules that the client writes again, are new unless the log has them before that record.
 */
function matchCompacted(
  state: ComparedState,
  messages: readonly ClientMessage[],
  { record, messages: before = [] }: CompactedLogPlace,
): HistoryMatch | null {
  const branch = listBranchRecords(state.session)
  const end = branch.findIndex(({ uuid }) => uuid === record)
  if (end === -1) return null
  const known = new Set(before.length === 0 ? [] : listLoggedParts(branch.slice(0, end + 1)).map(toPartKey))
  const isNew = (message: ClientMessage): boolean =>
    message.role === 'user' &&
    listInputParts([message]).some((part) => !isToolResult(part.block) && !known.has(toPartKey(part)))
  return matchMessagesAfter(state, [...before.filter(isNew), ...messages], record)
}

/** Compares a whole message list with the log of a session. The last result for each state is kept. */
function matchHistory(session: ComparedSession, request: ClientRequest): HistoryMatch {
  const { state } = session
  const known = session.client?.history ?? null
  const { messages } = request
  const last = lastMatches.get(state.view)
  if (last?.messages === messages && last.session === state.session) return last.match
  const rules = readMatchRules(session, request)
  const match =
    (known === null ? null : matchContinuation(state, messages, known, rules)) ??
    matchRecords(state, messages, listBranchRecords(state.session), rules)
  lastMatches.set(state.view, { session: state.session, messages, match })
  return match
}

/**
 * Returns true if the log has messages, but neither the first message nor any tool call of a request. Much faster than
 * comparing the lists, and most conversations that are compared with a request are other ones.
 */
export function isOtherConversation({ state }: ComparedSession, { messages }: ClientRequest): boolean {
  const { branch, records, callRecords } = state.session
  for (const index of branch) {
    const record = records.at(index)
    const isSkipped = record === undefined || (isKnownRecord(record) && isSyntheticError(record))
    const [first] = isSkipped ? [] : sortResults(listLoggedParts([record]))
    if (first === undefined) continue
    // The first message is usually equal in both, and then the rest need not be listed.
    if (isSamePart(first, listInputParts(messages.slice(0, 1))[0])) return false
    const given = readGivenParts(messages)
    if (isSamePart(first, given[0])) return false
    return !given.some(({ block }) => isToolUse(block) && callRecords.get(block.id) !== undefined)
  }
  return false
}

function readMatchRules(
  { state, model }: SessionStateAndModel,
  { messages, parameters, findExactBlock }: ClientRequest,
): MatchRules {
  const { profile } = model.choice
  const { firstInModes, whenAbsent } = profile.thinking
  const { thinking } = parameters
  const mode = isObject(thinking) ? thinking.type : whenAbsent
  const hidden = listHiddenThinkingIds(state, profile)
  const isLeftOut = hidden.size > 0 && leavesOutThinking(state.session, readGivenParts(messages), hidden)
  return {
    hidden: isLeftOut ? new Set() : hidden,
    isRequired: firstInModes.some((each) => each === mode),
    findExactBlock,
  }
}

/** Compares a list that has only the messages after the record with the uuid `after`. */
export function matchMessagesAfter(
  state: ComparedState,
  messages: readonly ClientMessage[],
  after: string | undefined,
): HistoryMatch {
  const branch = listBranchRecords(state.session)
  const later = branch.slice(branch.findIndex(({ uuid }) => uuid === after) + 1)
  const rules = { hidden: new Set<string>(), isRequired: true, findExactBlock: null }
  // The messages before this list are in the log, because the request continues a known place.
  return { ...matchRecords(state, messages, later, rules), isKnown: true, sharesCalls: true, isEmpty: false }
}

/**
 * Returns the uuid of the last record of a response on the branch; undefined if the branch does not have it. A response
 * whose tool results changed is recorded again with another id (`readLoggedResponse`), and is found by its calls.
 */
export function findResponseEnd(session: SessionLog, id: string): string | undefined {
  const calls = new Set(
    toBlocks(readLoggedResponse(session, id)?.message.content ?? [])
      .filter(isToolUse)
      .map((call) => call.id),
  )
  const isOwn = (record: KnownRecord): boolean =>
    record.type === 'assistant' &&
    (record.message.id === id ||
      toBlocks(record.message.content).some((block) => isToolUse(block) && calls.has(block.id)))
  return listBranchRecords(session).findLast(isOwn)?.uuid
}

/** Returns the client's list, for the comparison with its next one, after the new messages are in the log. */
export function toLoggedClientList(
  { session }: ComparedState,
  messages: readonly ClientMessage[],
  { shared, sharesCalls, news, follows }: HistoryMatch,
): LoggedClientList {
  // Texts of the known list are shared with the log. Keeping the newest list instead would hold equal texts twice.
  const before = follows?.messages ?? []
  const all = before.length === 0 ? messages : [...before, ...messages.slice(before.length)]
  const added = listInputParts(news)
  const hasCalls = sharesCalls || added.some(({ block }) => isToolUse(block))
  return { messages: all, branch: session.branch, shared: shared + added.length, sharesCalls: hasCalls }
}

/** Returns a deep copy of a JSON value. Texts are shared, because they cannot change. */
export function copyJson<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyJson) as T
  if (!isObject(value)) return value
  const copy: Record<string, unknown> = { ...value }
  for (const key of Object.keys(copy)) copy[key] = copyJson(copy[key])
  return copy as T
}

/** Compares only what the client and the log added after a known list. Null if anything before that has changed. */
function matchContinuation(
  state: ComparedState,
  messages: readonly ClientMessage[],
  known: LoggedClientList,
  rules: MatchRules,
): HistoryMatch | null {
  const { branch, records } = state.session
  if (messages.length < known.messages.length || !branch.extends(known.branch)) return null
  if (!known.messages.every((message, index) => isSameJsonValue(message, messages[index]))) return null
  const added = messages.slice(known.messages.length)
  // A new prompt ends the turn, so missing thinking of that turn no longer matters, and everything is compared again.
  if (rules.isRequired && listInputParts(added).some(isPromptPart)) return null
  const later = branch.toArray(known.branch.length).flatMap((index) => {
    const record = records.at(index)
    return record !== undefined && isKnownRecord(record) ? [record] : []
  })
  const match = matchRecords(state, added, later, rules)
  if (match.change !== null) return null
  const sharesCalls = known.sharesCalls || match.sharesCalls
  const shared = known.shared + match.shared
  return { ...match, shared, sharesCalls, isKnown: true, isEmpty: false, follows: known }
}

function matchRecords(
  state: ComparedState,
  messages: readonly ClientMessage[],
  branch: readonly KnownRecord[],
  { findExactBlock, ...rules }: MatchRules,
): HistoryMatch {
  const lists = compareLists(state, messages, branch)
  const respelled = findExactBlock === null ? -1 : findRespelled(lists, findExactBlock)
  const { known, given, shared, findRecord, isShown } = lists
  const sharesCalls = given.some(
    ({ block }) => isToolUse(block) && state.session.callRecords.get(block.id) !== undefined,
  )
  const second = known.findIndex(({ message }) => message > 0)
  const isKnown = sharesCalls || (shared > 0 && shared >= (second === -1 ? known.length : second))
  const isEmpty = known.length === 0
  const base = {
    shared,
    isKnown,
    sharesCalls,
    isEmpty,
    follows: null,
    amends: null,
    keepsCompaction: () => true,
  }
  const change = shared === known.length ? null : nameChange(known, given, shared, isKnown)
  const findAmendment = (from: number, to: number, shift: number): HistoryMatch | null => {
    const isOther = createAmendmentTest(given, rules, lists.readShown)
    for (let index = from; index < to; index += 1) {
      const [old, now] = [known[index] as ConversationPart, given[index + shift] as ConversationPart]
      if (index !== respelled && !isOther(old, now, findRecord(index))) continue
      const isNewest = known.slice(index).every(({ message }) => message === old.message)
      const amends = isShown(index) ? (isNewest ? 'newest' : 'earlier') : 'hidden'
      const news = listNews(messages, given.slice(index + shift))
      const place = { shared: Math.min(shared, index), divergesAt: findRecord(index).uuid }
      const keepsCompaction = (): boolean => change === null || hasShown(lists)
      return { ...base, ...place, change, amends, news, keepsCompaction }
    }
    return null
  }
  const first = findAmendment(0, shared, 0)
  if (first !== null) return first
  const news = listNews(messages, given.slice(shared))
  if (change === null) return { ...base, change, divergesAt: null, news }
  const branched = { ...base, change, divergesAt: findRecord(shared).uuid, news }
  const tail = findTail(lists)
  if (tail === null) return { ...branched, keepsCompaction: () => hasShown(lists) }
  const from = known.length - (tail.end - tail.start)
  const isInPlace = known[from]?.message === given[tail.start]?.message
  if (isInPlace || listShortenedTexts(known, given).length > 0)
    return { ...branched, amends: isShown(shared) ? 'earlier' : 'hidden' }
  const added = listNews(messages, given.slice(tail.end))
  return (
    findAmendment(from, known.length, tail.start - from) ?? {
      ...base,
      change,
      divergesAt: null,
      news: added,
    }
  )
}

/** The blocks of the log and of the client's list, side by side. */
interface ComparedLists {
  readonly known: readonly ConversationPart[]
  readonly given: readonly ConversationPart[]
  /** Number of equal blocks from the start. */
  readonly shared: number
  readonly isSame: (old: ConversationPart | undefined, now: ConversationPart | undefined) => boolean
  /** Returns the record of a block of the log. */
  readonly findRecord: (index: number) => KnownRecord
  /** True if the model is shown a block of the log. */
  readonly isShown: (index: number) => boolean
  readonly readShown: () => ReadonlyMap<string, ShownEntry>
}

/** The parsed blocks of each request, because a request is compared with several conversations. */
const givenParts = new WeakMap<readonly ClientMessage[], readonly ConversationPart[]>()

function readGivenParts(messages: readonly ClientMessage[]): readonly ConversationPart[] {
  const given = givenParts.get(messages) ?? sortResults(listInputParts(messages))
  givenParts.set(messages, given)
  return given
}

function compareLists(
  state: ComparedState,
  messages: readonly ClientMessage[],
  branch: readonly KnownRecord[],
): ComparedLists {
  const records = branch.filter((record) => !isSyntheticError(record))
  const known = sortResults(listLoggedParts(records))
  const given = readGivenParts(messages)
  const readShown = createShownReader(state)
  const findRecord = (index: number): KnownRecord => records[known[index]?.from.index ?? 0] as KnownRecord
  const isSame = (old: ConversationPart | undefined, now: ConversationPart | undefined): boolean => {
    if (old === undefined || now === undefined || !isSamePart(old, now)) return false
    if (!isToolResult(old.block) || !isToolResult(now.block) || isSameResult(old.block, now.block))
      return true
    return !isShownWhole(old.block, records[old.from.index] as KnownRecord, readShown)
  }
  let shared = 0
  while (shared < known.length && isSame(known[shared], given[shared])) shared += 1
  const isShown = (index: number): boolean => readShown().has(findRecord(index).uuid)
  return { known, given, shared, isSame, findRecord, isShown, readShown }
}

/** Returns the index of the last block that the model is no longer shown; -1 if all blocks are shown. */
function findLastHidden({ known, isShown }: ComparedLists): number {
  return known.findLastIndex((_, index) => !isShown(index))
}

/** True if the client's list has, in some version, everything that the model is shown. */
function hasShown(lists: ComparedLists): boolean {
  const { known, given, shared, isShown } = lists
  if (shared > findLastHidden(lists)) return true
  const places = alignParts(known, given)
  return known.every((_, index) => places[index] !== null || !isShown(index))
}

/** Returns a function that lists what the model is shown. It does so when first called, which most comparisons do not. */
function createShownReader({ view }: ComparedState): () => ReadonlyMap<string, ShownEntry> {
  let shown: ReadonlyMap<string, ShownEntry> | null = null
  return () => {
    shown ??= new Map(view.entries.toArray().map((entry) => [entry.record.uuid, entry]))
    return shown
  }
}

function isPromptPart({ role, block }: ConversationPart): boolean {
  return role === 'user' && !isToolResult(block)
}

/**
 * Returns a function that is true if the client has another version of a block: another input or result, other fields of the
 * message, or thinking left out or added. A difference only in thinking does not count if the client was never given that
 * thinking, if the provider requires it in the current turn, or if the context no longer shows the record or its thinking.
 */
function createAmendmentTest(
  given: readonly ConversationPart[],
  { hidden, isRequired }: ThinkingRules,
  readShown: () => ReadonlyMap<string, ShownEntry>,
): (old: ConversationPart, now: ConversationPart, record: KnownRecord) => boolean {
  const prompt = given.findLast(isPromptPart)?.message ?? -1
  return (old, now, { uuid, spilled }) => {
    const { block } = old
    // The log has only the beginning and end of a large result.
    const isCut = isToolResult(block) && spilled?.some(({ toolUseId }) => toolUseId === block.tool_use_id)
    if (isCut !== true && !hasSameValue(old, now)) return true
    const isAdded = now.thinking.some((signature) => !old.thinking.includes(signature))
    const isLeftOut = old.thinking.some((signature) => !now.thinking.includes(signature))
    if (!isAdded && !isLeftOut) return false
    if (hidden.has(old.id ?? '') || (isRequired && now.message > prompt)) return false
    const entry = readShown().get(uuid)
    return entry !== undefined && entry.cleared?.thinking !== true
  }
}

/** Compares two versions of the same block by value, whatever the order of their keys: inputs, results, and fields. */
function hasSameValue(one: ConversationPart, other: ConversationPart): boolean {
  const [a, b] = [one.block, other.block]
  const isSameInput = !isToolUse(a) || !isToolUse(b) || isSameJsonValue(a.input, b.input)
  const isSameContent = !isToolResult(a) || !isToolResult(b) || isSameResult(a, b)
  return isSameInput && isSameContent && isSameJsonValue(one.fields, other.fields)
}

/**
 * Returns the first call of the newest response whose input has another spelling in the client's list than in the log; -1 if
 * there is none. Only the newest can still change: no request has contained it. Earlier ones are sent again as they were.
 */
function findRespelled(
  { known, given, shared, findRecord }: ComparedLists,
  findExactBlock: NonNullable<ClientRequest['findExactBlock']>,
): number {
  const newest = known.at(-1)?.message
  return known.findIndex((old, index) => {
    if (old.message !== newest || index >= shared || !isToolUse(old.block)) return false
    const record = findRecord(index)
    const { rawBlocks = [] } = record.type === 'assistant' ? record : {}
    const logged = rawBlocks.find((raw) => raw.index === old.from.block)?.text
    const exact = findExactBlock(given[index]?.block ?? old.block)
    if (logged === undefined || exact === undefined) return logged !== exact
    return findJsonMember(logged, 'input') !== findJsonMember(exact, 'input')
  })
}

type ShownEntry = ReturnType<SessionState['view']['entries']['toArray']>[number]

/** True if the model is shown a result as it is in the log: not replaced, cleared, or cut to its beginning and end. */
function isShownWhole(
  { tool_use_id: call }: ToolResultBlock,
  { uuid, spilled }: KnownRecord,
  readShown: () => ReadonlyMap<string, ShownEntry>,
): boolean {
  const entry = readShown().get(uuid)
  if (entry === undefined || entry.cleared?.results.some(({ id }) => id === call) === true) return false
  return spilled?.some(({ toolUseId }) => toolUseId === call) !== true
}

/**
 * Returns where the client's list has the part of the log that the model is still shown, in one piece. Null if it does
 * not, or if the change is in that part.
 */
function findTail(lists: ComparedLists): { readonly start: number; readonly end: number } | null {
  const { known, given, shared, isSame } = lists
  const hidden = findLastHidden(lists)
  if (shared > hidden) return null
  const answer = known.findLastIndex(({ role }) => role === 'assistant')
  const tail = known.slice(Math.min(hidden + 1, answer === -1 ? known.length : answer))
  for (let start = given.length - tail.length; tail.length > 0 && start >= 0; start -= 1)
    if (tail.every((part, index) => isSame(part, given[start + index])))
      return { start, end: start + tail.length }
  return null
}

function nameChange(
  known: readonly ConversationPart[],
  given: readonly ConversationPart[],
  shared: number,
  isKnown: boolean,
): HistoryChange {
  if (shared === given.length) return 'rewound'
  if (shared > 0) return 'edited'
  if (!isKnown) return 'new'
  return known.some((part) => isSamePart(part, given[0])) ? 'pruned' : 'edited'
}

/** Returns the messages that the parts come from. Of a message whose beginning is not among the parts, only the given blocks. */
function listNews(
  messages: readonly ClientMessage[],
  parts: readonly ConversationPart[],
): readonly ClientMessage[] {
  const first = parts.reduce((least, { from }) => Math.min(least, from.index), messages.length)
  const news = messages.slice(first)
  const head = news[0]
  if (head === undefined || head.role === 'system' || typeof head.content === 'string') return news
  const taken = new Set(parts.flatMap(({ from }) => (from.index === first ? [from.block] : [])))
  const isWhole = !listInputParts([head]).some(({ from }) => !taken.has(from.block))
  if (isWhole) return news
  const content = head.content.filter((_, index) => taken.has(index))
  return [{ ...head, content }, ...news.slice(1)]
}

// A client may refer to items that its provider stores, by their ids, instead of sending them.

/**
 * Returns the request with references replaced by the items of the log, so that the conversation is compared,
 * summarized and searched as if the client had sent them. Items that the log lacks stay references.
 */
export function inlineStoredItems(log: SessionLog, request: ClientRequest): ClientRequest {
  const { messages, findExactBlock } = request
  const { items, exactTexts } = readStoredItems(log)
  return {
    ...request,
    messages: messages.map((message) => ({
      ...message,
      content: toBlocks(message.content).flatMap((block) => items.get(readReference(block) ?? '') ?? [block]),
    })),
    findExactBlock: (block) => findExactBlock?.(block) ?? exactTexts.get(block.id),
  }
}

/** Returns the id that a block names; null for all other blocks. */
function readReference(block: Block): string | null {
  return block.type === PROVIDER_ITEM_TYPE ? (readBlockOrigin(block)?.refersTo ?? null) : null
}

interface StoredItems {
  /** The blocks of each item, by its id. */
  readonly items: ReadonlyMap<string, readonly Block[]>
  /** Exact texts of calls, by the id of the call. */
  readonly exactTexts: ReadonlyMap<unknown, string>
}

function readStoredItems(log: SessionLog): StoredItems {
  const items = new Map<string, Block[]>()
  const exactTexts = new Map<unknown, string>()
  // A branch may record the same response again. An item then has only the blocks of the newest record.
  const recordOfItem = new Map<string, string>()
  for (const record of log.records.toArray()) {
    if (!isKnownRecord(record) || record.type !== 'assistant') continue
    const blocks = toBlocks(record.message.content)
    for (const { index, text } of record.rawBlocks ?? []) exactTexts.set(blocks[index]?.id, text)
    for (const block of blocks) {
      const id = readBlockOrigin(block)?.id
      if (id === undefined) continue
      items.set(id, recordOfItem.get(id) === record.uuid ? [...(items.get(id) ?? []), block] : [block])
      recordOfItem.set(id, record.uuid)
    }
  }
  return { items, exactTexts }
}

/**
 * Returns those parts of the client's list (system prompt, messages) that say what the engine would send, as the client wrote
 * them, with fields that the engine does not record; null for a part that differs, as messages do after a rewrite.
 */
export function findUnchangedClientList(
  { state }: OpenSession,
  { list, system, messages }: ClientRequest,
  { request: { front, messages: sent } }: PendingModelCall,
): { readonly list?: SplitClientList } {
  if (list === undefined || system === null) return {}
  const texts = front.system.map(({ block }) => block.text)
  const hasSystem = isSameJsonValue(
    texts,
    system.filter((text) => text.trim() !== ''),
  )
  const traced = [...sent.frozen, ...sent.tail].map(({ message }) => message)
  const isWhole = state.view.rewrites.length === 0 && isSameJsonValue(listShape(traced), listShape(messages))
  const items = isWhole && (hasSystem || typeof list.items !== 'string') ? list.items : null
  return { list: { system: hasSystem ? list.system : null, items } }
}

/**
 * Lists the types of the blocks, in a form that is equal for lists that say the same: thinking and the engine's
 * placeholders are left out, and the blocks between two responses are sorted. Clients differ in which thinking they
 * send back, in the order of their own messages, and in whether they join them.
 */
function listShape(messages: readonly Pick<ClientMessage, 'role' | 'content'>[]): readonly string[] {
  const shape: string[] = []
  let asked: string[] = []
  for (const { role, content } of messages) {
    const side = role === 'assistant' ? 'answered' : 'asked'
    const types = toBlocks(content).flatMap((block) =>
      isBlankTextBlock(block) || isMissingPromptPlaceholder(block) || isThinkingBlock(block)
        ? []
        : [`${side} ${block.type}`],
    )
    if (side === 'asked') asked.push(...types)
    else if (types.length > 0) {
      shape.push(...asked.sort(), ...types)
      asked = []
    }
  }
  return [...shape, ...asked.sort()]
}
