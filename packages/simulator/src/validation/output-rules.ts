/** What is asked of the answer: its length, the tools it may or must use, warming the cache without one. */
import type { JsonObject } from '../api.ts'
import { coded, invalid } from '../refusal.ts'
import type { Rule } from './rule.ts'

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
