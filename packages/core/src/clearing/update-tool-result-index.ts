/**
 * Updates the index of tool calls and results one context entry at a time, so that the time depends only on the entries
 * added. If earlier entries changed, the index is built again from the start.
 */

import { type ContextEntry, endsPreviousTurn, isVisibleToModel } from '../context/context-entry.ts'
import type { ContextView } from '../context/context-view.ts'
import {
  describeToolCall,
  findLargeInputFields,
  isFileUnchangedNotice,
  readToolResultText,
} from '../facts/tool-calls.ts'
import {
  isThinkingBlock,
  isToolResult,
  isToolUse,
  type ToolResultBlock,
  type ToolUseBlock,
  toBlocks,
} from '../log/block.ts'
import { AppendList } from '../log/persistent-collections.ts'
import {
  type AssistantRecord,
  type AttachmentRecord,
  isCacheDeletionsEnd,
  isClearedByProvider,
  isMicrocompactBoundary,
  type MicrocompactMetadata,
  type SystemRecord,
  type UserRecord,
} from '../log/record.ts'
import { toTokenCount } from '../tokens/usage.ts'
import { cancelCacheDeletions, withCacheDeletions } from './cached-clearing.ts'
import {
  type AnsweredCall,
  addResultTally,
  countShownTokens,
  createEmptyToolResultIndex,
  EMPTY_RESULT_TALLY,
  type IndexedToolCall,
  type IndexedToolResult,
  type SupersedeReason,
  type SupersessionIndex,
  type ToolResultIndex,
  tallyClearableResults,
} from './tool-result-index.ts'

/** Returns the index of a context, given the index of an earlier state of that context. */
export function updateToolResultIndex(
  register: ToolResultIndex,
  { entries }: Pick<ContextView, 'entries'>,
): ToolResultIndex {
  let next = entries.extends(register.entries) ? register : createEmptyToolResultIndex(register.rules)
  for (let place = next.entries.length; place < entries.length; place += 1) {
    const entry = entries.at(place)
    if (entry === undefined) continue
    next = withEntry(next, entry, place)
    if (endsPreviousTurn(entry)) next = { ...next, lastPromptPlace: place }
  }
  return { ...next, entries }
}

function withEntry(register: ToolResultIndex, entry: ContextEntry, place: number): ToolResultIndex {
  const { record } = entry
  if (record.type === 'system') return withNotice(register, record)
  if (!isVisibleToModel(entry)) return register
  if (record.type === 'assistant') return withCalls(register, { entry, record, place })
  if (record.type === 'user') return withResults(register, { entry, record, place })
  return record.type === 'attachment' ? withAttachment(register, record, place) : register
}

/** A context entry with its index in the context, and its log record narrowed to one type. */
interface Placed<R> {
  readonly entry: ContextEntry
  readonly record: R
  readonly place: number
}

// The following functions index responses and their tool calls.

function withCalls(register: ToolResultIndex, placed: Placed<AssistantRecord>): ToolResultIndex {
  const { entry, record, place } = placed
  const { id, content } = record.message
  let next = withResponse(register, id, place)
  const thinks = entry.cleared?.thinking !== true && toBlocks(content).some(isThinkingBlock)
  if (thinks && next.thinkingResponses.last?.id !== id) {
    const turn = next.openResponses[0] ?? 0
    next = { ...next, thinkingResponses: next.thinkingResponses.push({ id, turn }) }
  }
  for (const block of toBlocks(content)) {
    // If two tool calls have the same id, only the first is indexed, because API requests leave out the second.
    if (!isToolUse(block) || next.callPlaces.get(block.id) !== undefined) continue
    const call = toCall(next, block, placed)
    next = {
      ...next,
      calls: next.calls.push(call),
      callPlaces: next.callPlaces.setIfAbsent(call.id, next.calls.length),
    }
  }
  return { ...next, lastResponsePlace: place }
}

/**
 * Adds a response unless it is one of the newest responses already. A response can have several log records with the
 * same id, some of them logged after its first tool results.
 */
function withResponse(register: ToolResultIndex, id: string, place: number): ToolResultIndex {
  const { responses, openResponses, hasUserEntry } = register
  if (openResponses.some((index) => responses.at(index)?.id === id)) return register
  const index = responses.length
  return {
    ...register,
    responses: responses.push({ id, place }),
    openResponses: hasUserEntry ? [index] : [...openResponses, index],
    firstOpenCall: hasUserEntry ? register.calls.length : register.firstOpenCall,
    hasUserEntry: false,
  }
}

function toCall(
  { rules, openResponses }: ToolResultIndex,
  block: ToolUseBlock,
  { entry, record, place }: Placed<AssistantRecord>,
): IndexedToolCall {
  const tool = typeof block.name === 'string' ? block.name : 'unknown'
  const isClearable = rules.isClearable(tool)
  const { kind, path, range } = describeToolCall(tool, block.input, rules)
  const isWrite = kind === 'write' || kind === 'edit' || rules.writeTools.includes(tool)
  const inputs =
    isClearable && isWrite ? findLargeInputFields(block, rules.largeInput, rules.estimator.text) : []
  const isGone = (field: string): boolean =>
    entry.cleared?.inputs.some((input) => input.toolUseId === block.id && input.field === field) === true
  return {
    id: block.id,
    tool,
    uuid: record.uuid,
    place,
    response: openResponses.at(-1) ?? 0,
    isClearable,
    kind,
    path,
    range,
    repeatKey: isClearable ? `${tool}\n${JSON.stringify(block.input)}` : '',
    inputs: inputs.filter(({ field }) => !isGone(field)),
  }
}

// The following functions index user entries: tool results, text and attached memory files.

function withResults(register: ToolResultIndex, placed: Placed<UserRecord>): ToolResultIndex {
  const { uuid, message } = placed.record
  let next = register
  for (const block of toBlocks(message.content))
    if (isToolResult(block)) next = withResult(next, block, placed)
  return { ...next, hasUserEntry: true, lastUserUuid: message.role === 'user' ? uuid : next.lastUserUuid }
}

/** Adds a tool result. Results that are late, repeated or without a tool call are ignored. */
function withResult(
  register: ToolResultIndex,
  block: ToolResultBlock,
  placed: Placed<UserRecord>,
): ToolResultIndex {
  const index = register.callPlaces.get(block.tool_use_id)
  const call = index === undefined ? undefined : register.calls.at(index)
  const isLate = call === undefined || !register.openResponses.includes(call.response)
  if (isLate || register.resultPlaces.get(call.id) !== undefined) return register
  const result = toResult(register, block, call, placed)
  const next = {
    ...register,
    results: register.results.push(result),
    resultPlaces: register.resultPlaces.setIfAbsent(call.id, register.results.length),
  }
  return call.isClearable ? withReferences(withSize(next, result), result) : next
}

function toResult(
  { rules, newestReadByPath }: ToolResultIndex,
  block: ToolResultBlock,
  call: IndexedToolCall,
  { entry, record, place }: Placed<UserRecord>,
): IndexedToolResult {
  const isUnchanged = call.isClearable && isFileUnchangedNotice(readToolResultText(block.content))
  return {
    call,
    uuid: record.uuid,
    place,
    tokens: rules.estimator.block(block),
    isError: block.is_error === true,
    isComplete: !isUnchanged && !isSpilled(record, call.id),
    isCleared: entry.cleared?.results.some(({ id }) => id === call.id) === true,
    refersTo: isUnchanged && call.path !== null ? (newestReadByPath.get(call.path) ?? null) : null,
  }
}

/** True if a blob holds the tool result, which was too large. Logs of other programs may hold any value here. */
function isSpilled({ spilled }: UserRecord, id: string): boolean {
  const found = Array.isArray(spilled) ? spilled.find((each) => each?.toolUseId === id) : undefined
  return typeof found?.blob === 'string'
}

function withSize(register: ToolResultIndex, result: IndexedToolResult): ToolResultIndex {
  const tokens = countShownTokens(result)
  if (tokens === 0) return register
  const one = { count: 1, tokens }
  return {
    ...register,
    clearable: addResultTally(register.clearable, one),
    clearableSinceLast: addResultTally(register.clearableSinceLast, one),
    firstClearableResult: register.firstClearableResult ?? register.results.length - 1,
  }
}

/**
 * Records how a new tool result affects earlier ones: it may make them obsolete, be the newest read of a file, or refer to them.
 */
function withReferences(
  register: ToolResultIndex,
  { call, isError, isComplete, refersTo }: IndexedToolResult,
): ToolResultIndex {
  const { id, path } = call
  const isRead = isComplete && !isError && call.range === null && call.kind !== 'edit'
  const { newestReadByPath, referringCalls } = register
  return {
    ...register,
    supersession: supersede(register.supersession, { ...call, isError, isComplete }),
    newestReadByPath: isRead && path !== null ? newestReadByPath.set(path, id) : newestReadByPath,
    referringCalls:
      refersTo === null
        ? referringCalls
        : referringCalls.set(refersTo, [...(referringCalls.get(refersTo) ?? []), id]),
  }
}

function withAttachment(
  register: ToolResultIndex,
  { attachment, uuid }: AttachmentRecord,
  place: number,
): ToolResultIndex {
  const next = { ...register, hasUserEntry: true }
  const { type, path } = attachment
  if (type !== 'nested_memory' || typeof path !== 'string') return next
  const tokens = register.rules.estimator.block({ ...attachment, type })
  return { ...next, memories: next.memories.push({ path, uuid, place, tokens }) }
}

// A tool result is superseded if a file was read again or overwritten, a command repeated, or a failed call later
// succeeded. The newer result must be complete and not an error.

const NO_CALLS: AppendList<AnsweredCall> = AppendList.of()

function supersede(state: SupersessionIndex, newer: AnsweredCall): SupersessionIndex {
  let { superseded, open } = state
  if (newer.isComplete && !newer.isError) {
    for (const key of listClosedKeys(newer)) {
      const older = open.get(key)
      if (older === undefined || older.length === 0) continue
      for (const call of older) {
        if (superseded.has(call.id)) continue
        superseded = superseded.set(call.id, findReason(call, newer))
      }
      open = open.set(key, NO_CALLS)
    }
  }
  for (const key of listKeys(newer)) open = open.set(key, (open.get(key) ?? NO_CALLS).push(newer))
  return { superseded, open }
}

function findReason(older: AnsweredCall, newer: AnsweredCall): SupersedeReason {
  if (older.isError) return 'made-good'
  if (newer.kind === 'write') return 'overwritten'
  return newer.kind === 'read' ? 'read-again' : 'repeated'
}

const joinKey = (...parts: readonly string[]): string => parts.join('\n')

/** Returns keys for a tool call. A later call with one of these keys in `listClosedKeys` supersedes it. */
function listKeys({ kind, path, range, repeatKey, isError }: AnsweredCall): readonly string[] {
  if (path === null) return [joinKey('same', repeatKey)]
  const act = kind === 'read' ? 'read' : 'edit'
  const failed = isError ? [joinKey('failed', act, path)] : []
  return [joinKey(act, path), ...(range === null ? [] : [joinKey('range', path, range)]), ...failed]
}

/**
 * Returns the keys (`listKeys`) of the earlier tool calls that this call supersedes. An edit supersedes no earlier
 * read, because the rest of the file is still as it was read.
 */
function listClosedKeys({ kind, path, range, repeatKey }: AnsweredCall): readonly string[] {
  if (path === null) return [joinKey('same', repeatKey)]
  if (kind === 'write') return [joinKey('read', path), joinKey('edit', path)]
  if (kind === 'edit') return [joinKey('failed', 'edit', path)]
  return [
    range === null ? joinKey('read', path) : joinKey('range', path, range),
    joinKey('failed', 'read', path),
  ]
}

// The following functions index clearings that the log records and deletions requested from the provider.

function withNotice(register: ToolResultIndex, record: SystemRecord): ToolResultIndex {
  if (isCacheDeletionsEnd(record)) return cancelCacheDeletions(register)
  if (!isMicrocompactBoundary(record)) return register
  const { microcompactMetadata } = record
  const cleared = { ...register, clearableSinceLast: EMPTY_RESULT_TALLY }
  return isClearedByProvider(microcompactMetadata) ? withRemoved(cleared, microcompactMetadata) : cleared
}

function withRemoved(register: ToolResultIndex, metadata: MicrocompactMetadata): ToolResultIndex {
  const way = metadata.way === 'native' ? 'native' : 'cached'
  const ids = toIds(metadata.compactedToolIds).filter(
    (id) => register.removedByProvider.get(id) === undefined,
  )
  let { removedByProvider } = register
  for (const id of ids) removedByProvider = removedByProvider.set(id, way)
  const next = {
    ...register,
    removedByProvider,
    clearable: addResultTally(register.clearable, tallyClearableResults(register, ids), -1),
  }
  return way === 'native' ? withProviderCut(next, ids, metadata) : withCacheDeletions(next, ids, metadata)
}

/**
 * Records which tool calls the provider has cleared. The provider clears the same calls again for every API request, so
 * the first uncleared call never moves back.
 */
function withProviderCut(
  register: ToolResultIndex,
  ids: readonly string[],
  metadata: MicrocompactMetadata,
): ToolResultIndex {
  const last = Math.max(-1, ...ids.map((id) => register.callPlaces.get(id) ?? -1))
  const cleared = new Set(toIds(metadata.clearedThinking))
  const lost = [...register.thinkingResponses].findLastIndex(({ id }) => cleared.has(id))
  const { native } = register
  return {
    ...register,
    native: {
      cut: Math.max(last + 1, native?.cut ?? 0),
      tokens: (native?.tokens ?? 0) + toTokenCount(metadata.tokensSaved),
    },
    clearedThinkingCount: lost === -1 ? register.clearedThinkingCount : lost + 1,
  }
}

/** Returns the strings in a list of ids. Returns an empty list for any other value, which logs of other programs may hold. */
function toIds(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((id): id is string => typeof id === 'string') : []
}
