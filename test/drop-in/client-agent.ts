/** A client as most agents are: it keeps its own message list and sends all of it with every request. */
import { type Coder, createCoder, createSimulator, type Simulator, withSummaries } from '@tidemark/simulator'
import { decodeReplyBytes, initialByteStreamState } from '@tidemark/wire/anthropic/decode-stream'
import { anthropic, createTidemark, type SessionEvent, type Tidemark, type TidemarkOptions } from 'tidemark'

export interface ClientBlock {
  readonly type: string
  readonly [field: string]: unknown
}

export interface ClientMessage {
  readonly role: 'user' | 'assistant' | 'system'
  readonly content: string | readonly ClientBlock[]
  readonly [field: string]: unknown
}

export interface ClientResponse {
  readonly id: string
  readonly content: readonly ClientBlock[]
  readonly stop_reason: string | null
  readonly usage: Readonly<Record<string, number>>
}

export type Fetch = typeof globalThis.fetch

/** What the tests stand on: the simulator, and Tidemark with everything that it emits. */
export interface DropInWorld {
  readonly tide: Tidemark
  readonly coder: Coder
  readonly simulator: Simulator
  readonly events: readonly SessionEvent[]
  /** Sends to the simulator; `sent` has the bodies as they were sent. */
  readonly upstream: Fetch
  readonly sent: readonly string[]
  /** The messages of the events of one type. */
  readonly listMessages: (type: SessionEvent['type']) => readonly string[]
}

export interface DropInOptions extends Partial<TidemarkOptions> {
  readonly modelId?: string
  readonly window?: number
  readonly turns?: number
  readonly resultTokens?: number
  readonly thinkingTokens?: number
  readonly simulator?: Parameters<typeof createSimulator>[0]
}

export function createDropInWorld(options: DropInOptions = {}): DropInWorld {
  const { modelId = 'claude-sonnet-5-5', window, turns = 6, resultTokens = 300 } = options
  const { simulator: more, thinkingTokens = 0, ...given } = options
  const coder = createCoder({ turns, resultTokens, thinkingTokens })
  const simulator = createSimulator({
    script: withSummaries(coder.script),
    keepRequests: Number.POSITIVE_INFINITY,
    ...(window === undefined ? {} : { window }),
    ...more,
  })
  const sent: string[] = []
  const upstream: Fetch = (input, init) => {
    sent.push(String(init?.body))
    return simulator.fetch(input instanceof Request ? input : String(input), init)
  }
  const events: SessionEvent[] = []
  const { window: _, turns: __, resultTokens: ___, modelId: ____, ...own } = given
  const tide = createTidemark({
    model: anthropic(modelId, {
      apiKey: 'engine',
      fetch: (input, init) => simulator.fetch(String(input), init),
      ...(window === undefined ? {} : { window, maxOutput: 4_000 }),
    }),
    ...(own.home === undefined ? { memory: true } : {}),
    env: {},
    onEvent: (event) => void events.push(event),
    ...own,
  })
  const listMessages = (type: SessionEvent['type']): readonly string[] =>
    events.flatMap((event) => (event.type === type && 'message' in event ? [event.message] : []))
  return { tide, coder, simulator, events, upstream, sent, listMessages }
}

export interface ClientSettings {
  readonly system?: unknown
  readonly tools?: readonly object[]
  readonly model?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Fields of every request, such as `max_tokens` and `thinking`. */
  readonly fields?: Readonly<Record<string, unknown>>
  /** Changes a request body just before it is sent, as clients with bad habits do. */
  readonly prepare?: (body: Record<string, unknown>, number: number) => Record<string, unknown>
}

export class ClientAgent {
  messages: ClientMessage[] = []
  requests = 0
  readonly #fetch: Fetch
  readonly #coder: Pick<Coder, 'tools' | 'toolResult'>
  readonly #settings: ClientSettings

  constructor(fetch: Fetch, coder: Pick<Coder, 'tools' | 'toolResult'>, settings: ClientSettings = {}) {
    this.#fetch = fetch
    this.#coder = coder
    this.#settings = settings
  }

  /** The body of the next request. */
  createBody(): Record<string, unknown> {
    const {
      system = 'You are a careful coder. '.repeat(400),
      tools = this.#coder.tools,
      model,
    } = this.#settings
    const { fields = {}, prepare } = this.#settings
    const body = {
      model: model ?? 'claude-sonnet-5-5',
      max_tokens: 2_000,
      ...fields,
      system,
      ...(tools.length === 0 ? {} : { tools }),
      messages: this.messages,
    }
    // What is changed just before it is sent stays as it was in the list of the host.
    return prepare === undefined
      ? body
      : prepare({ ...body, messages: structuredClone(this.messages) }, this.requests)
  }

  /** Asks how many tokens the next request has. */
  async count(): Promise<number> {
    const { max_tokens: _, ...body } = this.createBody()
    const response = await this.send({ body: JSON.stringify(body) }, '/v1/messages/count_tokens')
    const text = await response.text()
    if (!response.ok) throw new Error(text)
    return JSON.parse(text).input_tokens
  }

  /** Sends the next request and returns the HTTP response. */
  send(init: RequestInit = {}, path = '/v1/messages'): Promise<Response> {
    const body = this.createBody()
    this.requests += 1
    return this.#fetch(`http://simulator.test${path}`, {
      method: 'POST',
      headers: {
        'x-api-key': 'host',
        'anthropic-version': '2023-06-01',
        'content-type': 'application/json',
        ...this.#settings.headers,
      },
      body: JSON.stringify(body),
      ...init,
    })
  }

  /** One request and its response, and the results of the tools that it calls. Returns false after the final answer. */
  async step(): Promise<boolean> {
    const response = await this.send()
    const text = await response.text()
    if (!response.ok) throw new Error(`${response.status} ${text}`)
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true
    const message = isStream ? readStream(text) : (JSON.parse(text) as ClientResponse)
    this.messages.push({ role: 'assistant', content: message.content })
    return this.answerCalls(message.content)
  }

  /** Runs the tools that a response calls. Returns false if it calls none. */
  answerCalls(content: readonly ClientBlock[]): boolean {
    const calls = content.filter(({ type }) => type === 'tool_use')
    if (calls.length === 0) return false
    const results = calls.map((call) => {
      const { content: text, is_error } = this.#coder.toolResult(call as never)
      const result = { type: 'tool_result', tool_use_id: String(call.id), content: text }
      return is_error === true ? { ...result, is_error } : result
    })
    this.messages.push({ role: 'user', content: results as unknown as ClientBlock[] })
    return true
  }

  /** Gives a prompt and takes requests until the final answer. */
  async ask(prompt: string): Promise<void> {
    this.messages.push({ role: 'user', content: prompt })
    while (await this.step());
  }
}

function readStream(text: string): ClientResponse {
  const [, events] = decodeReplyBytes(initialByteStreamState, new TextEncoder().encode(text))
  const end = events.at(-1)
  if (end?.type !== 'reply-ended') throw new Error(`The stream ended with ${end?.type}.`)
  return end.reply.message as unknown as ClientResponse
}

/** Sums over the requests to the simulator. */
export function sumRequests({ simulator }: Pick<DropInWorld, 'simulator'>) {
  const requests = simulator.requests.filter(({ endpoint }) => endpoint === '/v1/messages')
  const sum = (pick: (request: (typeof requests)[number]) => number | null | undefined): number =>
    requests.reduce((total, request) => total + (pick(request) ?? 0), 0)
  return {
    requests: requests.length,
    refused: requests.filter(({ status }) => status !== 200).length,
    read: sum(({ usage }) => usage?.cacheRead),
    written: sum(({ usage }) => (usage === null ? 0 : usage.write5m + usage.write1h)),
    fresh: sum(({ usage }) => usage?.input),
    dollars: sum(({ cost }) => cost?.total),
  }
}

/** Marks the end of the system prompt and of the messages, as good clients do. */
export function withMarkers(body: Record<string, unknown>): Record<string, unknown> {
  const cache_control = { type: 'ephemeral' }
  const messages = structuredClone(body.messages) as { role: string; content: ClientBlock[] | string }[]
  const last = messages.at(-1)
  if (last !== undefined) {
    const blocks = typeof last.content === 'string' ? [{ type: 'text', text: last.content }] : last.content
    last.content = blocks.map((block, index) =>
      index === blocks.length - 1 ? { ...block, cache_control } : block,
    )
  }
  return { ...body, system: [{ type: 'text', text: body.system, cache_control }], messages }
}

/** Puts Tidemark under a client, by `tide.fetch`. `own`: further options of it. */
export function dropIn(settings: ClientSettings = {}, options: DropInOptions = {}, own: object = {}) {
  const world = createDropInWorld(options)
  const fetch = world.tide.fetch({ session: 'talk', fetch: world.upstream, ...own })
  return { ...world, fetch, host: new ClientAgent(fetch, world.coder, settings) }
}
