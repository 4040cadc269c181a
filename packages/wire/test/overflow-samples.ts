/** Error responses of each provider for a prompt that is too long, and similar ones that are not: with the expected gap. */
export interface OverflowSample {
  readonly from: string
  readonly status: number
  readonly body: string
  readonly gap: object | null
}

function error(message: string, more: object = {}): string {
  return JSON.stringify({ error: { message, ...more } })
}

export const OVERFLOW_SAMPLES: readonly OverflowSample[] = [
  {
    from: 'Anthropic',
    status: 400,
    body: error('prompt is too long: 208310 tokens > 200000 maximum', { type: 'invalid_request_error' }),
    gap: { actual: 208310, limit: 200000, over: 8310 },
  },
  {
    from: 'Anthropic before 4.5',
    status: 400,
    body: error(
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again',
    ),
    gap: { actual: 210000, limit: 200000, over: 10000 },
  },
  { from: 'Anthropic via Vertex', status: 413, body: error('Prompt is too long'), gap: {} },
  { from: 'Anthropic via Vertex, 400', status: 400, body: error('Prompt is too long'), gap: {} },
  {
    from: 'Anthropic via Vertex, newer',
    status: 400,
    body: JSON.stringify({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'prompt is too long: 1000001 tokens > 1000000 maximum',
      },
      request_id: 'req_vrtx_1',
    }),
    gap: { actual: 1000001, limit: 1000000, over: 1 },
  },
  { from: 'Bedrock', status: 400, body: '{"message":"Input is too long for requested model."}', gap: {} },
  {
    from: 'Bedrock, wrapped',
    status: 400,
    body: '{"message":"The model returned the following errors: Input is too long for requested model"}',
    gap: {},
  },
  { from: 'Claude apps gateway', status: 400, body: error('capability_rejected: prompt_too_long'), gap: {} },
  {
    from: 'OpenAI Chat',
    status: 400,
    body: error(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens (129000 in the messages, 1001 in the functions). Please reduce the length of the messages or functions.",
      { code: 'context_length_exceeded', param: 'messages' },
    ),
    gap: { actual: 130001, limit: 128000, over: 2001 },
  },
  {
    from: 'OpenAI, older',
    status: 400,
    body: error(
      "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion).",
    ),
    gap: { actual: 9000, limit: 8192, over: 808 },
  },
  {
    from: 'OpenAI Responses',
    status: 400,
    body: error(
      'Your input exceeds the context window of this model. Please adjust your input and try again.',
    ),
    gap: {},
  },
  {
    from: 'OpenAI Responses, in a stream',
    status: 200,
    body: JSON.stringify({
      type: 'error',
      code: 'context_length_exceeded',
      message: 'Your input exceeds the context window of this model.',
    }),
    gap: {},
  },
  {
    from: 'OpenAI Responses, a response that failed',
    status: 200,
    body: JSON.stringify({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'context_length_exceeded', message: 'Too much.' } },
    }),
    gap: {},
  },
  {
    from: 'OpenAI, code alone',
    status: 400,
    body: error('Too much.', { code: 'context_length_exceeded' }),
    gap: {},
  },
  {
    from: 'Azure OpenAI',
    status: 400,
    body: error(
      'Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in 280,500 tokens.',
    ),
    gap: { actual: 280500, limit: 272000, over: 8500 },
  },
  {
    from: 'Gemini',
    status: 400,
    body: `[${error('The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).', { code: 400, status: 'INVALID_ARGUMENT' })}]`,
    gap: { actual: 1200000, limit: 1048576, over: 151424 },
  },
  {
    from: 'OpenRouter',
    status: 400,
    body: error(
      "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (120000 of text input, 4000 of tool input, 16000 in the output). Please reduce",
      { code: 400 },
    ),
    gap: { actual: 140000, limit: 131072, over: 8928 },
  },
  {
    from: 'OpenRouter, without tools',
    status: 400,
    body: error(
      "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (30000 of text input, 10000 in the output).",
      { code: 400 },
    ),
    gap: { actual: 40000, limit: 32768, over: 7232 },
  },
  {
    from: 'OpenRouter, passing on',
    status: 400,
    body: error('Provider returned error', {
      metadata: { raw: error('prompt is too long: 5 tokens > 4 maximum') },
    }),
    gap: { actual: 5, limit: 4, over: 1 },
  },
  {
    from: 'Poolside',
    status: 400,
    body: error('Input length 5000 exceeds the maximum allowed input length of 4096 tokens.'),
    gap: { actual: 5000, limit: 4096, over: 904 },
  },
  {
    from: 'xAI',
    status: 400,
    body: JSON.stringify({
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    }),
    gap: { actual: 200000, limit: 131072, over: 68928 },
  },
  {
    from: 'Groq',
    status: 400,
    body: error('Please reduce the length of the messages or completion.', {
      code: 'context_length_exceeded',
    }),
    gap: {},
  },
  {
    from: 'Groq, 413',
    status: 413,
    body: error('Please reduce the length of the messages or completion.', {
      code: 'context_length_exceeded',
    }),
    gap: {},
  },
  {
    from: 'xAI, other code',
    status: 400,
    body: JSON.stringify({
      code: 'invalid-argument',
      error: "This model's maximum prompt length is 131072 but the request contains 131073 tokens.",
    }),
    gap: { actual: 131073, limit: 131072, over: 1 },
  },
  {
    from: 'Mistral',
    status: 400,
    body: JSON.stringify({
      object: 'error',
      message:
        'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
      type: 'invalid_request_invalid_args',
      code: '3051',
    }),
    gap: { actual: 40000, limit: 32768, over: 7232 },
  },
  {
    from: 'vLLM',
    status: 400,
    body: JSON.stringify({
      object: 'error',
      message:
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (4096 > 8192 - 5000).",
      type: 'BadRequestError',
      code: 400,
    }),
    gap: { actual: 9096, limit: 8192, over: 904 },
  },
  {
    from: 'vLLM, other',
    status: 400,
    body: error(
      "This model's maximum context length is 8192 tokens. However, you requested 4096 output tokens and your prompt contains at least 5000 input tokens, for a total of at least 9096 tokens.",
    ),
    gap: { actual: 9096, limit: 8192, over: 904 },
  },
  {
    from: 'llama.cpp',
    status: 400,
    body: error('request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it', {
      code: 400,
      type: 'exceed_context_size_error',
      n_prompt_tokens: 9000,
      n_ctx: 8192,
    }),
    gap: { actual: 9000, limit: 8192, over: 808 },
  },
  {
    from: 'llama.cpp, by fields',
    status: 400,
    body: error('the request exceeds the available context size', {
      type: 'exceed_context_size_error',
      n_prompt_tokens: 9000,
      n_ctx: 8192,
    }),
    gap: { actual: 9000, limit: 8192, over: 808 },
  },
  {
    from: 'LM Studio',
    status: 400,
    body: '{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}',
    gap: { actual: 5000, limit: 4096, over: 904 },
  },
  {
    from: 'Ollama',
    status: 400,
    body: '{"error":"prompt too long; exceeded max context length by 512 tokens"}',
    gap: { over: 512 },
  },
  {
    from: 'Ollama, older',
    status: 400,
    body: '{"error":"prompt too long; exceeded context length by 7 tokens"}',
    gap: { over: 7 },
  },
  {
    from: 'Together',
    status: 400,
    body: error("The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
    gap: { actual: 9000, limit: 8192, over: 808 },
  },
  {
    from: 'DeepSeek',
    status: 400,
    body: error(
      "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (65904 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.",
      { type: 'invalid_request_error' },
    ),
    gap: { actual: 70000, limit: 65536, over: 4464 },
  },
  {
    from: 'LiteLLM',
    status: 400,
    body: error('litellm.ContextWindowExceededError: Context Window exceeded for given call', {
      type: 'ContextWindowExceededError',
    }),
    gap: {},
  },
  {
    from: 'LiteLLM, with limit',
    status: 400,
    body: error("Input exceeds the model's maximum context length of 4096 tokens"),
    gap: { limit: 4096 },
  },
  {
    from: 'LiteLLM, code alone',
    status: 400,
    body: error('no words', { type: 'ContextWindowExceededError' }),
    gap: {},
  },
  {
    from: 'GitHub Copilot',
    status: 400,
    body: error('prompt token count of 70000 exceeds the limit of 64000', {
      code: 'model_max_prompt_tokens_exceeded',
    }),
    gap: { actual: 70000, limit: 64000, over: 6000 },
  },
  {
    from: 'GitHub Copilot, code alone',
    status: 400,
    body: error('no words', { code: 'model_max_prompt_tokens_exceeded' }),
    gap: {},
  },
  { from: 'GitHub Copilot, 413', status: 413, body: error('failed to parse request'), gap: {} },
  {
    from: 'Moonshot',
    status: 400,
    body: error('Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)'),
    gap: { actual: 140000, limit: 131072, over: 8928 },
  },
  {
    from: 'Moonshot, without figure',
    status: 400,
    body: error('Your request exceeded model token limit: 131072'),
    gap: { limit: 131072 },
  },
  {
    from: 'MiniMax',
    status: 400,
    body: error('invalid params, context window exceeds limit (2013)'),
    gap: {},
  },
  { from: 'z.ai', status: 400, body: error('Prompt exceeds max length', { code: '1261' }), gap: {} },
  { from: 'z.ai, code alone', status: 400, body: error('提示词过长', { code: '1261' }), gap: {} },
  { from: 'z.ai, other', status: 400, body: error('Prompt too long'), gap: {} },
  {
    from: 'DashScope',
    status: 400,
    body: error('<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]', {
      code: 'invalid_parameter_error',
    }),
    gap: { limit: 129024 },
  },
  {
    from: 'words that only sound like a rate',
    status: 400,
    body: error('Prompt is too long for the corporate limit'),
    gap: {},
  },
  {
    from: 'Bedrock throttle',
    status: 429,
    body: '{"message":"Too many tokens, please wait before trying again."}',
    gap: null,
  },
  {
    from: 'Groq rate',
    status: 413,
    body: error(
      'Request too large for model `x` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 8000, please try again',
    ),
    gap: null,
  },
  {
    from: 'a rate limit that speaks of length',
    status: 429,
    body: error('Rate limit: your prompt is too long for this minute'),
    gap: null,
  },
  {
    from: 'output cap',
    status: 400,
    body: error(
      'max_tokens: 128001 > 128000, which is the maximum allowed number of output tokens for claude-opus-5',
    ),
    gap: null,
  },
  {
    from: 'Anthropic bytes',
    status: 413,
    body: error('Request exceeds the maximum size', { type: 'request_too_large' }),
    gap: null,
  },
  {
    from: 'Copilot words with another status',
    status: 400,
    body: error('failed to parse request'),
    gap: null,
  },
  { from: 'nothing said', status: 400, body: '', gap: null },
]
