/** What clients do to the requests of their own conversations, and what it costs with `tide.fetch` between. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import {
  ClientAgent,
  type ClientBlock,
  type ClientMessage,
  type ClientSettings,
  createDropInWorld,
  type DropInOptions,
  dropIn,
  sumRequests,
  withMarkers,
} from './client-agent.ts'

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

/** The same client without Tidemark. */
async function goDirect(settings: ClientSettings, prompt = 'Mend the sums.', options: DropInOptions = {}) {
  const world = createDropInWorld(options)
  const host = new ClientAgent(world.upstream, world.coder, settings)
  await host.ask(prompt)
  return { ...world, host, sums: sumRequests(world) }
}

describe('a client that sends its whole conversation', () => {
  it('gets the same answers for a fraction of the price if it sets no cache markers', async () => {
    const direct = await goDirect({}, undefined, { turns: 20 })
    const { host, ...world } = dropIn({}, { turns: 20 })
    await host.ask('Mend the sums.')
    expect(host.messages).toEqual(direct.host.messages)
    const sums = sumRequests(world)
    expect(sums).toMatchObject({ requests: direct.sums.requests, refused: 0 })
    expect(sums.dollars).toBeLessThan(direct.sums.dollars / 4)
    expect(world.listMessages('request-passed')).toEqual([])
  })

  it('pays no more if it sets its own cache markers', async () => {
    const settings = { prepare: withMarkers }
    const direct = await goDirect(settings, undefined, { turns: 30 })
    const { host, ...world } = dropIn(settings, { turns: 30 })
    await host.ask('Mend the sums.')
    expect(sumRequests(world).dollars).toBeLessThanOrEqual(direct.sums.dollars * 1.01)
  })

  it('sends what the client sent, but for cache markers, until something is rewritten', async () => {
    const { host, ...world } = dropIn({ fields: { thinking: { type: 'adaptive' } } }, { thinkingTokens: 40 })
    await host.ask('Mend the sums.')
    const direct = await goDirect({ fields: { thinking: { type: 'adaptive' } } }, undefined, {
      thinkingTokens: 40,
    })
    const readParts = (text: string | undefined): unknown => {
      const { tools, system, messages } = JSON.parse(
        (text ?? '').replaceAll(/,"cache_control":\{"type":"ephemeral"\}/g, ''),
      )
      const list = (messages as ClientMessage[]).map(({ role, content }) => ({
        role,
        content: typeof content === 'string' ? [{ type: 'text', text: content }] : content,
      }))
      return { tools, system: typeof system === 'string' ? [{ type: 'text', text: system }] : system, list }
    }
    expect(world.sent.map(readParts)).toEqual(direct.sent.map(readParts))
  })

  it.each(['1h', '5m'])(
    'keeps the lifetime that its cache markers ask for, also if others replace them: %s',
    async (ttl) => {
      const cache_control = { type: 'ephemeral', ttl }
      const system = [{ type: 'text', text: 'Be exact. '.repeat(900), cache_control }]
      const policy = { dropIn: { cacheMarkers: 'replace' as const } }
      const { host, ...world } = dropIn({ system }, { turns: 30, policy })
      await host.ask('Mend the sums.')
      const markers = world.sent.flatMap((body) => body.match(/"cache_control":\{[^}]*\}/g) ?? [])
      const lifetimes = markers.map((marker) => /"ttl":"(\w+)"/.exec(marker)?.[1] ?? '5m')
      expect(new Set(lifetimes)).toEqual(new Set([ttl]))
      // Messages are marked, too.
      expect(markers.length).toBeGreaterThan(world.sent.length)
    },
  )

  it('keeps the blocks of its system prompt apart', async () => {
    const system = ['You are Claude Code.', 'Rules. '.repeat(900)].map((text) => ({ type: 'text', text }))
    const { host, ...world } = dropIn({ system })
    await host.ask('Mend the sums.')
    for (const text of world.sent)
      expect(JSON.parse(text).system.map((block: ClientBlock) => block.text)).toEqual(
        system.map(({ text }) => text),
      )
  })
})

describe('a clock in the system prompt', () => {
  async function work(write: (number: number) => string) {
    const prepare = (body: object, number: number) => ({ ...body, system: write(number) })
    const world = dropIn({ prepare }, { turns: 20 })
    await world.host.ask('Mend the sums.')
    return world
  }
  const rules = 'You are a careful coder.\n'.repeat(300)

  it('breaks no cache, and the model is told the time in one line', async () => {
    const end = 'Be brief.\n'.repeat(100)
    const world = await work((number) => `${rules}The time is 12:${10 + number}.\n${end}`)
    const still = await work(() => `${rules}${end}`)
    expect(sumRequests(world).written).toBeLessThan(sumRequests(still).written * 1.3)
    const last = world.sent.at(-1) ?? ''
    expect(last).toContain(
      'In the system prompt, these lines:\\nThe time is 12:29.\\nnow read:\\nThe time is 12:30.',
    )
    // While nothing is cached yet, the system prompt has the time itself.
    expect(JSON.parse(last).system[0].text).toMatch(/The time is 12:1[0-4]\./)
    expect(world.listMessages('host-history-changed')).toEqual([])
  })

  it('of one line is told by the words around it, and the context does not grow by the whole prompt', async () => {
    const line = rules.replaceAll('\n', ' ')
    const world = await work((number) => `It is 12:${10 + number}. ${line}`)
    const still = await work(() => line)
    expect(sumRequests(world).written).toBeLessThan(sumRequests(still).written * 1.3)
    expect(world.sent.at(-1)).toContain('In the system prompt, this part:\\nIt is 12:29.')
  })
})

describe('tools in another order in each request', () => {
  it('break no cache', async () => {
    const turnTools = (body: Record<string, unknown>, number: number) => {
      const tools = body.tools as object[]
      return {
        ...body,
        tools: [...tools.slice(number % tools.length), ...tools.slice(0, number % tools.length)],
      }
    }
    const { host, ...world } = dropIn({ prepare: turnTools }, { turns: 12 })
    await host.ask('Mend the sums.')
    const still = dropIn({}, { turns: 12 })
    await still.host.ask('Mend the sums.')
    expect(sumRequests(world)).toEqual(sumRequests(still))
  })
})

describe('effort that changes in mid-conversation', () => {
  it('costs one cache break, as it does directly, and the break is explained by it', async () => {
    const settings: ClientSettings = {
      prepare: (body, number) => ({
        ...withMarkers(body),
        output_config: { effort: number < 6 ? 'high' : 'low' },
      }),
    }
    const { host, ...world } = dropIn(settings, { turns: 12 })
    await host.ask('Mend the sums.')
    const direct = await goDirect(settings, undefined, { turns: 12 })
    expect(sumRequests(world).dollars).toBeLessThanOrEqual(direct.sums.dollars * 1.01)
    expect(world.sent.map((text) => JSON.parse(text).output_config.effort)).toEqual(
      direct.sent.map((text) => JSON.parse(text).output_config.effort),
    )
    const breaks = world.events.filter((event) => event.type === 'cache-break')
    for (const { event } of breaks) expect(event.sentence).toContain('the effort changed')
  })
})

describe('a client that rewrites its own history', () => {
  it('may add defaults to the inputs of its calls, drop thinking and cut white space: its version is sent, and the cache holds', async () => {
    const rewrite = (body: Record<string, unknown>) => ({
      ...body,
      messages: (body.messages as ClientMessage[]).map(({ role, content }) => ({
        role,
        content:
          typeof content === 'string'
            ? content
            : content.flatMap((block): ClientBlock[] => {
                if (block.type === 'thinking') return []
                if (block.type === 'text') return [{ type: 'text', text: `${block.text} ` }]
                if (block.type !== 'tool_use') return [block]
                return [{ ...block, input: { ...Object(block.input), replace_all: false } }]
              }),
      })),
    })
    const fields = { thinking: { type: 'adaptive' } }
    const { host, ...world } = dropIn({ prepare: rewrite, fields }, { turns: 15, thinkingTokens: 30 })
    await host.ask('Mend the sums.')
    const still = dropIn({ fields }, { turns: 15, thinkingTokens: 30 })
    await still.host.ask('Mend the sums.')
    expect(sumRequests(world).dollars).toBeLessThanOrEqual(sumRequests(still).dollars)
    expect(sumRequests(world).written).toBeLessThanOrEqual(sumRequests(still).written)
    expect(world.listMessages('host-history-changed')).toEqual([])
    expect(world.sent.at(-1)).toContain('"replace_all":false')
    expect(world.sent.at(-1)).not.toContain('"type":"thinking"')
  })

  it('and edits a message gets a branch: the model sees the message as it is now', async () => {
    const { host, ...world } = dropIn()
    await host.ask('Mend the sums.')
    const count = host.messages.length
    await host.ask('And the dates.')
    host.messages = [...host.messages.slice(0, count), { role: 'user', content: 'And the names.' }]
    while (await host.step());
    expect(world.listMessages('host-history-changed')).toEqual([
      'The client changed an earlier message; the log keeps the old branch.',
    ])
    expect(world.sent.at(-1)).toContain('And the names.')
    expect(world.sent.at(-1)).not.toContain('And the dates.')
    expect(sumRequests(world).refused).toBe(0)
  })

  it('and edits the result of a tool gets a branch', async () => {
    const { host, ...world } = dropIn()
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    for (let step = 0; step < 3; step += 1) await host.step()
    const results = host.messages[2]?.content
    if (typeof results !== 'object') throw new Error('expected results')
    host.messages[2] = {
      role: 'user',
      content: results.map((block) =>
        block === results[0] ? { ...block, content: 'The file is empty.' } : block,
      ),
    }
    while (await host.step());
    expect(world.listMessages('host-history-changed')).toHaveLength(1)
    expect(world.sent.at(-1)).toContain('The file is empty.')
    expect(sumRequests(world).refused).toBe(0)
    expect(world.listMessages('request-passed')).toEqual([])
  })

  it('and goes back gets a branch, and its cache is read', async () => {
    const { host, ...world } = dropIn()
    await host.ask('Mend the sums.')
    const there = host.messages.slice()
    await host.ask('And the dates.')
    host.messages = there.slice(0, -1)
    await host.step()
    expect(world.listMessages('host-history-changed')).toEqual([
      'The client went back in its conversation; the log keeps the old branch.',
    ])
    expect(world.simulator.requests.at(-1)?.usage?.cacheRead).toBeGreaterThan(2_000)
  })

  it('and drops its oldest messages gets what it sends', async () => {
    const { host, ...world } = dropIn()
    await host.ask('Mend the sums.')
    await host.ask('And the dates.')
    const start = host.messages.findLastIndex(({ content }) => content === 'And the dates.')
    host.messages = host.messages.slice(start)
    await host.ask('And the names.')
    expect(world.listMessages('host-history-changed')).toEqual([
      'The client dropped messages at the start; the log keeps the old branch.',
    ])
    expect(world.sent.at(-1)).not.toContain('Mend the sums.')
    expect(sumRequests(world).refused).toBe(0)
  })

  it('and begins anew under the same id gets a session of its own', async () => {
    const { host, ...world } = dropIn()
    await host.ask('Mend the sums.')
    host.messages = []
    await host.ask('Write a poem.')
    expect(await world.tide.sessions()).toEqual(['talk', 'talk.2'])
    expect(sumRequests(world).refused).toBe(0)
  })
})

describe('after a restart', () => {
  async function restart(change: (host: ClientAgent) => void | Promise<void>) {
    const home = await mkdtemp(join(tmpdir(), 'tidemark-drop-in-'))
    folders.push(home)
    const before = createDropInWorld({ home })
    const first = new ClientAgent(
      before.tide.fetch({ session: 'talk', fetch: before.upstream }),
      before.coder,
    )
    first.messages.push({ role: 'user', content: 'Mend the sums.' })
    for (let step = 0; step < 3; step += 1) await first.step()
    await change(first)
    await before.tide.close()
    const after = createDropInWorld({ home })
    const host = new ClientAgent(after.tide.fetch({ session: 'talk', fetch: before.upstream }), before.coder)
    host.messages = first.messages
    while (await host.step());
    const history = after.listMessages('host-history-changed')
    await after.tide.close()
    return { before, after, host, history, sums: sumRequests(before) }
  }

  it('the client sends its list again, and nothing is new but its end: the cache holds', async () => {
    const { after, before, history, sums } = await restart(() => {})
    expect(history).toEqual([])
    expect(after.listMessages('request-passed')).toEqual([])
    const still = dropIn()
    await still.host.ask('Mend the sums.')
    expect(sums).toEqual(sumRequests(still))
    expect(before.simulator.requests.every(({ status }) => status === 200)).toBe(true)
  })

  it('a response that only the host has is taken from its list', async () => {
    const { history, sums } = await restart(async (host) => {
      // The process ended after the response was passed on, and before it was in the log.
      host.messages.push({ role: 'assistant', content: 'I am done.' }, { role: 'user', content: 'Go on.' })
    })
    expect([history, sums.refused]).toEqual([[], 0])
  })

  it('a response that only the log has is left on its branch', async () => {
    const { history, sums } = await restart((host) => {
      host.messages = host.messages.slice(0, -2)
    })
    expect(history).toEqual(['The client went back in its conversation; the log keeps the old branch.'])
    expect(sums.refused).toBe(0)
  })
})

describe('several conversations through one fetch', () => {
  it('at once and under one id have sessions of their own', async () => {
    const world = createDropInWorld()
    const fetch = world.tide.fetch({ session: 'talk', fetch: world.upstream })
    const tasks = ['Mend the sums.', 'Mend the dates.', 'Mend the names.']
    const hosts = tasks.map(() => new ClientAgent(fetch, world.coder))
    await Promise.all(hosts.map((host, index) => host.ask(tasks[index] ?? '')))
    expect(await world.tide.sessions()).toEqual(['talk', 'talk.2', 'talk.3'])
    expect(world.listMessages('host-history-changed')).toEqual([])
    expect(world.listMessages('request-passed')).toEqual([])
    expect(sumRequests(world).refused).toBe(0)
  })

  it.each([
    ['a header', { headers: { 'x-claude-code-session-id': 'abc' } }],
    ['its metadata', { fields: { metadata: { user_id: 'user_1_account__session_abc' } } }],
  ])('are told apart by %s', async (_, settings) => {
    const world = createDropInWorld()
    const host = new ClientAgent(world.tide.fetch({ fetch: world.upstream }), world.coder, settings)
    await host.ask('Mend the sums.')
    expect(await world.tide.sessions()).toEqual(['abc'])
    for (const text of world.sent) expect(JSON.parse(text).metadata).toEqual(host.createBody().metadata)
  })

  it('without any id are told apart by their messages and calls', async () => {
    const world = createDropInWorld()
    const fetch = world.tide.fetch({ fetch: world.upstream })
    const hosts = [new ClientAgent(fetch, world.coder), new ClientAgent(fetch, world.coder)]
    for (const host of hosts) host.messages.push({ role: 'user', content: 'Mend the sums.' })
    for (let step = 0; step < 4; step += 1) for (const host of hosts) await host.step()
    expect(await world.tide.sessions()).toHaveLength(2)
    expect(world.listMessages('host-history-changed')).toEqual([])
  })
})

describe('what is not the conversation', () => {
  it('goes through unchanged: a title, a probe, another model', async () => {
    const { host, ...world } = dropIn()
    await host.ask('Mend the sums.')
    const fetch = world.tide.fetch({ session: 'talk', fetch: world.upstream })
    const side = new ClientAgent(fetch, world.coder, {
      system: 'Write a title.',
      tools: [],
      model: 'claude-haiku-4-5',
    })
    side.messages.push({ role: 'user', content: 'The sums of an order.' })
    const expected = JSON.stringify(side.createBody())
    expect((await side.send()).status).toBe(200)
    expect(world.sent.at(-1)).toBe(expected)
    expect(world.listMessages('request-passed')).toEqual(['The request belongs to no conversation.'])
    expect(await world.tide.sessions()).toEqual(['talk'])
  })

  it('a first request that may be the only one is sent unchanged, and its conversation taken once it goes on', async () => {
    const { host, ...world } = dropIn({ tools: [], system: 'Be brief.' })
    host.messages.push({ role: 'user', content: 'Hello.' })
    const expected = JSON.stringify(host.createBody())
    await host.step()
    expect(world.sent).toEqual([expected])
    host.messages.push({ role: 'user', content: 'And now?' })
    await host.step()
    const session = await world.tide.sessions()
    expect(session).toEqual(['talk'])
    expect(world.sent.at(-1)).toContain('Hello.')
  })

  it('a request that ends with an assistant message is sent unchanged', async () => {
    const { host, ...world } = dropIn({ model: 'claude-sonnet-4-5' }, { modelId: 'claude-sonnet-4-5' })
    await host.ask('Mend the sums.')
    host.messages.push({ role: 'user', content: 'As JSON.' }, { role: 'assistant', content: '{' })
    const expected = JSON.stringify(host.createBody())
    await host.send()
    expect(world.sent.at(-1)).toBe(expected)
  })

  it('system messages within the conversation are kept where they are', async () => {
    const { host, ...world } = dropIn({ model: 'claude-opus-5-5' }, { modelId: 'claude-opus-5-5' })
    host.messages.push(
      { role: 'user', content: 'Mend the sums.' },
      { role: 'system', content: 'The user is in a hurry.' },
    )
    while (await host.step());
    expect(world.listMessages('request-passed')).toEqual([])
    expect(world.listMessages('host-history-changed')).toEqual([])
    const messages = JSON.parse(world.sent.at(-1) ?? '').messages as ClientMessage[]
    expect(messages[1]).toMatchObject({ role: 'system' })
    expect(sumRequests(world).refused).toBe(0)
  })
})
