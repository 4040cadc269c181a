/**
 * Index of all tool calls and results in the context, with the facts needed to decide what to clear. Immutable; an
 * update shares unchanged parts with the version before.
 */

import type { ContextEntry } from '../context/context-entry.ts'
import { isAskingTool } from '../facts/question-answers.ts'
import { isTodoOrPlanTool } from '../facts/todo-list.ts'
import type { LargeInputField, ToolCallFacts } from '../facts/tool-calls.ts'
import { AppendList, PersistentMap } from '../log/persistent-collections.ts'
import type { ClearPolicy } from '../policy/clear-policy.ts'
import type { Estimator } from '../tokens/estimator.ts'

/** The index. "Place" is an index in `entries`, unless a field says otherwise. */
export interface ToolResultIndex {
  readonly rules: ToolResultRules
  /** The context entries that the index covers. */
  readonly entries: AppendList<ContextEntry>
  readonly calls: AppendList<IndexedToolCall>
  /**
   * Both map a tool call id to a position. `callPlaces`: index of the call in `calls`. `resultPlaces`: index of its
   * result in `results`.
   */
  readonly callPlaces: PersistentMap<number>
  readonly results: AppendList<IndexedToolResult>
  readonly resultPlaces: PersistentMap<number>
  /** Index in `results` of the first clearable result that has not been cleared; null if there is none. */
  readonly firstClearableResult: number | null
  /** Responses in the order in which they began. */
  readonly responses: AppendList<{ readonly id: string; readonly place: number }>
  readonly supersession: SupersessionIndex
  /**
   * By file path: id of the newest tool call that shows the complete file. A later result that only says "unchanged"
   * refers to that call.
   */
  readonly newestReadByPath: PersistentMap<string>
  /** By tool call id: ids of later calls whose result only says "unchanged" since the result of that call. */
  readonly referringCalls: PersistentMap<readonly string[]>
  readonly memories: AppendList<AttachedMemoryFile>
  /** Deletions from the provider's cache that every API request still has to repeat. */
  readonly deletions: readonly CacheDeletion[]
  /**
   * Tool results that the provider removed although the messages still contain them. Maps the tool call id to the clearing mode.
   */
  readonly removedByProvider: PersistentMap<'cached' | 'native'>
  /**
   * What the provider has cleared by context edits; null if nothing. `cut`: index in `calls` of the first tool call
   * after the cleared ones. `tokens`: total tokens reported as freed.
   */
  readonly native: { readonly cut: number; readonly tokens: number } | null
  /**
   * `thinkingResponses`: responses with thinking, in order. `clearedThinkingCount`: how many of the first ones the
   * provider has cleared; null if none.
   */
  readonly thinkingResponses: AppendList<ThinkingResponse>
  readonly clearedThinkingCount: number | null
  /** Number and tokens of the clearable results that are still in the context, including large inputs of their tool calls. */
  readonly clearable: ResultTally
  /** Number and tokens of the clearable results that were added since the last clearing. */
  readonly clearableSinceLast: ResultTally
  /**
   * Indexes in `responses` of the newest responses, whose tool results may still arrive. Several responses are listed
   * if no user entry lies between them.
   */
  readonly openResponses: readonly number[]
  /** Index in `calls` of the first tool call of the newest responses (`openResponses`). */
  readonly firstOpenCall: number
  /** True if a user entry has followed the newest responses (`openResponses`). */
  readonly hasUserEntry: boolean
  /** Index of the newest assistant entry in the context, or -1. The model has seen all tool results before that entry. */
  readonly lastResponsePlace: number
  /** Index of the context entry with the newest user prompt, or -1. */
  readonly lastPromptPlace: number
  /** uuid of the newest record with role `user`; null if there is none. */
  readonly lastUserUuid: string | null
}

interface ThinkingResponse {
  readonly id: string
  /** Index of the first response of the turn; consecutive responses with no user entry between them are one turn. */
  readonly turn: number
}

interface ResultTally {
  readonly count: number
  /** Estimated tokens of the counted tool results. */
  readonly tokens: number
}

export const EMPTY_RESULT_TALLY: ResultTally = { count: 0, tokens: 0 }

/** Creates the index of an empty context. */
export function createEmptyToolResultIndex(rules: ToolResultRules): ToolResultIndex {
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
): IndexedToolResult | undefined {
  const place = resultPlaces.get(id)
  return place === undefined ? undefined : results.at(place)
}

/** Counts the estimated tokens of the results of these tool calls; calls without a result count as 0. */
export function countResultTokens(register: ToolResultIndex, ids: readonly string[]): number {
  return ids.reduce((sum, id) => sum + (findToolResult(register, id)?.tokens ?? 0), 0)
}

/** Counts the estimated tokens of a tool result and of the large inputs of its call. Cleared parts count as 0. */
export function countShownTokens({ tokens, isCleared, call }: IndexedToolResult): number {
  return (isCleared ? 0 : tokens) + call.inputs.reduce((sum, input) => sum + input.tokens, 0)
}

/** Returns number and tokens of the results of these calls that are clearable and not yet cleared, with their large inputs. */
export function tallyClearableResults(register: ToolResultIndex, ids: readonly string[]): ResultTally {
  return ids.reduce((sum, id) => {
    const result = findToolResult(register, id)
    const tokens = result?.call.isClearable === true ? countShownTokens(result) : 0
    return tokens === 0 ? sum : addResultTally(sum, { count: 1, tokens })
  }, EMPTY_RESULT_TALLY)
}

/** Returns the sum of two tallies; the difference with `sign` −1. */
export function addResultTally(tally: ResultTally, added: ResultTally, sign: 1 | -1 = 1): ResultTally {
  return { count: tally.count + sign * added.count, tokens: tally.tokens + sign * added.tokens }
}

/** The facts about a tool call that the index keeps from `describeToolCall`. */
type CallTarget = Pick<ToolCallFacts, 'kind' | 'path' | 'range'>

/** A tool call of the context, as the index keeps it. */
export interface IndexedToolCall extends CallTarget {
  readonly id: string
  readonly tool: string
  /** `uuid`: uuid of the log record that contains the tool call. `place`: index of its entry in the context. */
  readonly uuid: string
  readonly place: number
  /** Index in `responses` of the response that made the tool call. */
  readonly response: number
  readonly isClearable: boolean
  /** Tool name and input as text, to recognise a repeated tool call; empty if the tool is not clearable. */
  readonly repeatKey: string
  /** Large texts in the input of a tool that writes files, without those already cleared. */
  readonly inputs: readonly LargeInputField[]
}

/** The result of a tool call, as the index keeps it. */
export interface IndexedToolResult {
  readonly call: IndexedToolCall
  /** `uuid`: uuid of the log record that contains the tool result. `place`: index of its entry in the context. */
  readonly uuid: string
  readonly place: number
  /** Estimated tokens of the tool result as the context contains it. */
  readonly tokens: number
  readonly isError: boolean
  /**
   * True if the result contains everything that the tool call asked for. False if it was cut, moved to a blob, or only
   * says "unchanged".
   */
  readonly isComplete: boolean
  readonly isCleared: boolean
  /** If this result only says "unchanged since …": id of the earlier tool call whose result has the text. Otherwise null. */
  readonly refersTo: string | null
}

/** A memory file that is attached in the context (attachment type `nested_memory`). */
export interface AttachedMemoryFile {
  readonly path: string
  readonly uuid: string
  readonly place: number
  readonly tokens: number
}

/**
 * A request to the provider to delete tool results from its cached prefix. Every later API request repeats it at the
 * same position.
 */
interface CacheDeletion {
  readonly ids: readonly string[]
  /**
   * Context index of the newest response at the time of the deletion. The usage of later responses no longer includes
   * the deleted text.
   */
  readonly lastResponsePlace: number
}

/**
 * Tool results that a later tool call made obsolete: a file read again or overwritten, a command repeated, or a failed
 * call that later succeeded.
 */
export interface SupersessionIndex {
  /** Why the results of tool calls are obsolete, by tool call id. */
  readonly superseded: PersistentMap<SupersedeReason>
  /**
   * Tool calls whose results a later call can still make obsolete. The key says what such a call would do, for example
   * read a certain file again.
   */
  readonly open: PersistentMap<AppendList<AnsweredCall>>
}

/** `made-good`: the call had failed, and the same was later done with success. */
export type SupersedeReason = 'read-again' | 'overwritten' | 'repeated' | 'made-good'

/** What the index keeps of a call with its result, to find out which earlier results it makes obsolete. */
export type AnsweredCall = Pick<IndexedToolCall, 'id' | 'repeatKey' | keyof CallTarget> &
  Pick<IndexedToolResult, 'isError' | 'isComplete'>

/**
 * Rules for classifying tool calls and results. Create them once per session, because the index stores classifications
 * made with them.
 */
export interface ToolResultRules {
  readonly estimator: Estimator
  readonly isClearable: (tool: string) => boolean
  /** Names of tools that always count as writing files. Other tools are recognised by their input. */
  readonly writeTools: readonly string[]
  /** A tool input with at least this many tokens counts as large and can be cleared. Infinite if inputs are never cleared. */
  readonly largeInput: number
}

interface IndexRulesOptions {
  readonly estimator: Estimator
  readonly policy: ClearPolicy
  /** A tool input with at least this many tokens counts as large. The number depends on the context window. */
  readonly largeInput: number
  readonly host?: HostClearingRules
}

/** Returns the rules for one policy, host and context window. */
export function createToolResultRules(question: IndexRulesOptions): ToolResultRules {
  const { estimator, policy, host, largeInput } = question
  return {
    estimator,
    isClearable: createClearableCheck(policy, host),
    writeTools: policy.writeTools,
    largeInput: policy.inputs ? largeInput : Number.POSITIVE_INFINITY,
  }
}

/** Facts about the host's own tools, in addition to the policy's list. */
export interface HostClearingRules {
  /** Names of tools whose results can be obtained again by repeating the call. */
  readonly clearable?: readonly string[]
  /** Names of MCP tools whose annotations say that they only read; a function if the names become known later. */
  readonly readOnly?: readonly string[] | ((tool: string) => boolean)
  /** Names of tools whose results are never cleared, whatever the policy says. */
  readonly protected?: readonly string[]
  /**
   * True if results of tools in no list are cleared too, except those of MCP tools. Default of the library: true,
   * unless the policy field `clear.tools` is set.
   */
  readonly clearsUnlisted?: boolean
}

/**
 * Tools whose results cannot be obtained again by repeating the call: agents, tasks, modes, notebooks. Tools that ask the
 * user, or that hold the todo list or the plan, are recognized by the words of their names instead.
 */
const NEVER_CLEARABLE: ReadonlySet<string> = new Set([
  'agent',
  'enterplanmode',
  'notebookedit',
  'task',
  'taskget',
  'tasklist',
  'taskoutput',
  'taskstop',
])

/**
 * Returns a function that checks whether the results of a tool may be cleared. It remembers its answer for each name,
 * unless the host was asked and said no: the host may learn about the tool later.
 */
export function createClearableCheck(
  policy: ClearPolicy,
  host: HostClearingRules = {},
): (tool: string) => boolean {
  const listed = new Set([...policy.tools, ...(host.clearable ?? [])])
  const { readOnly = [] } = host
  const named = new Set(typeof readOnly === 'function' ? [] : readOnly)
  const saysReadOnly = typeof readOnly === 'function' ? readOnly : (tool: string) => named.has(tool)
  const kept = new Set(host.protected)
  const known = new Map<string, boolean>()
  return (tool) => {
    const remembered = known.get(tool)
    if (remembered !== undefined) return remembered
    const isMcp = tool.startsWith('mcp__')
    const isAllowed = isMcp ? policy.mcp === 'read-only' && saysReadOnly(tool) : host.clearsUnlisted === true
    const answer = !isNeverClearable(tool) && !kept.has(tool) && (listed.has(tool) || isAllowed)
    if (answer || !isMcp) known.set(tool, answer)
    return answer
  }
}

/**
 * True for a tool whose results are never cleared, even if policy lists it. Any spelling of the name matches
 * (`TodoWrite`, `todo_write`).
 */
function isNeverClearable(tool: string): boolean {
  if (NEVER_CLEARABLE.has(tool.toLowerCase().replace(/[^a-z]/g, ''))) return true
  return isTodoOrPlanTool(tool) || isAskingTool(tool)
}
