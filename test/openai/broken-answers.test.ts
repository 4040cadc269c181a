/** OpenAI reports what an answer cost at its end. One that breaks off before is billed as well, and so it is counted. */
import { createSimulator, type Fault } from '@tidemark/simulator'
import OpenAI from 'openai'
import { createTidemark, openai } from 'tidemark'
import { describe, expect, it } from 'vitest'

type Api = 'responses' | 'chat'

const policy = { turn: { network: { firstDelayMs: 1, maximumDelayMs: 2 } } }
const PROMPT = `Count these: ${'one two three '.repeat(2_000)}`
const ASSUMED = {
  prompt: 'the prompts of responses that broke off before their usage are estimated',
  output: 'the output of responses that broke off is estimated from what arrived',
}

/** A model whose second answer has a fault. */
function createWorld(api: Api, fault?: Fault) {
  let calls = 0
  const simulator = createSimulator({
    script: () => {
      calls += 1
      const blocks = [{ type: 'text', text: 'One, two, three. '.repeat(60) }]
      return { blocks, ...(calls === 2 && fault !== undefined ? { fault } : {}) }
    },
  })
  const { fetch } = simulator
  const tide = createTidemark({
    model: openai('gpt-6-sol', { apiKey: 'any', fetch, api }),
    memory: true,
    policy,
  })
  const client = new OpenAI({
    apiKey: 'any',
    baseURL: 'http://simulator.test/v1',
    fetch: tide.fetch({ session: 'talk', fetch }),
    maxRetries: 0,
  })
  const readBill = () => simulator.requests.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0)
  return { simulator, tide, client, readBill }
}

/** Sends a conversation as a streaming client and returns the text of its answer. */
async function ask(api: Api, client: OpenAI, texts: readonly string[]) {
  const messages = texts.map((content, index) => {
    return { role: index % 2 === 0 ? ('user' as const) : ('assistant' as const), content }
  })
  const model = 'gpt-6-sol'
  const tools = [{ type: 'function' as const, name: 'read', parameters: {}, strict: false }]
  const chatTools = [{ type: 'function' as const, function: { name: 'read', parameters: {} } }]
  const stream =
    api === 'chat'
      ? await client.chat.completions.create({ model, messages, tools: chatTools, stream: true })
      : await client.responses.create({ model, input: messages, tools, stream: true })
  let text = ''
  for await (const event of stream) {
    if ('choices' in event) text += event.choices[0]?.delta.content ?? ''
    else if (event.type === 'response.output_text.delta') text += event.delta
  }
  return text
}

const FAULTS: readonly [string, Fault][] = [
  ['a cut stream', { type: 'cut', afterEvents: 6 }],
  ['a connection that breaks', { type: 'reset', afterEvents: 6 }],
  ['an error in the middle of the answer', { type: 'error-event', afterEvents: 6 }],
]

describe.each<Api>(['responses', 'chat'])('an answer that breaks off on the API %s', (api) => {
  it.each(FAULTS)('is counted for a client: %s', async (_, fault) => {
    const { client, tide, readBill } = createWorld(api, fault)
    const first = await ask(api, client, [PROMPT])
    await ask(api, client, [PROMPT, first, 'And these: four five.']).catch(() => {})
    const { calls, spent } = (await tide.open('talk')).money()
    expect(calls).toBe(2)
    expect(Math.abs((spent.total ?? 0) / readBill() - 1)).toBeLessThan(0.05)
    expect(spent.assumed).toEqual([ASSUMED.prompt, ASSUMED.output])
    await tide.close()
  })

  it.each(FAULTS)('is counted in a run: %s', async (_, fault) => {
    const { tide, readBill } = createWorld(api, fault)
    const session = await tide.open('talk')
    await session.run(PROMPT).outcome
    expect(await session.run('And these: four five.').outcome).toMatchObject({ ok: true })
    const { calls, spent } = session.money()
    expect(calls).toBe(3)
    expect(Math.abs((spent.total ?? 0) / readBill() - 1)).toBeLessThan(0.05)
    expect(spent.assumed).toEqual([ASSUMED.prompt, ASSUMED.output])
    await tide.close()
  })

  it('is counted with its prompt alone where nothing of it was written', async () => {
    const { client, tide } = createWorld(api, { type: 'cut', afterEvents: 1 })
    const first = await ask(api, client, [PROMPT])
    await ask(api, client, [PROMPT, first, 'And these: four five.']).catch(() => {})
    const { calls, spent } = (await tide.open('talk')).money()
    expect(calls).toBe(2)
    expect(spent.assumed).toEqual([ASSUMED.prompt])
    await tide.close()
  })

  it('is not counted where the provider says that it failed before anything was written', async () => {
    const { client, tide } = createWorld(api, {
      type: 'error-event',
      afterEvents: 1,
      errorType: 'server_error',
    })
    const first = await ask(api, client, [PROMPT])
    await ask(api, client, [PROMPT, first, 'And these: four five.']).catch(() => {})
    expect((await tide.open('talk')).money()).toMatchObject({ calls: 1, spent: { assumed: [] } })
    await tide.close()
  })
})
