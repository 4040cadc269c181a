/** `tidemark/anthropic`: middleware of the official client, with nothing else told to it. */

import Anthropic from '@anthropic-ai/sdk'
import { sampleCases } from '@tidemark/core/testing'
import { type Coder, createCoder, createSimulator, withSummaries } from '@tidemark/simulator'
import type { SessionEvent } from 'tidemark'
import { tidemark } from 'tidemark/anthropic'
import { describe, expect, it, onTestFinished } from 'vitest'

const MODEL = 'claude-haiku-4-5'

/** The official client on the simulator, whose models have a window of their own. */
function createClient(options: { readonly window?: number; readonly isManaged?: boolean } = {}) {
  const { window, isManaged = true } = options
  const coder = createCoder({ turns: 45, resultTokens: 1_500 })
  const simulator = createSimulator({
    script: withSummaries(coder.script),
    keepRequests: Number.POSITIVE_INFINITY,
    ...(window === undefined ? {} : { window }),
  })
  const sent: { readonly url: string; readonly key: string | null; readonly body: string }[] = []
  const fetch: typeof globalThis.fetch = (input, init) => {
    const key = new Headers(init?.headers).get('authorization')
    sent.push({ url: String(input), key, body: String(init?.body) })
    return simulator.fetch(String(input), init)
  }
  const events: SessionEvent[] = []
  const middleware = tidemark({
    session: 'talk',
    memory: true,
    env: {},
    onEvent: (event) => void events.push(event),
  })
  onTestFinished(() => middleware.close())
  const client = new Anthropic({
    apiKey: 'of-the-client',
    baseURL: 'http://simulator.test',
    fetch,
    maxRetries: 0,
    middleware: isManaged ? [middleware] : [],
  })
  return { client, coder, simulator, sent, events }
}

type How = 'create' | 'stream' | 'tool runner'

async function work(client: Anthropic, coder: Coder, how: How): Promise<number> {
  const system = 'You are a careful coder. '.repeat(300)
  const given = { model: MODEL, max_tokens: 2_000, system }
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Mend the sums.' }]
  if (how === 'tool runner') {
    const tools = coder.tools.map((tool) => ({
      ...tool,
      run: (input: unknown, context?: { toolUseBlock?: { id: string; name: string } }) =>
        String(coder.toolResult({ ...context?.toolUseBlock, input } as never).content),
    }))
    let responses = 0
    for await (const _ of client.beta.messages.toolRunner({ ...given, tools: tools as never, messages }))
      responses += 1
    return responses
  }
  const tools = coder.tools as unknown as Anthropic.Tool[]
  for (let responses = 1; ; responses += 1) {
    const body = { ...given, tools, messages }
    const { content } =
      how === 'create'
        ? await client.messages.create(body)
        : await client.messages.stream(body).finalMessage()
    messages.push({ role: 'assistant', content })
    const calls = content.filter((block) => block.type === 'tool_use')
    if (calls.length === 0) return responses
    const results = calls.map(({ id, name, input }): Anthropic.ToolResultBlockParam => {
      const result = coder.toolResult({ id, name, input: Object(input) })
      return { type: 'tool_result', tool_use_id: id, content: String(result.content) }
    })
    messages.push({ role: 'user', content: results })
  }
}

describe.each<How>(sampleCases<How>(['stream', 'create', 'tool runner'], 2))(
  'the official client, by %s',
  (how) => {
    it('pays a fraction, and every request is answered', async () => {
      const spend = async (isManaged: boolean): Promise<number> => {
        const { client, coder, simulator } = createClient({ isManaged })
        expect(await work(client, coder, how)).toBe(46)
        expect(simulator.requests.every(({ status }) => status === 200)).toBe(true)
        return simulator.requests.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0)
      }
      expect(await spend(true)).toBeLessThan((await spend(false)) / 4)
    })

    it('goes on past the window, and summaries are asked for with its own key', async () => {
      const { client, coder, sent, events } = createClient({ window: 24_000 })
      expect(await work(client, coder, how)).toBe(46)
      expect(events.some(({ type }) => type === 'reactive-compact' || type === 'compact')).toBe(true)
      expect(new Set(sent.map(({ key }) => key))).toEqual(new Set(['Bearer of-the-client']))
    })
  },
)

it('a model that the catalogue does not have is sent as the client wrote it', async () => {
  const { client, sent, events } = createClient()
  const body = {
    model: 'nobody-knows-1',
    max_tokens: 5,
    messages: [{ role: 'user' as const, content: 'Hi.' }],
  }
  await expect(client.messages.create(body)).rejects.toMatchObject({ status: 404 })
  expect(JSON.parse(sent[0]?.body ?? '')).toEqual(body)
  expect(events).toMatchObject([{ type: 'request-passed' }])
})

describe('the options of the middleware', () => {
  it.each<[string, object, string]>([
    ['a misspelt name', { sesion: 'x' }, 'Did you mean session?'],
    ['a window', { window: 30_000 }, 'unknown option window'],
    ['an option of the model', { apiKey: 'x' }, 'unknown option apiKey'],
    ['a mode that does not exist', { mode: 'of' }, 'expected "manage", "observe" or "off"'],
    ['a wrong policy', { policy: { cache: { ttl: 'never' } } }, 'ttl'],
  ])('throw for %s before the first request', (_, options, message) => {
    expect(() => tidemark(options as never)).toThrow(message)
  })
})
