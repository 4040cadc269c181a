/** The real SDK of OpenAI with the `fetch` of Tidemark, on both APIs, past a window in which it dies by itself. */
import { isFullRun } from '@tidemark/core/testing'
import { createCoder, createSimulator, withSummaries } from '@tidemark/simulator'
import OpenAI from 'openai'
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import type { ResponseFunctionToolCall, ResponseInput, Tool } from 'openai/resources/responses/responses'
import { createTidemark, openai } from 'tidemark'
import { describe, expect, it } from 'vitest'

const WINDOW = 30_000
/** Without Tidemark the client dies before half of them. */
const STEPS = isFullRun() ? 60 : 40

function createWorld(api: 'responses' | 'chat', isManaged: boolean) {
  const coder = createCoder({ turns: STEPS, resultTokens: 1_200 })
  const simulator = createSimulator({ script: withSummaries(coder.script), window: WINDOW })
  const model = openai('gpt-5.4', {
    apiKey: 'any',
    fetch: simulator.fetch,
    window: WINDOW,
    maxOutput: 2_000,
    api,
  })
  const tide = createTidemark({ model, memory: true })
  const fetch = isManaged ? tide.fetch({ session: 'client', fetch: simulator.fetch }) : simulator.fetch
  const client = new OpenAI({ apiKey: 'any', baseURL: 'http://simulator.test/v1', fetch, maxRetries: 0 })
  const runTool = (id: string, name: string, text: string): string =>
    String(coder.toolResult({ id, name, input: JSON.parse(text) }).content)
  return { coder, simulator, client, runTool }
}

/** The loop of an agent on the Responses API; returns the number of answers. */
async function runResponses(isManaged: boolean, isStream: boolean): Promise<number> {
  const { coder, client, runTool } = createWorld('responses', isManaged)
  const tools = coder.tools.map(
    ({ name, description, input_schema: parameters }): Tool =>
      ({ type: 'function', name, description, parameters, strict: false }) as Tool,
  )
  const input: ResponseInput = [{ role: 'user', content: 'The sum of an order is wrong by a cent. Fix it.' }]
  for (let answers = 0; ; answers += 1) {
    const body = {
      model: 'gpt-5.4',
      input,
      tools,
      store: false,
      include: ['reasoning.encrypted_content' as const],
    }
    const response = isStream
      ? await client.responses.stream(body).finalResponse()
      : await client.responses.create(body)
    // The helper of the SDK adds fields that the API does not know.
    const output = JSON.parse(
      JSON.stringify(response.output, (key, value) => (key.startsWith('parsed') ? undefined : value)),
    )
    input.push(...output)
    const calls: readonly ResponseFunctionToolCall[] = output.filter(
      ({ type }: { readonly type: string }) => type === 'function_call',
    )
    if (calls.length === 0) return answers + 1
    for (const { call_id, name, arguments: text } of calls)
      input.push({ type: 'function_call_output', call_id, output: runTool(call_id, name, text) })
  }
}

/** The loop of an agent on Chat Completions. */
async function runChat(isManaged: boolean): Promise<number> {
  const { coder, client, runTool } = createWorld('chat', isManaged)
  const tools = coder.tools.map(({ name, description, input_schema: parameters }) => ({
    type: 'function' as const,
    function: { name: String(name), description: String(description), parameters: Object(parameters) },
  }))
  const messages: ChatCompletionMessageParam[] = [
    { role: 'system', content: 'You repair programs.' },
    { role: 'user', content: 'The sum of an order is wrong by a cent. Fix it.' },
  ]
  for (let answers = 0; ; answers += 1) {
    const completion = await client.chat.completions.create({ model: 'gpt-5.4', messages, tools })
    const message = completion.choices[0]?.message
    if (message === undefined) return answers
    messages.push(message)
    const calls = message.tool_calls?.filter((call) => call.type === 'function') ?? []
    if (calls.length === 0) return answers + 1
    for (const { id, function: called } of calls)
      messages.push({ role: 'tool', tool_call_id: id, content: runTool(id, called.name, called.arguments) })
  }
}

describe('an agent on the SDK of OpenAI', () => {
  it.each([
    ['the Responses API', (isManaged: boolean) => runResponses(isManaged, false)],
    ['the Responses API, streaming', (isManaged: boolean) => runResponses(isManaged, true)],
    ['Chat Completions', runChat],
  ])('ends its work on %s in a window in which it dies without Tidemark', async (_, run) => {
    await expect(run(false)).rejects.toThrow(/context (?:window|length)/)
    expect(await run(true)).toBeGreaterThanOrEqual(STEPS)
  })

  it('continues a conversation that it names by the id of the last response', async () => {
    const { client, simulator } = createWorld('responses', true)
    const tools = [{ type: 'function' as const, name: 'read', parameters: { type: 'object' }, strict: false }]
    const first = await client.responses.create({ model: 'gpt-5.4', input: 'Remember: blue.', tools })
    const second = await client.responses.create({
      model: 'gpt-5.4',
      input: 'Which colour?',
      previous_response_id: first.id,
      tools,
    })
    expect(second.status).toBe('completed')
    expect(simulator.requests.every(({ status }) => status === 200)).toBe(true)
  })
})
