/** Index of every tool call and result in the context, with what clearing needs to know of each. Plain, persistent data. */

import type { ContextEntry } from '../context/entry.ts'
import type { ToolResultBlock } from '../log/block.ts'
import { AppendList, PersistentMap } from '../log/persistent-collections.ts'
import { isUnchangedNotice, type LargeInput, readResultText, type ToolCallFacts } from '../log/tool-calls.ts'
import type { ClearPolicy } from '../policy/policy.ts'
import type { Estimator } from '../tokens/estimator.ts'

export interface ToolResultIndex {
  readonly rules: IndexRules
  /** The entries of the context that are indexed. */
  readonly entries: AppendList<ContextEntry>
  readonly calls: AppendList<ToolCall>
  /** By id of a call: its index in `calls`, and that of its result in `results`. */
  readonly callPlaces: PersistentMap<number>
  readonly results: AppendList<ToolResult>
  readonly resultPlaces: PersistentMap<number>
  /** Index in `results` of the first that is clearable and shown; null if none is. */
  readonly firstClearableResult: number | null
  /** In the order in which they began. */
  readonly responses: AppendList<IndexedResponse>
  readonly supersession: Supersession
  /** By path: the id of the newest complete read, which a later "unchanged" refers to. */
  readonly newestReadByPath: PersistentMap<string>
  /** By id of a call: the calls whose results refer to its text. */
  readonly referringCalls: PersistentMap<readonly string[]>
  readonly memories: AppendList<MemoryFile>
  /** Deletions from the provider's cache in force. */
  readonly deletions: readonly CacheDeletion[]
  /** Results that the provider has removed although the context still shows them, and by which mode. */
  readonly removedByProvider: PersistentMap<'cached' | 'native'>
  /** Index in `calls` after the last that the provider cleared, and the tokens it reported as freed. */
  readonly native: { readonly cut: number; readonly tokens: number } | null
  /** Ids of responses with thinking, in order, and how many of the first the provider sends without it. */
  readonly thinkingResponses: AppendList<string>
  readonly clearedThinkingCount: number | null
  /** Clearable results, with their large inputs, that are shown and not removed by the provider. */
  readonly clearable: ResultTally
  /** Of those, the ones added since the last clearing. */
  readonly clearableSinceLast: ResultTally
  /** Indices of the responses whose results may still come: consecutive ones, until a response follows a user entry. */
  readonly openResponses: readonly number[]
  /** Index in `calls` of the first call of those responses. */
  readonly firstOpenCall: number
  /** A user entry has followed those responses. */
  readonly hasUserEntry: boolean
  /** Place of the newest assistant record, or -1: the model has seen the results before it. */
  readonly lastResponsePlace: number
  /** Place of the newest user prompt, or -1. */
  readonly lastPromptPlace: number
  /** uuid of the newest record with the role user. */
  readonly lastUserUuid: string | null
}

export interface ResultTally {
  readonly count: number
  /** Estimated. */
  readonly tokens: number
}

export const NO_RESULTS: ResultTally = { count: 0, tokens: 0 }

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
    clearable: NO_RESULTS,
    clearableSinceLast: NO_RESULTS,
    openResponses: [],
    firstOpenCall: 0,
    hasUserEntry: false,
    lastResponsePlace: -1,
    lastPromptPlace: -1,
    lastUserUuid: null,
  }
}

/** The result of the call with this id. */
export function findResult({ results, resultPlaces }: ToolResultIndex, id: string): ToolResult | undefined {
  const place = resultPlaces.get(id)
  return place === undefined ? undefined : results.at(place)
}

/** Estimated tokens of a result and of the large inputs of its call, as far as they are shown. */
export function countShownTokens({ tokens, isCleared, call }: ToolResult): number {
  return (isCleared ? 0 : tokens) + call.inputs.reduce((sum, input) => sum + input.tokens, 0)
}

/** What clearing keeps of `describeToolCall`. */
type CallTarget = Pick<ToolCallFacts, 'kind' | 'path' | 'range'>

export interface ToolCall extends CallTarget {
  readonly id: string
  readonly tool: string
  /** The record that holds the call, and its index in the context. */
  readonly uuid: string
  readonly place: number
  /** Index of its response. */
  readonly response: number
  readonly isClearable: boolean
  /** Tool and input, to recognise a repeated call; empty if not clearable. */
  readonly repeatKey: string
  /** Large texts of the input that are still shown; only for tools that write. */
  readonly inputs: readonly LargeInput[]
}

export interface ToolResult {
  readonly call: ToolCall
  /** The record that holds the result, and its index in the context. */
  readonly uuid: string
  readonly place: number
  /** Estimated, of the result as it is shown. */
  readonly tokens: number
  readonly isError: boolean
  /** Everything the call asked for is there: not cut, not spilled, and no "unchanged" notice. */
  readonly isComplete: boolean
  readonly isCleared: boolean
  /** The blob with the full text, if the result was spilled. */
  readonly blob: string | null
  /** Id of the call whose result this one refers to instead of repeating the text ("unchanged since …"). */
  readonly refersTo: string | null
}

export interface IndexedResponse {
  readonly id: string
  readonly place: number
}

/** A `nested_memory` attachment that is still shown. */
export interface MemoryFile {
  readonly path: string
  readonly uuid: string
  readonly place: number
  readonly tokens: number
}

/** Deletions from the provider's cached prefix, repeated at the same position in every request. */
export interface CacheDeletion {
  readonly boundary: string
  readonly anchorUuid: string
  readonly ids: readonly string[]
  /** Place of the newest response at that time: later responses report usage without the deleted text. */
  readonly lastResponsePlace: number
}

/** Results superseded by a later call: a file read again or overwritten, a command repeated, a failed call that succeeded. */
export interface Supersession {
  /** By id of the superseded call. */
  readonly superseded: PersistentMap<Superseded>
  /** Calls that a later one may still supersede, by each key that would do so. */
  readonly open: PersistentMap<AppendList<AnsweredCall>>
}

export type SupersedeReason = 'read-again' | 'overwritten' | 'repeated' | 'made-good'

interface Superseded {
  /** Id of the later call. */
  readonly by: string
  readonly why: SupersedeReason
}

export type AnsweredCall = Pick<ToolCall, 'id' | 'repeatKey' | keyof CallTarget> &
  Pick<ToolResult, 'isError' | 'isComplete'>

/** What calls and results are classified by. Create it once per session: the index keeps it. */
export interface IndexRules {
  readonly estimator: Estimator
  readonly isClearable: (tool: string) => boolean
  /** Tools that write files, whatever their input looks like. */
  readonly writeTools: readonly string[]
  /** Tokens from which an input is large; infinite if inputs are not cleared. */
  readonly largeInput: number
  /** A result that says "unchanged" and gives no text. */
  readonly isUnchanged: (block: ToolResultBlock) => boolean
  /** A result that is shown in full: nothing of it was cut or moved elsewhere. */
  readonly isWhole: (block: ToolResultBlock) => boolean
}

export interface IndexRulesOptions {
  readonly estimator: Estimator
  readonly policy: ClearPolicy
  /** Tokens from which an input is large, scaled to the window. */
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
    isUnchanged: question.isUnchanged ?? (({ content }) => isUnchangedNotice(readResultText(content))),
    isWhole: question.isWhole ?? (() => true),
  }
}

/** What the host knows of its own tools, beyond the policy's list. */
export interface HostTools {
  /** Tools whose results can be obtained again. */
  readonly clearable?: readonly string[]
  /** MCP tools whose annotations say that they only read. */
  readonly readOnly?: readonly string[]
}

/** Questions to the user, task and todo lists, notebooks: their results cannot be obtained again. */
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

/** Whether results of a tool can be obtained again; nothing else is ever cleared. Answers are kept, one per name. */
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

/** However the name is spelt: `TodoWrite`, `todo_write`. Listing such a tool in the policy changes nothing. */
function isNeverClearable(tool: string): boolean {
  return NEVER_CLEARABLE.has(tool.toLowerCase().replace(/[^a-z]/g, ''))
}
