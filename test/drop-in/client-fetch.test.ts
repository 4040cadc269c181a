/** `tide.fetch`: streams, errors, pings, overflow, observing, and the way out. */
import Anthropic from '@anthropic-ai/sdk'
import type { Simulator } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import {
  ClientAgent,
  type ClientBlock,
  type ClientMessage,
  type ClientSettings,
  createDropInWorld,
  type DropInOptions,
  dropIn,
  type Fetch,
  sumRequests,
} from './client-agent.ts'

const SMALL: DropInOptions = { window: 20_000, turns: 60, resultTokens: 1_500 }
const BRIEF: ClientSettings = { system: 'You are a careful coder.' }

function readBlocks(message: ClientMessage | undefined): readonly ClientBlock[] {
  return typeof message?.content === 'object' ? message.content : []
}

/** A network on which a body comes in many pieces. */
function passInPieces(fetch: Fetch): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    const bytes = new Uint8Array(await response.arrayBuffer())
    const pieces = async function* () {
      for (let start = 0; start < bytes.length; start += 97) yield bytes.slice(start, start + 97)
    }
    return new Response(ReadableStream.from(pieces()), { status: response.status, headers: response.headers })
  }
}

function listStatus({ requests }: Simulator): readonly number[] {
  return [...new Set(requests.map(({ status }) => status))]
}

describe('a conversation longer than the window', () => {
  it('goes on without the client knowing, and never sends a request that is refused', async () => {
    const { host, simulator, events, listMessages } = dropIn(BRIEF, SMALL)
    await host.ask('Mend the sums.')
    expect(host.messages.length).toBeGreaterThan(80)
    expect(events.filter(({ type }) => type === 'compact').length).toBeGreaterThan(0)
    expect(listStatus(simulator)).toEqual([200])
    expect(listMessages('request-passed')).toEqual([])
    expect(listMessages('host-history-changed')).toEqual([])
  })

  it('a change of what the model is no longer shown is recorded, and the compaction stays', async () => {
    const { host, events, listMessages } = dropIn(BRIEF, SMALL)
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    while (!events.some(({ type }) => type === 'compact')) await host.step()
    await host.step()
    host.messages[1] = {
      role: 'assistant',
      content: [...readBlocks(host.messages[1]), { type: 'text', text: 'Really.' }],
    }
    await host.step()
    expect(listMessages('host-history-changed')).toEqual([
      'The client changed an earlier message; the log keeps the old branch.',
    ])
    expect(events.filter(({ type }) => type === 'compact').length).toBe(1)
    expect(listMessages('request-passed')).toEqual([])
  })

  it('that the provider finds too long all the same is compacted, and the client gets an answer', async () => {
    const { host, simulator, events } = dropIn(BRIEF, {
      ...SMALL,
      window: 60_000,
      simulator: { window: 20_000 },
    })
    await host.ask('Mend the sums.')
    expect(listStatus(simulator)).toContain(400)
    expect(events.filter(({ type }) => type === 'reactive-compact').length).toBeGreaterThan(0)
    expect(host.messages.length).toBeGreaterThan(80)
  })

  it('is counted as it will be sent', async () => {
    const { host, simulator, events } = dropIn(BRIEF, SMALL)
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    while (!events.some(({ type }) => type === 'compact')) await host.step()
    await host.step()
    const counted = await host.count()
    await host.step()
    const usage = simulator.requests.at(-1)?.usage
    const sent = (usage?.input ?? 0) + (usage?.cacheRead ?? 0) + (usage?.write5m ?? 0)
    expect(Math.abs(counted - sent)).toBeLessThan(200)
    const direct = createDropInWorld({ simulator: { window: 1_000_000 } })
    const alone = new ClientAgent(direct.upstream, direct.coder, BRIEF)
    alone.messages = host.messages
    const whole = await alone.count()
    expect(counted).toBeLessThan(whole / 1.3)
  })
})

describe('a stream', () => {
  it('is passed on as it comes, byte for byte, and is in the log when it ends', async () => {
    const world = createDropInWorld()
    const session = await world.tide.open('talk')
    let given = ''
    const upstream: Fetch = async (input, init) => {
      const response = await world.upstream(input, init)
      given = await response.clone().text()
      return response
    }
    const fetch = world.tide.fetch({ session, fetch: upstream })
    const host = new ClientAgent(fetch, world.coder, { fields: { stream: true } })
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    const response = await host.send()
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    expect(await response.text()).toBe(given)
    expect(
      session
        .messages()
        .slice(0, 2)
        .map(({ role }) => role),
    ).toEqual(['user', 'assistant'])
    expect(session.money()).toMatchObject({ calls: 1 })
  })

  it('begins with pings while a compaction runs, and the error of a refused request then comes as an event', async () => {
    const world = createDropInWorld()
    const slow: Fetch = async (input, init) => {
      await new Promise((resolve) => setTimeout(resolve, 600))
      return world.upstream(input, init)
    }
    const fetch = world.tide.fetch({ session: 'talk', fetch: slow, pingSeconds: 0.03 })
    const host = new ClientAgent(fetch, world.coder, { fields: { stream: true } })
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    const text = await (await host.send()).text()
    expect(text.match(/event: ping/g)?.length).toBeGreaterThan(1)
    expect(text).toContain('event: message_stop')
    const refused = new ClientAgent(fetch, world.coder, { fields: { stream: true, max_tokens: -1 } })
    refused.messages.push({ role: 'user', content: 'Mend the dates.' })
    const error = await (await refused.send()).text()
    expect(error).toContain('event: error\ndata: {"type":"error","error":{"type":"invalid_request_error"')
  })

  it('that the client aborts is not recorded, and the conversation goes on', async () => {
    const { coder, listMessages, simulator, tide, upstream } = createDropInWorld()
    const fetch = tide.fetch({ session: 'talk', fetch: passInPieces(upstream) })
    const host = new ClientAgent(fetch, coder, { fields: { stream: true } })
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    const stop = new AbortController()
    const response = await host.send({ signal: stop.signal })
    const reader = response.body?.getReader()
    await reader?.read()
    await reader?.cancel()
    stop.abort()
    host.messages.push(
      { role: 'assistant', content: 'Step 1' },
      { role: 'user', content: '[interrupted] Go on.' },
    )
    const again = await (await host.send()).text()
    expect(again).toContain('message_stop')
    expect(listMessages('host-history-changed')).toEqual([])
    expect(listStatus(simulator)).toEqual([200])
  })
})

describe('a response that the client does not read', () => {
  it.each([
    ['at all', 60],
    ['while it gets only pings', 0.01],
  ])('%s leaves the conversation free for the next request', async (_, pingSeconds) => {
    const { tide, upstream, coder } = createDropInWorld()
    const slow: Fetch = async (input, init) => {
      await new Promise((resolve) => setTimeout(resolve, 60))
      return upstream(input, init)
    }
    const fetch = tide.fetch({ session: 'talk', fetch: slow, pingSeconds })
    const host = new ClientAgent(fetch, coder, { fields: { stream: true } })
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    const response = await host.send()
    const reader = response.body?.getReader()
    if (pingSeconds < 1) await reader?.read()
    await reader?.cancel()
    await new Promise((resolve) => setTimeout(resolve, 150))
    await host.step()
    expect(await tide.sessions()).toEqual(['talk'])
  })
})

describe('options of fetch', () => {
  it.each([
    [{ session: 'no such id!' }, 'bad-session-id'],
    [{ session: {} }, 'bad-option'],
    [{ mode: 'watch' }, 'bad-option'],
    [{ pingSeconds: 0 }, 'bad-option'],
    [{ sesion: 'x' }, 'bad-option'],
  ])('%j are refused', (options, code) => {
    const { tide } = createDropInWorld()
    expect(() => tide.fetch(options as never)).toThrow(expect.objectContaining({ code }))
  })
})

describe('a request that is aborted before its response', () => {
  it('rejects as fetch does, and can be sent again', async () => {
    const world = createDropInWorld()
    const stop = new AbortController()
    const hanging: Fetch = (_, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
        setTimeout(() => stop.abort(), 20)
      })
    let upstream = hanging
    const fetch = world.tide.fetch({ session: 'talk', fetch: (input, init) => upstream(input, init) })
    const host = new ClientAgent(fetch, world.coder)
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    await expect(host.send({ signal: stop.signal })).rejects.toMatchObject({ name: 'AbortError' })
    upstream = world.upstream
    while (await host.step());
    expect(await world.tide.sessions()).toEqual(['talk'])
    expect(world.listMessages('host-history-changed')).toEqual([])
  })
})

describe('an error', () => {
  it.each([
    [
      '429',
      {
        status: 429,
        headers: { 'retry-after': '7' },
        body: '{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}',
      },
    ],
    [
      '529',
      {
        status: 529,
        headers: {},
        body: '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}',
      },
    ],
    [
      '401',
      {
        status: 401,
        headers: {},
        body: '{"type":"error","error":{"type":"authentication_error","message":"key"}}',
      },
    ],
  ])('%s reaches the client as the provider gave it, after one request', async (_, given) => {
    const world = createDropInWorld()
    let calls = 0
    const failing: Fetch = async () => {
      calls += 1
      return new Response(given.body, {
        status: given.status,
        headers: given.headers as Record<string, string>,
      })
    }
    const host = new ClientAgent(world.tide.fetch({ session: 'talk', fetch: failing }), world.coder)
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    const response = await host.send()
    expect([response.status, await response.text(), calls]).toEqual([given.status, given.body, 1])
    expect(response.headers.get('retry-after')).toBe(
      (given.headers as Record<string, string>)['retry-after'] ?? null,
    )
  })

  it('of the engine is never the client’s: what the provider takes directly is answered', async () => {
    const world = createDropInWorld()
    const picky: Fetch = async (input, init) => {
      if (String(init?.body).includes('"diagnostics"'))
        return new Response(
          '{"type":"error","error":{"type":"invalid_request_error","message":"no diagnostics"}}',
          { status: 400 },
        )
      return world.upstream(input, init)
    }
    const host = new ClientAgent(world.tide.fetch({ session: 'talk', fetch: picky }), world.coder)
    await host.ask('Mend the sums.')
    expect(world.simulator.requests.every(({ status }) => status === 200)).toBe(true)
    expect(world.listMessages('request-passed').length).toBe(world.sent.length)
  })

  it('of a request that is wrong in itself is that of the client’s own request', async () => {
    const { host, upstream, coder } = dropIn({ fields: { max_tokens: -1 } }, {})
    const alone = new ClientAgent(upstream, coder, { fields: { max_tokens: -1 } })
    for (const each of [alone, host]) each.messages.push({ role: 'user', content: 'Mend the sums.' })
    const readError = async (response: Response) => {
      const body = (await response.json()) as { error: unknown }
      return [response.status, body.error]
    }
    expect(await readError(await host.send())).toEqual(await readError(await alone.send()))
  })
})

describe('the way out', () => {
  it('is the client’s own list: switched off, its next request is one that the provider takes', async () => {
    const { host, simulator, upstream, coder } = dropIn(
      { fields: { thinking: { type: 'adaptive' } } },
      { turns: 10, thinkingTokens: 50 },
    )
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    for (let step = 0; step < 6; step += 1) await host.step()
    const alone = new ClientAgent(upstream, coder, { fields: { thinking: { type: 'adaptive' } } })
    alone.messages = host.messages
    while (await alone.step());
    expect(listStatus(simulator)).toEqual([200])
  })

  it.each([
    ['a clock in the system prompt', {}, false],
    ['a compaction', { window: 20_000, turns: 60, resultTokens: 1_500 }, false],
    ['a compaction, in a stream', { window: 20_000, turns: 60, resultTokens: 1_500 }, true],
  ])('is open on a model that binds thinking to its context, after %s', async (_, options, stream) => {
    const modelId = 'claude-opus-5-5'
    const writeSystem = (minute: number): string => `${'Be exact.\n'.repeat(40)}It is 12:${10 + minute}.`
    const settings: ClientSettings = { model: modelId, fields: { stream }, system: writeSystem(0) }
    const simulator = { binding: { enforced: true }, window: 200_000 }
    const world = dropIn(
      { ...settings, prepare: (body, number) => ({ ...body, system: writeSystem(number) }) },
      { turns: 20, ...options, modelId, thinkingTokens: 60, simulator },
    )
    const { host, events } = world
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    const isDone = (step: number): boolean =>
      'window' in options ? events.some(({ type }) => type === 'compact') : step > 5
    for (let step = 0; !isDone(step); step += 1) await host.step()
    for (let step = 0; step < 3; step += 1) await host.step()
    const alone = new ClientAgent(world.upstream, world.coder, settings)
    alone.messages = host.messages
    await alone.step()
    expect(listStatus(world.simulator)).toEqual([200])
    expect(JSON.stringify(host.messages[1])).toContain('"type":"thinking"')
  })

  it('is `export`, which has the messages as the client would have them', async () => {
    const { host, tide, events } = dropIn(BRIEF, SMALL)
    const session = await tide.open('talk')
    await host.ask('Mend the sums.')
    expect(events.some(({ type }) => type === 'compact')).toBe(true)
    const messages = JSON.parse(await session.export({ as: 'messages' })) as ClientMessage[]
    expect(messages.map(({ role }) => role)).toEqual(host.messages.map(({ role }) => role))
    expect(messages).toEqual(
      host.messages.map(({ role, content }) => ({
        role,
        content: typeof content === 'string' ? [{ type: 'text', text: content }] : content,
      })),
    )
  })

  it('is one word: mode off is the fetch that was given', () => {
    const { tide, upstream } = createDropInWorld()
    expect(tide.fetch({ session: 'talk', fetch: upstream, mode: 'off' })).toBe(upstream)
  })
})

describe('the official client', () => {
  function createClient(options: DropInOptions = {}) {
    const world = createDropInWorld(options)
    const fetch = world.tide.fetch({ session: 'talk', fetch: world.upstream })
    return {
      ...world,
      client: new Anthropic({ apiKey: 'any', baseURL: 'http://simulator.test', fetch, maxRetries: 0 }),
    }
  }

  it('with its tool runner, which sends only what is new, compacts and goes on', async () => {
    const { client, coder, simulator, events, listMessages, tide } = createClient(SMALL)
    const tools = coder.tools.map((tool) => ({
      ...(tool as object),
      run: (input: unknown, context?: { toolUseBlock?: { id: string; name: string } }) =>
        String(coder.toolResult({ ...context?.toolUseBlock, input } as never).content),
    }))
    const final = await client.beta.messages.toolRunner({
      model: 'claude-sonnet-5-5',
      max_tokens: 2_000,
      system: 'You are a careful coder.',
      tools: tools as never,
      messages: [{ role: 'user', content: 'Mend the sums.' }],
    })
    expect(final.stop_reason).toBe('end_turn')
    expect(listStatus(simulator)).toEqual([200])
    expect(events.filter(({ type }) => type === 'compact').length).toBeGreaterThan(0)
    expect(listMessages('request-passed')).toEqual([])
    expect(await tide.sessions()).toEqual(['talk'])
    expect(sumRequests({ simulator }).requests).toBeGreaterThan(40)
  })
})

describe('the session that a fetch manages', () => {
  it('is opened by the application, too, which may compact and close it; the client goes on', async () => {
    const world = createDropInWorld({ turns: 12, resultTokens: 3_000 })
    const { tide, coder, upstream, listMessages } = world
    const host = new ClientAgent(tide.fetch({ session: 'shared', fetch: upstream }), coder, BRIEF)
    await host.ask('Mend the sums.')
    const session = await tide.open('shared')
    expect(session.messages().length).toBe(host.messages.length)
    expect(await session.compact()).toMatchObject({ ok: true })
    await host.ask('Go on.')
    expect(session.messages().length).toBeLessThan(host.messages.length)
    await session.close()
    await host.ask('And on.')
    const again = await tide.open('shared')
    expect(again.messages().length).toBeLessThan(host.messages.length)
    expect([listMessages('request-passed'), await tide.sessions()]).toEqual([[], ['shared']])
    await tide.close()
  })

  it('is not closed by the fetch once the application has it, and has no other options', async () => {
    const { tide, coder, upstream } = createDropInWorld({ turns: 12 })
    const fetch = tide.fetch({ session: 'shared', fetch: upstream, idleSeconds: 0.02 })
    const host = new ClientAgent(fetch, coder, BRIEF)
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    const [session] = await Promise.all([tide.open('shared'), host.step()])
    await expect(tide.open('shared')).rejects.toMatchObject({ code: 'busy' })
    await new Promise((resolve) => setTimeout(resolve, 100))
    await expect(session.planCompaction()).resolves.toBeDefined()
    await session.close()
    await host.step()
    await expect(tide.open('shared', { cwd: '/tmp' })).rejects.toMatchObject({
      code: 'busy',
      message: expect.stringContaining('managed by fetch already'),
    })
    await tide.close()
  })
})

describe('requests of one client at the same time', () => {
  const countAnswers = (messages: readonly { readonly role: string }[]): number =>
    messages.filter(({ role }) => role === 'assistant').length

  /** A client with some rounds behind it, whose session the application then closed. */
  async function createClosedClient(session: string | undefined) {
    const world = createDropInWorld({ turns: 12 })
    const fetch = world.tide.fetch({ fetch: world.upstream, ...(session === undefined ? {} : { session }) })
    const client = new ClientAgent(fetch, world.coder, BRIEF)
    client.messages.push({ role: 'user', content: 'Mend the sums.' })
    for (let step = 0; step < 2; step += 1) await client.step()
    const [id = ''] = await world.tide.sessions()
    const opened = await world.tide.open(id)
    await opened.close()
    return { ...world, client, id }
  }

  it.each([['shared'], [undefined]])(
    'that find their session closed (%s) open it once: one goes on in it, the other begins one of its own',
    async (session) => {
      const { tide, client, id, listMessages } = await createClosedClient(session)
      const answers = await Promise.all([client.send(), client.send()])
      await Promise.all(answers.map((answer) => answer.text()))
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
      expect([(await tide.sessions()).length, listMessages('request-passed')]).toEqual([2, []])
      const again = await tide.open(id)
      expect(countAnswers(again.messages())).toBe(countAnswers(client.messages) + 1)
      await tide.close()
    },
  )

  it('never share a session, also where it is given as an object', async () => {
    const { tide, coder, upstream, listMessages } = createDropInWorld({ turns: 12 })
    const session = await tide.open('mine')
    const client = new ClientAgent(tide.fetch({ session, fetch: upstream }), coder, BRIEF)
    client.messages.push({ role: 'user', content: 'Mend the sums.' })
    const answers = await Promise.all([client.send(), client.send()])
    await Promise.all(answers.map((answer) => answer.text()))
    expect(listMessages('request-passed')).toEqual(['The request belongs to no conversation.'])
    await expect.poll(() => countAnswers(session.messages())).toBe(1)
    await tide.close()
  })

  it('and of the application, which opens the session while an answer streams, closes it and opens it again', async () => {
    const { tide, coder, upstream, listMessages } = createDropInWorld({ turns: 12 })
    const settings = { ...BRIEF, fields: { stream: true } }
    const client = new ClientAgent(tide.fetch({ session: 'shared', fetch: upstream }), coder, settings)
    client.messages.push({ role: 'user', content: 'Mend the sums.' })
    await client.step()
    const answer = await client.send()
    const session = await tide.open('shared')
    await answer.text()
    await expect.poll(() => countAnswers(session.messages())).toBe(2)
    await session.close()
    const again = await tide.open('shared')
    expect(countAnswers(again.messages())).toBe(2)
    expect(listMessages('request-passed')).toEqual([])
    await tide.close()
  })
})

describe('a client that names no session', () => {
  it('goes on in its session though the application has opened it and the fetch has forgotten it', async () => {
    const { tide, coder, upstream } = createDropInWorld({ turns: 12 })
    const host = new ClientAgent(tide.fetch({ fetch: upstream, idleSeconds: 0.02 }), coder, BRIEF)
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    for (let step = 0; step < 3; step += 1) await host.step()
    const [id = ''] = await tide.sessions()
    await tide.open(id)
    await new Promise((resolve) => setTimeout(resolve, 100))
    await host.step()
    expect(await tide.sessions()).toEqual([id])
    await tide.close()
  })

  it('is passed on after the Tidemark object was closed, and opens no session again', async () => {
    const { tide, coder, upstream, listMessages } = createDropInWorld({ turns: 12 })
    const host = new ClientAgent(tide.fetch({ session: 'shared', fetch: upstream }), coder, BRIEF)
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    await host.step()
    await tide.close()
    await host.step()
    expect(listMessages('request-passed')).toEqual([expect.stringContaining('is closed')])
  })
})
