/** Responses and the calls they make, taken into the register. */

import type { View } from '../context/context-view.ts'
import type { Entry } from '../context/entry.ts'
import { entryEndsTurn, isShown } from '../context/entry.ts'
import {
  type Block,
  blocksOf,
  isThinking,
  isToolResult,
  isToolUse,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../log/block.ts'
import { Trie } from '../log/persistent-collections.ts'
import {
  type AssistantRecord,
  type AttachmentRecord,
  CACHE_EDITS_DROPPED,
  isClearedRemotely,
  isMicrocompactBoundary,
  type MicrocompactMetadata,
  type SystemRecord,
  type UserRecord,
} from '../log/record.ts'
import { describeToolCall, type LargeInput, largeInputs } from '../log/tool-calls.ts'
import { countOf } from '../tokens/usage.ts'
import {
  callOf,
  type Deletion,
  emptyRegister,
  NO_TALLY,
  type Register,
  resultOf,
  sizeOfItem,
  supersede,
  type Tally,
  type ToolCall,
  type ToolResult,
} from './tool-result-index.ts'

export interface Said {
  readonly entry: Entry
  readonly record: AssistantRecord
  readonly place: number
}

export function registerCalls(register: Register, said: Said): Register {
  let next = withThinking(begun(register, said), said)
  const response = next.asking.at(-1) ?? 0
  for (const block of blocksOf(said.record.message.content)) {
    // The first of two calls with one id counts: flattening leaves the second out.
    if (!isToolUse(block) || next.callPlaces.get(block.id) !== undefined) continue
    const call = callFrom(block, said, { register, response })
    next = {
      ...next,
      calls: next.calls.push(call),
      callPlaces: next.callPlaces.add(call.id, next.calls.length),
    }
  }
  return { ...next, answeredAt: said.place }
}

/** Records of one response share its id; one that comes while it is being answered still belongs to it. */
function begun(register: Register, { record, place }: Said): Register {
  const { id } = record.message
  const { responses, asking, isAnswering } = register
  if (asking.some((index) => responses.at(index)?.id === id)) return register
  const index = responses.length
  return {
    ...register,
    responses: responses.push({ id, place }),
    asking: isAnswering ? [index] : [...asking, index],
    askedFrom: isAnswering ? register.calls.length : register.askedFrom,
    isAnswering: false,
  }
}

function withThinking(register: Register, { record, entry }: Said): Register {
  const { id, content } = record.message
  const thinks = entry.cleared?.thinking !== true && blocksOf(content).some(isThinking)
  if (!thinks || register.thinkers.last === id) return register
  return { ...register, thinkers: register.thinkers.push(id) }
}

interface Within {
  readonly register: Register
  readonly response: number
}

function callFrom(block: ToolUseBlock, { entry, record, place }: Said, within: Within): ToolCall {
  const { rules } = within.register
  const tool = typeof block.name === 'string' ? block.name : 'unknown'
  const isClearable = rules.isClearable(tool)
  const { kind, path, range } = describeToolCall(tool, block.input, rules)
  const isWrite = kind === 'write' || kind === 'edit' || rules.writeTools.includes(tool)
  return {
    id: block.id,
    tool,
    uuid: record.uuid,
    place,
    response: within.response,
    isClearable,
    kind,
    path,
    range,
    sameness: isClearable ? `${tool}\n${JSON.stringify(block.input)}` : '',
    inputs: isClearable && isWrite ? inputsOf(block, entry, within.register) : [],
  }
}

function inputsOf(block: ToolUseBlock, { cleared }: Entry, { rules }: Register): readonly LargeInput[] {
  const gone = (field: string): boolean =>
    cleared?.inputs.some((input) => input.toolUseId === block.id && input.field === field) === true
  return largeInputs(block, rules.largeInput, rules.estimator.text).filter(({ field }) => !gone(field))
}

// What the user's side brings to the register: results, words, and files of memory attached.

interface Brought<R> {
  readonly entry: Entry
  readonly record: R
  readonly place: number
}

export function registerResults(register: Register, brought: Brought<UserRecord>): Register {
  const { record } = brought
  const results = blocksOf(record.message.content).filter(isToolResult)
  let next = register
  for (const block of results) next = registerResult(next, block, brought)
  return {
    ...next,
    isAnswering: true,
    userUuid: record.message.role === 'user' ? record.uuid : next.userUuid,
  }
}

/** One that comes too late or twice is not shown, and one whose call nobody knows is nobody's to clear. */
function registerResult(register: Register, block: ToolResultBlock, brought: Brought<UserRecord>): Register {
  const call = callOf(register, block.tool_use_id)
  const isLate = call === undefined || !register.asking.includes(call.response)
  if (isLate || register.resultPlaces.get(call.id) !== undefined) return register
  const result = resultFrom(register, { block, call }, brought)
  const next = {
    ...register,
    results: register.results.push(result),
    resultPlaces: register.resultPlaces.add(call.id, register.results.length),
  }
  return call.isClearable ? withMeaning(counted(next, result), result) : next
}

interface Answer {
  readonly block: ToolResultBlock
  readonly call: ToolCall
}

function resultFrom(
  register: Register,
  { block, call }: Answer,
  { entry, record, place }: Brought<UserRecord>,
): ToolResult {
  const { rules, newestRead } = register
  const isUnchanged = call.isClearable && rules.isUnchanged(block)
  const blob = blobOf(record, call.id)
  return {
    call,
    uuid: record.uuid,
    place,
    tokens: rules.estimator.block(block),
    isError: block.is_error === true,
    isComplete: !isUnchanged && blob === null && rules.isWhole(block),
    isCleared: entry.cleared?.results.some(({ id }) => id === call.id) === true,
    blob,
    pointsAt: isUnchanged && call.path !== null ? (newestRead.get(call.path) ?? null) : null,
  }
}

/** A log of another program may hold anything there. */
function blobOf({ spilled }: UserRecord, id: string): string | null {
  const found = Array.isArray(spilled) ? spilled.find((each) => each?.toolUseId === id) : undefined
  return typeof found?.blob === 'string' ? found.blob : null
}

function counted(register: Register, result: ToolResult): Register {
  const tokens = sizeOfItem(result)
  if (tokens === 0) return register
  return {
    ...register,
    active: more(register.active, tokens),
    fresh: more(register.fresh, tokens),
    firstActive: register.firstActive ?? register.results.length - 1,
  }
}

function more({ count, tokens }: Tally, added: number): Tally {
  return { count: count + 1, tokens: tokens + added }
}

/** What the result says about earlier ones. */
function withMeaning(register: Register, result: ToolResult): Register {
  const { call, isError, isComplete, pointsAt } = result
  const supersession = supersede(register.supersession, { ...call, isError, isComplete })
  const isRead = call.path !== null && isComplete && !isError && call.range === null && call.kind !== 'edit'
  const newestRead = isRead && call.path !== null ? register.newestRead.set(call.path, call.id) : null
  return {
    ...register,
    supersession,
    newestRead: newestRead ?? register.newestRead,
    pointedAtBy: pointsAt === null ? register.pointedAtBy : pointed(register, pointsAt, call.id),
  }
}

function pointed({ pointedAtBy }: Register, base: string, id: string): Register['pointedAtBy'] {
  return pointedAtBy.set(base, [...(pointedAtBy.get(base) ?? []), id])
}

export function registerAttachment(
  register: Register,
  { record, place }: Brought<AttachmentRecord>,
): Register {
  const next = { ...register, isAnswering: true }
  const { type, path } = record.attachment
  if (type !== 'nested_memory' || typeof path !== 'string') return next
  const block: Block = { ...record.attachment, type }
  const tokens = register.rules.estimator.block(block)
  return { ...next, memories: next.memories.push({ path, uuid: record.uuid, place, tokens }) }
}

// What earlier clearings left in the view: where the last one stands, and what the provider was told to take out.

export function registerAct(register: Register, record: SystemRecord): Register {
  if (record.subtype === CACHE_EDITS_DROPPED) return withoutDeletions(register)
  if (!isMicrocompactBoundary(record)) return register
  const { microcompactMetadata: metadata } = record
  const cleared = { ...register, fresh: NO_TALLY }
  return isClearedRemotely(metadata) ? takenOut(cleared, record.uuid, metadata) : cleared
}

function takenOut(register: Register, boundary: string, metadata: MicrocompactMetadata): Register {
  const way = metadata.way === 'native' ? 'native' : 'cached'
  const ids = idsIn(metadata.compactedToolIds).filter((id) => register.remote.get(id) === undefined)
  let { remote } = register
  for (const id of ids) remote = remote.set(id, way)
  const anchorUuid = typeof metadata.anchorUuid === 'string' ? metadata.anchorUuid : null
  const { answeredAt } = register
  const deletions =
    way === 'cached' && anchorUuid !== null && ids.length > 0
      ? [...register.deletions, { boundary, anchorUuid, ids, answeredAt }]
      : register.deletions
  const next = { ...register, remote, deletions, active: less(register.active, sumOf(register, ids)) }
  return way === 'native' ? withNative(next, ids, metadata) : next
}

/** The provider works its edits out anew with every request: what was left out so far must stay left out. */
function withNative(register: Register, ids: readonly string[], metadata: MicrocompactMetadata): Register {
  const last = Math.max(-1, ...ids.map((id) => register.callPlaces.get(id) ?? -1))
  const thoughtless = new Set(idsIn(metadata.clearedThinking))
  const lost = [...register.thinkers].findLastIndex((id) => thoughtless.has(id))
  const { native } = register
  return {
    ...register,
    native: {
      cut: Math.max(last + 1, native?.cut ?? 0),
      tokens: (native?.tokens ?? 0) + countOf(metadata.tokensSaved),
    },
    thoughtless: lost === -1 ? register.thoughtless : lost + 1,
  }
}

/** Their text is in the request again. */
function withoutDeletions(register: Register): Register {
  const ids = register.deletions.flatMap((deletion: Deletion) => deletion.ids)
  const back = sumOf(register, ids)
  let remote = Trie.empty<'cached' | 'native'>()
  for (const [id, way] of register.remote) if (way === 'native') remote = remote.set(id, way)
  const { active, fresh } = register
  return { ...register, remote, deletions: [], active: plus(active, back), fresh: plus(fresh, back) }
}

function sumOf(register: Register, ids: readonly string[]): Tally {
  return ids.reduce((sum, id) => {
    const result = resultOf(register, id)
    const tokens = result?.call.isClearable === true ? sizeOfItem(result) : 0
    return tokens === 0 ? sum : { count: sum.count + 1, tokens: sum.tokens + tokens }
  }, NO_TALLY)
}

function plus(tally: Tally, added: Tally): Tally {
  return { count: tally.count + added.count, tokens: tally.tokens + added.tokens }
}

function less(tally: Tally, taken: Tally): Tally {
  return { count: tally.count - taken.count, tokens: tally.tokens - taken.tokens }
}

/** Other programs may write anything there. */
function idsIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((id): id is string => typeof id === 'string') : []
}

// The register of tool calls and results, kept up entry by entry: a turn costs what it added. It begins anew
// where the view was rewritten.

/** The register of `view`, given that of an earlier state of it. */
export function advanceRegister(register: Register, { entries }: Pick<View, 'entries'>): Register {
  let next = entries.extends(register.entries) ? register : emptyRegister(register.rules)
  for (let place = next.entries.length; place < entries.length; place += 1) {
    const entry = entries.at(place)
    if (entry !== undefined) next = registered(next, entry, place)
  }
  return { ...next, entries }
}

function registered(register: Register, entry: Entry, place: number): Register {
  const next = taken(register, entry, place)
  return entryEndsTurn(entry) ? { ...next, promptAt: place } : next
}

function taken(register: Register, entry: Entry, place: number): Register {
  const { record } = entry
  if (record.type === 'system') return registerAct(register, record)
  if (!isShown(entry)) return register
  if (record.type === 'assistant') return registerCalls(register, { entry, record, place })
  if (record.type === 'user') return registerResults(register, { entry, record, place })
  return record.type === 'attachment' ? registerAttachment(register, { entry, record, place }) : register
}
