/** Thinking: the settings of a request, and where thinking blocks may and must stand. */
import { isCompactionBlock, isThinking } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import type { ThinkingRules } from '../policy/provider-profile.ts'
import { type Fields, fieldAt, isAbsent, isFilled, listIn, type ReadMessage, type Rules } from './finding.ts'

export interface ThinkingState {
  /** The first block of the model's turn that is still under way: no user has said anything but results since. */
  readonly opening: { readonly path: string; readonly isThinking: boolean } | null
  /** The message whose last block is thinking, as long as the turn may go on. */
  readonly closing: string | null
}

export const startThinking: ThinkingState = { opening: null, closing: null }

export function stepThinking(
  state: ThinkingState,
  { role, path, blocks }: ReadMessage,
  { profile: { thinking }, report }: Rules,
): ThinkingState {
  if (role === 'system' || blocks.length === 0) return state
  if (role === 'user') {
    if (state.closing !== null && thinking.closing === 'never') report('thinking-last', state.closing)
    const isAnswer = blocks.every(({ block }) => block.type === 'tool_result')
    return { opening: isAnswer ? state.opening : null, closing: null }
  }
  for (const item of blocks) {
    const isUnsigned = item.block.type === 'thinking' && !isFilled(item.block.signature)
    if (thinking.signed && isUnsigned) report('thinking-signature', `${item.path}.signature`)
  }
  const first = blocks.find(({ block }) => !isCompactionBlock(block))
  const opening = first === undefined ? null : { path: first.path, isThinking: isThinking(first.block) }
  const endsThinking = blocks.slice(-1).some(({ block }) => isThinking(block))
  return { opening: state.opening ?? opening, closing: endsThinking ? path : null }
}

/** A request for a summary goes on with nothing, so its last turn need not begin with thinking. */
export function finishThinking(
  { opening, closing }: ThinkingState,
  request: Fields,
  { profile: { thinking }, report }: Rules,
): void {
  if (closing !== null && thinking.closing !== 'allowed') report('thinking-last', closing)
  if (opening === null || opening.isThinking || !isAbsent(request.compaction)) return
  const mode = thinkingMode(request, thinking)
  if (thinking.firstInModes.some((first) => first === mode)) {
    report('thinking-not-first', opening.path, `thinking first in the last turn, while thinking is ${mode}`)
  }
}

export function thinkingMode({ thinking }: Fields, rules: ThinkingRules): unknown {
  return isObject(thinking) ? thinking.type : rules.whenAbsent
}

export function checkThinkingSettings(request: Fields, rules: Rules): void {
  const { thinking } = request
  if (isAbsent(thinking)) return
  if (!isObject(thinking)) {
    rules.report('thinking-shape', 'thinking')
    return
  }
  checkMode(request, thinking.type, rules)
  checkBudget(request, thinking, rules)
  const binding = thinking.block_binding
  if (isAbsent(binding)) return
  const behaviour = isObject(binding) ? binding.prefix_mismatch_behavior : binding
  const isKnown = isAbsent(behaviour) || behaviour === 'error' || behaviour === 'drop_block'
  if (!isObject(binding) || !isKnown) rules.report('thinking-binding', 'thinking.block_binding')
}

function checkMode(request: Fields, mode: unknown, { profile: { thinking }, report }: Rules): void {
  if (!thinking.modes.some((known) => known === mode)) {
    report('thinking-mode', 'thinking.type', `one of: ${thinking.modes.join(', ')}`)
    return
  }
  const effort = fieldAt(request, 'output_config.effort')
  if (mode !== 'disabled' || isAbsent(effort) || thinking.disabledEfforts === null) return
  if (thinking.disabledEfforts.some((accepted) => accepted === effort)) return
  report('thinking-mode', 'thinking.type', `disabled only at effort ${thinking.disabledEfforts.join(', ')}`)
}

function checkBudget(
  request: Fields,
  { type, budget_tokens: budget }: Fields,
  { profile: { thinking }, report }: Rules,
): void {
  const path = 'thinking.budget_tokens'
  if (type !== 'enabled') {
    if (!isAbsent(budget)) report('thinking-budget', path)
    return
  }
  if (typeof budget !== 'number' || !Number.isInteger(budget) || budget < thinking.minimumBudget) {
    report('thinking-budget', path, `a whole number of at least ${thinking.minimumBudget}`)
    return
  }
  const most = request.max_tokens
  const mayExceed = thinking.budgetOverBetas.some((beta) => listIn(request.betas).includes(beta))
  if (typeof most === 'number' && budget >= most && !mayExceed) {
    report('thinking-budget', path, `less than max_tokens, which is ${most}`)
  }
}
