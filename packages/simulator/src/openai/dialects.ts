/**
 * The servers that speak Chat Completions, and how each differs from OpenAI: what it reports and refuses, in which
 * field it returns reasoning and whether that must be sent back, and what it does with a prompt that is longer than the
 * window.
 */
import { createOpenaiError, createParameterError, type OpenaiError } from './openai-error.ts'

export type DialectName = 'openai' | 'openrouter' | 'deepseek' | 'kimi' | 'vllm' | 'ollama' | 'llama.cpp'

export interface Dialect {
  readonly name: DialectName
  /** True if any model id is accepted and unknown fields are ignored, as servers other than OpenAI do. */
  readonly isLenient: boolean
  /** Context window, in tokens, of models that the catalogue does not have. */
  readonly window: number
  /** Message field in which reasoning is returned; null if it is not returned. */
  readonly reasoningField: 'reasoning_content' | 'reasoning' | null
  /** True if the reasoning of a message with tool calls must be sent back; otherwise the next request is refused. */
  readonly needsReasoningBack: boolean
  /**
   * How cached tokens are reported: as OpenAI does, in DeepSeek's own fields as well, or not at all.
   */
  readonly cacheReport: 'details' | 'hit-and-miss' | 'none'
  readonly cache: PrefixCacheRules
  /** True if the server drops the oldest messages of a prompt over the window and still answers with status 200. */
  readonly truncatesSilently: boolean
  /** Creates the error for a prompt of `tokens` that is over the window. */
  describeOverflow(tokens: number, window: number): OpenaiError
}

/** How an implicit prefix cache counts the tokens that two prompts share. */
export interface PrefixCacheRules {
  /** Shortest prefix that can be read, in tokens. */
  readonly minimum: number
  /** Cached tokens are a multiple of this. */
  readonly step: number
  /** True if only whole messages match. */
  readonly wholeMessages: boolean
  /** True if the model's answer is cached with its prompt. */
  readonly keepsAnswers: boolean
}

/** The implicit cache of OpenAI's models before GPT-5.6. */
const OPENAI_PREFIX_CACHE: PrefixCacheRules = {
  minimum: 1_024,
  step: 128,
  wholeMessages: false,
  keepsAnswers: false,
}

const BLOCK_CACHE: PrefixCacheRules = { minimum: 16, step: 16, wholeMessages: false, keepsAnswers: true }

const OPENAI: Dialect = {
  name: 'openai',
  isLenient: false,
  window: 128_000,
  reasoningField: null,
  needsReasoningBack: false,
  cacheReport: 'details',
  cache: OPENAI_PREFIX_CACHE,
  truncatesSilently: false,
  describeOverflow: (tokens, window) =>
    createParameterError(
      `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`,
      'messages',
      'context_length_exceeded',
    ),
}

const DEEPSEEK: Dialect = {
  ...OPENAI,
  name: 'deepseek',
  isLenient: true,
  reasoningField: 'reasoning_content',
  needsReasoningBack: true,
  cacheReport: 'hit-and-miss',
  cache: { minimum: 64, step: 64, wholeMessages: true, keepsAnswers: true },
}

const DIALECTS: readonly Dialect[] = [
  OPENAI,
  {
    ...OPENAI,
    name: 'openrouter',
    isLenient: true,
    reasoningField: 'reasoning',
    describeOverflow: (tokens, window) =>
      createOpenaiError(
        400,
        `This endpoint's maximum context length is ${window} tokens. However, you requested about ${tokens} tokens (${tokens} of text input, 0 in the output). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.`,
      ),
  },
  DEEPSEEK,
  {
    ...DEEPSEEK,
    name: 'kimi',
    window: 262_144,
    cacheReport: 'details',
    cache: OPENAI_PREFIX_CACHE,
    describeOverflow: (tokens, window) =>
      createOpenaiError(
        400,
        `Invalid request: Your request exceeded model token limit: ${window} (requested: ${tokens})`,
      ),
  },
  {
    ...OPENAI,
    name: 'vllm',
    isLenient: true,
    window: 32_768,
    reasoningField: 'reasoning_content',
    cacheReport: 'none',
    cache: BLOCK_CACHE,
    describeOverflow: (tokens, window) =>
      createOpenaiError(
        400,
        `This model's maximum context length is ${window} tokens and your request has ${tokens} input tokens (${tokens} > ${window} - 1).`,
        { type: 'BadRequestError', code: '400' },
      ),
  },
  {
    ...OPENAI,
    name: 'ollama',
    isLenient: true,
    window: 4_096,
    reasoningField: 'reasoning',
    cacheReport: 'none',
    cache: BLOCK_CACHE,
    truncatesSilently: true,
  },
  {
    ...OPENAI,
    name: 'llama.cpp',
    isLenient: true,
    window: 4_096,
    reasoningField: 'reasoning_content',
    cacheReport: 'none',
    cache: BLOCK_CACHE,
    describeOverflow: (tokens, window) =>
      createOpenaiError(
        400,
        `request (${tokens} tokens) exceeds the available context size (${window} tokens), try increasing it`,
        { type: 'exceed_context_size_error', code: '400', extra: { n_prompt_tokens: tokens, n_ctx: window } },
      ),
  },
]

/** Returns the dialect of this name; undefined if there is none. */
export function findDialect(name: string): Dialect | undefined {
  return DIALECTS.find((dialect) => dialect.name === name)
}

/** Name of the request header that selects the dialect of one request. */
export const DIALECT_HEADER = 'x-simulator-dialect'

/** The error of a request that names a dialect the simulator does not have. */
export function createUnknownDialectError(name: string): OpenaiError {
  const known = DIALECTS.map((dialect) => dialect.name).join(', ')
  return createParameterError(`${DIALECT_HEADER}: expected one of ${known}; found ${name}`, null)
}
