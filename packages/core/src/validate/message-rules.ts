/**
 * Checks rules that involve several messages: the order of roles, system messages, tool calls and their results, and
 * the position of thinking. Each check keeps a small state from message to message. Rules about the last message are
 * checked at the end.
 */

import {
  type Block,
  EFFORT_FIELD,
  isCompactionBlock,
  isServerToolResult,
  isServerToolUse,
  isTextBlock,
  isThinkingBlock,
  isToolChangeBlock,
  isToolResult,
  isToolUse,
  TURN_SCOPE_FIELD,
} from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { PersistentMap } from '../log/persistent-collections.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type { ParsedBlock, ParsedMessage, ParsedRequestFields } from '../policy/provider-spelling.ts'
import { isNonEmptyString, isTurnScopedMessage, toArray } from './content-rules.ts'
import type { CheckInput } from './findings.ts'

// The functions below check the order of roles: first message, repeated roles, empty messages, and prefilled responses.

/** State of checking roles, from message to message. */
export interface RoleState {
  /** The last user or assistant message so far; null before the first. System messages are skipped. */
  readonly last: ParsedMessage | null
  /** True if `last` is the first message and contains only compaction blocks. The next message may then have any role. */
  readonly afterSummary: boolean
  readonly hasContent: boolean
  /** Path of the last message if it is an assistant message without content; otherwise null. */
  readonly emptyTail: string | null
}

const isSummaryBlock = ({ block }: ParsedBlock): boolean => isCompactionBlock(block)

/** Reports a role that may not come next, or an empty message. Returns the new state. */
export function checkRole(
  { last, afterSummary, hasContent, emptyTail }: RoleState,
  message: ParsedMessage,
  { profile: { roles }, report }: CheckInput,
): RoleState {
  const { role, isEmpty, path, blocks } = message
  if (emptyTail !== null) report('message-empty', emptyTail)
  if (role === 'system') return { last, afterSummary, hasContent, emptyTail: null }
  if (isEmpty && role === 'user') report('message-empty', path)
  if (last === null) {
    const isAllowedFirst = role === 'user' || blocks.slice(0, 1).some(isSummaryBlock)
    if (roles.first === 'user' && !isAllowedFirst) report('first-role', path)
  } else if (last.role === role && roles.consecutive === 'refused' && !afterSummary) {
    report('role-repeated', path, `another role than ${role}, which spoke before`)
  }
  return {
    last: message,
    afterSummary: last === null && blocks.length > 0 && blocks.every(isSummaryBlock),
    hasContent: hasContent || !isEmpty,
    emptyTail: isEmpty && role === 'assistant' ? path : null,
  }
}

/** Checks that the model may respond to the last message. Tool calls without a result are checked by another function. */
export function checkLastMessage(
  { last, hasContent }: RoleState,
  request: ParsedRequestFields,
  { pending }: ToolCallState,
  { profile, report }: CheckInput,
): void {
  if (last === null) {
    report('messages-empty', 'messages')
    return
  }
  if (request.asksSummary) {
    if (!hasContent) report('compaction-nothing', 'messages')
    return
  }
  if (last.role !== 'assistant' || pending.size > 0) return
  const block = last.blocks.at(-1)?.block
  if (block !== undefined) {
    // These are no prefills: the provider paused the turn at this block, or `checkLastThinking` reports the block.
    if (isServerToolUse(block) || isServerToolResult(block) || isCompactionBlock(block)) return
    if (isThinkingBlock(block) && profile.thinking.closing !== 'allowed') return
  }
  if (profile.roles.prefill === 'refused') report('prefill-refused', last.path)
  else if (block !== undefined && isTextBlock(block) && block.text !== block.text.trimEnd()) {
    report('trailing-whitespace', last.path)
  }
}

// The functions below check the fields and the position of mid-conversation system messages.

/** State of checking a section: consecutive system messages. A system message without content only sets the effort. */
export interface SystemMessageState {
  /** What comes before the section: a user turn, a paused assistant turn, or what a system message may not follow. */
  readonly before: 'user' | 'paused' | 'other'
  /** Path of the section's first system message with content. Null if there is none or its position was reported. */
  readonly section: string | null
  readonly hasContent: boolean
}

/** Reports invalid fields of a message, and a system message where none may be. Returns the new state. */
export function checkSystemPlacement(
  state: SystemMessageState,
  message: ParsedMessage,
  rules: CheckInput,
): SystemMessageState {
  checkMessageFields(message, rules)
  const { role, blocks } = message
  if (role === 'system') return checkSection(state, message, rules)
  if (state.section !== null && role === 'user') rules.report('system-misplaced', state.section)
  const isPaused = blocks.slice(-1).some(({ block }) => isServerToolResult(block))
  const before = role === 'user' ? 'user' : isPaused ? 'paused' : 'other'
  return { before, section: null, hasContent: false }
}

function checkSection(
  state: SystemMessageState,
  message: ParsedMessage,
  { profile, report }: CheckInput,
): SystemMessageState {
  const { path, blocks, fields } = message
  if (profile.roles.system === 'refused') {
    report('system-refused', path)
    return state
  }
  if (isTurnScopedMessage(fields) && blocks.some(({ block }) => block.type !== 'text'))
    report('turn-scoped-content', path)
  if (message.isEmpty) {
    const output = fields[EFFORT_FIELD]
    const setsEffort = isObject(output) && typeof output.effort === 'string'
    if (!setsEffort) report('message-empty', path, 'content, or an effort to set')
    return state
  }
  if (state.before === 'paused') {
    for (const { block, path: place } of blocks) {
      if (!isToolChangeBlock(block)) continue
      report('system-misplaced', place, 'no change of tools behind a paused turn: resume it first')
    }
  }
  if (state.hasContent) return state
  if (state.before === 'other') report('system-misplaced', path)
  return { ...state, section: state.before === 'other' ? null : path, hasContent: true }
}

function checkMessageFields(
  { role, path, fields }: ParsedMessage,
  { profile: { roles }, report }: CheckInput,
): void {
  const allowed = role === 'system' ? listSystemFields(roles) : MESSAGE_FIELDS
  for (const field of Object.keys(fields)) {
    if (allowed.includes(field) || fields[field] === undefined) continue
    if (field === TURN_SCOPE_FIELD && roles.turnScoped) report('clear-at-role', `${path}.${field}`)
    else report('message-field', `${path}.${field}`, `no field but ${allowed.join(', ')}`)
  }
}

const MESSAGE_FIELDS = ['role', 'content']

function listSystemFields({ turnScoped, messageEffort }: ProviderProfile['roles']): readonly string[] {
  return [
    ...MESSAGE_FIELDS,
    ...(turnScoped ? [TURN_SCOPE_FIELD] : []),
    ...(messageEffort ? [EFFORT_FIELD] : []),
  ]
}

// The functions below check tool calls. A client tool call needs exactly one result, at the start of the next user
// turn. A server tool call needs its result in the same assistant turn; user messages with only tool results do not end
// that turn.

/** State of pairing tool calls with results, from message to message. */
export interface ToolCallState {
  /** Ids of all tool calls checked so far. */
  readonly seen: PersistentMap<true>
  /** Client tool calls of the last assistant turn without a result: maps call id to the index of the call's message. */
  readonly pending: ReadonlyMap<string, number>
  /** Server tool calls that have no result yet, by call id. The provider is still running them. */
  readonly waiting: ReadonlyMap<string, WaitingCall>
  /** State of the user turn that contains the tool results; null if the last message was not part of such a turn. */
  readonly answer: AnswerState | null
  /** True if any message so far contains a client tool call or a tool result. */
  readonly usesTools: boolean
}

interface WaitingCall {
  readonly path: string
  /** Name of the tool that the request must declare while the call is running; null if an MCP server runs the call. */
  readonly tool: string | null
}

interface AnswerState {
  readonly answered: ReadonlySet<string>
  /** True if the user turn contains a block other than a tool result. */
  readonly hasOther: boolean
  readonly hasResult: boolean
}

/** A mutable copy of `ToolCallState`, updated while one message is checked. */
interface CallDraft extends ToolCallState {
  seen: PersistentMap<true>
  readonly pending: Map<string, number>
  readonly waiting: Map<string, WaitingCall>
  usesTools: boolean
}

/** Reports calls and results of a message that have no counterpart, or an invalid or repeated id. Returns the new state. */
export function checkToolCalls(
  state: ToolCallState,
  message: ParsedMessage,
  rules: CheckInput,
): ToolCallState {
  if (message.role === 'system') return state
  const draft: CallDraft = {
    ...state,
    pending: new Map(state.pending),
    waiting: new Map(state.waiting),
  }
  if (message.role === 'user') {
    const answer = checkResults(draft, message, rules)
    return { ...draft, answer }
  }
  if (state.answer !== null) {
    reportMissingResults(state, rules)
    draft.pending.clear()
  }
  for (const { block, path } of message.blocks) {
    if (isToolUse(block)) {
      draft.usesTools = true
      if (addCall(draft, block.id, path, rules)) draft.pending.set(block.id, message.index)
    } else if (isServerToolUse(block)) {
      const isNew = addCall(draft, block.id, path, rules)
      if (isNew) draft.waiting.set(block.id, { path, tool: findServerTool(block) })
    } else if (isServerToolResult(block) && !draft.waiting.delete(block.tool_use_id)) {
      const expected = `a call before it that has no result yet: ${block.tool_use_id}`
      rules.report('server-result-unexpected', path, expected)
    }
  }
  return { ...draft, answer: null }
}

/** Returns the declared tool that runs a server tool call. The tool `code_execution` runs calls with several names. */
function findServerTool({ type, name }: Block): string | null {
  if (type !== 'server_tool_use' || typeof name !== 'string') return null
  return name.endsWith('code_execution') ? 'code_execution' : name
}

function addCall(draft: CallDraft, id: string, path: string, { profile, report }: CheckInput): boolean {
  const pattern = profile.tools.idPattern
  if (!new RegExp(pattern).test(id)) report('tool-id', `${path}.id`, `an id that matches ${pattern}`)
  if (draft.seen.has(id)) {
    report('tool-id-repeated', path, `an id that no other call has: ${id}`)
    return false
  }
  draft.seen = draft.seen.set(id, true)
  return true
}

function checkResults(draft: CallDraft, { blocks }: ParsedMessage, rules: CheckInput): AnswerState {
  const { profile, report } = rules
  const answered = new Set(draft.answer?.answered)
  let { hasOther = false, hasResult = false } = draft.answer ?? {}
  for (const { block, path } of blocks) {
    if (isToolResult(block)) {
      const id = block.tool_use_id
      draft.usesTools = true
      hasResult = true
      if (draft.pending.delete(id)) {
        answered.add(id)
        if (profile.tools.resultsFirst && hasOther) report('tool-result-late', path)
      } else if (answered.has(id)) {
        report('tool-result-repeated', path, `one result for each call: ${id}`)
      } else {
        report('tool-result-unexpected', path, `a call in the message before that this answers: ${id}`)
      }
    } else if (block.type !== 'tool_result') {
      endWaiting(draft, path, hasResult, rules)
      hasOther = true
    }
  }
  return { answered, hasOther, hasResult }
}

/** Handles a user block other than a tool result. It ends the assistant turn: reports server tool calls without a result. */
function endWaiting({ waiting }: CallDraft, path: string, hasResult: boolean, { report }: CheckInput): void {
  if (waiting.size > 0 && hasResult) {
    const calls = [...waiting.keys()].join(', ')
    report('server-wait-results-only', path, `nothing but results while the provider runs ${calls}`)
  } else {
    for (const [id, call] of waiting) {
      report('server-result-missing', call.path, `a result of ${id} before the turn ends`)
    }
  }
  waiting.clear()
}

/** Reports one finding for each message that contains client tool calls without a result. */
export function reportMissingResults({ pending }: ToolCallState, { report }: CheckInput): void {
  for (const message of new Set(pending.values())) {
    const ids = [...pending].filter((call) => call[1] === message).map(([id]) => id)
    const expected = `a tool_result for each tool_use in the next message; missing: ${ids.join(', ')}`
    report('tool-result-missing', `messages.${message}`, expected)
  }
}

// The functions below check messages that add or remove tools.

/** Maps the name of a tool to the path of the first block that adds or removes that tool. */
export type ToolChangePaths = PersistentMap<string>

/** Reports tool changes that the provider refuses, and adds those of one message to `changes`. */
export function collectToolChanges(
  changes: ToolChangePaths,
  message: ParsedMessage,
  rules: CheckInput,
): ToolChangePaths {
  let after = changes
  for (const { block, path } of message.blocks) {
    if (!isToolChangeBlock(block)) continue
    if (!rules.profile.capabilities.toolChanges) rules.report('tool-change-refused', path)
    const tool: unknown = block.tool
    if (!isObject(tool) || tool.type !== 'tool_reference' || typeof tool.name !== 'string') continue
    if (!after.has(tool.name)) after = after.set(tool.name, path)
  }
  return after
}

/** Checks that the request declares tools if messages use them, and the tool or MCP server of each running call. */
export function checkUsedTools(
  { usesTools, waiting }: ToolCallState,
  changes: ToolChangePaths,
  request: ParsedRequestFields,
  { profile, report }: CheckInput,
): void {
  const names = request.toolNames
  const isServed = toArray(request.raw.mcp_servers).length > 0
  if (request.tools.length === 0) {
    const isMissing = (usesTools && profile.tools.declaredWhenUsed) || (waiting.size > 0 && !isServed)
    if (isMissing) report('tools-undeclared', 'tools')
  } else if (!isServed) {
    for (const [id, { path, tool }] of waiting) {
      if (tool === null || names.has(tool)) continue
      report('tools-undeclared', path, `the tool ${tool} to be declared while ${id} waits for it`)
    }
  }
  for (const [name, path] of changes) {
    const expected = `the name of a declared tool: ${name}`
    if (!names.has(name)) report('tool-change-unknown', `${path}.tool.name`, expected)
  }
}

// The functions below check thinking blocks: their signatures, and their position at the start or end of a turn.

export interface ThinkingState {
  /** The first block of the current assistant turn. Null after a user message with content other than tool results. */
  readonly opening: { readonly path: string; readonly isThinking: boolean } | null
  /** Path of the last message if it ends with a thinking block; otherwise null. */
  readonly closing: string | null
}

/** Reports unsigned thinking, and thinking that may not end a turn. Returns the new state. */
export function checkThinking(
  state: ThinkingState,
  { role, path, blocks }: ParsedMessage,
  { profile: { thinking }, report }: CheckInput,
): ThinkingState {
  if (role === 'system' || blocks.length === 0) return state
  if (role === 'user') {
    if (state.closing !== null && thinking.closing === 'never') report('thinking-last', state.closing)
    const isAnswer = blocks.every(({ block }) => block.type === 'tool_result')
    return { opening: isAnswer ? state.opening : null, closing: null }
  }
  for (const item of blocks) {
    const isUnsigned = item.block.type === 'thinking' && !isNonEmptyString(item.block.signature)
    if (thinking.signed && isUnsigned) report('thinking-signature', `${item.path}.signature`)
  }
  const first = blocks.find(({ block }) => !isCompactionBlock(block))
  const opening = first === undefined ? null : { path: first.path, isThinking: isThinkingBlock(first.block) }
  const endsThinking = blocks.slice(-1).some(({ block }) => isThinkingBlock(block))
  return { opening: state.opening ?? opening, closing: endsThinking ? path : null }
}

/** Checks thinking in the last turn. A request for compaction does not continue it, so it need not begin with thinking. */
export function checkLastThinking(
  { opening, closing }: ThinkingState,
  { asksSummary, thinkingMode: mode }: ParsedRequestFields,
  { profile: { thinking }, report }: CheckInput,
): void {
  if (closing !== null && thinking.closing !== 'allowed') report('thinking-last', closing)
  if (opening === null || opening.isThinking || asksSummary) return
  if (thinking.firstInModes.some((first) => first === mode)) {
    report('thinking-not-first', opening.path, `thinking first in the last turn, while thinking is ${mode}`)
  }
}
