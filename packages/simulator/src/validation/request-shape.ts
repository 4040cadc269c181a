/**
 * Shapes (validation functions) for tool definitions and for the bodies of `/v1/messages` and
 * `/v1/messages/count_tokens`.
 */

import { BETA_NAMES, hasBetaFamily, isObject } from '../protocol/messages-request.ts'
import { EFFORTS } from '../protocol/models.ts'
import { BLOCK_SHAPES, cacheControlShape, textBlockShape } from './block-shapes.ts'
import {
  anyShape,
  betaField,
  booleanShape,
  conditionalField,
  dictionaryShape,
  integerShape,
  listShape,
  literalShape,
  nullableShape,
  numberShape,
  objectShape,
  optionalField,
  prependPath,
  requiredField,
  type ShapeField,
  type ShapeValidator,
  shapeError,
  stringOrShape,
  stringShape,
  type UnionMember,
  unionShape,
} from './shape.ts'

const TOOL_NAME: RegExp = /^[a-zA-Z0-9_-]{1,128}$/

const objectType = objectShape({ type: requiredField(literalShape('object')) })

/** Checks only the field `type` of a tool's input schema. Its other JSON schema fields are not checked. */
const inputSchemaShape: ShapeValidator = (value, features) =>
  isObject(value) ? objectType({ type: value.type }, features) : dictionaryShape(value, features)

const customTool = objectShape({
  type: optionalField(nullableShape(literalShape('custom'))),
  name: requiredField(stringShape({ pattern: TOOL_NAME })),
  description: optionalField(stringShape()),
  input_schema: requiredField(inputSchemaShape),
  cache_control: optionalField(cacheControlShape),
  defer_loading: optionalField(booleanShape),
  strict: optionalField(booleanShape),
  eager_input_streaming: optionalField(nullableShape(booleanShape)),
  input_examples: optionalField(listShape(dictionaryShape)),
  allowed_callers: optionalField(listShape(stringShape())),
})

/** Checks a tool that the provider defines. One shape with the fields of all such tools is used for each of them. */
const providerTool = objectShape({
  type: requiredField(stringShape()),
  name: optionalField(stringShape({ pattern: TOOL_NAME })),
  cache_control: optionalField(cacheControlShape),
  defer_loading: optionalField(booleanShape),
  strict: optionalField(booleanShape),
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
    ].map((name) => [name, optionalField(anyShape)]),
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

const toolDefinitionShape: ShapeValidator = unionShape(
  {
    custom: { shape: customTool },
    ...Object.fromEntries(
      PROVIDER_TOOL_TYPES.map((type): [string, UnionMember] => [type, { shape: providerTool }]),
    ),
  },
  'custom',
)

// Shapes of messages, settings and context edits.

const effort = nullableShape(literalShape(...EFFORTS))
const typeField = requiredField(stringShape())

const messageFields = objectShape({
  role: requiredField(literalShape('user', 'assistant', 'system')),
  content: optionalField(stringOrShape(listShape(unionShape(BLOCK_SHAPES)))),
  clear_at: betaField([BETA_NAMES.clearAt], nullableShape(literalShape('next_user_message', 'never'))),
  output_config: betaField(
    [BETA_NAMES.messageOutputConfig, BETA_NAMES.perTurnControl],
    nullableShape(objectShape({ effort: optionalField(effort) })),
  ),
})

/** Checks a message. `content` may be missing only in a system message, which can set the effort instead. */
const messageShape: ShapeValidator = (value, features) => {
  const found = messageFields(value, features)
  if (found !== null || !isObject(value)) return found
  if (value.content === undefined && value.role !== 'system')
    return prependPath('content', shapeError('Field required'))
  return null
}

/**
 * Checks `thinking.display`. The value `updates` is accepted only with a beta, and the error message does not list
 * it.
 */
const thinkingDisplayShape: ShapeValidator = (value, features) =>
  value === 'updates' && features.betas.has(BETA_NAMES.thinkingUpdates)
    ? null
    : nullableShape(literalShape('summarized', 'omitted'))(value, features)

const blockBinding = betaField(
  [BETA_NAMES.thinkingBinding],
  nullableShape(
    objectShape({
      prefix_mismatch_behavior: optionalField(nullableShape(literalShape('error', 'drop_block'))),
    }),
  ),
)

const thinking = unionShape({
  enabled: {
    shape: objectShape({
      type: typeField,
      budget_tokens: requiredField(integerShape(1024)),
      display: optionalField(thinkingDisplayShape),
      block_binding: blockBinding,
    }),
  },
  adaptive: {
    shape: objectShape({
      type: typeField,
      display: optionalField(thinkingDisplayShape),
      block_binding: blockBinding,
    }),
  },
  disabled: { shape: objectShape({ type: typeField }) },
  between_tools: { shape: objectShape({ type: typeField }) },
})

const toolChoiceFields = { type: typeField, disable_parallel_tool_use: optionalField(booleanShape) }
const toolChoice = unionShape({
  auto: { shape: objectShape(toolChoiceFields) },
  any: { shape: objectShape(toolChoiceFields) },
  tool: { shape: objectShape({ ...toolChoiceFields, name: requiredField(stringShape()) }) },
  none: { shape: objectShape({ type: typeField }) },
})

const format = nullableShape(
  objectShape({ type: requiredField(literalShape('json_schema')), schema: requiredField(dictionaryShape) }),
)
const taskBudget = nullableShape(
  objectShape({
    type: requiredField(literalShape('tokens')),
    total: requiredField(integerShape(1)),
    remaining: optionalField(nullableShape(integerShape(0))),
  }),
)
const outputConfig = objectShape({
  effort: optionalField(effort),
  format: optionalField(format),
  task_budget: betaField([BETA_NAMES.taskBudgets], taskBudget),
})

const amountShape = (type: string, least = 0): ShapeValidator =>
  objectShape({ type: requiredField(literalShape(type)), value: requiredField(integerShape(least)) })

const edits = listShape(
  unionShape({
    clear_tool_uses_20250919: {
      open: (features) => features.betas.has(BETA_NAMES.contextManagement),
      shape: objectShape({
        type: typeField,
        trigger: optionalField(
          unionShape({
            input_tokens: { shape: amountShape('input_tokens', 1) },
            tool_uses: { shape: amountShape('tool_uses', 1) },
          }),
        ),
        keep: optionalField(amountShape('tool_uses')),
        clear_at_least: optionalField(nullableShape(amountShape('input_tokens', 1))),
        exclude_tools: optionalField(nullableShape(listShape(stringShape()))),
        clear_tool_inputs: optionalField(
          nullableShape((value, features) =>
            typeof value === 'boolean' ? null : listShape(stringShape())(value, features),
          ),
        ),
      }),
    },
    clear_thinking_20251015: {
      open: (features) => features.betas.has(BETA_NAMES.contextManagement),
      shape: objectShape({ type: typeField, keep: optionalField(keepThinkingShape) }),
    },
    compact_20260112: {
      open: (features) => features.betas.has(BETA_NAMES.thresholdCompaction),
      shape: objectShape({
        type: typeField,
        trigger: optionalField(nullableShape(amountShape('input_tokens', 1))),
        pause_after_compaction: optionalField(booleanShape),
        instructions: optionalField(nullableShape(stringShape())),
      }),
    },
  }),
)

function keepThinkingShape(
  value: unknown,
  features: Parameters<ShapeValidator>[1],
): ReturnType<ShapeValidator> {
  if (value === 'all') return null
  return unionShape({
    thinking_turns: { shape: amountShape('thinking_turns', 1) },
    all: { shape: objectShape({ type: typeField }) },
  })(value, features)
}

const thread = nullableShape(
  unionShape({
    create: { shape: objectShape({ type: typeField }) },
    continue: { shape: objectShape({ type: typeField, previous_message_id: requiredField(stringShape()) }) },
  }),
)

// Shapes of the request bodies.

const oldVersionField = (shape: ShapeValidator): ShapeField =>
  conditionalField(shape, (features) => features.version === '2023-06-01')

const betaFamilyField = (family: string, shape: ShapeValidator): ShapeField =>
  conditionalField(shape, (features) => hasBetaFamily(features.betas, family))

const sharedFields: Readonly<Record<string, ShapeField>> = {
  model: requiredField(stringShape({ min: 1, max: 256 })),
  messages: requiredField(listShape(messageShape, { max: 100_000 })),
  system: optionalField(
    nullableShape(stringOrShape(listShape(unionShape({ text: { shape: textBlockShape } })))),
  ),
  tools: optionalField(nullableShape(listShape(toolDefinitionShape))),
  tool_choice: optionalField(nullableShape(toolChoice)),
  thinking: optionalField(nullableShape(thinking)),
  output_config: optionalField(nullableShape(outputConfig)),
  cache_control: optionalField(cacheControlShape),
  speed: betaField([BETA_NAMES.fastMode], nullableShape(literalShape('standard', 'fast'))),
  context_management: betaField(
    [BETA_NAMES.contextManagement, BETA_NAMES.thresholdCompaction],
    nullableShape(objectShape({ edits: optionalField(edits) })),
  ),
  compaction: betaField(
    [BETA_NAMES.onDemandCompaction],
    nullableShape(
      objectShape({
        type: requiredField(literalShape('summarize')),
        instructions: optionalField(nullableShape(stringShape({ max: 16_384 }))),
      }),
    ),
  ),
  safeguards: betaField([BETA_NAMES.safeguards], anyShape),
  output_format: betaFamilyField('structured-outputs-', format),
  mcp_servers: betaFamilyField('mcp-client-', listShape(dictionaryShape)),
}

export const messagesBodyShape: ShapeValidator = objectShape({
  ...sharedFields,
  max_tokens: requiredField(integerShape(0)),
  stream: optionalField(nullableShape(booleanShape)),
  stop_sequences: optionalField(nullableShape(listShape(stringShape()))),
  metadata: optionalField(
    nullableShape(objectShape({ user_id: optionalField(nullableShape(stringShape({ max: 256 }))) })),
  ),
  service_tier: optionalField(nullableShape(literalShape('auto', 'standard_only'))),
  inference_geo: optionalField(nullableShape(stringShape())),
  container: optionalField(nullableShape(stringOrShape(dictionaryShape))),
  diagnostics: optionalField(
    nullableShape(objectShape({ previous_message_id: optionalField(nullableShape(stringShape())) })),
  ),
  thread: betaField([BETA_NAMES.threads], thread),
  fallbacks: betaFamilyField('server-side-fallback-', anyShape),
  fallback_credit_token: betaFamilyField('fallback-credit-', anyShape),
  temperature: oldVersionField(nullableShape(numberShape(0, 1))),
  top_p: oldVersionField(nullableShape(numberShape(0, 1))),
  top_k: oldVersionField(nullableShape(integerShape(0))),
})

export const countTokensBodyShape: ShapeValidator = objectShape(sharedFields)
