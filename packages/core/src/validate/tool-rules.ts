/**
 * Calls and their results. The caller's tools are answered in the next turn, first and once each. The
 * provider's own calls are answered in the model's turn, which goes on across turns of results alone.
 */
import { type Block, isServerToolResult, isServerToolUse, isToolResult, isToolUse } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { Trie } from '../log/persistent-map.ts'
import type { Profile } from '../policy/provider-profile.ts'
import { type Fields, isAbsent, type ReadBlock, type ReadMessage, type Report } from './finding.ts'
import { thinkingMode } from './thinking-rules.ts'

export interface CallState {
  /** Ids of every call so far. */
  readonly seen: Trie<true>
  /** Calls of the model's turn that have no result yet, and the message each is in. */
  readonly pending: ReadonlyMap<string, number>
  /** The provider's calls under way. */
  readonly waiting: ReadonlyMap<string, WaitingCall>
  /** The user's turn that answers, while it lasts. */
  readonly answer: AnswerState | null
  /** Some message holds a call of the caller's tools, or a result. */
  readonly usesTools: boolean
}

interface WaitingCall {
  readonly path: string
  /** The tool that has to be there for it to go on; null where a connected server runs it. */
  readonly tool: string | null
}

interface AnswerState {
  readonly answered: ReadonlySet<string>
  /** Something else than a result was said. */
  readonly hasOther: boolean
  readonly hasResult: boolean
}

export const startCalls: CallState = {
  seen: Trie.empty(),
  pending: new Map(),
  waiting: new Map(),
  answer: null,
  usesTools: false,
}

interface CallRules {
  readonly idPattern: RegExp
  readonly resultsFirst: boolean
  readonly report: Report
}

export function stepCalls(state: CallState, message: ReadMessage, rules: CallRules): CallState {
  if (message.role === 'assistant') return afterModel(state, message, rules)
  return message.role === 'user' ? afterUser(state, message, rules) : state
}

type Draft<T> = { -readonly [K in keyof T]: T[K] } & {
  pending: Map<string, number>
  waiting: Map<string, WaitingCall>
}

function draftOf(state: CallState): Draft<CallState> {
  return { ...state, pending: new Map(state.pending), waiting: new Map(state.waiting) }
}

function afterModel(state: CallState, message: ReadMessage, rules: CallRules): CallState {
  const draft = draftOf(state)
  if (state.answer !== null) {
    finishCalls(state, rules.report)
    draft.pending.clear()
    draft.answer = null
  }
  for (const item of message.blocks) takeModelBlock(draft, item, { message, rules })
  return draft
}

interface Place {
  readonly message: ReadMessage
  readonly rules: CallRules
}

function takeModelBlock(
  draft: Draft<CallState>,
  { block, path }: ReadBlock,
  { message, rules }: Place,
): void {
  if (isToolUse(block)) {
    draft.usesTools = true
    if (isNewCall(draft, block.id, path, rules)) draft.pending.set(block.id, message.index)
  } else if (isServerToolUse(block)) {
    if (isNewCall(draft, block.id, path, rules)) draft.waiting.set(block.id, { path, tool: toolOf(block) })
  } else if (isServerToolResult(block) && !draft.waiting.delete(block.tool_use_id)) {
    const expected = 'Expected a call before it that has no result yet:'
    rules.report('server-result-unexpected', path, `${expected} ${block.tool_use_id}.`)
  }
}

/** Code runs under several names, and one tool offers them all. */
function toolOf({ type, name }: Block): string | null {
  if (type !== 'server_tool_use' || typeof name !== 'string') return null
  return name.endsWith('code_execution') ? 'code_execution' : name
}

function isNewCall(
  draft: Draft<CallState>,
  id: string,
  path: string,
  { idPattern, report }: CallRules,
): boolean {
  if (!idPattern.test(id)) report('tool-id', `${path}.id`, `Expected an id that matches ${idPattern.source}.`)
  if (draft.seen.has(id)) {
    report('tool-id-repeated', path, `Expected an id that no other call has: ${id}.`)
    return false
  }
  draft.seen = draft.seen.set(id, true)
  return true
}

function afterUser(state: CallState, message: ReadMessage, rules: CallRules): CallState {
  const draft = draftOf(state)
  const before = state.answer ?? { answered: new Set<string>(), hasOther: false, hasResult: false }
  const answer = { ...before, answered: new Set(before.answered) }
  for (const item of message.blocks) {
    if (isToolResult(item.block)) takeResult({ draft, answer }, item, rules)
    else if (item.block.type !== 'tool_result') takeOther({ draft, answer }, item, rules)
  }
  return { ...draft, answer }
}

interface Turn {
  readonly draft: Draft<CallState>
  readonly answer: { hasOther: boolean; hasResult: boolean; readonly answered: Set<string> }
}

function takeResult(
  { draft, answer }: Turn,
  { block, path }: ReadBlock,
  { resultsFirst, report }: CallRules,
): void {
  const id = String(block.tool_use_id)
  draft.usesTools = true
  answer.hasResult = true
  if (draft.pending.delete(id)) {
    answer.answered.add(id)
    if (resultsFirst && answer.hasOther) {
      report('tool-result-late', path, 'Expected the results before anything else in the message.')
    }
  } else if (answer.answered.has(id)) {
    report('tool-result-repeated', path, `Expected one result for each call: ${id}.`)
  } else {
    report('tool-result-unexpected', path, `Expected a call in the message before that this answers: ${id}.`)
  }
}

/** Anything but a result ends the model's turn, and with it the wait for what the provider was running. */
function takeOther({ draft, answer }: Turn, { path }: ReadBlock, { report }: CallRules): void {
  if (draft.waiting.size > 0 && answer.hasResult) {
    const calls = [...draft.waiting.keys()].join(', ')
    report('server-wait-results-only', path, `Expected nothing but results while the provider runs ${calls}.`)
  } else {
    for (const [id, call] of draft.waiting) {
      report('server-result-missing', call.path, `Expected a result of ${id} before the turn ends.`)
    }
  }
  draft.waiting.clear()
  answer.hasOther = true
}

/** One finding for each message that holds calls without a result. */
export function finishCalls({ pending }: CallState, report: Report): void {
  const byMessage = new Map<number, string[]>()
  for (const [id, message] of pending) byMessage.set(message, [...(byMessage.get(message) ?? []), id])
  for (const [message, ids] of byMessage) {
    const expected = 'Expected a tool_result for each tool_use in the next message; missing:'
    report('tool-result-missing', `messages.${message}`, `${expected} ${ids.join(', ')}.`)
  }
}

// The tools of a request: the list, the choice among them, and changes to it in mid-conversation.

interface ToolRules {
  readonly profile: Profile
  readonly report: Report
}

function toolsOf({ tools }: Fields): readonly unknown[] {
  return Array.isArray(tools) ? Array.from(tools) : []
}

function namesOf(request: Fields): ReadonlySet<unknown> {
  return new Set(toolsOf(request).map((tool) => (isObject(tool) ? tool.name : undefined)))
}

export function checkTools(request: Fields, { profile, report }: ToolRules): void {
  if (!isAbsent(request.tools) && !Array.isArray(request.tools)) {
    report('tools-shape', 'tools', 'Expected a list of tools.')
  }
  const pattern = new RegExp(profile.tools.namePattern)
  const names = new Set<unknown>()
  toolsOf(request).forEach((tool, index) => {
    const path = `tools.${index}`
    if (!isObject(tool)) {
      report('tools-shape', path, 'Expected an object.')
      return
    }
    checkTool(tool, path, { pattern, report })
    const isRepeated = typeof tool.name === 'string' && names.has(tool.name)
    if (isRepeated) report('tool-name-repeated', `${path}.name`, 'Expected a name that no other tool has.')
    names.add(tool.name)
  })
  checkDeferred(request, { profile, report })
}

function checkDeferred(request: Fields, { profile, report }: ToolRules): void {
  const most = profile.sizes.deferredTools
  const count = toolsOf(request).filter((tool) => isObject(tool) && tool.defer_loading === true).length
  if (count > most) report('tool-count', 'tools', `Expected at most ${most} deferred tools, not ${count}.`)
}

/** A tool of the caller's has no type, or `custom`; those the provider brings along need no schema, some no name. */
function checkTool(
  tool: Fields,
  path: string,
  { pattern, report }: { pattern: RegExp; report: Report },
): void {
  const isOwn = isAbsent(tool.type) || tool.type === 'custom'
  const isNamed = !isAbsent(tool.name)
  if ((isOwn || isNamed) && !(typeof tool.name === 'string' && pattern.test(tool.name))) {
    report('tool-name', `${path}.name`, `Expected a name that matches ${pattern.source}.`)
  }
  if (isOwn && !(isObject(tool.input_schema) && tool.input_schema.type === 'object')) {
    report('tool-schema', `${path}.input_schema`, "Expected a schema of type 'object'.")
  }
}

const CHOICES: ReadonlySet<unknown> = new Set(['auto', 'any', 'tool', 'none'])

export function isForced({ tool_choice: choice }: Fields): boolean {
  return isObject(choice) && (choice.type === 'any' || choice.type === 'tool')
}

export function checkToolChoice(request: Fields, { profile, report }: ToolRules): void {
  const choice = request.tool_choice
  if (isAbsent(choice)) return
  if (!isObject(choice) || !CHOICES.has(choice.type)) {
    report('tool-choice', 'tool_choice', `Expected an object of type ${[...CHOICES].join(', ')}.`)
    return
  }
  if (toolsOf(request).length === 0) {
    report('tool-choice', 'tool_choice', 'Expected a choice only where tools are declared.')
  } else if (
    choice.type === 'tool' &&
    !(typeof choice.name === 'string' && namesOf(request).has(choice.name))
  ) {
    report('tool-choice', 'tool_choice.name', 'Expected the name of a declared tool.')
  }
  const mode = thinkingMode(request, profile.thinking)
  const isFree = profile.thinking.unforcedInModes.some((unforced) => unforced === mode)
  if (isForced(request) && (profile.tools.forcedChoice === 'refused' || isFree)) {
    report('tool-choice-forced', 'tool_choice.type', "Expected 'auto' or 'none'.")
  }
}

/** Tools that were added or removed by reference: each name, and where it was first met. */
export type ToolChanges = Trie<string>

export const startToolChanges: ToolChanges = Trie.empty()

export function stepToolChanges(changes: ToolChanges, message: ReadMessage, rules: ToolRules): ToolChanges {
  let after = changes
  for (const { block, path } of message.blocks) {
    if (block.type !== 'tool_addition' && block.type !== 'tool_removal') continue
    if (!rules.profile.capabilities.toolChanges) {
      rules.report('tool-change-refused', path, 'Expected no change of tools among the messages.')
    }
    const tool: unknown = block.tool
    if (!isObject(tool) || tool.type !== 'tool_reference' || typeof tool.name !== 'string') continue
    if (!after.has(tool.name)) after = after.set(tool.name, path)
  }
  return after
}

function checkWaiting({ waiting }: CallState, request: Fields, report: Report): void {
  const names = namesOf(request)
  for (const [id, { path, tool }] of waiting) {
    if (tool === null || names.has(tool)) continue
    report('tools-undeclared', path, `Expected the tool ${tool} to be declared while ${id} waits for it.`)
  }
}

export function finishToolChanges(changes: ToolChanges, request: Fields, report: Report): void {
  const names = namesOf(request)
  for (const [name, path] of changes) {
    if (names.has(name)) continue
    report('tool-change-unknown', `${path}.tool.name`, `Expected the name of a declared tool: ${name}.`)
  }
}

/** Tool blocks need tools; a call under way needs what runs it, which may come with a connected server. */
export function checkDeclared(calls: CallState, request: Fields, { profile, report }: ToolRules): void {
  const servers = request.mcp_servers
  const isServed = Array.isArray(servers) && servers.length > 0
  if (toolsOf(request).length > 0) {
    if (!isServed) checkWaiting(calls, request, report)
    return
  }
  const isMissing =
    (calls.usesTools && profile.tools.declaredWhenUsed) || (calls.waiting.size > 0 && !isServed)
  if (isMissing)
    report('tools-undeclared', 'tools', 'Expected the tools that the messages use to be declared.')
}
