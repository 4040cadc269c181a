/** Requests to a simulator without a client library: sends a body, returns the status and the parsed answer. */
import { createSimulator, type Simulator, type SimulatorOptions } from '@tidemark/simulator'

export interface TestResponse {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: the answer of a server, read field by field in tests
  readonly body: any
  readonly headers: Headers
}

export interface RequestSettings {
  readonly betas?: readonly string[]
  readonly version?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly path?: string
}

export async function postMessage(
  simulator: Simulator,
  body: object,
  asked: RequestSettings = {},
): Promise<TestResponse> {
  const response = await simulator.fetch(`http://simulator${asked.path ?? '/v1/messages'}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': 'test-key',
      'anthropic-version': asked.version ?? '2026-10-21',
      ...(asked.betas === undefined ? {} : { 'anthropic-beta': asked.betas.join(',') }),
      ...asked.headers,
    },
    body: JSON.stringify({ model: MODEL, ...(asked.path === undefined ? { max_tokens: 64 } : {}), ...body }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type') === 'application/json'
  return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers }
}

/** Its cache minimum is 512 tokens, which keeps test texts short. */
export const MODEL = 'claude-opus-5'

/** A text of exactly `count` tokens. Texts with different marks differ from the first byte. */
export function tokens(count: number, mark = 'x'): string {
  return mark.padEnd(count * 4, ' lorem ipsum')
}

export const MARK = { cache_control: { type: 'ephemeral' } } as const
export const HOUR = { cache_control: { type: 'ephemeral', ttl: '1h' } } as const

export function user(...content: readonly (string | object)[]): object {
  return { role: 'user', content: content.map(block) }
}

export function assistant(...content: readonly (string | object)[]): object {
  return { role: 'assistant', content: content.map(block) }
}

function block(given: string | object): object {
  return typeof given === 'string' ? { type: 'text', text: given } : given
}

export function text(said: string, more: object = {}): object {
  return { type: 'text', text: said, ...more }
}

export function call(id: string, more: object = {}): object {
  return { type: 'tool_use', id, name: 'look', input: { at: id }, ...more }
}

export function result(id: string, said = 'seen', more: object = {}): object {
  return { type: 'tool_result', tool_use_id: id, content: said, ...more }
}

export const TOOL = { name: 'look', description: 'Looks', input_schema: { type: 'object', properties: {} } }

export function simulate(options: SimulatorOptions = {}): Simulator {
  return createSimulator({ script: () => ({ blocks: [{ type: 'text', text: 'ok' }] }), ...options })
}

export interface UsageFigures {
  readonly read: number
  readonly write5m: number
  readonly write1h: number
  readonly input: number
}

export function readUsageFigures({ body }: TestResponse): UsageFigures {
  const { usage } = body
  return {
    read: usage.cache_read_input_tokens,
    write5m: usage.cache_creation.ephemeral_5m_input_tokens,
    write1h: usage.cache_creation.ephemeral_1h_input_tokens,
    input: usage.input_tokens,
  }
}
