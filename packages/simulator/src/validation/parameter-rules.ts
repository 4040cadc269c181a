/**
 * Validation rules for request parameters: thinking, output length, tools, sampling, and what API version 2026-10-21
 * removed.
 */

import { createInvalidRequestError, createRequestErrorWithCode } from '../protocol/answer.ts'
import {
  BETA_NAMES,
  formatBlockPath,
  isThinkingBlock,
  type MessageParam,
  type MessagesBody,
  type RequestBlock,
  toBlocks,
} from '../protocol/messages-request.ts'
import { EFFORTS } from '../protocol/models.ts'
import type { RequestRule, RuleContext } from './rule.ts'

const MINIMAL_THINKING_MODES = new Set(['disabled', 'between_tools'])
const USE_ADAPTIVE = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'

export const checkThinkingType: RequestRule = (request) => {
  const type = request.body.thinking?.type
  const { thinking, leastUpTo } = request.model
  if (typeof type !== 'string') return null
  if (
    MINIMAL_THINKING_MODES.has(type) &&
    leastUpTo !== undefined &&
    rankEffort(request) > EFFORTS.indexOf(leastUpTo)
  )
    return createInvalidRequestError(
      `"thinking.type.${type}" is only supported at effort "${leastUpTo}" or below for this model.`,
    )
  if (thinking.some((known) => known === type)) return null
  if (type === 'adaptive')
    return createInvalidRequestError('adaptive thinking is not supported on this model')
  return createInvalidRequestError(`"thinking.type.${type}" is not supported for this model. ${USE_ADAPTIVE}`)
}

function rankEffort({ body, model }: RuleContext): number {
  const requested = body.output_config?.effort
  return EFFORTS.findIndex((effort) => effort === (requested ?? model.defaultEffort))
}

export const checkThinkingBudget: RequestRule = ({ body, features }) => {
  const budget = body.thinking?.budget_tokens
  if (typeof budget !== 'number' || body.max_tokens === undefined || body.max_tokens === 0) return null
  if (budget < body.max_tokens || features.betas.has(BETA_NAMES.interleavedThinking)) return null
  return createInvalidRequestError(
    '`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size',
  )
}

export const checkThinkingTemperature: RequestRule = ({ body }) => {
  const { temperature, thinking } = body
  const thinks = thinking?.type === 'enabled' || thinking?.type === 'adaptive'
  if (!thinks || typeof temperature !== 'number' || temperature === 1) return null
  return createInvalidRequestError(
    '`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking',
  )
}

/**
 * Checks that the first assistant message after the last user prompt begins with thinking, if `thinking.type` is
 * `enabled`.
 */
export const checkTurnStartsWithThinking: RequestRule = ({ body }) => {
  if (body.thinking?.type !== 'enabled' || body.compaction != null) return null
  const index = findOpenTurn(body.messages)
  const blocks = index === null ? [] : toBlocks(body.messages[index]?.content)
  const first = blocks.find((block) => block.type !== 'compaction')
  if (first === undefined || isThinkingBlock(first)) return null
  return createInvalidRequestError(
    `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking`,
  )
}

/**
 * Returns the index of the first assistant message after the last user prompt; null if there is none. Tool results
 * are not prompts.
 */
function findOpenTurn(messages: readonly MessageParam[]): number | null {
  let first: number | null = null
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index]
    if (message === undefined || message.role === 'system') continue
    if (message.role === 'assistant') first = index
    else if (toBlocks(message.content).some((block) => block.type !== 'tool_result')) break
  }
  return first
}

// Rules for output length, tools and sampling.

export const checkMaxTokens: RequestRule = ({ body, model, endpoint }) => {
  const requested = body.max_tokens
  if (endpoint !== 'messages' || requested === undefined || requested <= model.maxOutput) return null
  return createInvalidRequestError(
    `max_tokens: ${requested} > ${model.maxOutput}, which is the maximum allowed number of output tokens for ${body.model}`,
  )
}

/** Rejects parameters that conflict with `max_tokens: 0`, which only writes the prompt to the cache. */
export const checkCacheWarming: RequestRule = ({ body, endpoint }) => {
  if (endpoint !== 'messages' || body.max_tokens !== 0) return null
  const clash = findCacheWarmingClash(body)
  return clash === null ? null : createInvalidRequestError(`max_tokens: 0 cannot be combined with ${clash}`)
}

function findCacheWarmingClash(body: MessagesBody): string | null {
  if (body.stream === true) return '`stream`'
  if (body.thinking?.type === 'enabled') return '`thinking.type: "enabled"`'
  if (hasOutputFormat(body)) return '`output_config.format`'
  return isToolUseForced(body.tool_choice) ? '`tool_choice` of type `any` or `tool`' : null
}

export function hasOutputFormat({ output_config, output_format }: MessagesBody): boolean {
  return output_config?.format != null || output_format != null
}

/** Checks whether `tool_choice` requires the model to call a tool. */
export function isToolUseForced(choice: MessagesBody['tool_choice']): boolean {
  return choice?.type === 'any' || choice?.type === 'tool'
}

export const checkToolChoice: RequestRule = ({ body, model }) => {
  const choice = body.tool_choice
  if (choice === undefined || choice === null) return null
  const tools = body.tools ?? []
  if (tools.length === 0)
    return createInvalidRequestError(
      'tool_choice: tool_choice may only be specified while providing `tools`.',
    )
  if (!isToolUseForced(choice)) return null
  if (!model.forcedToolChoice)
    return createInvalidRequestError(`tool_choice: type \`${choice.type}\` is not supported for this model.`)
  if (body.thinking?.type === 'enabled')
    return createInvalidRequestError('Thinking may not be enabled when tool_choice forces tool use.')
  return choice.type === 'tool' && !tools.some((tool) => tool.name === choice.name)
    ? createInvalidRequestError(`Tool '${String(choice.name)}' not found in provided tools`)
    : null
}

export const checkUniqueToolNames: RequestRule = ({ body }) => {
  const names = (body.tools ?? []).map((tool) => tool.name).filter((name) => name !== undefined)
  return new Set(names).size === names.length
    ? null
    : createInvalidRequestError('tools: Tool names must be unique.')
}

const MAX_DEFERRED_TOOLS = 10_000

export const checkDeferredToolCount: RequestRule = ({ body }) => {
  const count = (body.tools ?? []).filter((tool) => tool.defer_loading === true).length
  return count <= MAX_DEFERRED_TOOLS
    ? null
    : createRequestErrorWithCode(
        'available_tools_limit_exceeded',
        `tools: at most ${MAX_DEFERRED_TOOLS} deferred tools may be provided. Found ${count}.`,
      )
}

/** Checks that a request whose messages have tool calls or results declares `tools`, even if no new call is wanted. */
export const checkToolsDeclared: RequestRule = ({ body, pieces }) => {
  if ((body.tools ?? []).length > 0) return null
  const used = pieces.some(({ block }) => block.type === 'tool_use' || block.type === 'tool_result')
  return used
    ? createInvalidRequestError('Requests which include `tool_use` or `tool_result` blocks must define tools')
    : null
}

const SAMPLING_PARAMETERS = ['temperature', 'top_p', 'top_k']

export const checkSamplingSupport: RequestRule = ({ body, model }) => {
  const used = SAMPLING_PARAMETERS.find((name) => body[name] != null)
  return used === undefined || model.sampling
    ? null
    : createInvalidRequestError(`\`${used}\` is deprecated for this model.`)
}

export const checkStopSequences: RequestRule = ({ body }) => {
  const blank = (body.stop_sequences ?? []).findIndex((sequence) => sequence.trim() === '')
  return blank < 0
    ? null
    : createInvalidRequestError('stop_sequences: each stop sequence must contain non-whitespace')
}

/**
 * Rejects blocks that API version 2026-10-21 no longer accepts. Removed top-level fields are rejected by the shape of
 * the body.
 */
export const checkRemovedBlocks: RequestRule = ({ pieces, features }) => {
  if (features.version === '2023-06-01') return null
  for (const piece of pieces) {
    const gone = findRemovedFeature(piece)
    if (gone !== null) return createInvalidRequestError(`${formatBlockPath(piece)}${gone}`)
  }
  return null
}

function findRemovedFeature({ role, block }: RequestBlock): string | null {
  if (role === 'assistant' && block.type === 'document')
    return ': `document` blocks can only be in `user` messages'
  return role === 'user' && block.type === 'text' && block.citations != null
    ? '.text.citations: Extra inputs are not permitted'
    : null
}
