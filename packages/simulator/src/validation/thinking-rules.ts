/** What may be asked of a model's thinking, and what must stand in a turn that thinks. */
import { blocksOf, isThinking, type MessageParam } from '../api.ts'
import type { Effort } from '../models.ts'
import { invalid } from '../refusal.ts'
import { BETA } from './betas.ts'
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
