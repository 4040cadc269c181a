/**
 * Answers of the simulated OpenAI APIs as they were recorded. The compiler compares them with the types of the SDK, also
 * for fields that these do not have; a test compares them with what the simulator sends now.
 */
import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions'
import type { InputTokenCountResponse } from 'openai/resources/responses/input-tokens'
import type {
  CompactedResponse,
  Response,
  ResponseInputItem,
  ResponseOutputItem,
  ResponseStreamEvent,
  ResponseUsage,
} from 'openai/resources/responses/responses'

/**
 * A response as it is sent. The SDK adds `output_text`. On the wire some fields are null that the types leave out, and
 * there are three more.
 */
type SentResponse = Omit<Response, 'output_text' | 'usage' | 'user'> & {
  usage: ResponseUsage | null
  user: string | null
  store: boolean
  presence_penalty: number
  frequency_penalty: number
}

/** An event without the response that some have whole. */
type SentEvent = ResponseStreamEvent extends infer Event
  ? Event extends unknown
    ? Omit<Event, 'response'>
    : never
  : never

/** The types of the SDK do not have the messages of the user that a compaction returns. */
type SentCompaction = Omit<CompactedResponse, 'output'> & {
  output: (ResponseOutputItem | (ResponseInputItem.Message & { id: string }))[]
}

export const RESPONSE: SentResponse = {
  id: 'resp_01AHslbN6qQ7hGb5lUymw0Qk',
  object: 'response',
  created_at: 1800000000,
  access_programs: null,
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  model: 'gpt-5.6-sol',
  parallel_tool_calls: true,
  presence_penalty: 0,
  frequency_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  prompt_cache_retention: null,
  prompt_cache_options: {
    mode: 'implicit',
    ttl: '30m',
  },
  reasoning: {
    effort: 'medium',
    summary: 'auto',
  },
  safety_identifier: null,
  service_tier: 'default',
  store: true,
  temperature: 1,
  text: {
    format: {
      type: 'text',
    },
    verbosity: 'medium',
  },
  tool_choice: 'auto',
  tools: [
    {
      type: 'function',
      name: 'read',
      description: 'Reads a file',
      parameters: {
        type: 'object',
        properties: {
          path: {
            type: 'string',
          },
        },
      },
      strict: false,
    },
    {
      type: 'custom',
      name: 'patch',
    },
  ],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
  metadata: {},
  status: 'completed',
  completed_at: 1800000000,
  output: [
    {
      id: 'rs_01PgVFiAYLG3HozzUoGLC9v6',
      type: 'reasoning',
      summary: [
        {
          type: 'summary_text',
          text: 'Two calls.',
        },
      ],
      encrypted_content:
        'gAAAAAAatuKCOaItihKL0RdojwV_budnaVJ34N7zr8eNgvaFou2OBNLMTtOBuashmah5CshFNZdSAW-fJuVNlgxQlGRfMyXcFDVSRPaJ4coMIDyw',
    },
    {
      id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [
        {
          type: 'output_text',
          text: 'Reading.',
          annotations: [],
          logprobs: [],
        },
      ],
    },
    {
      id: 'fc_01zbQGOqBmJGhfxNOKTYvhG2',
      type: 'function_call',
      status: 'completed',
      call_id: 'call_01XOzaglO1nRsDldAA29D6CC',
      name: 'read',
      arguments: '{"path":"a"}',
    },
    {
      id: 'ctc_01zDeVjAH8ACTRcAFtYBIUGz',
      type: 'custom_tool_call',
      call_id: 'call_019jQkBMABBXRk8cNzctZusb',
      name: 'patch',
      input: 'x',
    },
  ],
  usage: {
    input_tokens: 1173,
    input_tokens_details: {
      cached_tokens: 0,
      cache_write_tokens: 1173,
    },
    output_tokens: 31,
    output_tokens_details: {
      reasoning_tokens: 3,
    },
    total_tokens: 1204,
  },
}

export const DIAGNOSED: Response['prompt_cache_diagnostics'] = {
  type: 'cache_miss',
  reason: 'prompt_cache_key_changed',
  cache_missed_tokens: 1173,
  comparison_reusable_tokens: 1173,
}

export const INCOMPLETE: SentResponse = {
  id: 'resp_01Ac8jGwwLG38hz81OzdjdVG',
  object: 'response',
  created_at: 1800000000,
  access_programs: null,
  background: false,
  error: null,
  incomplete_details: {
    reason: 'max_output_tokens',
  },
  instructions: null,
  max_output_tokens: 16,
  max_tool_calls: null,
  model: 'gpt-5.6-sol',
  parallel_tool_calls: true,
  presence_penalty: 0,
  frequency_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  prompt_cache_retention: null,
  prompt_cache_options: {
    mode: 'implicit',
    ttl: '30m',
  },
  reasoning: {
    effort: 'medium',
    summary: 'auto',
  },
  safety_identifier: null,
  service_tier: 'default',
  store: true,
  temperature: 1,
  text: {
    format: {
      type: 'text',
    },
    verbosity: 'medium',
  },
  tool_choice: 'auto',
  tools: [
    {
      type: 'function',
      name: 'read',
      description: 'Reads a file',
      parameters: {
        type: 'object',
        properties: {
          path: {
            type: 'string',
          },
        },
      },
      strict: false,
    },
    {
      type: 'custom',
      name: 'patch',
    },
  ],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
  metadata: {},
  status: 'incomplete',
  completed_at: null,
  output: [
    {
      id: 'rs_01bfaXf7wV86Bqf7X7sZiSLJ',
      type: 'reasoning',
      summary: [
        {
          type: 'summary_text',
          text: 'Two calls.',
        },
      ],
      encrypted_content:
        'gAAAAAfQIsI3i9A1YDTe78L7OefQcfaLqMpOHml45X9QU9v1OPOa_6sH8OwwaeZOmTUgaizS6vWOENeJgFzE4Ed0QOrP7K0rzn-OsJqNg1YgSJnw',
    },
    {
      id: 'msg_01Uyx67mtYpDYqt1pMiD4yJK',
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [
        {
          type: 'output_text',
          text: 'Reading.',
          annotations: [],
          logprobs: [],
        },
      ],
    },
    {
      id: 'fc_01t4kUsGa24kjZkACssR8ApS',
      type: 'function_call',
      status: 'incomplete',
      call_id: 'call_01ZENQ8IekxJRe6BBpXhj1sA',
      name: 'read',
      arguments: '{"path":"a"}',
    },
  ],
  usage: {
    input_tokens: 1173,
    input_tokens_details: {
      cached_tokens: 1173,
      cache_write_tokens: 0,
    },
    output_tokens: 16,
    output_tokens_details: {
      reasoning_tokens: 3,
    },
    total_tokens: 1189,
  },
}

export const PENDING: SentResponse = {
  ...RESPONSE,
  status: 'in_progress',
  completed_at: null,
  output: [],
  usage: null,
}

export const EVENTS: readonly SentEvent[] = [
  {
    type: 'response.created',
    sequence_number: 0,
  },
  {
    type: 'response.in_progress',
    sequence_number: 1,
  },
  {
    type: 'response.output_item.added',
    sequence_number: 2,
    output_index: 0,
    item: {
      id: 'rs_01PgVFiAYLG3HozzUoGLC9v6',
      type: 'reasoning',
      summary: [],
      encrypted_content: 'gAAAAAAatuKCOaItihKL0Rdo',
    },
  },
  {
    type: 'response.reasoning_summary_part.added',
    sequence_number: 3,
    item_id: 'rs_01PgVFiAYLG3HozzUoGLC9v6',
    output_index: 0,
    summary_index: 0,
    part: {
      type: 'summary_text',
      text: '',
    },
  },
  {
    type: 'response.reasoning_summary_text.delta',
    sequence_number: 4,
    item_id: 'rs_01PgVFiAYLG3HozzUoGLC9v6',
    output_index: 0,
    summary_index: 0,
    delta: 'Two calls.',
  },
  {
    type: 'response.reasoning_summary_text.done',
    sequence_number: 5,
    item_id: 'rs_01PgVFiAYLG3HozzUoGLC9v6',
    output_index: 0,
    summary_index: 0,
    text: 'Two calls.',
  },
  {
    type: 'response.reasoning_summary_part.done',
    sequence_number: 6,
    item_id: 'rs_01PgVFiAYLG3HozzUoGLC9v6',
    output_index: 0,
    summary_index: 0,
    part: {
      type: 'summary_text',
      text: 'Two calls.',
    },
  },
  {
    type: 'response.output_item.done',
    sequence_number: 7,
    output_index: 0,
    item: {
      id: 'rs_01PgVFiAYLG3HozzUoGLC9v6',
      type: 'reasoning',
      summary: [
        {
          type: 'summary_text',
          text: 'Two calls.',
        },
      ],
      encrypted_content:
        'gAAAAAAatuKCOaItihKL0RdojwV_budnaVJ34N7zr8eNgvaFou2OBNLMTtOBuashmah5CshFNZdSAW-fJuVNlgxQlGRfMyXcFDVSRPaJ4coMIDyw',
    },
  },
  {
    type: 'response.output_item.added',
    sequence_number: 8,
    output_index: 1,
    item: {
      id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
      type: 'message',
      status: 'in_progress',
      role: 'assistant',
      content: [],
    },
  },
  {
    type: 'response.content_part.added',
    sequence_number: 9,
    item_id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
    output_index: 1,
    content_index: 0,
    part: {
      type: 'output_text',
      text: '',
      annotations: [],
      logprobs: [],
    },
  },
  {
    type: 'response.output_text.delta',
    sequence_number: 10,
    item_id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
    output_index: 1,
    content_index: 0,
    delta: 'Reading.',
    logprobs: [],
  },
  {
    type: 'response.output_text.done',
    sequence_number: 11,
    item_id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
    output_index: 1,
    content_index: 0,
    text: 'Reading.',
    logprobs: [],
  },
  {
    type: 'response.content_part.done',
    sequence_number: 12,
    item_id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
    output_index: 1,
    content_index: 0,
    part: {
      type: 'output_text',
      text: 'Reading.',
      annotations: [],
      logprobs: [],
    },
  },
  {
    type: 'response.output_item.done',
    sequence_number: 13,
    output_index: 1,
    item: {
      id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [
        {
          type: 'output_text',
          text: 'Reading.',
          annotations: [],
          logprobs: [],
        },
      ],
    },
  },
  {
    type: 'response.output_item.added',
    sequence_number: 14,
    output_index: 2,
    item: {
      id: 'fc_01zbQGOqBmJGhfxNOKTYvhG2',
      type: 'function_call',
      status: 'in_progress',
      call_id: 'call_01XOzaglO1nRsDldAA29D6CC',
      name: 'read',
      arguments: '',
    },
  },
  {
    type: 'response.function_call_arguments.delta',
    sequence_number: 15,
    item_id: 'fc_01zbQGOqBmJGhfxNOKTYvhG2',
    output_index: 2,
    delta: '{"path":"a"}',
  },
  {
    type: 'response.function_call_arguments.done',
    sequence_number: 16,
    item_id: 'fc_01zbQGOqBmJGhfxNOKTYvhG2',
    output_index: 2,
    arguments: '{"path":"a"}',
  },
  {
    type: 'response.output_item.done',
    sequence_number: 17,
    output_index: 2,
    item: {
      id: 'fc_01zbQGOqBmJGhfxNOKTYvhG2',
      type: 'function_call',
      status: 'completed',
      call_id: 'call_01XOzaglO1nRsDldAA29D6CC',
      name: 'read',
      arguments: '{"path":"a"}',
    },
  },
  {
    type: 'response.output_item.added',
    sequence_number: 18,
    output_index: 3,
    item: {
      id: 'ctc_01zDeVjAH8ACTRcAFtYBIUGz',
      type: 'custom_tool_call',
      call_id: 'call_019jQkBMABBXRk8cNzctZusb',
      name: 'patch',
      input: '',
    },
  },
  {
    type: 'response.custom_tool_call_input.delta',
    sequence_number: 19,
    item_id: 'ctc_01zDeVjAH8ACTRcAFtYBIUGz',
    output_index: 3,
    delta: 'x',
  },
  {
    type: 'response.custom_tool_call_input.done',
    sequence_number: 20,
    item_id: 'ctc_01zDeVjAH8ACTRcAFtYBIUGz',
    output_index: 3,
    input: 'x',
  },
  {
    type: 'response.output_item.done',
    sequence_number: 21,
    output_index: 3,
    item: {
      id: 'ctc_01zDeVjAH8ACTRcAFtYBIUGz',
      type: 'custom_tool_call',
      call_id: 'call_019jQkBMABBXRk8cNzctZusb',
      name: 'patch',
      input: 'x',
    },
  },
  {
    type: 'response.completed',
    sequence_number: 22,
  },
]

export const REFUSAL_EVENTS: readonly SentEvent[] = [
  {
    type: 'response.created',
    sequence_number: 0,
  },
  {
    type: 'response.in_progress',
    sequence_number: 1,
  },
  {
    type: 'response.output_item.added',
    sequence_number: 2,
    output_index: 0,
    item: {
      id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
      type: 'message',
      status: 'in_progress',
      role: 'assistant',
      content: [],
    },
  },
  {
    type: 'response.content_part.added',
    sequence_number: 3,
    item_id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
    output_index: 0,
    content_index: 0,
    part: {
      type: 'refusal',
      refusal: '',
    },
  },
  {
    type: 'response.refusal.delta',
    sequence_number: 4,
    item_id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
    output_index: 0,
    content_index: 0,
    delta: 'No.',
  },
  {
    type: 'response.refusal.done',
    sequence_number: 5,
    item_id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
    output_index: 0,
    content_index: 0,
    refusal: 'No.',
  },
  {
    type: 'response.content_part.done',
    sequence_number: 6,
    item_id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
    output_index: 0,
    content_index: 0,
    part: {
      type: 'refusal',
      refusal: 'No.',
    },
  },
  {
    type: 'response.output_item.done',
    sequence_number: 7,
    output_index: 0,
    item: {
      id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [
        {
          type: 'refusal',
          refusal: 'No.',
        },
      ],
    },
  },
  {
    type: 'response.completed',
    sequence_number: 8,
  },
]

export const COMPACTION_EVENTS: readonly SentEvent[] = [
  {
    type: 'response.created',
    sequence_number: 0,
  },
  {
    type: 'response.in_progress',
    sequence_number: 1,
  },
  {
    type: 'response.output_item.added',
    sequence_number: 2,
    output_index: 0,
    item: {
      id: 'cmp_01cEnsN1bhubKFoxGOwEzukH',
      type: 'compaction',
      encrypted_content:
        'gAAAAAAtIsaXbEp3a0cvyTsjXUDoUQP1FpnsjKFX4hltwAuiFHv_fuPv1MFA_XpywjUEajhjHlwscVMUolGNS9rYk57Yf5YKccwW1LICfsH3bJgNM',
    },
  },
  {
    type: 'response.compaction.compacting',
    sequence_number: 3,
    item_id: 'cmp_01cEnsN1bhubKFoxGOwEzukH',
    output_index: 0,
  },
  {
    type: 'response.output_item.done',
    sequence_number: 4,
    output_index: 0,
    item: {
      id: 'cmp_01cEnsN1bhubKFoxGOwEzukH',
      type: 'compaction',
      encrypted_content:
        'gAAAAAAtIsaXbEp3a0cvyTsjXUDoUQP1FpnsjKFX4hltwAuiFHv_fuPv1MFA_XpywjUEajhjHlwscVMUolGNS9rYk57Yf5YKccwW1LICfsH3bJgNM',
    },
  },
  {
    type: 'response.completed',
    sequence_number: 5,
  },
]

export const ERROR_EVENTS: readonly SentEvent[] = [
  {
    type: 'response.created',
    sequence_number: 0,
  },
  {
    type: 'response.in_progress',
    sequence_number: 1,
  },
  {
    type: 'error',
    sequence_number: 2,
    code: 'context_length_exceeded',
    message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
    param: 'input',
  },
]

export const COMPACTED: SentCompaction = {
  id: 'resp_01AHslbN6qQ7hGb5lUymw0Qk',
  object: 'response.compaction',
  created_at: 1800000000,
  output: [
    {
      id: 'msg_01UpgA954bDOJyyCfm0tV0j5',
      type: 'message',
      status: 'completed',
      role: 'user',
      content: [
        {
          type: 'input_text',
          text: 'go',
        },
      ],
    },
    {
      id: 'cmp_01cEnsN1bhubKFoxGOwEzukH',
      type: 'compaction',
      encrypted_content:
        'gAAAAAAtIsaXbEp3a0cvyTsjXUDoUQP1FpnsjKFX4hltwAuiFHv_fuPv1MFA_XpywjUEajhjHlwscVMUolGNS9rYk57Yf5YKccwW1LICfsH3bJgNM',
    },
  ],
  usage: {
    input_tokens: 5,
    input_tokens_details: {
      cached_tokens: 0,
      cache_write_tokens: 0,
    },
    output_tokens: 3,
    output_tokens_details: {
      reasoning_tokens: 0,
    },
    total_tokens: 8,
  },
}

export const COUNTED: InputTokenCountResponse = {
  object: 'response.input_tokens',
  input_tokens: 5,
}

export const COMPLETION: ChatCompletion = {
  id: 'chatcmpl_01RZTmlbIfv6HX6Qnr70DKUM',
  object: 'chat.completion',
  created: 1800000000,
  model: 'gpt-5.1',
  service_tier: 'default',
  system_fingerprint: 'fp_simulated',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'Reading.',
        refusal: null,
        annotations: [],
        tool_calls: [
          {
            id: 'call_01XOzaglO1nRsDldAA29D6CC',
            type: 'function',
            function: {
              name: 'read',
              arguments: '{"path":"a"}',
            },
          },
          {
            id: 'call_019jQkBMABBXRk8cNzctZusb',
            type: 'custom',
            custom: {
              name: 'patch',
              input: 'x',
            },
          },
        ],
      },
      logprobs: null,
      finish_reason: 'tool_calls',
    },
  ],
  usage: {
    prompt_tokens: 77,
    completion_tokens: 31,
    total_tokens: 108,
    prompt_tokens_details: {
      cached_tokens: 0,
      audio_tokens: 0,
    },
    completion_tokens_details: {
      reasoning_tokens: 3,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  },
}

export const CHUNKS: readonly ChatCompletionChunk[] = [
  {
    id: 'chatcmpl_01RZTmlbIfv6HX6Qnr70DKUM',
    object: 'chat.completion.chunk',
    created: 1800000000,
    model: 'gpt-5.1',
    service_tier: 'default',
    system_fingerprint: 'fp_simulated',
    choices: [
      {
        index: 0,
        delta: {
          role: 'assistant',
          content: '',
          refusal: null,
        },
        logprobs: null,
        finish_reason: null,
      },
    ],
    usage: null,
  },
  {
    id: 'chatcmpl_01RZTmlbIfv6HX6Qnr70DKUM',
    object: 'chat.completion.chunk',
    created: 1800000000,
    model: 'gpt-5.1',
    service_tier: 'default',
    system_fingerprint: 'fp_simulated',
    choices: [
      {
        index: 0,
        delta: {
          content: 'Reading.',
        },
        logprobs: null,
        finish_reason: null,
      },
    ],
    usage: null,
  },
  {
    id: 'chatcmpl_01RZTmlbIfv6HX6Qnr70DKUM',
    object: 'chat.completion.chunk',
    created: 1800000000,
    model: 'gpt-5.1',
    service_tier: 'default',
    system_fingerprint: 'fp_simulated',
    choices: [
      {
        index: 0,
        delta: {
          tool_calls: [
            {
              index: 0,
              id: 'call_01XOzaglO1nRsDldAA29D6CC',
              type: 'function',
              function: {
                name: 'read',
                arguments: '',
              },
            },
          ],
        },
        logprobs: null,
        finish_reason: null,
      },
    ],
    usage: null,
  },
  {
    id: 'chatcmpl_01RZTmlbIfv6HX6Qnr70DKUM',
    object: 'chat.completion.chunk',
    created: 1800000000,
    model: 'gpt-5.1',
    service_tier: 'default',
    system_fingerprint: 'fp_simulated',
    choices: [
      {
        index: 0,
        delta: {
          tool_calls: [
            {
              index: 0,
              function: {
                arguments: '{"path":"a"}',
              },
            },
          ],
        },
        logprobs: null,
        finish_reason: null,
      },
    ],
    usage: null,
  },
  {
    id: 'chatcmpl_01RZTmlbIfv6HX6Qnr70DKUM',
    object: 'chat.completion.chunk',
    created: 1800000000,
    model: 'gpt-5.1',
    service_tier: 'default',
    system_fingerprint: 'fp_simulated',
    choices: [
      {
        index: 0,
        delta: {
          tool_calls: [
            {
              index: 1,
              id: 'call_019jQkBMABBXRk8cNzctZusb',
              type: 'custom',
              custom: {
                name: 'patch',
                input: '',
              },
            },
          ],
        },
        logprobs: null,
        finish_reason: null,
      },
    ],
    usage: null,
  },
  {
    id: 'chatcmpl_01RZTmlbIfv6HX6Qnr70DKUM',
    object: 'chat.completion.chunk',
    created: 1800000000,
    model: 'gpt-5.1',
    service_tier: 'default',
    system_fingerprint: 'fp_simulated',
    choices: [
      {
        index: 0,
        delta: {
          tool_calls: [
            {
              index: 1,
              custom: {
                input: 'x',
              },
            },
          ],
        },
        logprobs: null,
        finish_reason: null,
      },
    ],
    usage: null,
  },
  {
    id: 'chatcmpl_01RZTmlbIfv6HX6Qnr70DKUM',
    object: 'chat.completion.chunk',
    created: 1800000000,
    model: 'gpt-5.1',
    service_tier: 'default',
    system_fingerprint: 'fp_simulated',
    choices: [
      {
        index: 0,
        delta: {},
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ],
    usage: null,
  },
  {
    id: 'chatcmpl_01RZTmlbIfv6HX6Qnr70DKUM',
    object: 'chat.completion.chunk',
    created: 1800000000,
    model: 'gpt-5.1',
    service_tier: 'default',
    system_fingerprint: 'fp_simulated',
    choices: [],
    usage: {
      prompt_tokens: 77,
      completion_tokens: 31,
      total_tokens: 108,
      prompt_tokens_details: {
        cached_tokens: 0,
        audio_tokens: 0,
      },
      completion_tokens_details: {
        reasoning_tokens: 3,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
  },
]
