/**
 * Shapes (validation functions) for tool definitions and for the bodies of `/v1/messages` and
 * `/v1/messages/count_tokens`.
 */

import { BETA, hasBetaFamily, isObject } from '../protocol/api.ts'
import { BLOCK_SHAPES, cacheControlShape, textBlockShape } from './block-shapes.ts'
import {
  anything,
  atPath,
  betaField,
  boolean,
  conditionalField,
  dictionary,
  type Field,
  field,
  integer,
  list,
  literal,
  nullable,
  numberInRange,
  object,
  optional,
  type Shape,
  shapeError,
  string,
  stringOr,
  type UnionMember,
  union,
} from './shape.ts'

const TOOL_NAME: RegExp = /^[a-zA-Z0-9_-]{1,128}$/

const objectType = object({ type: field(literal('object')) })

/** Checks only `type` of an input schema: the other fields of a JSON schema are open. */
const inputSchemaShape: Shape = (value, features) =>
  isObject(value) ? objectType({ type: value.type }, features) : dictionary(value, features)

const customTool = object({
  type: optional(nullable(literal('custom'))),
  name: field(string({ pattern: TOOL_NAME })),
  description: optional(string()),
  input_schema: field(inputSchemaShape),
  cache_control: optional(cacheControlShape),
  defer_loading: optional(boolean),
  strict: optional(boolean),
  eager_input_streaming: optional(nullable(boolean)),
  input_examples: optional(list(dictionary)),
  allowed_callers: optional(list(string())),
})

/**
 * Checks a tool that the provider defines. All such tools share one shape, which has every field that any of them
 * has.
 */
const providerTool = object({
  type: field(string()),
  name: optional(string({ pattern: TOOL_NAME })),
  cache_control: optional(cacheControlShape),
  defer_loading: optional(boolean),
  strict: optional(boolean),
  ...Object.fromEntries(
    [
      'allowed_callers',
      'allowed_domains',
      'blocked_domains',
      'caching',
      'citations',
      'configs',
      'default_config',
      'display_height_px',
      'display_number',
      'display_width_px',
      'enable_zoom',
      'input_examples',
      'max_characters',
      'max_content_tokens',
      'max_tokens',
      'max_uses',
      'mcp_server_name',
      'model',
      'response_inclusion',
      'tools',
      'url_sources',
      'use_cache',
      'user_location',
    ].map((name) => [name, optional(anything)]),
  ),
})

const PROVIDER_TOOL_TYPES: readonly string[] = [
  'advisor_20260301',
  'bash_20241022',
  'bash_20250124',
  'browser_toolset_20260801',
  'code_execution_20250522',
  'code_execution_20250825',
  'code_execution_20260120',
  'code_execution_20260521',
  'computer_20241022',
  'computer_20250124',
  'computer_20251124',
  'computer_toolset_20260801',
  'mcp_toolset',
  'memory_20250818',
  'text_editor_20241022',
  'text_editor_20250124',
  'text_editor_20250429',
  'text_editor_20250728',
  'tool_search_tool_bm25',
  'tool_search_tool_bm25_20251119',
  'tool_search_tool_regex',
  'tool_search_tool_regex_20251119',
  'web_fetch_20250910',
  'web_fetch_20260209',
  'web_fetch_20260309',
  'web_fetch_20260318',
  'web_search_20250305',
  'web_search_20260209',
  'web_search_20260318',
]

const toolDefinitionShape: Shape = union(
  {
    custom: { shape: customTool },
    ...Object.fromEntries(
      PROVIDER_TOOL_TYPES.map((type): [string, UnionMember] => [type, { shape: providerTool }]),
    ),
  },
  'custom',
)

// Shapes of messages, settings and context edits.

const effort = nullable(literal('low', 'medium', 'high', 'xhigh', 'max'))
const typeField = field(string())

const messageFields = object({
  role: field(literal('user', 'assistant', 'system')),
  content: optional(stringOr(list(union(BLOCK_SHAPES)))),
  clear_at: betaField([BETA.clearAt], nullable(literal('next_user_message', 'never'))),
  output_config: betaField([BETA.messageOutputConfig], nullable(object({ effort: optional(effort) }))),
})

/** Checks a message. `content` may be missing only in a system message, which can set the effort instead. */
const messageShape: Shape = (value, features) => {
  const found = messageFields(value, features)
  if (found !== null || !isObject(value)) return found
  if (value.content === undefined && value.role !== 'system')
    return atPath('content', shapeError('Field required'))
  return null
}

/** Checks `thinking.display`. The value `updates` needs a beta, and the error does not list it as a choice. */
const thinkingDisplayShape: Shape = (value, features) =>
  value === 'updates' && features.betas.has(BETA.thinkingUpdates)
    ? null
    : nullable(literal('summarized', 'omitted'))(value, features)

const blockBinding = betaField(
  [BETA.thinkingBinding],
  nullable(object({ prefix_mismatch_behavior: optional(nullable(literal('error', 'drop_block'))) })),
)

const thinking = union({
  enabled: {
    shape: object({
      type: typeField,
      budget_tokens: field(integer(1024)),
      display: optional(thinkingDisplayShape),
      block_binding: blockBinding,
    }),
  },
  adaptive: {
    shape: object({ type: typeField, display: optional(thinkingDisplayShape), block_binding: blockBinding }),
  },
  disabled: { shape: object({ type: typeField }) },
  between_tools: { shape: object({ type: typeField }) },
})

const toolChoiceFields = { type: typeField, disable_parallel_tool_use: optional(boolean) }
const toolChoice = union({
  auto: { shape: object(toolChoiceFields) },
  any: { shape: object(toolChoiceFields) },
  tool: { shape: object({ ...toolChoiceFields, name: field(string()) }) },
  none: { shape: object({ type: typeField }) },
})

const format = nullable(object({ type: field(literal('json_schema')), schema: field(dictionary) }))
const taskBudget = nullable(
  object({
    type: field(literal('tokens')),
    total: field(integer(1)),
    remaining: optional(nullable(integer(0))),
  }),
)
const outputConfig = object({
  effort: optional(effort),
  format: optional(format),
  task_budget: betaField([BETA.taskBudgets], taskBudget),
})

const amountShape = (type: string, least = 0): Shape =>
  object({ type: field(literal(type)), value: field(integer(least)) })

const edits = list(
  union({
    clear_tool_uses_20250919: {
      open: (features) => features.betas.has(BETA.contextManagement),
      shape: object({
        type: typeField,
        trigger: optional(
          union({
            input_tokens: { shape: amountShape('input_tokens', 1) },
            tool_uses: { shape: amountShape('tool_uses', 1) },
          }),
        ),
        keep: optional(amountShape('tool_uses')),
        clear_at_least: optional(nullable(amountShape('input_tokens', 1))),
        exclude_tools: optional(nullable(list(string()))),
        clear_tool_inputs: optional(
          nullable((value, features) =>
            typeof value === 'boolean' ? null : list(string())(value, features),
          ),
        ),
      }),
    },
    clear_thinking_20251015: {
      open: (features) => features.betas.has(BETA.contextManagement),
      shape: object({ type: typeField, keep: optional(keepThinkingShape) }),
    },
    compact_20260112: {
      open: (features) => features.betas.has(BETA.thresholdCompaction),
      shape: object({
        type: typeField,
        trigger: optional(nullable(amountShape('input_tokens', 1))),
        pause_after_compaction: optional(boolean),
        instructions: optional(nullable(string())),
      }),
    },
  }),
)

function keepThinkingShape(value: unknown, features: Parameters<Shape>[1]): ReturnType<Shape> {
  if (value === 'all') return null
  return union({
    thinking_turns: { shape: amountShape('thinking_turns', 1) },
    all: { shape: object({ type: typeField }) },
  })(value, features)
}

const thread = nullable(
  union({
    create: { shape: object({ type: typeField }) },
    continue: { shape: object({ type: typeField, previous_message_id: field(string()) }) },
  }),
)

// Shapes of the request bodies.

const oldVersionField = (shape: Shape): Field =>
  conditionalField(shape, (features) => features.version === '2023-06-01')

const betaFamilyField = (family: string, shape: Shape): Field =>
  conditionalField(shape, (features) => hasBetaFamily(features.betas, family))

const sharedFields: Readonly<Record<string, Field>> = {
  model: field(string({ min: 1, max: 256 })),
  messages: field(list(messageShape, { max: 100_000 })),
  system: optional(nullable(stringOr(list(union({ text: { shape: textBlockShape } }))))),
  tools: optional(nullable(list(toolDefinitionShape))),
  tool_choice: optional(nullable(toolChoice)),
  thinking: optional(nullable(thinking)),
  output_config: optional(nullable(outputConfig)),
  cache_control: optional(cacheControlShape),
  speed: betaField([BETA.fastMode], nullable(literal('standard', 'fast'))),
  context_management: betaField(
    [BETA.contextManagement, BETA.thresholdCompaction],
    nullable(object({ edits: optional(edits) })),
  ),
  compaction: betaField(
    [BETA.onDemandCompaction],
    nullable(
      object({
        type: field(literal('summarize')),
        instructions: optional(nullable(string({ max: 16_384 }))),
      }),
    ),
  ),
  output_format: betaFamilyField('structured-outputs-', format),
  mcp_servers: betaFamilyField('mcp-client-', list(dictionary)),
}

export const messagesBodyShape: Shape = object({
  ...sharedFields,
  max_tokens: field(integer(0)),
  stream: optional(nullable(boolean)),
  stop_sequences: optional(nullable(list(string()))),
  metadata: optional(nullable(object({ user_id: optional(nullable(string({ max: 256 }))) }))),
  service_tier: optional(nullable(literal('auto', 'standard_only'))),
  inference_geo: optional(nullable(string())),
  container: optional(nullable(stringOr(dictionary))),
  diagnostics: optional(nullable(object({ previous_message_id: optional(nullable(string())) }))),
  thread: betaField([BETA.threads], thread),
  fallbacks: betaFamilyField('server-side-fallback-', anything),
  fallback_credit_token: betaFamilyField('fallback-credit-', anything),
  temperature: oldVersionField(nullable(numberInRange(0, 1))),
  top_p: oldVersionField(nullable(numberInRange(0, 1))),
  top_k: oldVersionField(nullable(integer(0))),
})

export const countTokensBodyShape: Shape = object(sharedFields)
