/** Clients of the Responses API that ask for a compaction themselves, as Codex and the Agents SDK do: Tidemark compacts. */
import { createCoder, createSimulator, withSummaries } from '@tidemark/simulator'
import OpenAI from 'openai'
import { createTidemark, openai } from 'tidemark'
import { describe, expect, it } from 'vitest'

type Item = OpenAI.Responses.ResponseInputItem

const PROMPT = 'The sum of an order is wrong by a cent. Fix it.'
const RULES: Item = { type: 'message', role: 'developer', content: 'You repair programs. '.repeat(60) }

function createWorld(window = 60_000) {
  const coder = createCoder({ turns: 60, resultTokens: 900 })
  const simulator = createSimulator({ script: withSummaries(coder.script), window })
  const model = openai('gpt-5.4', { apiKey: 'any', fetch: simulator.fetch, window })
  const tide = createTidemark({ model, memory: true })
  const connect = (session = 'codex') =>
    new OpenAI({
      apiKey: 'any',
      fetch: tide.fetch({ session, fetch: simulator.fetch }),
      maxRetries: 0,
    })
  const tools = coder.tools.map(({ name, description, input_schema: parameters }) => ({
    type: 'function' as const,
    name: String(name),
    description: String(description),
    parameters: Object(parameters) as Record<string, unknown>,
    strict: false,
  }))
  const runCalls = (output: readonly OpenAI.Responses.ResponseOutputItem[]): readonly Item[] =>
    output.flatMap((item): readonly Item[] => {
      if (item.type !== 'function_call') return []
      const { call_id, name } = item
      const call = { type: 'tool_use' as const, id: call_id, name, input: JSON.parse(item.arguments) }
      return [{ type: 'function_call_output', call_id, output: String(coder.toolResult(call).content) }]
    })
  return { tide, simulator, connect, tools, runCalls }
}

type World = ReturnType<typeof createWorld>

const SETTINGS = {
  model: 'gpt-5.4',
  store: false,
  include: ['reasoning.encrypted_content' as const],
}

/** Works so many rounds on a list; returns it with the newest results at the end. */
async function work({ tools, runCalls }: World, client: OpenAI, list: readonly Item[], rounds: number) {
  const items = [...list]
  for (let round = 0; round < rounds; round += 1) {
    const { output } = await client.responses.create({ ...SETTINGS, input: items, tools })
    items.push(...(output as Item[]), ...runCalls(output))
  }
  return items
}

describe('a client that asks for a compaction with an item', () => {
  it.each([false, true])('gets exactly one item, and works on with it (streaming: %s)', async (isStream) => {
    const world = createWorld()
    const client = world.connect()
    const { tide, simulator, tools } = world
    const list = await work(world, client, [RULES, { role: 'user', content: PROMPT }], 12)
    const before = simulator.requests.at(-1)?.usage
    const count = simulator.requests.length
    const asked = { ...SETTINGS, tools, input: [...list, { type: 'compaction_trigger' } as unknown as Item] }
    const { output } = isStream
      ? await client.responses.stream(asked).finalResponse()
      : await client.responses.create(asked)
    expect(output.map(({ type }) => type)).toEqual(['compaction'])
    expect(simulator.requests).toHaveLength(count)
    const session = await tide.open('codex')
    expect(JSON.stringify(await session.export({ as: 'messages' }))).toContain(PROMPT)
    const later = await work(world, client, [RULES, ...(output as Item[])], 6)
    const statuses = simulator.requests.map(({ status }) => status)
    expect(statuses.every((status) => status === 200)).toBe(true)
    const first = simulator.requests[count]?.usage
    const total = (usage: typeof first) => (usage?.input ?? 0) + (usage?.cacheRead ?? 0)
    expect(total(first)).toBeLessThan(total(before) / 2 + 1_000)
    expect(JSON.stringify(session.messages())).toContain(PROMPT)
    // Once more, with the item in the list.
    const again = await client.responses.create({
      ...SETTINGS,
      tools,
      input: [...later, { type: 'compaction_trigger' } as unknown as Item],
    })
    expect(again.output.map(({ type }) => type)).toEqual(['compaction'])
    await work(world, client, [RULES, ...(again.output as Item[])], 3)
    expect(simulator.requests.every(({ status }) => status === 200)).toBe(true)
  })

  it('finds its conversation again after a restart, and undo gives back what was before', async () => {
    const world = createWorld()
    const { tide, simulator, tools } = world
    const list = await work(world, world.connect(), [RULES, { role: 'user', content: PROMPT }], 12)
    const asked = { ...SETTINGS, tools, input: [...list, { type: 'compaction_trigger' } as unknown as Item] }
    const { output } = await world.connect().responses.create(asked)
    const session = await tide.open('codex')
    const compacted = session.contextRemaining().tokens
    expect((await session.undo(undefined, { force: true })).ok).toBe(true)
    expect(session.contextRemaining().tokens).toBeGreaterThan(compacted)
    const whole = session.messages().length
    await work(world, world.connect(), [RULES, ...(output as Item[]), { role: 'user', content: 'Go on.' }], 2)
    expect(session.messages().length).toBeGreaterThan(whole)
    expect(simulator.requests.every(({ status }) => status === 200)).toBe(true)
  })

  it('may say its rules anew before the item: what is new is appended', async () => {
    const world = createWorld()
    const { simulator, tide, tools } = world
    const client = world.connect()
    const list = await work(world, client, [RULES, { role: 'user', content: PROMPT }], 8)
    const asked = { ...SETTINGS, tools, input: [...list, { type: 'compaction_trigger' } as unknown as Item] }
    const { output } = await client.responses.create(asked)
    const anew: Item = { role: 'user', content: '<environment>The folder is /work.</environment>' }
    await work(world, client, [RULES, { role: 'user', content: PROMPT }, anew, ...(output as Item[])], 3)
    const session = await tide.open('codex')
    expect(JSON.stringify(session.messages()).split('The folder is /work.')).toHaveLength(2)
    expect(simulator.requests.every(({ status }) => status === 200)).toBe(true)
  })
})

describe('a client that asks for a compaction at its own address', () => {
  it('gets the messages of the user and an item, and works on with them', async () => {
    const world = createWorld()
    const { simulator, tide } = world
    const client = world.connect()
    const list = await work(world, client, [RULES, { role: 'user', content: PROMPT }], 12)
    const count = simulator.requests.length
    const { output, object } = await client.responses.compact({ model: 'gpt-5.4', input: list })
    expect(object).toBe('response.compaction')
    expect(output.map(({ type }) => type)).toEqual(['message', 'compaction'])
    expect(simulator.requests).toHaveLength(count)
    const session = await tide.open('codex')
    const countPrompts = () => JSON.stringify(session.messages()).split(PROMPT).length
    const before = countPrompts()
    await work(world, client, output as Item[], 6)
    expect(simulator.requests.every(({ status }) => status === 200)).toBe(true)
    expect(countPrompts()).toBe(before)
  })
})

describe('a compaction that a client got from Tidemark', () => {
  const GO_ON: Item = { role: 'user', content: 'Go on.' }

  async function compact(world: World) {
    const client = world.connect()
    const list = await work(world, client, [RULES, { role: 'user', content: PROMPT }], 12)
    const asked = {
      ...SETTINGS,
      tools: world.tools,
      input: [...list, { type: 'compaction_trigger' } as unknown as Item],
    }
    return { client, answer: await client.responses.create(asked) }
  }

  it('is continued by two requests at once, each of which is answered', async () => {
    const world = createWorld()
    const { client, answer } = await compact(world)
    const item = answer.output as Item[]
    await Promise.all([
      work(world, client, [RULES, ...item, { role: 'user', content: 'Go left.' }], 3),
      work(world, client, [RULES, ...item, { role: 'user', content: 'Go right.' }], 3),
    ])
    const { simulator, tide } = world
    expect(simulator.requests.map(({ status }) => status).filter((status) => status !== 200)).toEqual([])
    const [left, right] = await Promise.all(
      ['codex', 'codex.2'].map(async (id) => (await tide.open(id)).messages()),
    )
    for (const messages of [left, right]) expect(JSON.stringify(messages)).toContain(PROMPT)
    expect(JSON.stringify(left)).not.toContain('Go right.')
    expect(JSON.stringify(right)).not.toContain('Go left.')
  })

  it('is continued under another name, with all that was said', async () => {
    const world = createWorld()
    const { answer } = await compact(world)
    await work(world, world.connect('fork'), [RULES, ...(answer.output as Item[]), GO_ON], 3)
    expect(world.simulator.requests.every(({ status }) => status === 200)).toBe(true)
    const fork = await world.tide.open('fork')
    expect(JSON.stringify(fork.messages())).toContain(PROMPT)
    const session = await world.tide.open('codex')
    expect(JSON.stringify(session.messages())).not.toContain('Go on.')
  })

  it('is continued by the id of the answer that brought it', async () => {
    const world = createWorld()
    const { client, answer } = await compact(world)
    const ask = (previous_response_id: string, input: Item[]) =>
      client.responses.create({ ...SETTINGS, store: true, tools: world.tools, input, previous_response_id })
    let response = await ask(answer.id, [GO_ON])
    for (let round = 0; round < 3; round += 1)
      response = await ask(response.id, [...world.runCalls(response.output)])
    expect(world.simulator.requests.every(({ status }) => status === 200)).toBe(true)
    const session = await world.tide.open('codex')
    const shown = JSON.stringify(session.messages())
    expect(shown).toContain(PROMPT)
    expect(shown).toContain('Go on.')
  })

  it('is counted as it will be sent', async () => {
    const world = createWorld()
    const { client, answer } = await compact(world)
    const input = [RULES, ...(answer.output as Item[]), GO_ON]
    const { input_tokens: counted } = await client.responses.inputTokens.count({
      model: 'gpt-5.4',
      tools: world.tools,
      input,
    })
    const { usage } = await client.responses.create({ ...SETTINGS, tools: world.tools, input })
    // Messages of one side that follow each other are joined in what is sent.
    expect(Math.abs(counted - (usage?.input_tokens ?? 0))).toBeLessThan(10)
  })

  it('is refused with one line where its log is not, and nothing reaches the provider', async () => {
    const { answer } = await compact(createWorld())
    const other = createWorld()
    const client = other.connect()
    const asked = { ...SETTINGS, tools: other.tools }
    const input = [RULES, ...(answer.output as Item[]), GO_ON]
    const refused =
      /^400 The request continues a compaction that Tidemark made in the session codex, and cannot be sent without it: .* begin anew\.$/
    await expect(client.responses.create({ ...asked, input })).rejects.toThrow(refused)
    await expect(client.responses.stream({ ...asked, input }).finalResponse()).rejects.toThrow(refused)
    await expect(
      client.responses.create({ ...asked, input: [GO_ON], previous_response_id: answer.id }),
    ).rejects.toThrow(refused)
    await expect(client.responses.inputTokens.count({ ...asked, input } as never)).rejects.toThrow(refused)
    expect(other.simulator.requests).toEqual([])
  })
})
