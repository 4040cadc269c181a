/**
 * Index of all tool calls and results in the context, with the facts that clearing needs. Immutable data that shares
 * its parts between versions.
 */

import type { ContextEntry } from '../context/context-entry.ts'
import type { ToolResultBlock } from '../log/block.ts'
import { AppendList, PersistentMap } from '../log/persistent-collections.ts'
import {
  isFileUnchangedNotice,
  type LargeInput,
  readToolResultText,
  type ToolCallFacts,
} from '../log/tool-calls.ts'
import type { ClearPolicy } from '../policy/policy.ts'
import type { Estimator } from '../tokens/estimator.ts'

export interface ToolResultIndex {
  readonly rules: IndexRules
  /** The context entries that the index covers. */
  readonly entries: AppendList<ContextEntry>
  readonly calls: AppendList<ToolCall>
  /** By tool call id: `callPlaces` is the index in `calls`, `resultPlaces` that of the result in `results`. */
  readonly callPlaces: PersistentMap<number>
  readonly results: AppendList<ToolResult>
  readonly resultPlaces: PersistentMap<number>
  /** Index in `results` of the first result that is clearable and shown; null if there is none. */
  readonly firstClearableResult: number | null
  /** Responses in the order in which they began. */
  readonly responses: AppendList<{ readonly id: string; readonly place: number }>
  readonly supersession: Supersession
  /** By file path: id of the newest tool call that read the complete file; a later "unchanged" result refers to it. */
  readonly newestReadByPath: PersistentMap<string>
  /** By tool call id: ids of the calls whose results refer to its result. */
  readonly referringCalls: PersistentMap<readonly string[]>
  readonly memories: AppendList<MemoryFile>
  /** Deletions from the provider's cache that are in force. */
  readonly deletions: readonly CacheDeletion[]
  /**
   * By tool call id: results that the provider removed although the context still shows them, and the clearing mode.
   */
  readonly removedByProvider: PersistentMap<'cached' | 'native'>
  /**
   * Clearing by the provider: `cut` is the index in `calls` after the last cleared call, `tokens` what was reported as
   * freed.
   */
  readonly native: { readonly cut: number; readonly tokens: number } | null
  /**
   * `thinkingResponses`: ids of responses with thinking, in order. `clearedThinkingCount`: how many of the first ones
   * the provider has cleared; null if none.
   */
  readonly thinkingResponses: AppendList<string>
  readonly clearedThinkingCount: number | null
  /** Count of clearable results, with their large inputs, that are shown and not removed by the provider. */
  readonly clearable: ResultTally
  /** Count of clearable results that were added since the last clearing. */
  readonly clearableSinceLast: ResultTally
  /**
   * Indexes of the responses whose tool results may still arrive: consecutive responses with no user entry between
   * them.
   */
  readonly openResponses: readonly number[]
  /** Index in `calls` of the first tool call of the open responses. */
  readonly firstOpenCall: number
  /** True if a user entry has followed the open responses. */
  readonly hasUserEntry: boolean
  /** Index of the newest assistant entry, or -1. The model has seen all tool results before it. */
  readonly lastResponsePlace: number
  /** Index of the entry with the newest user prompt, or -1. */
  readonly lastPromptPlace: number
  /** uuid of the newest record with role `user`; null if there is none. */
  readonly lastUserUuid: string | null
}

export interface ResultTally {
  readonly count: number
  /** Estimated tokens of these results. */
  readonly tokens: number
}

export const EMPTY_RESULT_TALLY: ResultTally = { count: 0, tokens: 0 }

export function createToolResultIndex(rules: IndexRules): ToolResultIndex {
  return {
    rules,
    entries: AppendList.of(),
    calls: AppendList.of(),
    callPlaces: PersistentMap.empty(),
    results: AppendList.of(),
    resultPlaces: PersistentMap.empty(),
    firstClearableResult: null,
    responses: AppendList.of(),
    supersession: { superseded: PersistentMap.empty(), open: PersistentMap.empty() },
    newestReadByPath: PersistentMap.empty(),
    referringCalls: PersistentMap.empty(),
    memories: AppendList.of(),
    deletions: [],
    removedByProvider: PersistentMap.empty(),
    native: null,
    thinkingResponses: AppendList.of(),
    clearedThinkingCount: null,
    clearable: EMPTY_RESULT_TALLY,
    clearableSinceLast: EMPTY_RESULT_TALLY,
    openResponses: [],
    firstOpenCall: 0,
    hasUserEntry: false,
    lastResponsePlace: -1,
    lastPromptPlace: -1,
    lastUserUuid: null,
  }
}

/** Returns the result of the tool call with this id; undefined if there is none. */
export function findToolResult(
  { results, resultPlaces }: ToolResultIndex,
  id: string,
): ToolResult | undefined {
  const place = resultPlaces.get(id)
  return place === undefined ? undefined : results.at(place)
}

/** Counts the estimated tokens of a tool result and of the large inputs of its call, as far as they are shown. */
export function countShownTokens({ tokens, isCleared, call }: ToolResult): number {
  return (isCleared ? 0 : tokens) + call.inputs.reduce((sum, input) => sum + input.tokens, 0)
}

/** The facts about a tool call that the index keeps from `describeToolCall`. */
type CallTarget = Pick<ToolCallFacts, 'kind' | 'path' | 'range'>

export interface ToolCall extends CallTarget {
  readonly id: string
  readonly tool: string
  /** `uuid` of the record that holds the tool call; `place` is its index in the context. */
  readonly uuid: string
  readonly place: number
  /** Index in `responses` of the response that made the tool call. */
  readonly response: number
  readonly isClearable: boolean
  /** Tool name and input as text, to recognise a repeated tool call; empty if the tool is not clearable. */
  readonly repeatKey: string
  /** Large texts in the input of a tool that writes files, as far as they are still shown. */
  readonly inputs: readonly LargeInput[]
}

export interface ToolResult {
  readonly call: ToolCall
  /** `uuid` of the record that holds the tool result; `place` is its index in the context. */
  readonly uuid: string
  readonly place: number
  /** Estimated tokens of the tool result as it is shown. */
  readonly tokens: number
  readonly isError: boolean
  /** The result holds everything the tool call asked for: it is not cut, not spilled, and no "unchanged" notice. */
  readonly isComplete: boolean
  readonly isCleared: boolean
  /** Id of the blob with the full text if the result was spilled; else null. */
  readonly blob: string | null
  /**
   * Id of the tool call whose result this one refers to ("unchanged since …") instead of repeating the text; else null.
   */
  readonly refersTo: string | null
}

/** A memory file (`nested_memory` attachment) that the context still shows. */
export interface MemoryFile {
  readonly path: string
  readonly uuid: string
  readonly place: number
  readonly tokens: number
}

/**
 * Tool results that the provider was asked to delete from its cached prefix. The deletion is repeated at the same
 * position in every API request.
 */
export interface CacheDeletion {
  readonly boundary: string
  readonly anchorUuid: string
  readonly ids: readonly string[]
  /**
   * Index of the newest response when the deletion was made; usage of later responses no longer includes the deleted
   * text.
   */
  readonly lastResponsePlace: number
}

/**
 * Tool results that a later tool call made obsolete: a file read again or overwritten, a command repeated, or a failed
 * call that later succeeded.
 */
export interface Supersession {
  /** Superseded tool calls, by their id. */
  readonly superseded: PersistentMap<Superseded>
  /** Tool calls that a later call may still supersede, by each key that such a call would have. */
  readonly open: PersistentMap<AppendList<AnsweredCall>>
}

export type SupersedeReason = 'read-again' | 'overwritten' | 'repeated' | 'made-good'

interface Superseded {
  /** Id of the tool call that supersedes. */
  readonly by: string
  readonly why: SupersedeReason
}

export type AnsweredCall = Pick<ToolCall, 'id' | 'repeatKey' | keyof CallTarget> &
  Pick<ToolResult, 'isError' | 'isComplete'>

/** Rules by which tool calls and results are classified. Create them once per session, because the index keeps them. */
export interface IndexRules {
  readonly estimator: Estimator
  readonly isClearable: (tool: string) => boolean
  /** Names of tools that count as writing files, whatever their input looks like. */
  readonly writeTools: readonly string[]
  /** Number of tokens from which a tool input counts as large; infinite if inputs are not cleared. */
  readonly largeInput: number
  /** Checks whether a tool result only says "unchanged" and contains no text of the file. */
  readonly isUnchanged: (block: ToolResultBlock) => boolean
  /** Checks whether a tool result is shown in full: no part was cut or stored elsewhere. */
  readonly isWhole: (block: ToolResultBlock) => boolean
}

export interface IndexRulesOptions {
  readonly estimator: Estimator
  readonly policy: ClearPolicy
  /** Number of tokens from which a tool input counts as large, scaled to the context window. */
  readonly largeInput: number
  readonly host?: HostTools
  readonly isUnchanged?: (block: ToolResultBlock) => boolean
  readonly isWhole?: (block: ToolResultBlock) => boolean
}

export function createIndexRules(question: IndexRulesOptions): IndexRules {
  const { estimator, policy, host, largeInput } = question
  return {
    estimator,
    isClearable: createClearableCheck(policy, host),
    writeTools: policy.writeTools,
    largeInput: policy.inputs ? largeInput : Number.POSITIVE_INFINITY,
    isUnchanged:
      question.isUnchanged ?? (({ content }) => isFileUnchangedNotice(readToolResultText(content))),
    isWhole: question.isWhole ?? (() => true),
  }
}

/** Facts about the host's own tools, in addition to the policy's list. */
export interface HostTools {
  /** Names of tools whose results can be obtained again by repeating the call. */
  readonly clearable?: readonly string[]
  /** Names of MCP tools whose annotations say that they only read. */
  readonly readOnly?: readonly string[]
}

/** Tools whose results cannot be obtained again: questions to the user, task and todo lists, notebooks. */
const NEVER_CLEARABLE: ReadonlySet<string> = new Set([
  'agent',
  'askuserquestion',
  'enterplanmode',
  'exitplanmode',
  'notebookedit',
  'question',
  'requestuserinput',
  'task',
  'taskcreate',
  'taskget',
  'tasklist',
  'taskoutput',
  'taskstop',
  'taskupdate',
  'todo',
  'todoread',
  'todowrite',
  'updateplan',
])

/**
 * Returns a function that checks whether the results of a tool can be obtained again; no others are ever cleared. It
 * remembers its answer for each tool name.
 */
export function createClearableCheck(policy: ClearPolicy, host: HostTools = {}): (tool: string) => boolean {
  const listed = new Set([...policy.tools, ...(host.clearable ?? [])])
  const readOnly = new Set(policy.mcp === 'read-only' ? (host.readOnly ?? []) : [])
  const known = new Map<string, boolean>()
  return (tool) => {
    const isReadOnlyMcp = tool.startsWith('mcp__') && readOnly.has(tool)
    const answer = known.get(tool) ?? (!isNeverClearable(tool) && (listed.has(tool) || isReadOnlyMcp))
    known.set(tool, answer)
    return answer
  }
}

/** Checks for a tool that is never cleared, in any spelling (`TodoWrite`, `todo_write`) and even if policy lists it. */
function isNeverClearable(tool: string): boolean {
  return NEVER_CLEARABLE.has(tool.toLowerCase().replace(/[^a-z]/g, ''))
}
