/**
 * Servers that speak Chat Completions, one row each: which fields they want back, what they report, how they name things.
 * A new server is a new row.
 */
export type DialectName = 'openai' | 'openrouter' | 'deepseek' | 'kimi' | 'vllm' | 'ollama' | 'llama.cpp'

export interface Dialect {
  readonly name: DialectName
  /** What sentences call the server. */
  readonly title: string
  /** Field of a message that has the model's reasoning; null if the server keeps it to itself. */
  readonly reasoning: 'reasoning_content' | 'reasoning' | null
  /** Field of a message with opaque reasoning, which goes back as it came; null if there is none. */
  readonly details: 'reasoning_details' | null
  /** Whether the reasoning of a response goes back with its tool calls. */
  readonly returnsReasoning: boolean
  /** Name of the field for the largest output. */
  readonly maxOutput: 'max_completion_tokens' | 'max_tokens'
  /** Name of the field for the effort; null if there is none. */
  readonly effort: 'reasoning_effort' | null
  /** Role of the system prompt. */
  readonly system: 'developer' | 'system'
  /** Whether requests may name a cache key, which keeps a session on one machine. */
  readonly hasCacheKey: boolean
}

const COMMON = {
  reasoning: null,
  details: null,
  returnsReasoning: false,
  maxOutput: 'max_tokens',
  effort: null,
  system: 'system',
  hasCacheKey: false,
} as const

export const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  openai: {
    ...COMMON,
    name: 'openai',
    title: 'OpenAI',
    maxOutput: 'max_completion_tokens',
    effort: 'reasoning_effort',
    system: 'developer',
    hasCacheKey: true,
  },
  openrouter: {
    ...COMMON,
    name: 'openrouter',
    title: 'OpenRouter',
    reasoning: 'reasoning',
    details: 'reasoning_details',
    returnsReasoning: true,
  },
  deepseek: {
    ...COMMON,
    name: 'deepseek',
    title: 'DeepSeek',
    reasoning: 'reasoning_content',
    returnsReasoning: true,
  },
  kimi: { ...COMMON, name: 'kimi', title: 'Kimi', reasoning: 'reasoning_content', returnsReasoning: true },
  vllm: { ...COMMON, name: 'vllm', title: 'vLLM', reasoning: 'reasoning_content' },
  ollama: { ...COMMON, name: 'ollama', title: 'Ollama', reasoning: 'reasoning' },
  'llama.cpp': { ...COMMON, name: 'llama.cpp', title: 'llama.cpp', reasoning: 'reasoning_content' },
}

export const DIALECT_NAMES: readonly DialectName[] = Object.values(DIALECTS).map(({ name }) => name)
