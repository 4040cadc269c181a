/** What a client of the bench is given and what it returns: a real package that works through the coder's task. */
import type { Coder } from '@tidemark/simulator'

export type Fetch = typeof globalThis.fetch

/** A tool call as the client ran it. */
export interface RunCall {
  readonly id: string
  readonly name: string
  readonly input: unknown
}

export interface ClientTask {
  /** For clients that run in this process: sends their requests. */
  readonly fetch: Fetch
  /** For clients that take middleware, which then go through it and not through `fetch`. */
  readonly middleware: readonly unknown[]
  /** The address of the provider, or, for clients that are a process of their own, the one to send requests to; without `/v1`. */
  readonly baseUrl: string
  readonly model: string
  readonly system: string
  readonly prompt: string
  /** Number of responses with tool calls before the final answer; a client may need a limit above it. */
  readonly steps: number
  readonly tools: Coder['tools']
  /** Runs a call of one of `tools`. */
  readonly runTool: (call: RunCall) => ToolText
  /** Records a call that the client ran with a tool of its own. */
  readonly recordCall: (call: RunCall) => void
}

export interface ToolText {
  readonly text: string
  readonly isError: boolean
}

/** The API that a client speaks, and the model behind it. */
export interface ClientProvider {
  readonly api: 'messages' | 'responses' | 'chat'
  readonly model: string
  /** A server that speaks Chat Completions in its own way. Default: OpenAI. */
  readonly dialect?: 'openrouter' | 'deepseek' | 'vllm'
  /** Tokens of reasoning in each response. Default: 0. */
  readonly thinkingTokens?: number
}

export const CLAUDE: ClientProvider = { api: 'messages', model: 'claude-sonnet-5-5' }

export interface Client {
  readonly name: string
  /** `fetch`: it takes a `fetch` function. `middleware`: that of the official client. `url`: it takes a base URL. */
  readonly door: 'fetch' | 'middleware' | 'url'
  /** True if its prompts are cached without Tidemark: it sets markers, or the provider caches by itself. */
  readonly caches: boolean
  /** Whom it talks to. Default: Claude, on the Messages API. */
  readonly provider?: ClientProvider
  readonly isStream?: boolean
  /** Changes how the provider answers, for a client that is to meet a certain fault. */
  readonly wrapProvider?: (fetch: Fetch) => Fetch
  /** Works through the task and returns the final answer. Throws what the package throws. */
  run(task: ClientTask): Promise<string>
}

/** A tool of the coder, as the libraries want it. */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly schema: { readonly type: 'object'; readonly [field: string]: unknown }
}

export function listTools({ tools }: ClientTask): readonly ToolDefinition[] {
  return tools.map(({ name, description, input_schema }) => ({
    name: String(name),
    description: String(description),
    schema: input_schema as ToolDefinition['schema'],
  }))
}
