/**
 * Patterns for the messages with which providers reject a prompt that is too long. Named groups capture token counts:
 * `actual`, `plus` (to be added to `actual`), `limit` and `over` (the excess). The first match is used, so patterns
 * with token counts come first. Collected in November 2026.
 */
interface OverflowPattern {
  readonly provider: string
  readonly text: RegExp
  /**
   * HTTP statuses with which this pattern applies, for a text that other errors also contain; absent if it applies with
   * any status.
   */
  readonly status?: readonly number[]
  readonly source: string
}

interface OverflowCode {
  readonly provider: string
  /** Value of the error's `code` or `type` field. */
  readonly code: string
  /** Names of the fields in the error object that hold the token counts. */
  readonly actual?: string
  readonly limit?: string
}

const FROM_DOCUMENTS = 'provider documents'
const FROM_REPORTS = 'published error reports'
const FROM_PI_AI = 'pi-ai 1.5.0, overflow table'

export const OVERFLOW_PATTERNS: readonly OverflowPattern[] = [
  {
    provider: 'anthropic',
    text: /prompt is too long: (?<actual>[\d,]+) tokens > (?<limit>[\d,]+) maximum/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'anthropic before 4.5',
    text: /input length and `?max_tokens`? exceed context limit: (?<actual>[\d,]+) \+ (?<plus>[\d,]+) > (?<limit>[\d,]+)/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'openai',
    text: /maximum context length is (?<limit>[\d,]+) tokens\. However, your messages resulted in (?<actual>[\d,]+) tokens/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'vllm',
    text: /maximum context length is (?<limit>[\d,]+) tokens and your request has (?<actual>[\d,]+) input tokens \((?<plus>\d+) > \d+ - \d+\)/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'vllm',
    text: /maximum context length is (?<limit>[\d,]+) tokens\. However, you requested (?<plus>[\d,]+) output tokens .*at least (?<actual>[\d,]+) input tokens/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'openai before 2024, deepseek, openrouter',
    text: /maximum context length is (?<limit>[\d,]+) tokens[.,] however,? you requested (?:about )?(?<actual>[\d,]+) tokens/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'azure',
    text: /input tokens exceed the configured limit of (?<limit>[\d,]+) tokens\. Your messages resulted in (?<actual>[\d,]+) tokens/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'gemini',
    text: /input token count \((?<actual>[\d,]+)\) exceeds the maximum number of tokens allowed \((?<limit>[\d,]+)\)/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'poolside',
    text: /input length (?<actual>[\d,]+) exceeds the maximum allowed input length of (?<limit>[\d,]+) tokens/i,
    source: FROM_PI_AI,
  },
  {
    provider: 'xai',
    text: /maximum prompt length is (?<limit>[\d,]+) but the request contains (?<actual>[\d,]+) tokens/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'mistral',
    text: /prompt contains (?<actual>[\d,]+) tokens .*too large for model with (?<limit>[\d,]+) maximum context length/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'llama.cpp',
    text: /request \((?<actual>[\d,]+) tokens\) exceeds the available context size \((?<limit>[\d,]+) tokens\)/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'lm studio',
    text: /trying to keep the first (?<actual>[\d,]+) tokens when (?:context the|the context) overflows\. However, the model is loaded with context length of only (?<limit>[\d,]+) tokens/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'ollama',
    text: /prompt too long; exceeded (?:max )?context length by (?<over>[\d,]+) tokens/i,
    source: FROM_REPORTS,
  },
  {
    provider: 'together',
    text: /the input \((?<actual>[\d,]+) tokens\) is longer than the model's context length \((?<limit>[\d,]+) tokens\)/i,
    source: FROM_PI_AI,
  },
  {
    provider: 'github copilot',
    text: /prompt token count of (?<actual>[\d,]+) exceeds the limit of (?<limit>[\d,]+)/i,
    source: FROM_PI_AI,
  },
  {
    provider: 'moonshot',
    text: /exceeded model token limit: (?<limit>[\d,]+)(?: \(requested: (?<actual>[\d,]+)\))?/i,
    source: FROM_PI_AI,
  },
  {
    provider: 'litellm',
    text: /exceeds the model's maximum context length of (?<limit>[\d,]+) tokens/i,
    source: FROM_PI_AI,
  },
  {
    provider: 'dashscope',
    text: /range of input length should be \[1, ?(?<limit>[\d,]+)\]/i,
    source: FROM_PI_AI,
  },
  { provider: 'litellm', text: /context window exceeded for given call/i, source: FROM_PI_AI },
  { provider: 'openai responses', text: /exceeds the context window of this model/i, source: FROM_REPORTS },
  { provider: 'groq', text: /please reduce the length of the messages or completion/i, source: FROM_PI_AI },
  { provider: 'minimax', text: /context window exceeds limit/i, source: FROM_PI_AI },
  { provider: 'z.ai', text: /prompt exceeds max length/i, source: FROM_PI_AI },
  { provider: 'bedrock', text: /input is too long for requested model/i, source: FROM_REPORTS },
  { provider: 'gateway', text: /capability_rejected: prompt_too_long/i, source: FROM_DOCUMENTS },
  { provider: 'vertex, z.ai', text: /\bprompt (?:is )?too long\b/i, source: FROM_REPORTS },
  { provider: 'github copilot', text: /failed to parse request/i, status: [413], source: FROM_PI_AI },
]

export const OVERFLOW_CODES: readonly OverflowCode[] = [
  { provider: 'openai, azure, groq', code: 'context_length_exceeded' },
  { provider: 'llama.cpp', code: 'exceed_context_size_error', actual: 'n_prompt_tokens', limit: 'n_ctx' },
  { provider: 'github copilot', code: 'model_max_prompt_tokens_exceeded' },
  { provider: 'litellm', code: 'ContextWindowExceededError' },
  { provider: 'z.ai', code: '1261' },
]

/** HTTP statuses, by provider, that mean "prompt too long" if the response body is empty. */
export const EMPTY_BODY_OVERFLOW_STATUSES: Readonly<Record<string, readonly number[]>> = {
  cerebras: [400, 413],
}

/** Patterns for rate limit messages. They are checked first, because such messages also mention tokens or sizes. */
export const RATE_LIMIT_PATTERNS: readonly RegExp[] = [
  /\brate[ _-]?limit/i,
  /too many requests/i,
  /throttl/i,
  /too many tokens, please wait/i,
  /tokens per minute/i,
]
