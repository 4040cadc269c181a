/** Servers that answer 200 and drop the beginning of a prompt that is too long, as Ollama does by default. */
import { createCoder, createSimulator, withSummaries } from '@tidemark/simulator'
import { describeEvent } from '@tidemark/terminal/render/describe-event'
import OpenAI from 'openai'
import { compatible, createTidemark, type SessionEvent } from 'tidemark'
import { describe, expect, it } from 'vitest'

const PROMPT = 'The sum of an order is wrong by a cent. Fix it.'
const SYSTEM = 'You repair programs. '.repeat(40)
type Truncated = Extract<SessionEvent, { type: 'prompt-truncated' }>

/** A server with this window, of which Tidemark believes that it has 64k. */
function createWorld(window: number, { turns = 60, text = '', thinking = '', serve = passOn } = {}) {
  const coder = createCoder({ turns, resultTokens: 900 })
  const script = withSummaries(coder.script)
  const simulated = createSimulator({
    script: async (...given) => {
      const reply = await script(...given)
      const blocks = thinking === '' ? [] : [{ type: 'text' as const, text: thinking }]
      return { ...reply, blocks: [...blocks, ...(reply.blocks ?? [])] }
    },
    window,
    openai: { dialect: 'ollama' },
  })
  const simulator = { ...simulated, fetch: serve(simulated.fetch) }
  const model = compatible('qwen3-coder', {
    baseUrl: 'http://localhost:11434/v1',
    window: 64_000,
    maxOutput: 2_000,
    dialect: 'ollama',
    fetch: simulator.fetch,
  })
  const events: SessionEvent[] = []
  const tide = createTidemark({
    model,
    memory: true,
    system: SYSTEM,
    onEvent: (event) => void events.push(event),
  })
  const runTool = (call: Parameters<typeof coder.toolResult>[0]) =>
    text === '' ? String(coder.toolResult(call).content) : text
  const listTruncated = () => events.filter((event): event is Truncated => event.type === 'prompt-truncated')
  return { coder, simulator, tide, events, runTool, listTruncated }
}

type World = ReturnType<typeof createWorld>

type Fetch = typeof globalThis.fetch

function passOn(fetch: Fetch): Fetch {
  return fetch
}

/** A server whose template leaves out the thinking in the text of earlier answers. */
function withoutThinking(fetch: Fetch): Fetch {
  return (input, init) =>
    fetch(input, { ...init, body: String(init?.body).replaceAll(/<think>.*?<\/think>/g, '') })
}

/** A server that runs a search within its fourth call, whose results are part of that prompt only. */
function withSearch(fetch: Fetch): Fetch {
  let calls = 0
  return async (input, init) => {
    calls += 1
    const own = String(init?.body).replace(',{"type":"web_search"}', '')
    const response = await fetch(input, { ...init, body: own })
    if (calls !== 4) return response
    const counted = (await response.text()).replaceAll(
      /"prompt_tokens":(\d+)/g,
      (_, tokens) => `"prompt_tokens":${Number(tokens) + 9_000}`,
    )
    return new Response(counted, { status: response.status, headers: response.headers })
  }
}

/** Works as an agent of the `openai` SDK does. */
async function workAsClient(
  { tide, simulator, runTool }: World,
  mode: 'manage' | 'observe',
  rounds: number,
  hosted: readonly object[] = [],
) {
  const fetch = tide.fetch({ session: 'client', mode, fetch: simulator.fetch })
  const client = new OpenAI({ apiKey: 'any', baseURL: 'http://localhost:11434/v1', fetch, maxRetries: 0 })
  const tools = createCoder().tools.map(({ name, description, input_schema: parameters }) => ({
    type: 'function' as const,
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      parameters: parameters as object,
    },
  })) as OpenAI.ChatCompletionTool[]
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'system', content: SYSTEM },
    { role: 'user', content: PROMPT },
  ]
  for (let round = 0; round < rounds; round += 1) {
    const stream = client.chat.completions.stream({
      model: 'qwen3-coder',
      messages,
      tools: [...tools, ...(hosted as typeof tools)],
      stream_options: { include_usage: true },
    })
    const { message } = (await stream.finalChatCompletion()).choices[0] ?? {}
    if (message?.tool_calls === undefined || message.tool_calls.length === 0) break
    messages.push(message)
    for (const call of message.tool_calls)
      if (call.type === 'function')
        messages.push({
          role: 'tool',
          tool_call_id: call.id,
          content: runTool({
            type: 'tool_use',
            id: call.id,
            name: call.function.name,
            input: JSON.parse(call.function.arguments),
          }),
        })
  }
}

describe('a server that drops the beginning of a prompt', () => {
  it('is noticed by a session, which keeps to the window from then on', async () => {
    const { coder, simulator, tide, runTool, listTruncated } = createWorld(16_000)
    const session = await tide.open('local')
    const run = session.run(PROMPT, { tools: coder.tools, runTool })
    for await (const _ of run);
    expect(await run.outcome).toMatchObject({ ok: true })
    const [first, ...others] = listTruncated()
    expect(others).toEqual([])
    expect(first?.window).toBeGreaterThan(14_000)
    expect(first?.window).toBeLessThanOrEqual(16_000)
    expect(session.contextRemaining().lines?.window).toBe(first?.window)
    expect(simulator.requests.length).toBeGreaterThan(60)
    expect(JSON.stringify(session.messages())).toContain(PROMPT)
    expect(session.history.length).toBeGreaterThan(0)
  })

  it('is noticed under a client of the openai SDK, whose later requests are compacted', async () => {
    const world = createWorld(16_000)
    await workAsClient(world, 'manage', 60)
    const { listTruncated, events } = world
    expect(listTruncated()).toHaveLength(1)
    expect(events.some(({ type }) => type === 'compact')).toBe(true)
  })

  it('is only told where a client is observed, with the cure', async () => {
    const world = createWorld(16_000)
    await workAsClient(world, 'observe', 40)
    const [event] = world.listTruncated()
    expect(event).toMatchObject({ window: null })
    expect(world.events.some(({ type }) => type === 'compact')).toBe(false)
    expect(event === undefined ? '' : describeEvent(event)?.text).toMatch(
      /^The server dropped the beginning of the prompt .*`num_ctx`/,
    )
  })

  it('is told for a window that is too small to work in', async () => {
    const { coder, tide, runTool, listTruncated } = createWorld(2_048, { turns: 12 })
    const session = await tide.open('tiny')
    const run = session.run(PROMPT, { tools: coder.tools, runTool, maxCalls: 10 })
    for await (const _ of run);
    expect(listTruncated()[0]).toMatchObject({ window: null })
    expect(listTruncated()[0]?.message).toContain('too small to work in')
  })

  it.each([
    ['work', ''],
    ['indentation', `${' '.repeat(6_000)}x\n`.repeat(3)],
    ['lines of dashes', `${'-'.repeat(3_000)}\n`.repeat(8)],
    ['long words', 'internationalization '.repeat(800)],
  ])('is not suspected where nothing was dropped: %s', async (_name, text) => {
    const { coder, tide, runTool, listTruncated } = createWorld(64_000, { turns: 14, text })
    const session = await tide.open('whole')
    const run = session.run(PROMPT, { tools: coder.tools, runTool, maxCalls: 12 })
    for await (const _ of run);
    expect(listTruncated()).toEqual([])
  })

  it.each([
    [
      'thinking in the text of earlier answers',
      {
        serve: withoutThinking,
        thinking: `<think>${'Is it the sum? Or the rounding? '.repeat(400)}</think>`,
      },
      [],
    ],
    ['results of a tool that the server runs', { serve: withSearch }, [{ type: 'web_search' }]],
  ] as const)(
    'is not suspected where the server leaves out what is its own: %s',
    async (_name, options, hosted) => {
      for (const mode of ['manage', 'observe'] as const) {
        const world = createWorld(64_000, { turns: 14, ...options })
        await workAsClient(world, mode, 10, hosted)
        expect(world.simulator.requests.length).toBeGreaterThanOrEqual(10)
        expect(world.listTruncated()).toEqual([])
      }
    },
  )
})
