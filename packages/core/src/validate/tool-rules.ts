/**
 * Calls and their results, and the tools of a request. The caller's tools are answered in the next turn, first and once
 * each. The provider's own calls are answered in the model's turn, which goes on across turns of results alone.
 */
import { type Block, isServerToolResult, isServerToolUse, isToolResult, isToolUse } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { Trie } from '../log/persistent-collections.ts'
import { type Fields, isAbsent, listIn, type ReadBlock, type ReadMessage, type Rules } from './finding.ts'
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

/** A state on its way to the next one: its maps are copies. */
interface CallDraft {
  seen: Trie<true>
  readonly pending: Map<string, number>
  readonly waiting: Map<string, WaitingCall>
  usesTools: boolean
}

export function stepCalls(state: CallState, message: ReadMessage, rules: Rules): CallState {
  if (message.role === 'system') return state
  const { seen, usesTools } = state
  const draft = { seen, usesTools, pending: new Map(state.pending), waiting: new Map(state.waiting) }
  if (message.role === 'user') {
    const answer = takeAnswers(draft, state.answer, message, rules)
    return { ...draft, answer }
  }
  if (state.answer !== null) {
    reportUnanswered(state, rules)
    draft.pending.clear()
  }
  for (const item of message.blocks) takeModelBlock(draft, item, message.index, rules)
  return { ...draft, answer: null }
}

function takeModelBlock(draft: CallDraft, { block, path }: ReadBlock, message: number, rules: Rules): void {
  if (isToolUse(block)) {
    draft.usesTools = true
    if (isNewCall(draft, block.id, path, rules)) draft.pending.set(block.id, message)
  } else if (isServerToolUse(block)) {
    if (isNewCall(draft, block.id, path, rules)) draft.waiting.set(block.id, { path, tool: toolOf(block) })
  } else if (isServerToolResult(block) && !draft.waiting.delete(block.tool_use_id)) {
    const expected = `a call before it that has no result yet: ${block.tool_use_id}`
    rules.report('server-result-unexpected', path, expected)
  }
}

/** Code runs under several names, and one tool offers them all. */
function toolOf({ type, name }: Block): string | null {
  if (type !== 'server_tool_use' || typeof name !== 'string') return null
  return name.endsWith('code_execution') ? 'code_execution' : name
}

function isNewCall(draft: CallDraft, id: string, path: string, { profile, report }: Rules): boolean {
  const pattern = profile.tools.idPattern
  if (!new RegExp(pattern).test(id)) report('tool-id', `${path}.id`, `an id that matches ${pattern}`)
  if (draft.seen.has(id)) {
    report('tool-id-repeated', path, `an id that no other call has: ${id}`)
    return false
  }
  draft.seen = draft.seen.set(id, true)
  return true
}

function takeAnswers(
  draft: CallDraft,
  before: AnswerState | null,
  { blocks }: ReadMessage,
  { profile, report }: Rules,
): AnswerState {
  const answered = new Set(before?.answered)
  let { hasOther = false, hasResult = false } = before ?? {}
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
      endWaiting(draft, path, hasResult, report)
      hasOther = true
    }
  }
  return { answered, hasOther, hasResult }
}

/** Anything but a result ends the model's turn, and with it the wait for what the provider was running. */
function endWaiting({ waiting }: CallDraft, path: string, hasResult: boolean, report: Rules['report']): void {
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

/** One finding for each message that holds calls without a result. */
export function reportUnanswered({ pending }: CallState, { report }: Rules): void {
  for (const message of new Set(pending.values())) {
    const ids = [...pending].filter((call) => call[1] === message).map(([id]) => id)
    const expected = `a tool_result for each tool_use in the next message; missing: ${ids.join(', ')}`
    report('tool-result-missing', `messages.${message}`, expected)
  }
}

// The tools of a request: the list, the choice among them, and changes to it in mid-conversation.

function namesOf({ tools }: Fields): ReadonlySet<unknown> {
  return new Set(listIn(tools).map((tool) => (isObject(tool) ? tool.name : undefined)))
}

export function checkTools({ tools }: Fields, { profile, report }: Rules): void {
  if (!isAbsent(tools) && !Array.isArray(tools)) report('tools-shape', 'tools', 'a list of tools')
  const names = new Set<unknown>()
  let deferred = 0
  for (const [index, tool] of listIn(tools).entries()) {
    const path = `tools.${index}`
    if (!isObject(tool)) {
      report('tools-shape', path)
      continue
    }
    checkTool(tool, path, { profile, report })
    const isRepeated = typeof tool.name === 'string' && names.has(tool.name)
    if (isRepeated) report('tool-name-repeated', `${path}.name`)
    names.add(tool.name)
    if (tool.defer_loading === true) deferred += 1
  }
  const most = profile.sizes.deferredTools
  if (deferred > most) report('tool-count', 'tools', `at most ${most} deferred tools, not ${deferred}`)
}

/** A tool of the caller's has no type, or `custom`; those the provider brings along need no schema, some no name. */
function checkTool({ type, name, input_schema }: Fields, path: string, { profile, report }: Rules): void {
  const isOwn = isAbsent(type) || type === 'custom'
  const pattern = profile.tools.namePattern
  const isNamed = typeof name === 'string' && new RegExp(pattern).test(name)
  if ((isOwn || !isAbsent(name)) && !isNamed) {
    report('tool-name', `${path}.name`, `a name that matches ${pattern}`)
  }
  const hasSchema = isObject(input_schema) && input_schema.type === 'object'
  if (isOwn && !hasSchema) report('tool-schema', `${path}.input_schema`)
}

const CHOICES: readonly unknown[] = ['auto', 'any', 'tool', 'none']

export function isForced({ tool_choice: choice }: Fields): boolean {
  return isObject(choice) && (choice.type === 'any' || choice.type === 'tool')
}

export function checkToolChoice(request: Fields, { profile, report }: Rules): void {
  const choice = request.tool_choice
  if (isAbsent(choice)) return
  if (!isObject(choice) || !CHOICES.includes(choice.type)) {
    report('tool-choice', 'tool_choice', `an object of type ${CHOICES.join(', ')}`)
    return
  }
  const isNamed = typeof choice.name === 'string' && namesOf(request).has(choice.name)
  if (listIn(request.tools).length === 0) report('tool-choice', 'tool_choice')
  else if (choice.type === 'tool' && !isNamed) {
    report('tool-choice', 'tool_choice.name', 'the name of a declared tool')
  }
  const mode = thinkingMode(request, profile.thinking)
  const isFree = profile.thinking.unforcedInModes.some((unforced) => unforced === mode)
  if (isForced(request) && (profile.tools.forcedChoice === 'refused' || isFree)) {
    report('tool-choice-forced', 'tool_choice.type')
  }
}

export function isToolChange({ block }: ReadBlock): boolean {
  return block.type === 'tool_addition' || block.type === 'tool_removal'
}

/** Tools that were added or removed by reference: each name, and where it was first met. */
export type ToolChanges = Trie<string>

export const startToolChanges: ToolChanges = Trie.empty()

export function stepToolChanges(changes: ToolChanges, message: ReadMessage, rules: Rules): ToolChanges {
  let after = changes
  for (const { block, path } of message.blocks.filter(isToolChange)) {
    if (!rules.profile.capabilities.toolChanges) rules.report('tool-change-refused', path)
    const tool: unknown = block.tool
    if (!isObject(tool) || tool.type !== 'tool_reference' || typeof tool.name !== 'string') continue
    if (!after.has(tool.name)) after = after.set(tool.name, path)
  }
  return after
}

/** Tool blocks need tools; a call under way needs what runs it, which may come with a connected server. */
export function finishTools(
  { usesTools, waiting }: CallState,
  changes: ToolChanges,
  request: Fields,
  { profile, report }: Rules,
): void {
  const names = namesOf(request)
  const isServed = listIn(request.mcp_servers).length > 0
  if (listIn(request.tools).length === 0) {
    const isMissing = (usesTools && profile.tools.declaredWhenUsed) || (waiting.size > 0 && !isServed)
    if (isMissing) report('tools-undeclared', 'tools')
  } else if (!isServed) {
    for (const [id, { path, tool }] of waiting) {
      if (tool === null || names.has(tool)) continue
      report('tools-undeclared', path, `the tool ${tool} to be declared while ${id} waits for it`)
    }
  }
  for (const [name, path] of changes) {
    if (!names.has(name))
      report('tool-change-unknown', `${path}.tool.name`, `the name of a declared tool: ${name}`)
  }
}
