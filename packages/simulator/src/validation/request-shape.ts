/** The shapes of the two request bodies, `/v1/messages` and `/v1/messages/count_tokens`, and of tool definitions. */

import { BETA, hasFamily, isObject } from '../protocol/api.ts'
import { BLOCK_TAGS, cacheControl, textBlock } from './block-shapes.ts'
import {
  anything,
  conditional,
  dictionary,
  type Field,
  flag,
  inside,
  integer,
  list,
  literal,
  misfit,
  nullable,
  numberWithin,
  object,
  optional,
  required,
  type Shape,
  type Tag,
  tagged,
  text,
  textOr,
  underBeta,
} from './shape.ts'

const TOOL_NAME: RegExp = /^[a-zA-Z0-9_-]{1,128}$/

const objectType = object({ type: required(literal('object')) })

/** Only `type` is checked: the rest is JSON schema, whose fields are open. */
const inputSchema: Shape = (value, features) =>
  isObject(value) ? objectType({ type: value.type }, features) : dictionary(value, features)

const custom = object({
  type: optional(nullable(literal('custom'))),
  name: required(text({ pattern: TOOL_NAME })),
  description: optional(text()),
  input_schema: required(inputSchema),
  cache_control: optional(cacheControl),
  defer_loading: optional(flag),
  strict: optional(flag),
  eager_input_streaming: optional(nullable(flag)),
  input_examples: optional(list(dictionary)),
  allowed_callers: optional(list(text())),
})

/** The tools the provider defines share one shape: the fields that any of them has. */
const provided = object({
  type: required(text()),
  name: optional(text({ pattern: TOOL_NAME })),
  cache_control: optional(cacheControl),
  defer_loading: optional(flag),
  strict: optional(flag),
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

const PROVIDED_TYPES: readonly string[] = [
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

const toolDefinition: Shape = tagged(
  {
    custom: { shape: custom },
    ...Object.fromEntries(PROVIDED_TYPES.map((type): [string, Tag] => [type, { shape: provided }])),
  },
  'custom',
)

// Messages, settings and context edits.

const effort = nullable(literal('low', 'medium', 'high', 'xhigh', 'max'))
const typed = required(text())

const messageFields = object({
  role: required(literal('user', 'assistant', 'system')),
  content: optional(textOr(list(tagged(BLOCK_TAGS)))),
  clear_at: underBeta([BETA.clearAt], nullable(literal('next_user_message', 'never'))),
  output_config: underBeta([BETA.messageOutputConfig], nullable(object({ effort: optional(effort) }))),
})

/** `content` may be missing only in a system message, which can carry a setting instead. */
const message: Shape = (value, features) => {
  const found = messageFields(value, features)
  if (found !== null || !isObject(value)) return found
  if (value.content === undefined && value.role !== 'system')
    return inside('content', misfit('Field required'))
  return null
}

/** `updates` needs a beta, and the error does not name it as a choice. */
const thinkingDisplay: Shape = (value, features) =>
  value === 'updates' && features.betas.has(BETA.thinkingUpdates)
    ? null
    : nullable(literal('summarized', 'omitted'))(value, features)

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
      open: (features) => features.betas.has(BETA.contextManagement),
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
          nullable((value, features) => (typeof value === 'boolean' ? null : list(text())(value, features))),
        ),
      }),
    },
    clear_thinking_20251015: {
      open: (features) => features.betas.has(BETA.contextManagement),
      shape: object({ type: typed, keep: optional(keepThinking) }),
    },
    compact_20260112: {
      open: (features) => features.betas.has(BETA.thresholdCompaction),
      shape: object({
        type: typed,
        trigger: optional(nullable(amount('input_tokens', 1))),
        pause_after_compaction: optional(flag),
        instructions: optional(nullable(text())),
      }),
    },
  }),
)

function keepThinking(value: unknown, features: Parameters<Shape>[1]): ReturnType<Shape> {
  if (value === 'all') return null
  return tagged({
    thinking_turns: { shape: amount('thinking_turns', 1) },
    all: { shape: object({ type: typed }) },
  })(value, features)
}

const thread = nullable(
  tagged({
    create: { shape: object({ type: typed }) },
    continue: { shape: object({ type: typed, previous_message_id: required(text()) }) },
  }),
)

// The bodies.

const oldVersionOnly = (shape: Shape): Field =>
  conditional(shape, (features) => features.version === '2023-06-01')

const familyOnly = (family: string, shape: Shape): Field =>
  conditional(shape, (features) => hasFamily(features.betas, family))

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
  output_format: familyOnly('structured-outputs-', format),
  mcp_servers: familyOnly('mcp-client-', list(dictionary)),
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
  fallbacks: familyOnly('server-side-fallback-', anything),
  fallback_credit_token: familyOnly('fallback-credit-', anything),
  temperature: oldVersionOnly(nullable(numberWithin(0, 1))),
  top_p: oldVersionOnly(nullable(numberWithin(0, 1))),
  top_k: oldVersionOnly(nullable(integer(0))),
})

export const countBody: Shape = object(shared)
