/** What may be asked of a model's thinking, and what must stand in a turn that thinks. */

import { coded, invalid } from '../protocol/answer.ts'
import {
  BETA,
  type Block,
  blocksOf,
  isThinking,
  type JsonObject,
  type MessageParam,
  type Role,
} from '../protocol/api.ts'
import type { Effort } from '../protocol/models.ts'
import type { CheckedRequest, Rule } from './rule.ts'

const EFFORTS: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']
const LEAST = new Set(['disabled', 'between_tools'])
const USE_ADAPTIVE = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'

export const thinkingType: Rule = (request) => {
  const type = request.body.thinking?.type
  const { thinking, leastUpTo } = request.model
  if (typeof type !== 'string') return null
  if (LEAST.has(type) && leastUpTo !== undefined && effortRank(request) > EFFORTS.indexOf(leastUpTo))
    return invalid(
      `"thinking.type.${type}" is only supported at effort "${leastUpTo}" or below for this model.`,
    )
  if (thinking.some((known) => known === type)) return null
  if (type === 'adaptive') return invalid('adaptive thinking is not supported on this model')
  return invalid(`"thinking.type.${type}" is not supported for this model. ${USE_ADAPTIVE}`)
}

function effortRank({ body, model }: CheckedRequest): number {
  const asked = body.output_config?.effort
  return EFFORTS.findIndex((effort) => effort === (asked ?? model.defaultEffort))
}

export const thinkingBudget: Rule = ({ body, gate }) => {
  const budget = body.thinking?.budget_tokens
  if (typeof budget !== 'number' || body.max_tokens === undefined || body.max_tokens === 0) return null
  if (budget < body.max_tokens || gate.betas.has(BETA.interleavedThinking)) return null
  return invalid(
    '`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size',
  )
}

export const thinkingTemperature: Rule = ({ body }) => {
  const temperature = body.temperature
  if (!thinks(body.thinking?.type) || typeof temperature !== 'number' || temperature === 1) return null
  return invalid(
    '`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking',
  )
}

function thinks(type: unknown): boolean {
  return type === 'enabled' || type === 'adaptive'
}

/** With a budget of its own (the older way), a turn that is still calling tools must begin with its thinking. */
export const thinkingFirst: Rule = ({ body }) => {
  if (body.thinking?.type !== 'enabled' || body.compaction != null) return null
  const index = openTurn(body.messages)
  const blocks = index === null ? [] : blocksOf(body.messages[index]?.content)
  const first = blocks.find((block) => block.type !== 'compaction')
  if (first === undefined || isThinking(first)) return null
  return invalid(
    `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking`,
  )
}

/** Index of the first response since the person last spoke: since then there have been results and nothing else. */
function openTurn(messages: readonly MessageParam[]): number | null {
  let first: number | null = null
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index]
    if (message === undefined || message.role === 'system') continue
    if (message.role === 'assistant') first = index
    else if (blocksOf(message.content).some((block) => block.type !== 'tool_result')) break
  }
  return first
}

// What is asked of the answer: its length, the tools it may or must use, warming the cache without one.

export const outputLength: Rule = ({ body, model, endpoint }) => {
  const asked = body.max_tokens
  if (endpoint !== 'messages' || asked === undefined || asked <= model.maxOutput) return null
  return invalid(
    `max_tokens: ${asked} > ${model.maxOutput}, which is the maximum allowed number of output tokens for ${body.model}`,
  )
}

/** `max_tokens: 0` writes the prompt to the cache and answers nothing. */
export const preWarm: Rule = ({ body, endpoint }) => {
  if (endpoint !== 'messages' || body.max_tokens !== 0) return null
  const clash = preWarmClash(body)
  return clash === null ? null : invalid(`max_tokens: 0 cannot be combined with ${clash}`)
}

function preWarmClash(body: Parameters<Rule>[0]['body']): string | null {
  if (body.stream === true) return '`stream`'
  if (body.thinking?.type === 'enabled') return '`thinking.type: "enabled"`'
  if (body.output_config?.format != null || body.output_format != null) return '`output_config.format`'
  return forces(body.tool_choice) ? '`tool_choice` of type `any` or `tool`' : null
}

function forces(choice: JsonObject | null | undefined): boolean {
  return choice?.type === 'any' || choice?.type === 'tool'
}

export const toolChoice: Rule = ({ body, model }) => {
  const choice = body.tool_choice
  if (choice === undefined || choice === null) return null
  const tools = body.tools ?? []
  if (tools.length === 0)
    return invalid('tool_choice: tool_choice may only be specified while providing `tools`.')
  if (!forces(choice)) return null
  if (!model.forcedToolChoice)
    return invalid(`tool_choice: type \`${choice.type}\` is not supported for this model.`)
  if (body.thinking?.type === 'enabled')
    return invalid('Thinking may not be enabled when tool_choice forces tool use.')
  return choice.type === 'tool' && !tools.some((tool) => tool.name === choice.name)
    ? invalid(`Tool '${String(choice.name)}' not found in provided tools`)
    : null
}

export const toolNames: Rule = ({ body }) => {
  const seen = new Set<unknown>()
  for (const tool of body.tools ?? []) {
    const name = tool.name
    if (name === undefined) continue
    if (seen.has(name)) return invalid('tools: Tool names must be unique.')
    seen.add(name)
  }
  return null
}

const MOST_DEFERRED = 10_000

export const deferredTools: Rule = ({ body }) => {
  const count = (body.tools ?? []).filter((tool) => tool.defer_loading === true).length
  return count <= MOST_DEFERRED
    ? null
    : coded(
        'available_tools_limit_exceeded',
        `tools: at most ${MOST_DEFERRED} deferred tools may be provided. Found ${count}.`,
      )
}

/** Old calls need the tools they were made with. */
export const toolsDeclared: Rule = ({ body, turns }) => {
  if ((body.tools ?? []).length > 0) return null
  const used = turns.some(({ blocks }) =>
    blocks.some(({ block }) => block.type === 'tool_use' || block.type === 'tool_result'),
  )
  return used ? invalid('Requests which include `tool_use` or `tool_result` blocks must define tools') : null
}

const SAMPLING = ['temperature', 'top_p', 'top_k']

export const sampling: Rule = ({ body, model }) => {
  const asked = SAMPLING.find((name) => body[name] != null)
  return asked === undefined || model.sampling ? null : invalid(`\`${asked}\` is deprecated for this model.`)
}

export const stopSequences: Rule = ({ body }) => {
  const blank = (body.stop_sequences ?? []).findIndex((sequence) => sequence.trim() === '')
  return blank < 0 ? null : invalid('stop_sequences: each stop sequence must contain non-whitespace')
}

// What the newer version of the API no longer takes. Fields that are gone altogether are in the shape.

export const newerVersion: Rule = ({ body, gate }) => {
  if (gate.version === '2023-06-01') return null
  for (const [message, { role, content }] of body.messages.entries()) {
    for (const [index, block] of blocksOf(content).entries()) {
      const gone = whatIsGone(role, block)
      if (gone !== null) return invalid(`messages.${message}.content.${index}${gone}`)
    }
  }
  return null
}

function whatIsGone(role: Role, block: Block): string | null {
  if (role === 'assistant' && block.type === 'document')
    return ': `document` blocks can only be in `user` messages'
  return role === 'user' && block.type === 'text' && block.citations != null
    ? '.text.citations: Extra inputs are not permitted'
    : null
}
