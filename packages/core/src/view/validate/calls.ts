/**
 * Calls and their results. The caller's tools are answered in the next turn, first and once each. The
 * provider's own calls are answered in the model's turn, which goes on across turns of results alone.
 */
import {
  type Block,
  isServerToolResult,
  isServerToolUse,
  isToolResult,
  isToolUse,
} from '../../conversation/block.ts'
import { Trie } from '../../conversation/trie.ts'
import type { Report } from './finding.ts'
import type { ReadBlock, ReadMessage } from './read.ts'

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

export interface WaitingCall {
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

export interface CallRules {
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
