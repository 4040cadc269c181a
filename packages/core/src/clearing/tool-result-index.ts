/** What the register holds: every tool call and result of the view, with what clearing must know of each. */

import type { Entry } from '../context/entry.ts'
import type { ToolResultBlock } from '../log/block.ts'
import { List, Trie } from '../log/persistent-collections.ts'
import { isUnchangedNotice, type LargeInput, resultText, type ToolCallFacts } from '../log/tool-calls.ts'
import type { ClearPolicy } from '../policy/policy.ts'
import type { Estimator } from '../tokens/estimator.ts'

export interface Register {
  readonly rules: RegisterRules
  /** What has been taken in. */
  readonly entries: List<Entry>
  readonly calls: List<ToolCall>
  /** From the id of a call to its place in `calls`, and to that of its result in `results`. */
  readonly callPlaces: Trie<number>
  readonly results: List<ToolResult>
  readonly resultPlaces: Trie<number>
  /** Index among the results of the first that is clearable and shown; null where none is. */
  readonly firstActive: number | null
  /** In the order in which they began. */
  readonly responses: List<Response>
  readonly supersession: Supersession
  /** By path: the newest complete read, which a later "unchanged" refers to. */
  readonly newestRead: Trie<string>
  /** By call: the results that refer to its text. */
  readonly pointedAtBy: Trie<readonly string[]>
  readonly memories: List<Memory>
  /** Standing deletions from the provider's cache. */
  readonly deletions: readonly Deletion[]
  /** Results that the provider has taken out though the view still shows them, and by which way. */
  readonly remote: Trie<'cached' | 'native'>
  /** Index among the calls behind the last that the provider cleared by itself, and the tokens it said that freed. */
  readonly native: { readonly cut: number; readonly tokens: number } | null
  /** Responses that think, in order, and how many of the first the provider has left the thinking out of. */
  readonly thinkers: List<string>
  readonly thoughtless: number | null
  /** Clearable results with their large inputs that are shown and that nobody has taken out. */
  readonly active: Tally
  /** Of those, what has come since the last clearing. */
  readonly fresh: Tally
  /** Responses that may still get answers: those said in a row. */
  readonly asking: readonly number[]
  /** Index of the first call of theirs. */
  readonly askedFrom: number
  /** Something of the user's has come since. */
  readonly isAnswering: boolean
  /** Place of the newest record that a model said, or -1: results in front of it have been seen. */
  readonly answeredAt: number
  /** Place of the newest words of a user that answer no call, or -1. */
  readonly promptAt: number
  /** The newest record under the role of the user. */
  readonly userUuid: string | null
}

export interface Tally {
  readonly count: number
  /** As estimated. */
  readonly tokens: number
}

export const NO_TALLY: Tally = { count: 0, tokens: 0 }

export function emptyRegister(rules: RegisterRules): Register {
  return {
    rules,
    entries: List.of(),
    calls: List.of(),
    callPlaces: Trie.empty(),
    results: List.of(),
    resultPlaces: Trie.empty(),
    firstActive: null,
    responses: List.of(),
    supersession: NOTHING_SUPERSEDED,
    newestRead: Trie.empty(),
    pointedAtBy: Trie.empty(),
    memories: List.of(),
    deletions: [],
    remote: Trie.empty(),
    native: null,
    thinkers: List.of(),
    thoughtless: null,
    active: NO_TALLY,
    fresh: NO_TALLY,
    asking: [],
    askedFrom: 0,
    isAnswering: false,
    answeredAt: -1,
    promptAt: -1,
    userUuid: null,
  }
}

export function callOf({ calls, callPlaces }: Register, id: string): ToolCall | undefined {
  const place = callPlaces.get(id)
  return place === undefined ? undefined : calls.at(place)
}

export function resultOf({ results, resultPlaces }: Register, id: string): ToolResult | undefined {
  const place = resultPlaces.get(id)
  return place === undefined ? undefined : results.at(place)
}

/** Tokens, as estimated, of a result and of the large inputs of its call. */
export function sizeOfItem({ tokens, isCleared, call }: ToolResult): number {
  return (isCleared ? 0 : tokens) + call.inputs.reduce((sum, input) => sum + input.tokens, 0)
}

// What the register holds of a call, of its result, of a response and of a memory file: plain data.

/** What clearing keeps of `describeToolCall`. */
export type CallFile = Pick<ToolCallFacts, 'kind' | 'path' | 'range'>

export interface ToolCall extends CallFile {
  readonly id: string
  readonly tool: string
  /** The record that made it, and its place in the view. */
  readonly uuid: string
  readonly place: number
  /** Which response it is part of: how many began before that one. */
  readonly response: number
  readonly isClearable: boolean
  readonly sameness: string
  /** Texts of the input that are large and still shown; of write-like tools alone. */
  readonly inputs: readonly LargeInput[]
}

export interface ToolResult {
  readonly call: ToolCall
  readonly uuid: string
  readonly place: number
  /** Tokens, as estimated, of the result as it is shown. */
  readonly tokens: number
  readonly isError: boolean
  readonly isComplete: boolean
  readonly isCleared: boolean
  /** Put aside on arrival: the blob that holds what is not shown. */
  readonly blob: string | null
  /** The call whose result this one refers to instead of giving the text: "unchanged since …". */
  readonly pointsAt: string | null
}

export interface Response {
  readonly id: string
  readonly place: number
}

/** A `nested_memory` attachment that is still shown. */
export interface Memory {
  readonly path: string
  readonly uuid: string
  readonly place: number
  readonly tokens: number
}

/** Deletions from the provider's cached prefix, sent with every request at the same place. */
export interface Deletion {
  readonly boundary: string
  readonly anchorUuid: string
  readonly ids: readonly string[]
  /** Place of the newest response when it was made: a later one has measured the context without its text. */
  readonly answeredAt: number
}

// What calls and results are registered by. Made once and handed on: another object means another register.

export interface RegisterRules {
  readonly estimator: Estimator
  readonly isClearable: (tool: string) => boolean
  /** Tools that write files whatever their input looks like. */
  readonly writeTools: readonly string[]
  /** Tokens from which an input is large; infinite where inputs are not cleared. */
  readonly largeInput: number
  /** A result that says "as you have it already" and gives no text. */
  readonly isUnchanged: (block: ToolResultBlock) => boolean
  /** A result that is there in full: nothing of it was cut or moved elsewhere. */
  readonly isWhole: (block: ToolResultBlock) => boolean
}

export interface RulesQuestion {
  readonly estimator: Estimator
  readonly policy: ClearPolicy
  /** Of the scaled policy: tokens from which an input is large. */
  readonly largeInput: number
  readonly host?: HostTools
  readonly isUnchanged?: (block: ToolResultBlock) => boolean
  readonly isWhole?: (block: ToolResultBlock) => boolean
}

export function registerRules(question: RulesQuestion): RegisterRules {
  const { estimator, policy, host, largeInput, isUnchanged = saysUnchanged, isWhole = always } = question
  return {
    estimator,
    isClearable: clearableTools(policy, host),
    writeTools: policy.writeTools,
    largeInput: policy.inputs ? largeInput : Number.POSITIVE_INFINITY,
    isUnchanged,
    isWhole,
  }
}

function saysUnchanged({ content }: ToolResultBlock): boolean {
  return isUnchangedNotice(resultText(content))
}

function always(): boolean {
  return true
}

// Results that a later one made worthless: a file read again in full or overwritten, a command repeated, a
// failure made good. Only a newer result that is whole and no failure does that.

export type SupersedeReason = 'read-again' | 'overwritten' | 'repeated' | 'made-good'

export interface Superseded {
  /** The call whose result took its place. */
  readonly by: string
  readonly why: SupersedeReason
}

export interface Supersession {
  /** By call. */
  readonly superseded: Trie<Superseded>
  /** Calls that a later one may still make worthless, under each of the keys by which it would. */
  readonly open: Trie<List<Answered>>
}

export interface Answered extends CallFile {
  readonly id: string
  /** Tool and input, so that the same call made twice is known. */
  readonly sameness: string
  readonly isError: boolean
  /** All that was asked for: not a failure, not cut, not a word that the file is as it was. */
  readonly isComplete: boolean
}

export const NOTHING_SUPERSEDED: Supersession = { superseded: Trie.empty(), open: Trie.empty() }

const NONE: List<Answered> = List.of()

export function supersede(state: Supersession, newer: Answered): Supersession {
  let next = state
  if (newer.isComplete && !newer.isError) {
    for (const key of closedBy(newer)) next = closed(next, key, newer)
  }
  let { open } = next
  for (const key of keysOf(newer)) open = open.set(key, (open.get(key) ?? NONE).push(newer))
  return { ...next, open }
}

function closed({ superseded, open }: Supersession, key: string, newer: Answered): Supersession {
  const older = open.get(key) ?? NONE
  let marked = superseded
  for (const call of older) {
    if (!marked.has(call.id)) marked = marked.set(call.id, { by: newer.id, why: reasonFor(call, newer) })
  }
  return { superseded: marked, open: older.length === 0 ? open : open.set(key, NONE) }
}

function reasonFor(older: Answered, newer: Answered): SupersedeReason {
  if (older.isError) return 'made-good'
  if (newer.kind === 'write') return 'overwritten'
  return newer.kind === 'read' ? 'read-again' : 'repeated'
}

const key = (...parts: readonly string[]): string => parts.join('\n')

/** Where a call waits for the one that makes it worthless. */
function keysOf({ kind, path, range, sameness, isError }: Answered): readonly string[] {
  if (path === null) return [key('same', sameness)]
  const act = kind === 'read' ? 'read' : 'edit'
  const failed = isError ? [key('failed', act, path)] : []
  return [key(act, path), ...(range === null ? [] : [key('range', path, range)]), ...failed]
}

/** An edit leaves earlier reads their worth: the rest of the file is still as it was. */
function closedBy({ kind, path, range, sameness }: Answered): readonly string[] {
  if (path === null) return [key('same', sameness)]
  if (kind === 'write') return [key('read', path), key('edit', path)]
  if (kind === 'edit') return [key('failed', 'edit', path)]
  return [range === null ? key('read', path) : key('range', path, range), key('failed', 'read', path)]
}

// Which tools give results that can be had again; nothing else is ever cleared.

/** What the host says of its own tools, beyond the policy's list. */
export interface HostTools {
  /** Tools whose results can be had again. */
  readonly clearable?: readonly string[]
  /** MCP tools whose annotations say that they only read. */
  readonly readOnly?: readonly string[]
}

const MCP = 'mcp__'

/** Words with the person, task and todo lists, notebooks: what these gave cannot be asked for again. */
const NEVER: ReadonlySet<string> = new Set([
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

/** A predicate that remembers its answers: it is asked for every call. */
export function clearableTools(policy: ClearPolicy, host: HostTools = {}): (tool: string) => boolean {
  const listed = new Set([...policy.tools, ...(host.clearable ?? [])])
  const readOnly = new Set(policy.mcp === 'read-only' ? (host.readOnly ?? []) : [])
  const known = new Map<string, boolean>()
  return (tool) => {
    const answer = known.get(tool) ?? (!isNever(tool) && (listed.has(tool) || isReadOnlyMcp(tool, readOnly)))
    known.set(tool, answer)
    return answer
  }
}

/** However the name is written: `TodoWrite`, `todo_write`. Listing such a tool changes nothing. */
function isNever(tool: string): boolean {
  return NEVER.has(tool.toLowerCase().replace(/[^a-z]/g, ''))
}

function isReadOnlyMcp(tool: string, readOnly: ReadonlySet<string>): boolean {
  return tool.startsWith(MCP) && readOnly.has(tool)
}
