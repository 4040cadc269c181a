/** What the simulated OpenAI APIs refuse, with the texts, parameters and codes of the provider. */
import { describe, expect, it } from 'vitest'
import { simulate } from './ask.ts'
import {
  CHAT_FUNCTION,
  FUNCTION,
  functionCall,
  functionOutput,
  NEW_MODEL,
  OLD_MODEL,
  postChat,
  postResponse,
} from './openai-requests.ts'

const user = { role: 'user', content: 'hi' }
const said = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok' }] }
const marked = [{ type: 'input_text', text: 'hi', prompt_cache_breakpoint: { mode: 'explicit' } }]

interface Row {
  readonly name: string
  readonly body: object
  /** The whole message, or its beginning if it ends with `…`. */
  readonly message: string
  readonly param: string | null
  readonly code: string | null
  readonly status?: number
}

function toExpected({ message, param, code, status = 400 }: Row): object {
  const text = message.endsWith('…')
    ? expect.stringMatching(`^${escapePattern(message.slice(0, -1))}`)
    : message
  return { status, body: { error: { message: text, type: 'invalid_request_error', param, code } } }
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

const RESPONSES: readonly Row[] = [
  {
    name: 'an unknown field',
    body: { input: 'hi', foo: 1 },
    message: "Unknown parameter: 'foo'.",
    param: 'foo',
    code: 'unknown_parameter',
  },
  {
    name: 'an unknown field of an item',
    body: { input: [{ ...user, foo: 1 }] },
    message: "Unknown parameter: 'input[0].foo'.",
    param: 'input[0].foo',
    code: 'unknown_parameter',
  },
  {
    name: 'no input',
    body: {},
    message: "One of 'input' or 'previous_response_id'…",
    param: 'input',
    code: 'missing_required_parameter',
  },
  {
    name: 'an input of another type',
    body: { input: 7 },
    message: "Invalid type for 'input': expected an array, but got an integer instead.",
    param: 'input',
    code: 'invalid_type',
  },
  {
    name: 'an item of an unknown type',
    body: { input: [{ type: 'thought' }] },
    message: "Invalid value: 'thought'. Supported values are: …",
    param: 'input[0]',
    code: 'invalid_value',
  },
  {
    name: 'text of a user in a message of the assistant',
    body: { input: [{ role: 'assistant', content: [{ type: 'input_text', text: 'a' }] }] },
    message: "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    param: 'input[0].content[0]',
    code: 'invalid_value',
  },
  {
    name: 'reasoning without a summary',
    body: { input: [{ type: 'reasoning', id: 'rs_1' }] },
    message: "Missing required parameter: 'input[0].summary'.",
    param: 'input[0].summary',
    code: 'missing_required_parameter',
  },
  {
    name: 'a call id over 64 characters',
    body: { input: [functionCall('c'.repeat(65))] },
    message:
      "Invalid 'input[0].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
    param: 'input[0].call_id',
    code: 'string_above_max_length',
  },
  {
    name: 'a tool name with a space',
    body: { input: 'hi', tools: [{ ...FUNCTION, name: 'a b' }] },
    message:
      "Invalid 'tools[0].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    param: 'tools[0].name',
    code: 'invalid_value',
  },
  {
    name: 'more than 128 tools',
    body: { input: 'hi', tools: Array.from({ length: 129 }, () => FUNCTION) },
    message:
      "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead.",
    param: 'tools',
    code: 'array_above_max_length',
  },
  {
    name: 'fewer than 16 tokens of output',
    body: { input: 'hi', max_output_tokens: 15 },
    message:
      "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 15 instead.",
    param: 'max_output_tokens',
    code: 'integer_below_min_value',
  },
  {
    name: 'an unknown model',
    body: { input: 'hi', model: 'gpt-0' },
    message: "The requested model 'gpt-0' does not exist.",
    param: 'model',
    code: 'model_not_found',
  },
  {
    name: 'a temperature for a model that reasons',
    body: { input: 'hi', temperature: 0.5 },
    message: "Unsupported parameter: 'temperature' is not supported with this model.",
    param: 'temperature',
    code: null,
  },
  {
    name: 'an effort that the model lacks',
    body: { input: 'hi', reasoning: { effort: 'huge' } },
    message: `Unsupported value: 'huge' is not supported with the '${OLD_MODEL}' model. Supported values are: …`,
    param: 'reasoning.effort',
    code: 'unsupported_value',
  },
  {
    name: 'a choice of a tool that is not declared',
    body: { input: 'hi', tool_choice: { type: 'function', name: 'read' } },
    message: "Tool choice 'function' not found in 'tools' parameter.",
    param: 'tool_choice',
    code: null,
  },
  {
    name: 'options of a stream without a stream',
    body: { input: 'hi', stream_options: { include_obfuscation: false } },
    message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    param: 'stream_options',
    code: null,
  },
  {
    name: 'an unknown previous response',
    body: { input: 'hi', previous_response_id: 'resp_none' },
    message: "Previous response with id 'resp_none' not found.",
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  },
  {
    name: 'a reference to an item that is not stored',
    body: { input: [{ type: 'item_reference', id: 'rs_none' }] },
    message: "Item with id 'rs_none' not found.",
    param: 'input',
    code: null,
    status: 404,
  },
  {
    name: 'reasoning without its content that is not stored',
    body: { store: false, input: [{ type: 'reasoning', id: 'rs_none', summary: [] }, said] },
    message:
      "Item with id 'rs_none' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
    param: 'input',
    code: null,
    status: 404,
  },
  {
    name: 'a conversation, which is not simulated',
    body: { input: 'hi', conversation: 'conv_1' },
    message: "'conversation' is not simulated.",
    param: 'conversation',
    code: 'not_simulated',
  },
  {
    name: 'a conversation together with a previous response',
    body: { input: 'hi', conversation: 'conv_1', previous_response_id: 'resp_1' },
    message: 'Mutually exclusive parameters. Ensure…',
    param: 'conversation',
    code: 'mutually_exclusive_parameters',
  },
  {
    name: 'an output without its call',
    body: { input: [user, functionOutput('call_1')] },
    message: 'No tool call found for function call output with call_id call_1.',
    param: 'input',
    code: null,
  },
  {
    name: 'an output before its call',
    body: { input: [user, functionOutput('call_1'), functionCall('call_1')] },
    message: 'No tool call found for function call output with call_id call_1.',
    param: 'input',
    code: null,
  },
  {
    name: 'a call without its output',
    body: { input: [user, functionCall('call_1'), user] },
    message: 'No tool output found for function call call_1.',
    param: 'input',
    code: null,
  },
  {
    name: 'a custom call with the output of a function',
    body: {
      input: [
        { type: 'custom_tool_call', call_id: 'call_1', name: 'p', input: '' },
        functionOutput('call_1'),
      ],
    },
    message: 'No tool call found for function call output with call_id call_1.',
    param: 'input',
    code: null,
  },
  {
    name: 'two items of one id',
    body: { input: [{ ...said, id: 'msg_1' }, user, { ...said, id: 'msg_1' }] },
    message: 'Duplicate item found with id msg_1. Remove duplicate items from your input and try again.',
    param: 'input',
    code: null,
  },
  {
    name: 'an id with another prefix',
    body: { input: [functionCall('call_1', { id: 'call_1' }), functionOutput('call_1')] },
    message: "Invalid 'input[0].id': 'call_1'. Expected an ID that begins with 'fc'.",
    param: 'input[0].id',
    code: 'invalid_value',
  },
  {
    name: 'an empty id',
    body: { input: [{ ...said, id: '' }] },
    message:
      "Invalid 'input[0].id': ''. Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained additional characters.",
    param: 'input[0].id',
    code: 'invalid_value',
  },
  {
    name: 'a compaction trigger before other items',
    body: { input: [user, { type: 'compaction_trigger' }, user] },
    message: "Item of type 'compaction_trigger' must be the final input item.",
    param: 'input[1]',
    code: 'invalid_value',
  },
  {
    name: 'content that is not the provider’s',
    body: { input: [{ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'c2VjcmV0' }, said] },
    message:
      'The encrypted content c2Vj...cmV0 could not be verified. Reason: Encrypted content could not be decrypted or parsed.',
    param: null,
    code: 'invalid_encrypted_content',
  },
  {
    name: 'cache options for a model without breakpoints',
    body: { input: 'hi', prompt_cache_options: { mode: 'explicit' } },
    message: "Unsupported parameter: 'prompt_cache_options' is not supported with this model.",
    param: 'prompt_cache_options',
    code: 'unsupported_parameter',
  },
  {
    name: 'a breakpoint for a model without breakpoints',
    body: { input: [{ role: 'user', content: marked }] },
    message:
      "Unsupported parameter: 'input[0].content[0].prompt_cache_breakpoint' is not supported with this model.",
    param: 'input[0].content[0].prompt_cache_breakpoint',
    code: 'unsupported_parameter',
  },
  {
    name: 'retention in memory for a newer model',
    body: { input: 'hi', model: NEW_MODEL, prompt_cache_retention: 'in_memory' },
    message: "Unsupported value: 'in_memory' is not supported with…",
    param: 'prompt_cache_retention',
    code: 'unsupported_value',
  },
  {
    name: 'more than 16 pairs of metadata',
    body: {
      input: 'hi',
      metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`k${at}`, 'v'])),
    },
    message: "Invalid 'metadata': too many properties…",
    param: 'metadata',
    code: 'object_above_max_properties',
  },
]

const CHAT: readonly Row[] = [
  {
    name: 'no messages',
    body: { messages: [] },
    message:
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    param: 'messages',
    code: 'empty_array',
  },
  {
    name: 'an unknown role',
    body: { messages: [{ role: 'robot', content: 'a' }] },
    message: "Invalid value: 'robot'. Supported values are: …",
    param: 'messages[0].role',
    code: 'invalid_value',
  },
  {
    name: 'an unknown field',
    body: { messages: [user], thinking: {} },
    message: "Unknown parameter: 'thinking'.",
    param: 'thinking',
    code: 'unknown_parameter',
  },
  {
    name: 'no calls in a list of calls',
    body: { messages: [user, { role: 'assistant', content: 'a', tool_calls: [] }] },
    message: "Invalid 'messages[1].tool_calls': empty array…",
    param: 'messages[1].tool_calls',
    code: 'empty_array',
  },
  {
    name: 'an assistant message without content',
    body: { messages: [user, { role: 'assistant', content: null }] },
    message: "Invalid value for 'content': expected a string, got null.",
    param: 'messages.[1].content',
    code: null,
  },
  {
    name: 'an image in a tool message',
    body: {
      messages: [
        user,
        calls('a'),
        { role: 'tool', tool_call_id: 'a', content: [{ type: 'image_url', image_url: { url: 'data:' } }] },
      ],
    },
    message: "Invalid value: 'image_url'. Supported values are: 'text'.",
    param: 'messages[2].content[0]',
    code: 'invalid_value',
  },
  {
    name: 'a tool message without calls',
    body: { messages: [user, answer('a')] },
    message:
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    param: 'messages.[1].role',
    code: null,
  },
  {
    name: 'a tool message after another message',
    body: { messages: [user, calls('a'), answer('a'), user, answer('a')] },
    message: "Invalid parameter: messages with role 'tool'…",
    param: 'messages.[4].role',
    code: null,
  },
  {
    name: 'a call without its tool message',
    body: { messages: [user, calls('a', 'b'), answer('a')] },
    message:
      "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: b",
    param: 'messages.[3].role',
    code: null,
  },
  {
    name: 'a message between a call and its tool message',
    body: { messages: [user, calls('a'), user, answer('a')] },
    message: "An assistant message with 'tool_calls' must be followed…",
    param: 'messages.[2].role',
    code: null,
  },
  {
    name: 'two tool messages for a call',
    body: { messages: [user, calls('a'), answer('a'), answer('a')] },
    message: "Duplicate value for 'tool_call_id' of 'a' in message[3].",
    param: 'messages.[3].tool_call_id',
    code: null,
  },
  {
    name: 'two assistant messages in a row',
    body: { messages: [user, { role: 'assistant', content: 'a' }, { role: 'assistant', content: 'b' }] },
    message: "Invalid parameter: messages[2] has the role 'assistant'…",
    param: 'messages.[2].role',
    code: null,
  },
  {
    name: 'a choice of tools without tools',
    body: { messages: [user], tool_choice: 'auto' },
    message: "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    param: 'tool_choice',
    code: null,
  },
  {
    name: 'max_tokens for a model that reasons',
    body: { messages: [user], max_tokens: 9 },
    message:
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    param: 'max_tokens',
    code: 'unsupported_parameter',
  },
  {
    name: 'a temperature for a model that reasons',
    body: { messages: [user], temperature: 0.5 },
    message:
      "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
    param: 'temperature',
    code: 'unsupported_value',
  },
  {
    name: 'options of a stream without a stream',
    body: { messages: [user], stream_options: { include_usage: true } },
    message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    param: 'stream_options',
    code: null,
  },
  {
    name: 'several choices, which are not simulated',
    body: { messages: [user], n: 2 },
    message: "'n' is not simulated.",
    param: 'n',
    code: 'not_simulated',
  },
  {
    name: 'an unknown model',
    body: { messages: [user], model: 'gpt-0' },
    message: 'The model `gpt-0` does not exist or you do not have access to it.',
    param: 'model',
    code: 'model_not_found',
    status: 404,
  },
]

function calls(...ids: readonly string[]): object {
  const tool_calls = ids.map((id) => ({ id, type: 'function', function: { name: 'read', arguments: '{}' } }))
  return { role: 'assistant', content: null, tool_calls }
}

function answer(id: string): object {
  return { role: 'tool', tool_call_id: id, content: 'seen' }
}

describe('Responses refuses', () => {
  it.each(RESPONSES)('$name', async (row) => {
    expect(await postResponse(simulate(), row.body)).toMatchObject(toExpected(row))
  })

  it('a prompt over the window, and says so in the log', async () => {
    const simulator = simulate({ window: 50 })
    const refused = await postResponse(simulator, { input: 'word '.repeat(200) })
    const message =
      'Your input exceeds the context window of this model. Please adjust your input and try again.'
    const row = { name: '', body: {}, message, param: 'input', code: 'context_length_exceeded' }
    expect(refused).toMatchObject(toExpected(row))
    expect(simulator.requests[0]).toMatchObject({
      status: 400,
      error: { type: 'context_length_exceeded', message },
    })
  })

  it('nothing of what it accepts', async () => {
    const input = [
      { role: 'developer', content: 'Be brief.' },
      user,
      said,
      functionCall('call_1', { id: 'fc_1', status: 'completed' }),
      functionOutput('call_1', [
        { type: 'input_text', text: 'a' },
        { type: 'input_image', image_url: 'data:' },
      ]),
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
      { type: 'custom_tool_call', call_id: 'call_2', name: 'patch', input: 'x' },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: 'done' },
    ]
    expect(
      await postResponse(simulate(), { input, tools: [FUNCTION, { type: 'web_search' }] }),
    ).toMatchObject({
      status: 200,
    })
  })
})

describe('Chat Completions refuses', () => {
  it.each(CHAT)('$name', async (row) => {
    expect(await postChat(simulate(), row.body)).toMatchObject(toExpected(row))
  })

  it('a prompt over the window with both numbers', async () => {
    const messages = [{ role: 'user', content: 'word '.repeat(200) }]
    expect(await postChat(simulate({ window: 50 }), { messages })).toMatchObject({
      status: 400,
      body: {
        error: {
          message: expect.stringMatching(
            /^This model's maximum context length is 50 tokens\. However, your messages resulted in 254 tokens\./,
          ),
          param: 'messages',
          code: 'context_length_exceeded',
        },
      },
    })
  })

  it('nothing of what it accepts', async () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: { url: 'data:' } },
        ],
      },
      calls('a', 'b'),
      answer('b'),
      answer('a'),
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'done', annotations: [] }],
        reasoning_content: 'a',
      },
      user,
    ]
    expect(await postChat(simulate(), { messages, tools: [CHAT_FUNCTION] })).toMatchObject({ status: 200 })
  })
})
