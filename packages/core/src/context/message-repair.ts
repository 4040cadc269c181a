/**
 * Message drafts, and the repairs that make them messages which a provider takes (`repairMessageDrafts`). The main one pairs
 * tool calls with their results: after it, every call has its result in the user message right after the response, and every
 * result has its call there. A missing result is replaced by an error result, a result without a call is left out, and each
 * repair is reported.
 *
 * A client tool call waits for its result until a response follows the next user message. A server tool call waits until any
 * user content other than tool results follows. A call that repeats an id, or whose id the provider refuses, gets a new id,
 * and so does its result; the log keeps the id that the model gave. Results of calls with one id belong to them in their
 * order.
 */

import { wrapInReminder } from '../facts/host-texts.ts'
import {
  EFFORT_FIELD,
  isBlankTextBlock,
  isBlock,
  isServerToolResult,
  isServerToolUse,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  type ToolResultBlock,
  type ToolUseBlock,
  toBlocks,
} from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import { AppendList, type PersistentMap } from '../log/persistent-collections.ts'
import type { TracedBlock } from './context-entry.ts'
import type { ApiMessage, Role } from './payload.ts'

/** A message being assembled from the blocks of one or more records. */
export interface MessageInRepair {
  readonly role: Role
  /** The `message.id` of a response; null for other messages. */
  readonly responseId: string | null
  readonly parts: AppendList<TracedBlock>
  /** The message as it was logged; null if it was joined from several records, or changed (system messages excepted). */
  readonly unchangedMessage: ApiMessage | null
  /**
   * True if the message holds only tool results and attachments. Later records of the response before this message may
   * still follow after it.
   */
  readonly isCrossable: boolean
  /** Fields of a host's user message besides role and content, which are sent with it. */
  readonly fields?: JsonObject
  /** True if a compaction kept the message: the response that followed it may be summarized. */
  readonly isKept?: boolean
}

/** The kinds of repair that make messages acceptable to the provider. */
type MessageRepairKind =
  | 'missing-result' // A tool call without a result got an error result.
  | 'late-result' // A result arrived after the conversation had continued and was left out.
  | 'duplicate-result'
  | 'orphan-result' // A result without its tool call was left out.
  | 'duplicate-call' // A tool call with an id used before got another id, or was left out as a copy in its own response.
  | 'refused-call' // A tool call whose id, name or input the provider refuses was changed.
  | 'open-server-call'
  | 'orphan-server-result'
  | 'blank-text'
  | 'silent-tail' // A last response with only thinking or blank text was left out.
  | 'no-first-prompt' // The conversation began without a user message, so one was added.

/** A repair that was made to a message, as it is reported. */
export interface MessageRepair {
  readonly kind: MessageRepairKind
  /** uuid of the record that was repaired. */
  readonly origin: string
  /** Id of the tool call that was repaired; absent for other repairs. */
  readonly id?: string
}

/** The messages that were sent before and can no longer change. */
type SentMessages = AppendList<{ readonly message: ApiMessage }>

interface RepairResult extends PairingResult {
  /** Ids of the client tool calls in the drafts. */
  readonly calls: readonly string[]
}

/**
 * Makes the drafts after the frozen messages acceptable to the provider: removes blank text, moves system messages to
 * allowed places, gives each tool call a result, and drops a last response without content. `calls`: the tool calls of
 * the frozen messages, whose ids may not be used again.
 */
export function repairMessageDrafts(
  given: readonly MessageInRepair[],
  { frozen, calls }: { readonly frozen: SentMessages; readonly calls: PersistentMap<unknown> },
): RepairResult {
  const plain = withoutBlankText(given)
  const paired = pairToolCalls(moveSystemMessages(plain.drafts), calls)
  const tail = withoutTrailingThinking(paired.drafts)
  const drafts = withSystemReminders(tail.drafts, frozen)
  const repairs = [...plain.repairs, ...paired.repairs, ...tail.repairs]
  return { ...paired, drafts, repairs, calls: drafts.flatMap(listToolCallIds) }
}

function withDraftParts(draft: MessageInRepair, parts: readonly TracedBlock[]): MessageInRepair {
  const isSame =
    draft.parts.length === parts.length && parts.every((part, index) => draft.parts.at(index) === part)
  if (isSame) return draft
  // A system message keeps its other fields, such as the effort that it sets.
  const whole = draft.role === 'system' ? draft.unchangedMessage : null
  const message = whole === null ? null : { ...whole, content: parts.map(({ block }) => block) }
  return { ...draft, parts: AppendList.of(parts), unchangedMessage: message }
}

/** Joins two drafts into one message: first the blocks of `one`, then the blocks of `other`. */
export function joinMessageDrafts(one: MessageInRepair, other: MessageInRepair): MessageInRepair {
  let { parts } = one
  for (const part of other.parts) parts = parts.push(part)
  const isCrossable = one.isCrossable && other.isCrossable
  const fields = other.fields === undefined ? {} : { fields: { ...one.fields, ...other.fields } }
  return { ...one, parts, unchangedMessage: null, isCrossable, ...fields }
}

/** True if the draft has nothing to send. A system message without content still counts if it sets the effort. */
function isEmptyDraft(draft: MessageInRepair): boolean {
  return draft.parts.length === 0 && draft.unchangedMessage?.[EFFORT_FIELD] === undefined
}

/** True for a response with only thinking and blank text. The provider refuses a request that ends with such a response. */
function isBlankResponse(draft: MessageInRepair): boolean {
  if (draft.role !== 'assistant') return false
  return draft.parts.toArray().every((part) => isThinkingBlock(part.block) || isBlankTextBlock(part.block))
}

// The functions below pair client tool calls with their results.

/** Content of the error result for a tool call that never got a result. */
export const MISSING_RESULT_TEXT = 'The tool call was interrupted and returned no result.'

/** Creates the error result for a client tool call that never got one. */
export function createInterruptedResult(id: string): ToolResultBlock {
  return { type: 'tool_result', tool_use_id: id, content: MISSING_RESULT_TEXT, is_error: true }
}

/** A tool call that has no result. */
export interface UnansweredCall {
  readonly id: string
  /** uuid of the record that contains the tool call. */
  readonly origin: string
}

interface PairingResult {
  readonly drafts: readonly MessageInRepair[]
  readonly repairs: readonly MessageRepair[]
  /** Tool calls that have no result yet: client tools in `waiting`, server tools in `waitingServer`. */
  readonly waiting: readonly UnansweredCall[]
  readonly waitingServer: readonly UnansweredCall[]
}

/**
 * Pairs every tool call in `drafts` with its result and reports each repair. `known`: the tool calls of the messages
 * before `drafts`, by id.
 */
function pairToolCalls(drafts: readonly MessageInRepair[], known: PersistentMap<unknown>): PairingResult {
  const repairs: MessageRepair[] = []
  const seen = new Set<string>()
  const isKnown = (id: string): boolean => seen.has(id) || known.has(id)
  const paired: MessageInRepair[] = []
  let given: MessageInRepair[] = []
  let following: MessageInRepair[] = []
  let waiting: readonly UnansweredCall[] = []
  const waitingServer = findOpenServerCalls(drafts)
  const closeGroup = (): void => {
    const callIds = new Map<string, string[]>()
    const results = countResults(following)
    const responses = given.map((draft) => {
      const unique = withAcceptedCalls(draft, isKnown, { callIds, results, repairs })
      for (const id of listToolCallIds(unique)) seen.add(id)
      return unique
    })
    const group = pairGroup({ responses, callIds, following }, isKnown, repairs)
    paired.push(...group.drafts)
    waiting = group.open
    given = []
    following = []
  }
  for (const draft of pairServerTools(drafts, waitingServer, repairs)) {
    if (draft.role !== 'assistant') {
      following.push(draft)
      continue
    }
    if (following.length > 0) closeGroup()
    given.push(draft)
  }
  closeGroup()
  return { drafts: paired.filter((draft) => !isEmptyDraft(draft)), repairs, waiting, waitingServer }
}

/**
 * Called when a new response begins. True if no call in `drafts` can still get a result, so that later records cannot change
 * these messages. Calls of all responses after the last message of another role can still get one, and so can open server
 * tool calls.
 */
export function hasNoOpenCalls(drafts: readonly MessageInRepair[]): boolean {
  const newest = drafts.slice(drafts.findLastIndex(({ role }) => role !== 'assistant') + 1)
  const awaitsResults = newest.some((draft) => listToolCallIds(draft).length > 0)
  return !awaitsResults && findOpenServerCalls(drafts).length === 0
}

function listToolCallIds(draft: MessageInRepair): readonly string[] {
  return draft.parts.toArray().flatMap(({ block }) => (isToolUse(block) ? [block.id] : []))
}

/** Returns how many results the messages have for each call id. */
function countResults(drafts: readonly MessageInRepair[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { block } of drafts.flatMap(listToolResults)) {
    const { tool_use_id: id } = block as ToolResultBlock
    counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  return counts
}

/** Calls of consecutive responses: the ids to send, in order, by the id that the model gave. */
type CallIds = Map<string, string[]>

/**
 * Changes tool calls that the provider would refuse, and gives a new id to each call whose id was used before. The ids
 * are added to `callIds`. If a response repeats an id, the second call is left out as a copy, unless `results` has one
 * more result for it.
 */
function withAcceptedCalls(
  draft: MessageInRepair,
  isKnown: (id: string) => boolean,
  {
    callIds,
    results,
    repairs,
  }: {
    readonly callIds: CallIds
    readonly results: ReadonlyMap<string, number>
    readonly repairs: MessageRepair[]
  },
): MessageInRepair {
  const given = new Set(listToolCallIds(draft))
  if (given.size === 0) return draft
  const own = new Set<string>()
  const isTaken = (id: string): boolean =>
    given.has(id) || isKnown(id) || [...callIds.values()].some((ids) => ids.includes(id))
  const parts = draft.parts.toArray().flatMap((part): readonly TracedBlock[] => {
    const { block, origin } = part
    if (!isToolUse(block)) return [part]
    const ids = callIds.get(block.id) ?? []
    const isRepeated = own.has(block.id)
    const isCopy = isRepeated && ids.length >= (results.get(block.id) ?? 0)
    own.add(block.id)
    const accepted = toAcceptedCall(block)
    const isUnused = accepted.id === block.id && !isRepeated && !isKnown(block.id)
    if (!isUnused || accepted !== block) {
      const kind = isRepeated || accepted === block ? 'duplicate-call' : 'refused-call'
      repairs.push({ kind, origin, id: block.id })
    }
    if (isCopy) return []
    const id = isUnused || !isTaken(accepted.id) ? accepted.id : findUnusedId(accepted.id, isTaken)
    callIds.set(block.id, [...ids, id])
    return [accepted === block && id === block.id ? part : { block: { ...accepted, id }, origin }]
  })
  return withDraftParts(draft, parts)
}

/** Characters that the provider refuses in the id of a tool call. Other providers use them, as in `functions.Read:0`. */
const REFUSED_CHARACTERS = /[^a-zA-Z0-9_-]/g
const LONGEST_NAME = 200

/** Returns a tool call with an id, a name and an input that the provider accepts; the same one if it has them. */
function toAcceptedCall(block: ToolUseBlock): ToolUseBlock {
  const id = block.id.replace(REFUSED_CHARACTERS, '_') || 'call'
  const name =
    String(block.name ?? '')
      .slice(0, LONGEST_NAME)
      .toWellFormed() || 'unknown'
  const input = isObject(block.input) ? block.input : wrapInput(block.input)
  const isSame = id === block.id && name === block.name && input === block.input
  return isSame ? block : ({ ...block, id, name, input } as ToolUseBlock)
}

function wrapInput(input: unknown): object {
  return input === null || input === undefined ? {} : { value: input }
}

function findUnusedId(id: string, isTaken: (id: string) => boolean): string {
  for (let number = 2; ; number += 1) if (!isTaken(`${id}_${number}`)) return `${id}_${number}`
}

/** Consecutive responses, the ids of their calls, and the messages up to the next response. */
interface PairingGroup {
  readonly responses: readonly MessageInRepair[]
  readonly callIds: CallIds
  readonly following: readonly MessageInRepair[]
}

/**
 * Pairs the tool calls of consecutive responses with the results found before the next response. Moves the results
 * right after the calls.
 */
function pairGroup(
  { responses, callIds, following }: PairingGroup,
  isKnown: (id: string) => boolean,
  repairs: MessageRepair[],
): { readonly drafts: readonly MessageInRepair[]; readonly open: readonly UnansweredCall[] } {
  const unanswered = new Set(responses.flatMap(listToolCallIds))
  const results: TracedBlock[] = []
  for (const given of following.flatMap(listToolResults)) {
    const part = withNewCallId(given, callIds, unanswered)
    const { tool_use_id: id } = part.block as ToolResultBlock
    const isAnswered = results.some(({ block }) => (block as ToolResultBlock).tool_use_id === id)
    const kind = isAnswered ? 'duplicate-result' : isKnown(id) ? 'late-result' : 'orphan-result'
    if (unanswered.delete(id)) results.push(part)
    else repairs.push({ kind, origin: part.origin, id })
  }
  const calls = responses.flatMap((draft) => draft.parts.toArray())
  const missing = calls.flatMap(({ block, origin }) =>
    isToolUse(block) && unanswered.has(block.id) ? [{ id: block.id, origin }] : [],
  )
  for (const { id, origin } of missing) {
    repairs.push({ kind: 'missing-result', origin, id })
    results.push({ block: createInterruptedResult(id), origin })
  }
  const givenIds = new Map([...callIds].flatMap(([given, ids]) => ids.map((id) => [id, given] as const)))
  const open = missing.map(({ id, origin }) => ({ id: givenIds.get(id) ?? id, origin }))
  return { drafts: [...responses, ...insertResults(results, following)], open }
}

/** Returns a tool result with the id of its call: of several calls with one id, the first that has no result yet. */
function withNewCallId(part: TracedBlock, callIds: CallIds, unanswered: ReadonlySet<string>): TracedBlock {
  const block = part.block as ToolResultBlock
  const ids = callIds.get(block.tool_use_id) ?? []
  const id = ids.find((one) => unanswered.has(one)) ?? ids[0] ?? block.tool_use_id
  return id === block.tool_use_id ? part : { block: { ...block, tool_use_id: id }, origin: part.origin }
}

/**
 * Puts tool results at the start of the user message after the tool calls, or into a new message if no user message
 * follows.
 */
function insertResults(
  results: readonly TracedBlock[],
  following: readonly MessageInRepair[],
): readonly MessageInRepair[] {
  const isFirstUser = following[0]?.role === 'user'
  const drafts = following.map((draft, index) => {
    const others = draft.parts.toArray().filter((part) => !isToolResult(part.block))
    return withDraftParts(draft, isFirstUser && index === 0 ? [...results, ...others] : others)
  })
  if (isFirstUser || results.length === 0) return drafts
  return [
    {
      role: 'user',
      responseId: null,
      parts: AppendList.of(results),
      unchangedMessage: null,
      isCrossable: true,
    },
    ...drafts,
  ]
}

function listToolResults(draft: MessageInRepair): readonly TracedBlock[] {
  return draft.parts.toArray().filter((part) => isToolResult(part.block))
}

// The call and the result of a server tool are both blocks of the assistant's turn. The functions below keep both or
// remove both. Most conversations have neither.

function hasServerTools(drafts: readonly MessageInRepair[]): boolean {
  return drafts.some(({ parts }) =>
    parts.toArray().some(({ block }) => isServerToolUse(block) || isServerToolResult(block)),
  )
}

function pairServerTools(
  drafts: readonly MessageInRepair[],
  waiting: readonly UnansweredCall[],
  repairs: MessageRepair[],
): readonly MessageInRepair[] {
  if (!hasServerTools(drafts)) return drafts
  const calls = new Set<string>()
  const kept = new Set([...collectServerResults(drafts), ...waiting.map(({ id }) => id)])
  return drafts.map((draft) => {
    const parts = draft.parts.toArray().filter(({ block, origin }) => {
      if (isServerToolUse(block)) {
        calls.add(block.id)
        if (kept.has(block.id)) return true
        repairs.push({ kind: 'open-server-call', origin, id: block.id })
        return false
      }
      if (draft.role !== 'assistant' || !isServerToolResult(block) || calls.has(block.tool_use_id))
        return true
      repairs.push({ kind: 'orphan-server-result', origin, id: block.tool_use_id })
      return false
    })
    return withDraftParts(draft, parts)
  })
}

function collectServerResults(drafts: readonly MessageInRepair[]): ReadonlySet<string> {
  const parts = drafts.filter((draft) => draft.role === 'assistant').flatMap((draft) => draft.parts.toArray())
  return new Set(parts.flatMap(({ block }) => (isServerToolResult(block) ? [block.tool_use_id] : [])))
}

function findOpenServerCalls(drafts: readonly MessageInRepair[]): readonly UnansweredCall[] {
  if (!hasServerTools(drafts)) return []
  const answered = collectServerResults(drafts)
  const open: UnansweredCall[] = []
  for (const draft of drafts) {
    if (draft.role !== 'assistant' && listToolResults(draft).length < draft.parts.length) open.length = 0
    for (const { block, origin } of draft.parts)
      if (isServerToolUse(block) && !answered.has(block.id)) open.push({ id: block.id, origin })
  }
  return open
}

// The functions below place mid-conversation system messages where the provider accepts them.

/**
 * Moves user content that arrived after a system message in front of that message, so that the system message comes
 * directly before the response. If its response was summarized, the system message becomes a reminder at its place:
 * moved, it would come after the user's unanswered messages, which must be last.
 */
function moveSystemMessages(drafts: readonly MessageInRepair[]): readonly MessageInRepair[] {
  const placed: MessageInRepair[] = []
  for (const [index, given] of drafts.entries()) {
    const draft = hasLostResponse(drafts, index) ? toReminder(given) : given
    const waiting = placed.findLastIndex((earlier) => earlier.role !== 'system') + 1
    const before = placed[waiting - 1]
    if (draft.role === 'user' && before?.role === 'user')
      placed[waiting - 1] = joinMessageDrafts(before, draft)
    else if (draft.role !== 'user' || waiting === placed.length) placed.push(draft)
    else placed.splice(waiting, 0, draft)
  }
  return placed
}

/** True for a kept system message of plain text that user content follows instead of its response. */
function hasLostResponse(drafts: readonly MessageInRepair[], index: number): boolean {
  const draft = drafts[index] as MessageInRepair
  if (draft.role !== 'system' || draft.isKept !== true) return false
  // Tool results go in front of the system message, to the calls that they answer.
  const isSkipped = ({ role, parts }: MessageInRepair): boolean =>
    role === 'system' || [...parts].every(({ block }) => isToolResult(block))
  const next = drafts.slice(index).find((each) => !isSkipped(each))
  const isPlain = draft.unchangedMessage?.[EFFORT_FIELD] === undefined
  return isPlain && next?.role === 'user' && draft.parts.toArray().every(({ block }) => isTextBlock(block))
}

/**
 * Turns a system message that does not follow a user message into a user message with a `<system-reminder>`, because the
 * provider would refuse a system message there. The effort that it sets stays in a system message without content, which may
 * be anywhere.
 */
function withSystemReminders(
  drafts: readonly MessageInRepair[],
  frozen: SentMessages,
): readonly MessageInRepair[] {
  return drafts.flatMap((draft, index) => {
    const isMisplaced =
      draft.role === 'system' && draft.parts.length > 0 && !followsUserMessage(drafts.slice(0, index), frozen)
    return isMisplaced ? [toReminder(draft), ...toEffortOnly(draft)] : [draft]
  })
}

function toEffortOnly(draft: MessageInRepair): readonly MessageInRepair[] {
  const effort = draft.unchangedMessage?.[EFFORT_FIELD]
  if (effort === undefined) return []
  const unchangedMessage = { role: 'system' as const, content: [], [EFFORT_FIELD]: effort }
  return [{ ...draft, parts: AppendList.of(), unchangedMessage }]
}

/** Checks whether a message after these would follow a user message, or a result of a tool that the provider runs. */
function followsUserMessage(drafts: readonly MessageInRepair[], frozen: SentMessages): boolean {
  const draft = drafts.findLast(({ role }) => role !== 'system')
  const before = draft === undefined ? frozen.findLast(({ message }) => message.role !== 'system') : undefined
  const role = draft?.role ?? before?.message.role
  if (role !== 'assistant') return role === 'user'
  const last = draft?.parts.last?.block ?? toBlocks(before?.message.content ?? []).at(-1)
  return isServerToolResult(last ?? { type: '' })
}

function toReminder(draft: MessageInRepair): MessageInRepair {
  const parts = draft.parts.toArray().map(toReminderBlock)
  return { ...withDraftParts(draft, parts), role: 'user', unchangedMessage: null }
}

/** Wraps a text block in a reminder; any other block stays as it is. */
export function toReminderBlock({ block, origin }: TracedBlock): TracedBlock {
  return { block: isTextBlock(block) ? { type: 'text', text: wrapInReminder(block.text) } : block, origin }
}

// Repairs what every provider refuses: blank text, and a last response without content.

interface RepairedDrafts {
  readonly drafts: readonly MessageInRepair[]
  readonly repairs: readonly MessageRepair[]
}

/** Removes blank text blocks, also inside tool results, and reports each. Drafts with nothing left are removed too. */
export function withoutBlankText(drafts: readonly MessageInRepair[]): RepairedDrafts {
  const repairs: MessageRepair[] = []
  const kept = drafts.map((draft) => {
    const parts = draft.parts.toArray()
    if (!parts.some(hasBlankText)) return draft
    return withDraftParts(
      draft,
      parts.flatMap((part) => {
        if (!hasBlankText(part)) return [part]
        repairs.push({ kind: 'blank-text', origin: part.origin })
        return withoutBlankPart(part)
      }),
    )
  })
  return { drafts: kept.filter((draft) => !isEmptyDraft(draft)), repairs }
}

function isBlankItem(item: unknown): boolean {
  return isBlock(item) && isBlankTextBlock(item)
}

/** True for a blank text block and for a tool result with one inside. */
function hasBlankText({ block }: TracedBlock): boolean {
  if (!isToolResult(block)) return isBlankTextBlock(block)
  return Array.isArray(block.content) && block.content.some(isBlankItem)
}

/** Removes blank text blocks, also those inside a tool result, because the provider refuses blank text. */
function withoutBlankPart({ block, origin }: TracedBlock): readonly TracedBlock[] {
  if (!isToolResult(block) || !Array.isArray(block.content)) return []
  return [{ block: { ...block, content: block.content.filter((item) => !isBlankItem(item)) }, origin }]
}

/**
 * Drops a last response that contains only thinking, because the provider refuses a request that ends with such a
 * response. System messages may follow it: they belong to the next response, and need the user message before it. The
 * response stays dropped in later requests, because the next response was generated without it.
 */
function withoutTrailingThinking(drafts: readonly MessageInRepair[]): RepairedDrafts {
  const end = drafts.findLastIndex(({ role }) => role !== 'system') + 1
  const start = drafts.slice(0, end).findLastIndex((draft) => !isBlankResponse(draft)) + 1
  const dropped = drafts.slice(start, end).flatMap((draft) => draft.parts.toArray().slice(0, 1))
  return {
    drafts: dropped.length === 0 ? drafts : [...drafts.slice(0, start), ...drafts.slice(end)],
    repairs: dropped.map((part) => ({ kind: 'silent-tail', origin: part.origin })),
  }
}
