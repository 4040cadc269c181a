/**
 * Servers that speak Chat Completions, one row for each: which fields they want sent back, what they report, and their
 * names for fields. A new server needs only a new row.
 */
export type DialectName = 'openai' | 'openrouter' | 'deepseek' | 'kimi' | 'vllm' | 'ollama' | 'llama.cpp'

export interface Dialect {
  readonly name: DialectName
  /** The name of the server in messages. */
  readonly title: string
  /** Message field with the model's reasoning; null if the server does not return it. */
  readonly reasoning: 'reasoning_content' | 'reasoning' | null
  /** Message field with opaque reasoning, which is sent back unchanged; null if there is none. */
  readonly details: 'reasoning_details' | null
  /** True if the server wants the reasoning of earlier responses sent back. */
  readonly returnsReasoning: boolean
  /** Name of the field for the output limit. */
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
