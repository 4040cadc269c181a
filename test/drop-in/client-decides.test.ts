/** What a client sends is what the model gets: its parameters, its omissions and its tools are never put back. */
import { createManualClock } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import {
  ClientAgent,
  type ClientBlock,
  type ClientMessage,
  dropIn,
  sumRequests,
  withMarkers,
} from './client-agent.ts'

type Body = Record<string, unknown>

/** A model whose thinking is bound to every byte before it. */
const BOUND = 'claude-opus-5-5'
const TOOL_BETAS = 'mid-conversation-tool-changes-2026-07-01,inline-tools-2026-09-15'

function readSent(text: string | undefined): Body & { readonly messages: readonly ClientMessage[] } {
  return JSON.parse(text ?? '{}')
}

function mapBlocks(
  body: Body,
  change: (block: ClientBlock, message: number) => readonly ClientBlock[],
): Body {
  const messages = (body.messages as ClientMessage[]).map(({ role, content }, index) => ({
    role,
    content: typeof content === 'string' ? content : content.flatMap((block) => change(block, index)),
  }))
  return { ...body, messages }
}

function withoutThinking(body: Body): Body {
  return mapBlocks(body, (block) => (block.type === 'thinking' ? [] : [block]))
}

describe('the parameters of a client', () => {
  it('are sent as they are, also its own context management', async () => {
    const context_management = {
      edits: [{ type: 'clear_tool_uses_20250919', trigger: { type: 'input_tokens', value: 3_000 } }],
    }
    const { host, ...world } = dropIn(
      {
        model: BOUND,
        headers: { 'anthropic-beta': 'context-management-2025-06-27' },
        fields: { thinking: { type: 'adaptive' }, context_management },
      },
      { modelId: BOUND, turns: 10, thinkingTokens: 60 },
    )
    await host.ask('Fix the sums.')
    for (const text of world.sent) expect(readSent(text).context_management).toEqual(context_management)
    expect(sumRequests(world).refused).toBe(0)
  })
})

describe('what a client leaves out', () => {
  it('of its thinking is not sent again', async () => {
    const settings = { fields: { thinking: { type: 'adaptive' } }, prepare: withoutThinking }
    const { host, ...world } = dropIn(settings, { turns: 10, thinkingTokens: 200 })
    await host.ask('Fix the sums.')
    for (const text of world.sent) expect(text).not.toContain('"type":"thinking"')
    expect(world.listMessages('host-history-changed')).toEqual([])
    expect(sumRequests(world).refused).toBe(0)
  })

  it('of its thinking is not sent again, also if its first requests went without Tidemark', async () => {
    const settings = { model: BOUND, fields: { thinking: { type: 'adaptive' } }, prepare: withoutThinking }
    const { host, ...world } = dropIn(settings, { modelId: BOUND, turns: 10, thinkingTokens: 200 })
    const direct = new ClientAgent(world.upstream, world.coder, settings)
    direct.messages.push({ role: 'user', content: 'Fix the sums.' })
    await direct.step()
    host.messages = direct.messages
    while (await host.step());
    for (const text of world.sent) expect(text).not.toContain('"type":"thinking"')
    expect(sumRequests(world).refused).toBe(0)
  })

  it.each(['its tools changed', 'a compaction'])('of its thinking stays left out after %s', async (event) => {
    const deploy = { name: 'deploy', description: 'Deploys.', input_schema: { type: 'object' } }
    const prepare = (body: Body, number: number): Body => ({
      ...withoutThinking(body),
      tools: [...(body.tools as object[]), ...(event === 'a compaction' || number < 4 ? [] : [deploy])],
    })
    const settings = { model: BOUND, fields: { thinking: { type: 'adaptive' } }, prepare }
    const options = { modelId: BOUND, turns: 30, resultTokens: 1_000, thinkingTokens: 200 }
    const { host, ...world } = dropIn(settings, {
      ...options,
      window: event === 'a compaction' ? 20_000 : 200_000,
    })
    await host.ask('Fix the sums.')
    expect(world.events.some(({ type }) => type === 'compact')).toBe(event === 'a compaction')
    for (const text of world.sent) expect(text).not.toContain('"type":"thinking"')
    expect(sumRequests(world).refused).toBeLessThanOrEqual(1)
  })

  it('of its thinking is sent where the provider would refuse the request without it', async () => {
    const model = 'claude-sonnet-4-5'
    const fields = { max_tokens: 4_000, thinking: { type: 'enabled', budget_tokens: 1_024 } }
    const settings = { model, fields, prepare: withoutThinking }
    const { host, ...world } = dropIn(settings, { modelId: model, turns: 5, thinkingTokens: 200 })
    await host.ask('Fix the sums.')
    expect(world.sent.at(-1)).toContain('"type":"thinking"')
    expect(sumRequests(world).refused).toBe(0)
    await host.ask('And the dates.')
    const { messages } = readSent(world.sent.at(-1))
    const prompt = messages.findLastIndex(({ content }) => JSON.stringify(content).includes('And the dates.'))
    expect(JSON.stringify(messages.slice(0, prompt))).not.toContain('"type":"thinking"')
  })

  it('of the input of a call is what the model and the log of the conversation have from then on', async () => {
    const { host, tide, ...world } = dropIn({ prepare: withMarkers }, { turns: 12 })
    const session = await tide.open('talk')
    host.messages.push({ role: 'user', content: 'Fix the sums.' })
    for (let step = 0; step < 6; step += 1) await host.step()
    const call = findCall(host.messages)
    const old = JSON.stringify(call.input)
    host.messages = replaceInput(host.messages, call, { redacted: true })
    await host.step()
    expect(world.sent.at(-2)).toContain(old)
    expect(world.sent.at(-1)).not.toContain(old)
    expect(await session.export({ as: 'messages' })).not.toContain(old)
    expect(world.listMessages('host-history-changed')).toEqual([
      'The client changed an earlier message; the log keeps the old branch.',
    ])
  })

  it.each(['before', 'after'])('of the input of a call %s a compaction is never sent again', async (when) => {
    const { host, ...world } = dropIn(
      { system: 'You are a careful coder.' },
      { window: 20_000, turns: 90, resultTokens: 1_500 },
    )
    const isCompacted = (): boolean => world.events.some(({ type }) => type === 'compact')
    host.messages.push({ role: 'user', content: 'Fix the sums.' })
    await host.step()
    const call = findCall(host.messages)
    const secret = { ...Object(call.input), token: 'tok-7Hq2-8831-zz9' }
    host.messages = replaceInput(host.messages, call, secret)
    for (let step = 0; step < 3; step += 1) await host.step()
    if (when === 'after') while (!isCompacted()) await host.step()
    expect(world.sent.join()).toContain('tok-7Hq2-8831-zz9')
    host.messages = replaceInput(host.messages, call, { ...Object(call.input), token: '[removed]' })
    const count = world.simulator.requests.length
    while (!isCompacted()) await host.step()
    for (let step = 0; step < 4; step += 1) await host.step()
    const later = world.simulator.requests.slice(count).map((request) => JSON.stringify(request))
    expect(later.join()).not.toContain('tok-7Hq2-8831-zz9')
    expect(world.sent.slice(-4).join()).not.toContain('tok-7Hq2-8831-zz9')
  })
})

function findCall(messages: readonly ClientMessage[]): ClientBlock {
  const blocks = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content))
  const call = blocks.find(({ type }) => type === 'tool_use')
  if (call === undefined) throw new Error('expected a call')
  return call
}

function replaceInput(
  messages: readonly ClientMessage[],
  { id }: ClientBlock,
  input: object,
): ClientMessage[] {
  const body = mapBlocks({ messages }, (block) => [block.id === id ? { ...block, input } : block])
  return body.messages as ClientMessage[]
}

it('the thinking of an answer reaches a client whose first requests went without Tidemark', async () => {
  const settings = { model: BOUND, fields: { thinking: { type: 'adaptive' } } }
  const { host, ...world } = dropIn(settings, { modelId: BOUND, turns: 10, thinkingTokens: 200 })
  const direct = new ClientAgent(world.upstream, world.coder, settings)
  direct.messages.push({ role: 'user', content: 'Fix the sums.' })
  await direct.step()
  host.messages = direct.messages
  while (await host.step());
  // The coder does not think about its last answer.
  const answers = host.messages.filter(({ role }) => role === 'assistant').slice(0, -1)
  expect(answers.length).toBeGreaterThan(5)
  for (const { content } of answers)
    expect((content as ClientBlock[]).map(({ type }) => type)).toContain('thinking')
  expect(sumRequests(world).refused).toBe(0)
})

it.each([
  ['sends back all that it was given', Number.POSITIVE_INFINITY],
  ['leaves out the older that it was given', 4],
])('thinking that a client was not given is sent for it if it %s', async (_, recent) => {
  const compacted = (): boolean => world.events.some(({ type }) => type === 'compact')
  const prepare = (body: Body): Body => {
    const { length } = body.messages as readonly ClientMessage[]
    return mapBlocks(body, (block, at) => (block.type === 'thinking' && at < length - recent ? [] : [block]))
  }
  const settings = { model: BOUND, fields: { thinking: { type: 'adaptive' } }, prepare }
  const options = { modelId: BOUND, turns: 40, resultTokens: 1_000, thinkingTokens: 200, window: 20_000 }
  const { host, ...world } = dropIn(settings, options)
  host.messages.push({ role: 'user', content: 'Fix the sums.' })
  while (!compacted()) await host.step()
  for (let step = 0; step < 5; step += 1) await host.step()
  expect(JSON.stringify(host.messages.slice(-8))).not.toContain('"type":"thinking"')
  expect(world.sent.at(-1)).toContain('"type":"thinking"')
  expect(sumRequests(world).refused).toBeLessThanOrEqual(1)
})

describe('fields on user messages that the engine does not know', () => {
  it('are sent with them', async () => {
    const { host, ...world } = dropIn()
    host.messages.push({ role: 'user', content: 'Fix the sums.', x_origin: 'mail' })
    const response = await host.send()
    expect(response.status).toBe(400)
    expect(readSent(world.sent[0]).messages[0]).toMatchObject({ role: 'user', x_origin: 'mail' })
  })
})

describe('a system prompt with the time of day, in requests that come after the cache has expired', () => {
  it.each([
    ['claude-sonnet-5-5', 0],
    [BOUND, 100],
  ])('%s: is sent with the time in it, and nothing is announced', async (modelId, thinkingTokens) => {
    const clock = createManualClock()
    const prepare = (body: Body, number: number): Body =>
      withMarkers({ ...body, system: `${body.system}\nIt is 12:${10 + number}.` })
    const settings = { model: modelId, prepare, fields: { thinking: { type: 'adaptive' } } }
    const options = { modelId, thinkingTokens, turns: 6, clock, simulator: { clock } }
    const { host, ...world } = dropIn(settings, options)
    host.messages.push({ role: 'user', content: 'Fix the sums.' })
    do await clock.advance(6 * 60_000)
    while (await host.step())
    for (const [number, text] of world.sent.entries()) {
      expect(JSON.stringify(readSent(text).system)).toContain(`It is 12:${10 + number}.`)
      expect(text).not.toContain('<system-reminder')
    }
    expect(sumRequests(world).refused).toBe(0)
  })
})

describe('a tool that a client withdraws', () => {
  const deploy = { name: 'deploy', description: 'Deploys.', input_schema: { type: 'object', properties: {} } }
  const prepare = (body: Body, number: number): Body =>
    withMarkers(number < 4 ? { ...body, tools: [...(body.tools as object[]), deploy] } : body)

  it('is no longer in the list', async () => {
    const { host, ...world } = dropIn({ prepare }, { turns: 8 })
    await host.ask('Fix the sums.')
    const names = (text: string | undefined): readonly string[] =>
      (readSent(text).tools as ClientBlock[]).map(({ name }) => String(name))
    expect(names(world.sent[3])).toContain('deploy')
    for (const text of world.sent.slice(4)) expect(names(text)).not.toContain('deploy')
    expect(world.sent.at(-1)).not.toContain('can no longer be called')
    expect(sumRequests(world).refused).toBe(0)
  })

  it('is removed by the provider where the client has its betas, and the cache holds', async () => {
    const headers = { 'anthropic-beta': TOOL_BETAS }
    const { host, ...world } = dropIn({ prepare, headers }, { turns: 8 })
    await host.ask('Fix the sums.')
    const removals = readSent(world.sent.at(-1)).messages.flatMap(({ content }) =>
      typeof content === 'string' ? [] : content.filter(({ type }) => type === 'tool_removal'),
    )
    expect(removals).toEqual([{ type: 'tool_removal', tool: { type: 'tool_reference', name: 'deploy' } }])
    const [before, after] = [world.simulator.requests[3], world.simulator.requests[4]]
    expect(after?.usage?.cacheRead).toBeGreaterThan(before?.usage?.cacheRead ?? 0)
    expect(sumRequests(world).refused).toBe(0)
  })
})
