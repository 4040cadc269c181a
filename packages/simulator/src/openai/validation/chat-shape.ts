/** The shape of a request to `/v1/chat/completions`. */
import { isObject } from '../../protocol/messages-request.ts'
import type { Dialect } from '../dialects.ts'
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

export interface ChatMessage extends JsonFields {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool'
  readonly content?: string | readonly JsonFields[] | null
  readonly tool_calls?: readonly JsonFields[] | null
  readonly tool_call_id?: string
}

/** The body of a request whose shape has been checked. */
export interface ChatBody extends JsonFields {
  readonly model: string
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly JsonFields[] | null
  readonly stream?: boolean | null
}

const marked = { prompt_cache_breakpoint: breakpointCheck }
// Unknown fields of messages and parts are ignored: OpenAI's own agents library sends some.
const textPart = objectCheck({ required: { type: acceptAny, text: stringCheck() }, optional: marked }, true)
const textParts = stringOr(arrayCheck(unionCheck({ text: textPart }), { min: 1 }))

const userParts = stringOr(
  arrayCheck(
    unionCheck({
      text: textPart,
      image_url: objectCheck(
        {
          required: { type: acceptAny, image_url: objectCheck({ required: { url: stringCheck() } }, true) },
          optional: marked,
        },
        true,
      ),
      input_audio: objectCheck(
        { required: { type: acceptAny, input_audio: acceptAny }, optional: marked },
        true,
      ),
      file: objectCheck({ required: { type: acceptAny, file: acceptAny }, optional: marked }, true),
    }),
    { min: 1 },
  ),
)

const assistantParts = stringOr(
  arrayCheck(
    unionCheck({
      text: textPart,
      refusal: objectCheck({ required: { type: acceptAny, refusal: stringCheck() } }, true),
    }),
    { min: 1 },
  ),
)

const callName = stringCheck({ max: 64, pattern: /^[a-zA-Z0-9_-]+$/ })

const toolCallCheck = unionCheck({
  function: objectCheck({
    required: {
      type: acceptAny,
      id: stringCheck({ max: 40 }),
      function: objectCheck({ required: { name: callName, arguments: stringCheck() } }),
    },
    optional: { index: acceptAny },
  }),
  custom: objectCheck({
    required: {
      type: acceptAny,
      id: stringCheck({ max: 40 }),
      custom: objectCheck({ required: { name: callName, input: stringCheck() } }),
    },
    optional: { index: acceptAny },
  }),
})

const named = { name: stringCheck() }

type Role = ChatMessage['role']

const withText = { required: { role: acceptAny, content: textParts }, optional: named }

const messageChecks: Readonly<Record<Role, ShapeCheck>> = {
  system: objectCheck(withText, true),
  developer: objectCheck(withText, true),
  user: objectCheck({ required: { role: acceptAny, content: userParts }, optional: named }, true),
  assistant: objectCheck(
    {
      required: { role: acceptAny },
      optional: {
        ...named,
        content: assistantParts,
        refusal: stringCheck(),
        tool_calls: arrayCheck(toolCallCheck, { min: 1 }),
      },
    },
    true,
  ),
  tool: objectCheck({ required: { ...withText.required, tool_call_id: stringCheck() } }, true),
}

const ROLES: readonly Role[] = ['system', 'assistant', 'user', 'tool', 'developer']

const messageCheck: ShapeCheck = (value, path) => {
  if (!isObject(value)) return createWrongTypeError(value, path, 'an object')
  const role = ROLES.find((known) => known === value.role)
  if (role === undefined) return choiceCheck(...ROLES)(value.role, `${path}.role`)
  return messageChecks[role](value, path) ?? checkAssistantContent(value, path)
}

/** Refuses an assistant message that has neither content nor calls nor a refusal. */
function checkAssistantContent(message: JsonFields, path: string): OpenaiError | null {
  const { role, content, tool_calls: calls, refusal } = message
  if (role !== 'assistant' || content != null || calls != null || refusal != null) return null
  return createParameterError(
    `Invalid value for 'content': expected a string, got null.`,
    `${path.replace('[', '.[')}.content`,
    null,
  )
}

const chatTool = unionCheck({
  function: objectCheck({
    required: {
      type: acceptAny,
      function: objectCheck({
        required: { name: callName },
        optional: { description: stringCheck(), parameters: acceptAny, strict: booleanCheck },
      }),
    },
  }),
  custom: objectCheck({
    required: {
      type: acceptAny,
      custom: objectCheck({
        required: { name: callName },
        optional: { description: stringCheck(), format: acceptAny },
      }),
    },
  }),
})

const optionalFields: Readonly<Record<string, ShapeCheck>> = {
  ...cacheFieldChecks,
  audio: acceptAny,
  frequency_penalty: numberCheck(-2, 2),
  function_call: acceptAny,
  functions: acceptAny,
  logit_bias: acceptAny,
  logprobs: booleanCheck,
  max_completion_tokens: integerCheck(1),
  max_tokens: integerCheck(1),
  metadata: metadataCheck,
  modalities: acceptAny,
  moderation: acceptAny,
  n: integerCheck(1),
  parallel_tool_calls: booleanCheck,
  prediction: acceptAny,
  presence_penalty: numberCheck(-2, 2),
  reasoning_effort: stringCheck(),
  response_format: acceptAny,
  safety_identifier: stringCheck({ max: 128 }),
  seed: acceptAny,
  service_tier: choiceCheck('auto', 'default', 'flex', 'scale', 'priority', 'fast'),
  stop: stringOr(arrayCheck(stringCheck(), { max: 4 })),
  store: booleanCheck,
  stream: booleanCheck,
  stream_options: objectCheck({
    optional: { include_usage: booleanCheck, include_obfuscation: booleanCheck },
  }),
  temperature: numberCheck(0, 2),
  tool_choice: acceptAny,
  tools: arrayCheck(chatTool, { max: 128 }),
  top_logprobs: integerCheck(0),
  top_p: numberCheck(0, 1),
  user: stringCheck(),
  verbosity: choiceCheck('low', 'medium', 'high'),
  web_search_options: acceptAny,
}

const bodyFields = {
  required: { model: stringCheck(), messages: arrayCheck(messageCheck, { min: 1 }) },
  optional: optionalFields,
}
const strictBody = objectCheck(bodyFields)
const lenientBody = objectCheck(bodyFields, true)

/** Returns the first error in the shape of a body; null if it has the shape of a request. */
export function checkChatShape(value: unknown, { isLenient }: Dialect): OpenaiError | null {
  return (isLenient ? lenientBody : strictBody)(value, '')
}
