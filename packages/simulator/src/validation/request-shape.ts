/** The shape of the two request bodies, and of what hangs off their top level. */
import { isObject } from '../api.ts'
import { BETA, hasFamily } from './betas.ts'
import { BLOCK_TAGS, cacheControl, textBlock } from './block-shapes.ts'
import {
  anything,
  type Field,
  inside,
  list,
  misfit,
  nullable,
  object,
  optional,
  required,
  type Shape,
  tagged,
  textOr,
  underBeta,
} from './shape.ts'
import { toolDefinition } from './tool-shapes.ts'
import { dictionary, flag, integer, literal, numberWithin, text } from './values.ts'

const effort = nullable(literal('low', 'medium', 'high', 'xhigh', 'max'))
const typed = required(text())

const messageFields = object({
  role: required(literal('user', 'assistant', 'system')),
  content: optional(textOr(list(tagged(BLOCK_TAGS)))),
  clear_at: underBeta([BETA.clearAt], nullable(literal('next_user_message', 'never'))),
  output_config: underBeta([BETA.messageOutputConfig], nullable(object({ effort: optional(effort) }))),
})

/** Content may be left out only where a system message carries nothing but a setting. */
const message: Shape = (value, gate) => {
  const found = messageFields(value, gate)
  if (found !== null || !isObject(value)) return found
  if (value.content === undefined && value.role !== 'system')
    return inside('content', misfit('Field required'))
  return null
}

const display = (value: unknown, updates: boolean): boolean =>
  value === 'summarized' || value === 'omitted' || (updates && value === 'updates')

const thinkingDisplay: Shape = (value, gate) =>
  value === null || display(value, gate.betas.has(BETA.thinkingUpdates))
    ? null
    : misfit("Input should be 'summarized' or 'omitted'")

const blockBinding = underBeta(
  [BETA.thinkingBinding],
  nullable(object({ prefix_mismatch_behavior: optional(nullable(literal('error', 'drop_block'))) })),
)

const thinking = tagged({
  enabled: {
    shape: object({
      type: typed,
      budget_tokens: required(integer(1024)),
      display: optional(thinkingDisplay),
      block_binding: blockBinding,
    }),
  },
  adaptive: {
    shape: object({ type: typed, display: optional(thinkingDisplay), block_binding: blockBinding }),
  },
  disabled: { shape: object({ type: typed }) },
  between_tools: { shape: object({ type: typed }) },
})

const parallel = { type: typed, disable_parallel_tool_use: optional(flag) }
const toolChoice = tagged({
  auto: { shape: object(parallel) },
  any: { shape: object(parallel) },
  tool: { shape: object({ ...parallel, name: required(text()) }) },
  none: { shape: object({ type: typed }) },
})

const format = nullable(object({ type: required(literal('json_schema')), schema: required(dictionary) }))
const taskBudget = nullable(
  object({
    type: required(literal('tokens')),
    total: required(integer(1)),
    remaining: optional(nullable(integer(0))),
  }),
)
const outputConfig = object({
  effort: optional(effort),
  format: optional(format),
  task_budget: underBeta([BETA.taskBudgets], taskBudget),
})

const amount = (type: string, least = 0): Shape =>
  object({ type: required(literal(type)), value: required(integer(least)) })

const edits = list(
  tagged({
    clear_tool_uses_20250919: {
      open: (gate) => gate.betas.has(BETA.contextManagement),
      shape: object({
        type: typed,
        trigger: optional(
          tagged({
            input_tokens: { shape: amount('input_tokens', 1) },
            tool_uses: { shape: amount('tool_uses', 1) },
          }),
        ),
        keep: optional(amount('tool_uses')),
        clear_at_least: optional(nullable(amount('input_tokens', 1))),
        exclude_tools: optional(nullable(list(text()))),
        clear_tool_inputs: optional(
          nullable((value, gate) => (typeof value === 'boolean' ? null : list(text())(value, gate))),
        ),
      }),
    },
    clear_thinking_20251015: {
      open: (gate) => gate.betas.has(BETA.contextManagement),
      shape: object({ type: typed, keep: optional(keepThinking) }),
    },
    compact_20260112: {
      open: (gate) => gate.betas.has(BETA.thresholdCompaction),
      shape: object({
        type: typed,
        trigger: optional(nullable(amount('input_tokens', 1))),
        pause_after_compaction: optional(flag),
        instructions: optional(nullable(text())),
      }),
    },
  }),
)

function keepThinking(value: unknown, gate: Parameters<Shape>[1]): ReturnType<Shape> {
  if (value === 'all') return null
  return tagged({
    thinking_turns: { shape: amount('thinking_turns', 1) },
    all: { shape: object({ type: typed }) },
  })(value, gate)
}

const thread = nullable(
  tagged({
    create: { shape: object({ type: typed }) },
    continue: { shape: object({ type: typed, previous_message_id: required(text()) }) },
  }),
)

const oldVersionOnly = (shape: Shape): Field => ({
  shape,
  required: false,
  open: (gate) => gate.version === '2023-06-01',
})

const shared: Readonly<Record<string, Field>> = {
  model: required(text({ min: 1, max: 256 })),
  messages: required(list(message, { max: 100_000 })),
  system: optional(nullable(textOr(list(tagged({ text: { shape: textBlock } }))))),
  tools: optional(nullable(list(toolDefinition))),
  tool_choice: optional(nullable(toolChoice)),
  thinking: optional(nullable(thinking)),
  output_config: optional(nullable(outputConfig)),
  cache_control: optional(cacheControl),
  speed: underBeta([BETA.fastMode], nullable(literal('standard', 'fast'))),
  context_management: underBeta(
    [BETA.contextManagement, BETA.thresholdCompaction],
    nullable(object({ edits: optional(edits) })),
  ),
  compaction: underBeta(
    [BETA.onDemandCompaction],
    nullable(
      object({
        type: required(literal('summarize')),
        instructions: optional(nullable(text({ max: 16_384 }))),
      }),
    ),
  ),
  output_format: {
    shape: format,
    required: false,
    open: (gate) => hasFamily(gate.betas, 'structured-outputs-'),
  },
  mcp_servers: {
    shape: list(dictionary),
    required: false,
    open: (gate) => hasFamily(gate.betas, 'mcp-client-'),
  },
}

export const createBody: Shape = object({
  ...shared,
  max_tokens: required(integer(0)),
  stream: optional(nullable(flag)),
  stop_sequences: optional(nullable(list(text()))),
  metadata: optional(nullable(object({ user_id: optional(nullable(text({ max: 256 }))) }))),
  service_tier: optional(nullable(literal('auto', 'standard_only'))),
  inference_geo: optional(nullable(text())),
  container: optional(nullable(textOr(dictionary))),
  diagnostics: optional(nullable(object({ previous_message_id: optional(nullable(text())) }))),
  thread: underBeta([BETA.threads], thread),
  fallbacks: {
    shape: anything,
    required: false,
    open: (gate) => hasFamily(gate.betas, 'server-side-fallback-'),
  },
  fallback_credit_token: {
    shape: anything,
    required: false,
    open: (gate) => hasFamily(gate.betas, 'fallback-credit-'),
  },
  temperature: oldVersionOnly(nullable(numberWithin(0, 1))),
  top_p: oldVersionOnly(nullable(numberWithin(0, 1))),
  top_k: oldVersionOnly(nullable(integer(0))),
})

export const countBody: Shape = object(shared)
