/** The shapes of the requests to `/v1/responses`, `/v1/responses/compact` and `/v1/responses/input_tokens`. */
import { isObject } from '../../protocol/messages-request.ts'
import { createParameterError, type OpenaiError } from '../openai-error.ts'
import {
  acceptAny,
  arrayCheck,
  booleanCheck,
  breakpointCheck,
  cacheFieldChecks,
  choiceCheck,
  createWrongTypeError,
  integerCheck,
  type JsonFields,
  metadataCheck,
  numberCheck,
  objectCheck,
  type ShapeCheck,
  stringCheck,
  stringOr,
  unionCheck,
} from '../openai-shape.ts'

export type ResponsesEndpoint = 'responses' | 'compact' | 'input_tokens'

/** The body of a request whose shape has been checked. */
export interface ResponsesBody extends JsonFields {
  readonly model: string
  readonly input?: string | readonly JsonFields[] | null
  readonly instructions?: string | null
  readonly tools?: readonly JsonFields[] | null
  readonly stream?: boolean | null
  readonly store?: boolean | null
  readonly previous_response_id?: string | null
  readonly max_output_tokens?: number | null
}

const status = choiceCheck('in_progress', 'completed', 'incomplete')
const markedContent = { prompt_cache_breakpoint: breakpointCheck }

const inputContent: Readonly<Record<string, ShapeCheck>> = {
  input_text: objectCheck({
    required: { type: acceptAny, text: stringCheck() },
    optional: markedContent,
  }),
  input_image: objectCheck({
    required: { type: acceptAny },
    optional: {
      image_url: stringCheck(),
      file_id: stringCheck(),
      detail: choiceCheck('low', 'high', 'auto', 'original'),
      ...markedContent,
    },
  }),
  input_file: objectCheck({
    required: { type: acceptAny },
    optional: {
      file_data: stringCheck(),
      file_id: stringCheck(),
      file_url: stringCheck(),
      filename: stringCheck(),
      detail: choiceCheck('low', 'high', 'auto'),
      ...markedContent,
    },
  }),
}

const outputContent: Readonly<Record<string, ShapeCheck>> = {
  output_text: objectCheck({
    required: { type: acceptAny, text: stringCheck() },
    optional: { annotations: arrayCheck(acceptAny), logprobs: arrayCheck(acceptAny) },
  }),
  refusal: objectCheck({ required: { type: acceptAny, refusal: stringCheck() } }),
}

const ROLES = ['assistant', 'system', 'developer', 'user'] as const

/** Checks a message. Its role decides which content parts it may have. */
const messageCheck: ShapeCheck = (value, path) => {
  const content = isObject(value) && value.role === 'assistant' ? outputContent : inputContent
  return objectCheck({
    required: { role: choiceCheck(...ROLES), content: stringOr(arrayCheck(unionCheck(content))) },
    optional: {
      type: choiceCheck('message'),
      id: stringCheck({ max: 64 }),
      status,
      phase: choiceCheck('commentary', 'final_answer'),
    },
  })(value, path)
}

const callId = stringCheck({ max: 64 })
const namedCall = { call_id: callId, name: stringCheck({ max: 128, pattern: /^[a-zA-Z0-9_-]+$/ }) }
const anyCall = {
  id: stringCheck(),
  namespace: stringCheck(),
  caller: acceptAny,
  async: booleanCheck,
  status,
}
const toolOutput = stringOr(arrayCheck(unionCheck(inputContent)))

const summaryCheck = arrayCheck(
  unionCheck({ summary_text: objectCheck({ required: { type: acceptAny, text: stringCheck() } }) }),
)

const itemChecks: Readonly<Record<string, ShapeCheck>> = {
  message: messageCheck,
  function_call: objectCheck({
    required: { type: acceptAny, ...namedCall, arguments: stringCheck() },
    optional: anyCall,
  }),
  function_call_output: objectCheck({
    required: { type: acceptAny, call_id: callId, output: toolOutput },
    optional: { ...anyCall, name: stringCheck() },
  }),
  custom_tool_call: objectCheck({
    required: { type: acceptAny, ...namedCall, input: stringCheck() },
    optional: anyCall,
  }),
  custom_tool_call_output: objectCheck({
    required: { type: acceptAny, call_id: callId, output: toolOutput },
    optional: { ...anyCall, name: stringCheck() },
  }),
  reasoning: objectCheck({
    required: { type: acceptAny, summary: summaryCheck },
    optional: {
      id: stringCheck(),
      encrypted_content: stringCheck(),
      content: arrayCheck(acceptAny),
      status,
    },
  }),
  item_reference: objectCheck({ required: { id: stringCheck() }, optional: { type: acceptAny } }),
  compaction: objectCheck({
    required: { type: acceptAny, encrypted_content: stringCheck() },
    optional: { id: stringCheck(), created_by: stringCheck() },
  }),
  compaction_trigger: objectCheck({ required: { type: acceptAny }, optional: { id: stringCheck() } }),
  additional_tools: objectCheck({
    required: { type: acceptAny, role: choiceCheck('developer'), tools: acceptAny },
    optional: { id: stringCheck() },
  }),
}

/** Items of hosted and local tools. The simulator counts and pairs them, but does not check their content. */
const OTHER_ITEMS = [
  'apply_patch_call',
  'apply_patch_call_output',
  'code_interpreter_call',
  'computer_call',
  'computer_call_output',
  'configuration_update',
  'file_search_call',
  'image_generation_call',
  'local_shell_call',
  'local_shell_call_output',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'mcp_list_tools',
  'program',
  'program_output',
  'shell_call',
  'shell_call_output',
  'tool_search_call',
  'tool_search_output',
  'web_search_call',
]

const listedItem = unionCheck({
  ...itemChecks,
  ...Object.fromEntries(OTHER_ITEMS.map((type) => [type, acceptAny])),
})

/** Checks an item. Without a type, it is a message if it has a role, else a reference. */
const itemCheck: ShapeCheck = (value, path) => {
  if (!isObject(value)) return createWrongTypeError(value, path, 'an object')
  if (value.type !== undefined && value.type !== null) return listedItem(value, path)
  return (
    (value.role === undefined && value.id !== undefined ? itemChecks.item_reference : messageCheck)?.(
      value,
      path,
    ) ?? null
  )
}

// Tools and settings.

const functionName = stringCheck({ max: 128, pattern: /^[a-zA-Z0-9_-]+$/ })

const functionTool = objectCheck({
  required: { type: acceptAny, name: functionName },
  optional: {
    description: stringCheck(),
    parameters: acceptAny,
    strict: booleanCheck,
    defer_loading: booleanCheck,
    output_schema: acceptAny,
    allowed_callers: acceptAny,
    async: booleanCheck,
  },
})

const toolCheck: ShapeCheck = (value, path) => {
  if (!isObject(value) || typeof value.type !== 'string')
    return createWrongTypeError(value, path, 'an object')
  if (value.type === 'function') return functionTool(value, path)
  if (value.type === 'custom') return objectCheck({ required: { name: functionName } }, true)(value, path)
  if (value.type === 'namespace')
    return objectCheck({ required: { name: functionName, tools: arrayCheck(acceptAny) } }, true)(value, path)
  return null
}

const reasoningCheck = objectCheck({
  optional: {
    effort: stringCheck(),
    summary: choiceCheck('auto', 'concise', 'detailed'),
    generate_summary: choiceCheck('auto', 'concise', 'detailed'),
    context: acceptAny,
    mode: acceptAny,
  },
})

const formatCheck = unionCheck({
  text: objectCheck({ required: { type: acceptAny } }),
  json_object: objectCheck({ required: { type: acceptAny } }),
  json_schema: objectCheck({
    required: { type: acceptAny, name: functionName, schema: acceptAny },
    optional: { strict: booleanCheck, description: stringCheck() },
  }),
})

const textCheck = objectCheck({
  optional: { format: formatCheck, verbosity: choiceCheck('low', 'medium', 'high') },
})

const INCLUDES = [
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'message.input_image.image_url',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
]

const inputFields: Readonly<Record<string, ShapeCheck>> = {
  input: stringOr(arrayCheck(itemCheck)),
  instructions: stringCheck(),
  previous_response_id: stringCheck(),
}

const settingFields: Readonly<Record<string, ShapeCheck>> = {
  conversation: acceptAny,
  parallel_tool_calls: booleanCheck,
  reasoning: reasoningCheck,
  text: textCheck,
  tool_choice: acceptAny,
  tools: arrayCheck(toolCheck, { max: 128 }),
  truncation: choiceCheck('auto', 'disabled'),
}

const bodyChecks: Readonly<Record<ResponsesEndpoint, ShapeCheck>> = {
  responses: objectCheck({
    required: { model: stringCheck() },
    optional: {
      ...inputFields,
      ...settingFields,
      ...cacheFieldChecks,
      access_programs: acceptAny,
      background: booleanCheck,
      // Not documented, but Codex CLI 0.166 sends it.
      client_metadata: acceptAny,
      context_management: arrayCheck(
        objectCheck({
          required: { type: choiceCheck('compaction') },
          optional: { compact_threshold: integerCheck(1) },
        }),
      ),
      image: acceptAny,
      include: arrayCheck(choiceCheck(...INCLUDES)),
      max_output_tokens: integerCheck(16),
      max_tool_calls: integerCheck(1),
      metadata: metadataCheck,
      moderation: acceptAny,
      prompt: acceptAny,
      safety_identifier: stringCheck({ max: 128 }),
      service_tier: choiceCheck('auto', 'default', 'flex', 'scale', 'priority', 'fast', 'ultrafast'),
      store: booleanCheck,
      stream: booleanCheck,
      stream_options: objectCheck({ optional: { include_obfuscation: booleanCheck } }),
      temperature: numberCheck(0, 2),
      top_logprobs: integerCheck(0),
      top_p: numberCheck(0, 1),
      user: stringCheck(),
    },
  }),
  compact: objectCheck({
    required: { model: stringCheck() },
    optional: { ...inputFields, ...cacheFieldChecks, image: acceptAny, service_tier: stringCheck() },
  }),
  input_tokens: objectCheck({
    required: { model: stringCheck() },
    optional: { ...inputFields, ...settingFields, personality: stringCheck() },
  }),
}

/** Returns the first error in the shape of a body; null if it has the shape of a request to this endpoint. */
export function checkResponsesShape(value: unknown, endpoint: ResponsesEndpoint): OpenaiError | null {
  const found = bodyChecks[endpoint](value, '')
  if (found !== null || !isObject(value)) return found
  const { input, previous_response_id: previous, conversation } = value
  const isEmpty = input == null || input === '' || (Array.isArray(input) && input.length === 0)
  if (!isEmpty || typeof previous === 'string' || conversation != null) return null
  return createParameterError(
    "One of 'input' or 'previous_response_id' or 'prompt' or 'conversation' must be provided.",
    'input',
    'missing_required_parameter',
  )
}
