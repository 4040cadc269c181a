/** Thinking: the settings of a request, and where thinking blocks may and must stand. */
import { isCompactionBlock, isThinking } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { Profile, ThinkingMode, ThinkingRules } from '../policy/provider-profile.ts'
import { type Fields, isAbsent, type ReadMessage, type Report } from './finding.ts'

export interface ThinkingState {
  /** The first block of the model's turn that is still under way: no user has said anything but results since. */
  readonly opening: Opening | null
  /** The message whose last block is thinking, as long as the turn may go on. */
  readonly closing: string | null
}

interface Opening {
  readonly path: string
  readonly isThinking: boolean
}

export const startThinking: ThinkingState = { opening: null, closing: null }

interface BlockRules {
  readonly thinking: ThinkingRules
  readonly report: Report
}

export function stepThinking(state: ThinkingState, message: ReadMessage, rules: BlockRules): ThinkingState {
  if (message.role === 'system' || message.blocks.length === 0) return state
  return message.role === 'assistant' ? afterModel(state, message, rules) : afterUser(state, message, rules)
}

function afterModel(
  state: ThinkingState,
  message: ReadMessage,
  { thinking, report }: BlockRules,
): ThinkingState {
  for (const { block, path } of message.blocks) {
    if (!thinking.signed || block.type !== 'thinking') continue
    if (typeof block.signature === 'string' && block.signature !== '') continue
    report('thinking-signature', `${path}.signature`, 'Expected the signature that came with the block.')
  }
  const first = message.blocks.find(({ block }) => !isCompactionBlock(block))
  const opening = first === undefined ? null : { path: first.path, isThinking: isThinking(first.block) }
  const last = message.blocks.at(-1)
  const closing = last !== undefined && isThinking(last.block) ? message.path : null
  return { opening: state.opening ?? opening, closing }
}

function afterUser(
  state: ThinkingState,
  message: ReadMessage,
  { thinking, report }: BlockRules,
): ThinkingState {
  if (state.closing !== null && thinking.closing === 'never') reportClosing(state.closing, report)
  const isAnswer = message.blocks.every(({ block }) => block.type === 'tool_result')
  return { opening: isAnswer ? state.opening : null, closing: null }
}

function reportClosing(path: string, report: Report): void {
  report('thinking-last', path, 'Expected text or a call behind the last thinking of the turn.')
}

/** A request for a summary goes on with nothing, so its last turn need not begin with thinking. */
export function finishThinking(
  state: ThinkingState,
  request: Fields,
  { thinking, report }: BlockRules,
): void {
  if (state.closing !== null && thinking.closing !== 'allowed') reportClosing(state.closing, report)
  const { opening } = state
  if (opening === null || opening.isThinking || !isAbsent(request.compaction)) return
  const mode = thinkingMode(request, thinking)
  if (thinking.firstInModes.some((first) => first === mode)) {
    report(
      'thinking-not-first',
      opening.path,
      `Expected thinking first in the last turn, while thinking is ${mode}.`,
    )
  }
}

export function thinkingMode({ thinking }: Fields, rules: ThinkingRules): unknown {
  return isObject(thinking) ? thinking.type : rules.whenAbsent
}

const OFF: ThinkingMode = 'disabled'

export function thinks(request: Fields, rules: ThinkingRules): boolean {
  return thinkingMode(request, rules) !== OFF
}

export function checkThinkingRequest(request: Fields, { thinking: rules }: Profile, report: Report): void {
  const { thinking } = request
  if (isAbsent(thinking)) return
  if (!isObject(thinking)) {
    report('thinking-shape', 'thinking', 'Expected an object with a type.')
    return
  }
  checkMode(request, thinking.type, { thinking: rules, report })
  checkBudget(request, thinking, { thinking: rules, report })
  checkBinding(thinking.block_binding, report)
}

function checkMode(request: Fields, mode: unknown, { thinking: rules, report }: BlockRules): void {
  if (!rules.modes.some((known) => known === mode)) {
    report('thinking-mode', 'thinking.type', `Expected one of: ${rules.modes.join(', ')}.`)
    return
  }
  const effort = isObject(request.output_config) ? request.output_config.effort : undefined
  if (mode !== OFF || isAbsent(effort) || rules.disabledEfforts === null) return
  if (rules.disabledEfforts.some((accepted) => accepted === effort)) return
  report(
    'thinking-mode',
    'thinking.type',
    `Expected ${OFF} only at effort ${rules.disabledEfforts.join(', ')}.`,
  )
}

function checkBudget(request: Fields, thinking: Fields, { thinking: rules, report }: BlockRules): void {
  const budget = thinking.budget_tokens
  const path = 'thinking.budget_tokens'
  if (thinking.type !== 'enabled') {
    if (!isAbsent(budget)) report('thinking-budget', path, "Expected a budget only with type 'enabled'.")
    return
  }
  if (typeof budget !== 'number' || !Number.isInteger(budget) || budget < rules.minimumBudget) {
    report('thinking-budget', path, `Expected a whole number of at least ${rules.minimumBudget}.`)
    return
  }
  const most = request.max_tokens
  const mayExceed =
    Array.isArray(request.betas) && rules.budgetOverBetas.some((beta) => includes(request.betas, beta))
  if (typeof most === 'number' && budget >= most && !mayExceed) {
    report('thinking-budget', path, `Expected less than max_tokens, which is ${most}.`)
  }
}

function includes(list: unknown, item: string): boolean {
  return Array.isArray(list) && list.includes(item)
}

function checkBinding(binding: unknown, report: Report): void {
  if (isAbsent(binding)) return
  const behaviour = isObject(binding) ? binding.prefix_mismatch_behavior : null
  if (isObject(binding) && (isAbsent(behaviour) || behaviour === 'error' || behaviour === 'drop_block'))
    return
  const path = 'thinking.block_binding'
  report('thinking-binding', path, "Expected prefix_mismatch_behavior 'error' or 'drop_block'.")
}
