/**
 * Flattens the context into the messages of an API request. The same records always give the same messages, and
 * appending records never changes messages that were already sent.
 *
 * When a new response begins, all messages before it are frozen: no later record can change them. Only the messages
 * after the frozen ones are computed again, so an update costs time only for new entries.
 */
import {
  type Block,
  EFFORT_FIELD,
  isBlankTextBlock,
  isCompactionBlock,
  isServerToolResult,
  isServerToolUse,
  isToolChangeBlock,
  isToolResult,
  isToolUse,
  readBlockOrigin,
  TURN_SCOPE_FIELD,
  toBlocks,
} from '../log/block.ts'
import { AppendList, PersistentMap } from '../log/persistent-collections.ts'
import { isCompactBoundary, type KnownRecord, type UserRecord } from '../log/record.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import { type ContextEntry, isVisibleToModel, type TracedBlock, toTracedBlocks } from './context-entry.ts'
import type { ContextView } from './context-view.ts'
import {
  createInterruptedResult,
  hasNoOpenCalls,
  joinMessageDrafts,
  type MessageInRepair,
  type MessageRepair,
  repairMessageDrafts,
  toReminderBlock,
  type UnansweredCall,
  withoutBlankText,
} from './message-repair.ts'
import type { ApiMessage } from './payload.ts'

/** A message of an API request, with the records that its blocks come from. */
export interface TracedMessage {
  readonly message: ApiMessage
  /** uuid of the record that each block comes from, by block index. */
  readonly origins: readonly string[]
  /** Exact JSON texts to send instead of stringified blocks, by block index. */
  readonly raw?: ReadonlyMap<number, string>
}

/** The messages of the context, repaired, with the state from which the next update continues. */
export interface FlattenedContext {
  /** The entries of the context that have been flattened so far. */
  readonly entries: AppendList<ContextEntry>
  readonly frozen: AppendList<TracedMessage>
  /** True if a frozen message may be a system message. */
  readonly hasSystemMessages: boolean
  readonly frozenRepairs: AppendList<MessageRepair>
  /**
   * For each tool call id in a frozen message: the number of messages that were frozen before the group of messages
   * with that call.
   */
  readonly calls: PersistentMap<number>
  readonly drafts: readonly MessageInRepair[]
  /** Cache of the messages made from drafts: valid only if `finished.drafts` is `drafts`. */
  readonly finished: FinishedDrafts
  /** The messages after the frozen ones, as they would be sent now. Later records may still change them. */
  readonly tail: readonly TracedMessage[]
  readonly tailRepairs: readonly MessageRepair[]
  /** Tool calls that have no result yet: client tools in `waiting`, server tools in `waitingServer`. */
  readonly waiting: readonly UnansweredCall[]
  readonly waitingServer: readonly UnansweredCall[]
}

/** Stands for the first message of the user where the log does not have it, since providers require one. */
export const MISSING_PROMPT_TEXT = '[The beginning of this conversation is not in its log.]'

const FIRST_PROMPT: Block = { type: 'text', text: MISSING_PROMPT_TEXT }

/** True for the block with `MISSING_PROMPT_TEXT`. */
export function isMissingPromptPlaceholder(block: Block): boolean {
  return block.text === MISSING_PROMPT_TEXT
}

const NOTHING_TO_FINISH: FinishedDrafts = {
  drafts: [],
  messages: [],
  repairs: [],
  calls: [],
  waiting: [],
  waitingServer: [],
}

const EMPTY_CONTEXT: FlattenedContext = {
  entries: AppendList.of(),
  frozen: AppendList.of(),
  hasSystemMessages: false,
  frozenRepairs: AppendList.of(),
  calls: PersistentMap.empty(),
  drafts: NOTHING_TO_FINISH.drafts,
  finished: NOTHING_TO_FINISH,
  tail: [],
  tailRepairs: [],
  waiting: [],
  waitingServer: [],
}

/**
 * Flattens the context into messages. `from` is the result for an earlier state of the context; only entries added
 * since are processed.
 */
export function flattenContext(
  view: Pick<ContextView, 'entries'>,
  from: FlattenedContext = EMPTY_CONTEXT,
): FlattenedContext {
  let flat = view.entries.extends(from.entries) ? from : EMPTY_CONTEXT
  for (let index = flat.entries.length; index < view.entries.length; index += 1) {
    flat = addEntry(flat, view.entries.at(index) as ContextEntry, findBoundaryIndex(view))
  }
  const finished = finishDrafts(flat)
  const { messages, repairs, waiting, waitingServer } = finished
  const tail = { finished, tail: messages, tailRepairs: repairs, waiting, waitingServer }
  return { ...flat, ...tail, entries: view.entries }
}

/**
 * Returns the log index of the compaction that the context starts with; -1 without one. All kept records were logged before
 * it.
 */
function findBoundaryIndex({ entries }: Pick<ContextView, 'entries'>): number {
  const first = entries.at(0)
  return first !== undefined && isCompactBoundary(first.record) ? first.index : -1
}

export function toApiMessages(flat: FlattenedContext): readonly ApiMessage[] {
  return listTracedMessages(flat).map((item) => item.message)
}

/** Returns all messages in one list: the frozen ones, then the tail. Copies, so not for every update. */
export function listTracedMessages(
  flat: Pick<FlattenedContext, 'frozen' | 'tail'>,
): readonly TracedMessage[] {
  return flat.frozen.toArray().concat(flat.tail)
}

function addEntry(flat: FlattenedContext, entry: ContextEntry, boundaryIndex: number): FlattenedContext {
  if (!isVisibleToModel(entry)) return flat
  const parts = toTracedBlocks(entry)
  const { record } = entry
  // A system message without text may still set the effort, so it must not be dropped.
  const setsEffort = record.type === 'user' && record.message[EFFORT_FIELD] !== undefined
  if (parts.every(({ block }) => isBlankTextBlock(block)) && !setsEffort) {
    // A record with only blank text adds no message. The user messages before and after it are joined.
    const [first] = parts
    const { frozenRepairs } = flat
    if (first === undefined) return flat
    return { ...flat, frozenRepairs: frozenRepairs.push({ kind: 'blank-text', origin: first.origin }) }
  }
  if (record.type === 'assistant') return addResponse(flat, entry, record.message.id, parts)
  const draft = { ...createUserDraft(record, entry, parts), isKept: entry.index < boundaryIndex }
  const last = flat.drafts.at(-1)
  if (draft.role === 'user' && last?.role === 'user')
    return { ...flat, drafts: [...flat.drafts.slice(0, -1), joinMessageDrafts(last, draft)] }
  return { ...flat, drafts: [...withFirstPrompt(flat, draft), draft] }
}

/**
 * Adds one record of a response. One response may be logged as several records; they become one message if only tool
 * results and attachments come between them.
 */
function addResponse(
  flat: FlattenedContext,
  entry: ContextEntry,
  response: string,
  parts: readonly TracedBlock[],
): FlattenedContext {
  const home = findResponseDraft(flat.drafts, response)
  const draft: MessageInRepair = {
    role: 'assistant',
    responseId: response,
    parts: AppendList.of(parts),
    unchangedMessage: toWholeMessage(entry),
    isCrossable: false,
  }
  if (home !== -1)
    return {
      ...flat,
      drafts: flat.drafts.map((old, index) => (index === home ? joinMessageDrafts(old, draft) : old)),
    }
  const settled = settleDrafts(flat)
  return { ...settled, drafts: [...withFirstPrompt(settled, draft), draft] }
}

/** Freezes the drafts before a new response, unless tool calls in them still wait for their results. */
function settleDrafts(flat: FlattenedContext): FlattenedContext {
  if (!hasNoOpenCalls(flat.drafts)) return flat
  const settled = freezeDrafts(flat)
  if (flat.frozen.length > 0 || settled.frozen.toArray().some(({ message }) => message.role !== 'system'))
    return settled
  // System messages that nothing precedes are not frozen yet, so that a placeholder for the prompt can come first.
  const { drafts } = withoutBlankText(flat.drafts.filter(({ role }) => role === 'system'))
  return { ...settled, frozen: flat.frozen, calls: flat.calls, drafts }
}

function findResponseDraft(drafts: readonly MessageInRepair[], response: string): number {
  for (let index = drafts.length - 1; index >= 0; index -= 1) {
    const draft = drafts[index] as MessageInRepair
    if (draft.role === 'assistant') return draft.responseId === response ? index : -1
    if (!draft.isCrossable) return -1
  }
  return -1
}

function createUserDraft(
  record: KnownRecord,
  entry: ContextEntry,
  parts: readonly TracedBlock[],
): MessageInRepair {
  const role = record.type === 'user' ? record.message.role : 'user'
  const crossable =
    record.type === 'attachment' || (parts.length > 0 && parts.every((part) => isToolResult(part.block)))
  return {
    role,
    responseId: null,
    parts: AppendList.of(parts),
    unchangedMessage: toWholeMessage(entry),
    isCrossable: crossable,
    ...(record.type === 'user' && record.messageFields !== undefined ? { fields: record.messageFields } : {}),
  }
}

/**
 * Returns the message of the record as it was logged, or null if parts of it were cleared. For a mid-conversation
 * system message, other fields such as `clear_at` are included.
 */
function toWholeMessage(entry: ContextEntry): ApiMessage | null {
  const { record } = entry
  if (entry.cleared !== undefined || (record.type !== 'user' && record.type !== 'assistant')) return null
  const { content } = record.message
  if (record.type === 'assistant') return { role: 'assistant', content }
  const { role } = record.message
  return role === 'system' ? { ...record.message, role, content } : { ...record.messageFields, role, content }
}

/**
 * Returns the drafts to put before `draft`. If `draft` would be the first message and is not from the user, that is a
 * placeholder user message, because the provider requires a user message first.
 */
function withFirstPrompt(flat: FlattenedContext, draft: MessageInRepair): readonly MessageInRepair[] {
  const hasMessages = flat.frozen.length > 0 || flat.drafts.some(({ role }) => role !== 'system')
  if (hasMessages || draft.role === 'user') return flat.drafts
  const first = draft.parts.toArray().find(({ block }) => !isBlankTextBlock(block))
  if (first === undefined || isCompactionBlock(first.block)) return flat.drafts
  const part = { block: FIRST_PROMPT, origin: first.origin }
  return [
    {
      role: 'user',
      responseId: null,
      parts: AppendList.of([part]),
      unchangedMessage: null,
      isCrossable: false,
    },
    ...flat.drafts,
  ]
}

function freezeDrafts(flat: FlattenedContext): FlattenedContext {
  const { messages, repairs, calls } = finishDrafts(flat)
  const next = { frozen: flat.frozen, frozenRepairs: flat.frozenRepairs, calls: flat.calls }
  for (const id of calls) next.calls = next.calls.setIfAbsent(id, next.frozen.length)
  for (const message of messages) next.frozen = next.frozen.push(message)
  for (const repair of repairs) next.frozenRepairs = next.frozenRepairs.push(repair)
  const hasSystemMessages = flat.hasSystemMessages || messages.some(isSystemMessage)
  return { ...flat, ...next, hasSystemMessages, drafts: [] }
}

interface FinishedDrafts extends Pick<FlattenedContext, 'waiting' | 'waitingServer'> {
  /** The drafts that the messages were made from. */
  readonly drafts: readonly MessageInRepair[]
  readonly messages: readonly TracedMessage[]
  readonly repairs: readonly MessageRepair[]
  readonly calls: readonly string[]
}

/**
 * Turns the drafts into messages that the provider accepts, and reports each repair. The drafts that end one request are
 * usually frozen unchanged when its response arrives; they are finished only once.
 */
function finishDrafts(flat: FlattenedContext): FinishedDrafts {
  if (flat.finished.drafts === flat.drafts) return flat.finished
  const firsts: MessageRepair[] = []
  const start = flat.drafts[0]?.parts.at(0)
  if (flat.frozen.length === 0 && start?.block === FIRST_PROMPT)
    firsts.push({ kind: 'no-first-prompt', origin: start.origin })
  const { drafts, calls, repairs, ...waiting } = repairMessageDrafts(flat.drafts, flat)
  const messages = drafts.map(toTracedMessage)
  return { drafts: flat.drafts, messages, repairs: [...firsts, ...repairs], ...waiting, calls }
}

function toTracedMessage(draft: MessageInRepair): TracedMessage {
  const parts = draft.parts.toArray()
  const raw = new Map(
    parts.flatMap((part, index) => (part.raw === undefined ? [] : [[index, part.raw] as const])),
  )
  const message = draft.unchangedMessage ?? {
    ...draft.fields,
    role: draft.role,
    content: parts.map((part) => part.block),
  }
  return { message, origins: parts.map((part) => part.origin), ...(raw.size > 0 ? { raw } : {}) }
}

// The functions below put messages into the form that one provider accepts. The context itself is the same for all.

type RoleRules = ProviderProfile['roles']

/** Messages to send. `calls` maps the id of a tool call to a message index from which to search for its result. */
interface FittedMessages extends Pick<FlattenedContext, 'frozen' | 'tail'> {
  readonly calls: { get(id: string): number | undefined }
}

/**
 * Returns the messages as a provider with these rules accepts them, without leaving out anything that the model should
 * read. If the provider refuses system messages, they become user messages with a `<system-reminder>`; if it refuses
 * messages of the same role one after the other, they are joined. Returns `flat` itself if nothing has to change.
 */
export function fitContextToRoles(flat: FlattenedContext, rules: RoleRules): FittedMessages {
  // Called for each request, so the thousands of messages of a long conversation are not searched.
  if (!flat.hasSystemMessages && !flat.tail.some(isSystemMessage) && rules.consecutive !== 'refused')
    return flat
  const messages = listTracedMessages(flat)
  const tail = fitMessagesToRoles(messages, rules)
  if (tail === messages) return flat
  const calls = new Map<string, number>()
  for (const [index, { message }] of tail.entries())
    for (const id of toBlocks(message.content).flatMap((block) => (isToolUse(block) ? block.id : [])))
      if (!calls.has(id)) calls.set(id, index)
  return { frozen: AppendList.of(), tail, calls }
}

/** As `fitContextToRoles`, for a list of messages. Returns the same list if nothing has to change. */
export function fitMessagesToRoles(
  messages: readonly TracedMessage[],
  rules: RoleRules,
): readonly TracedMessage[] {
  const fitted = messages.some(isSystemMessage)
    ? messages.flatMap((message) => fitSystemMessage(message, rules))
    : messages
  const joined = rules.consecutive === 'refused' ? joinSameRole(fitted) : fitted
  return joined.length === messages.length && joined.every((message, at) => message === messages[at])
    ? messages
    : joined
}

function isSystemMessage({ message }: TracedMessage): boolean {
  return message.role === 'system'
}

function joinSameRole(messages: readonly TracedMessage[]): readonly TracedMessage[] {
  const joined: TracedMessage[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    if (last?.message.role === message.message.role) joined.splice(-1, 1, joinMessages(last, message))
    else joined.push(message)
  }
  return joined
}

/** Appends the blocks of `other` to those of `one`. Blocks that come from no record have the empty origin. */
export function joinMessages(one: TracedMessage, other: TracedMessage): TracedMessage {
  const [blocks, others] = [toBlocks(one.message.content), toBlocks(other.message.content)]
  const raw = new Map(one.raw)
  for (const [index, text] of other.raw ?? []) raw.set(blocks.length + index, text)
  const toOrigins = ({ origins }: TracedMessage, count: number): readonly string[] =>
    Array.from({ length: count }, (_, index) => origins[index] ?? '')
  return {
    message: { ...one.message, content: [...blocks, ...others] },
    origins: [...toOrigins(one, blocks.length), ...toOrigins(other, others.length)],
    ...(raw.size > 0 ? { raw } : {}),
  }
}

/**
 * Returns a system message without the fields that the provider refuses, or as a reminder if it refuses the message. An
 * effort and changes of tools are not text: they are left out if the provider has no field for them.
 */
function fitSystemMessage(traced: TracedMessage, rules: RoleRules): readonly TracedMessage[] {
  const { message, origins } = traced
  if (message.role !== 'system') return [traced]
  if (rules.system === 'refused') {
    const parts = toBlocks(message.content).flatMap((block, index) =>
      isToolChangeBlock(block) ? [] : [toReminderBlock({ block, origin: origins[index] ?? '' })],
    )
    const content = parts.map(({ block }) => block)
    const reminder = {
      message: { role: 'user' as const, content },
      origins: parts.map(({ origin }) => origin),
    }
    return parts.length === 0 ? [] : [reminder]
  }
  const left = Object.fromEntries(
    Object.entries(message).filter(
      ([field]) =>
        (field !== TURN_SCOPE_FIELD || rules.turnScoped) && (field !== EFFORT_FIELD || rules.messageEffort),
    ),
  ) as ApiMessage
  if (Object.keys(left).length === Object.keys(message).length) return [traced]
  return left.content.length === 0 ? [] : [{ ...traced, message: left }]
}

// If a tool call never got a result, an error result is logged before the next API request. If the real result arrives
// after that, the messages already sent stay unchanged.

/**
 * Returns the client tool calls of the newest response that have no result. (A call of an earlier response without a
 * result got an error result when the conversation continued.)
 */
export function listUnansweredCalls(flat: FlattenedContext): readonly UnansweredCall[] {
  return flat.waiting
}

/**
 * Returns the ids of all client and server tool calls that have no result yet. The conversation may not be cut between
 * such a call and its future result.
 */
export function listWaitingCallIds({ waiting, waitingServer }: FlattenedContext): readonly string[] {
  return [...waiting, ...waitingServer].map(({ id }) => id)
}

/** Creates the body of a record with error results for these tool calls; the caller adds uuid, parent and timestamp. */
export function createMissingResultsRecord(
  calls: readonly UnansweredCall[],
): Pick<UserRecord, 'type' | 'isMeta' | 'message'> {
  const content = calls.map((call) => createInterruptedResult(call.id))
  return { type: 'user', isMeta: true, message: { role: 'user', content } }
}

// Finds the positions where a conversation may be cut: never between the records of one response, and never between a
// tool call and its result. The records between two neighbouring cut points form a round.

/**
 * Returns every position i at which `records` may be cut, so that record i is the first after the cut. Includes 0.
 * Includes `records.length` unless a tool call still waits for its result.
 */
export function findCutPoints(
  records: readonly KnownRecord[],
  waiting: readonly string[] = findWaitingCalls(records),
): readonly number[] {
  const ends = findLastRecords(records, waiting)
  const cuts = [0]
  let reach = -1
  records.forEach((record, index) => {
    reach = Math.max(reach, index, ...findTiedRecords(record, index, ends))
    if (reach === index) cuts.push(index + 1)
  })
  return cuts
}

/**
 * Returns the nearest cut point at or before `position`. Rounding down means that more records stay after the cut,
 * never fewer.
 */
export function findCutPointAtOrBefore(records: readonly KnownRecord[], position: number): number {
  return findCutPoints(records).findLast((cut) => cut <= position) ?? 0
}

/**
 * Groups records into rounds: the records between two neighbouring cut points. Every round contains a message; notices
 * and attachments without one are added to the round before them.
 */
export function groupIntoRounds(records: readonly KnownRecord[]): readonly (readonly KnownRecord[])[] {
  const cuts = findCutPoints(records)
  const inner = cuts.filter((cut) => cut > 0 && cut < records.length)
  const hasMessage = (cut: number, at: number): boolean =>
    records.slice(cut, inner[at + 1]).some(({ type }) => type === 'user' || type === 'assistant')
  const edges = [0, ...inner.filter(hasMessage), records.length]
  return edges.slice(1).map((end, index) => records.slice(edges[index], end))
}

/** Groups context entries into rounds: the entries between two neighbouring cut points. Every round contains a message. */
export function groupEntriesIntoRounds(
  entries: readonly ContextEntry[],
): readonly (readonly ContextEntry[])[] {
  let at = 0
  return groupIntoRounds(entries.map((entry) => entry.record))
    .filter((round) => round.length > 0)
    .map((round) => {
      at += round.length
      return entries.slice(at - round.length, at)
    })
}

function findWaitingCalls(records: readonly KnownRecord[]): readonly string[] {
  return listWaitingCallIds(
    flattenContext({ entries: AppendList.of(records.map((record, index) => ({ record, index }))) }),
  )
}

interface LastRecords {
  /** Index of the last record of each response, by `message.id`. */
  readonly responses: ReadonlyMap<string, number>
  /** Indexes of the records with results, ascending, by call id; several if a model used an id again. */
  readonly results: ReadonlyMap<string, readonly number[]>
  /** Indexes of the first records of responses, ascending. */
  readonly newResponses: readonly number[]
  /** Ids of the tool calls that wait for their result. */
  readonly waiting: ReadonlySet<string>
}

function findLastRecords(records: readonly KnownRecord[], waiting: readonly string[]): LastRecords {
  const responses = new Map<string, number>()
  const results = new Map<string, number[]>()
  const newResponses: number[] = []
  records.forEach((record, index) => {
    if (record.type !== 'user' && record.type !== 'assistant') return
    if (record.type === 'assistant') {
      if (!responses.has(record.message.id)) newResponses.push(index)
      responses.set(record.message.id, index)
    }
    for (const block of toBlocks(record.message.content)) {
      const isResult = isToolResult(block) || isServerToolResult(block)
      const id = isResult ? block.tool_use_id : record.type === 'user' ? readPair(block) : null
      if (id !== null) results.set(id, [...(results.get(id) ?? []), index])
    }
  })
  return { responses, results, newResponses, waiting: new Set(waiting) }
}

/** Returns the indexes of later records that no cut may separate from `record`, which is the record at `index`. */
function findTiedRecords(record: KnownRecord, index: number, ends: LastRecords): readonly number[] {
  if (record.type !== 'assistant') return []
  const calls = toBlocks(record.message.content).flatMap((block) =>
    isToolUse(block) || isServerToolUse(block) ? [block.id] : (readPair(block) ?? []),
  )
  const findResult = (id: string): number =>
    findLastResult(ends, id, index) ?? (ends.waiting.has(id) ? Number.POSITIVE_INFINITY : -1)
  return [ends.responses.get(record.message.id) ?? -1, ...calls.map(findResult)]
}

function readPair(block: Block): string | null {
  return readBlockOrigin(block)?.pair ?? null
}

/** Returns the index of the last record with a result for this call: a response may give one id to several calls. */
function findLastResult(
  { results, newResponses }: LastRecords,
  id: string,
  index: number,
): number | undefined {
  const later = results.get(id)?.filter((at) => at >= index) ?? []
  const [first] = later
  if (first === undefined || later.length === 1) return first
  const end = newResponses.find((at) => at > first) ?? Number.POSITIVE_INFINITY
  return later.findLast((at) => at < end)
}
