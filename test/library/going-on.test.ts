/** Turns that go on although a rewrite or a model left the conversation in a state that a provider would refuse. */
import { sampleCases } from '@tidemark/core/testing'
import type { Script } from '@tidemark/simulator'
import { anthropic, assistant, toolResult, user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createTestTidemark, openTestSession } from '../support/test-tidemark.ts'

const DECISION = 'The decision: sums are kept in cents.'

/** A model that decides something, then calls a tool `rounds` times for each further prompt. */
function createWorker(rounds: number, createId?: () => string, tool = 'Read'): Script {
  let left = rounds
  return ({ messages, kind }) => {
    if (kind === 'compaction') return { blocks: [{ type: 'text', text: 'Much was done.' }] }
    if (JSON.stringify(messages.at(-1)?.content).includes('Decide'))
      return { blocks: [{ type: 'text', text: DECISION }] }
    left -= 1
    if (left < 0) {
      left = rounds
      return { blocks: [{ type: 'text', text: 'Done.' }] }
    }
    const input = tool === 'Read' ? { file_path: `src/${left}.ts` } : { query: `part ${left}` }
    const call = { type: 'tool_use', name: tool, input } as const
    return { blocks: [createId === undefined ? call : { ...call, id: createId() }] }
  }
}

describe('a pinned response', () => {
  // After `Search`, no file is attached again, so that the pinned response would be the last message.
  it.each([
    ['claude-sonnet-4-5', 'Read'],
    ['claude-sonnet-5-5', 'Read'],
    ['claude-opus-5-5', 'Read'],
    ['claude-sonnet-4-5', 'Search'],
    ['claude-opus-5-5', 'Search'],
  ])(
    'does not end the run when an automatic compaction leaves it last, on %s with %s',
    async (modelId, tool) => {
      const world = await openTestSession({
        modelId,
        window: 24_000,
        script: createWorker(12, undefined, tool),
        env: { DISABLE_MICROCOMPACT: '1' },
        // This model counts its calls, whoever makes them.
        policy: { notes: { enabled: false }, compact: { background: false } },
      })
      const tools = {
        [tool]: { description: 'Reads.', run: () => 'a line of the file that was read\n'.repeat(300) },
      }
      expect(await world.session.run('Decide.', { tools }).outcome).toMatchObject({ text: DECISION })
      const appended = world.events.flatMap((event) => (event.type === 'appended' ? event.records : []))
      const pinned = appended.find(({ type }) => type === 'assistant')?.uuid ?? ''
      expect(await world.session.pin(pinned)).toMatchObject({ ok: true })
      const outcome = await world.session.run('Now read all files.', { tools }).outcome
      expect(outcome).toMatchObject({ ok: true, text: 'Done.' })
      expect(world.events.filter(({ type }) => type === 'compact').length).toBeGreaterThan(0)
      expect(world.bodies.at(-1)).toContain(DECISION)
    },
  )
})

describe('tool calls that repeat an id', () => {
  it('are run and shown with their results, each under an id of its own', async () => {
    const world = createTestTidemark({ script: createWorker(3, () => 'toolu_same') })
    const session = await world.tide.open('talk')
    const runs: string[] = []
    const tools = { Read: { description: 'Reads.', run: () => `result ${runs.push('run')}` } }
    expect(await session.run('Read.', { tools }).outcome).toMatchObject({ ok: true, text: 'Done.' })
    const body = world.bodies.at(-1) ?? ''
    for (const text of ['result 1', 'result 2', 'result 3']) expect(body).toContain(text)
    expect(new Set(body.match(/"tool_use_id":"[^"]+"/g)).size).toBe(3)
  })

  it('wait, in an own loop, for a result under the id that the model gave', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('talk')
    const tools = [{ name: 'Read', input_schema: { type: 'object' } }]
    const call = { type: 'tool_use', id: 'toolu_same', name: 'Read', input: {} }
    await session.append(user('Read.'), assistant({ id: 'msg_1', content: [call] }))
    await session.append(toolResult('toolu_same', 'one'), assistant({ id: 'msg_2', content: [call] }))
    expect(await session.next({ tools })).toMatchObject({ reason: 'open-calls', calls: ['toolu_same'] })
    await session.append(toolResult('toolu_same', 'two'))
    const request = await session.next({ tools })
    expect(request).toMatchObject({ ok: true })
    expect(request.ok && request.text).toMatch(/toolu_same_2.*toolu_same_2.*two/)
  })
})

describe('a compaction right after a switch of model', () => {
  const MODELS = ['claude-sonnet-5-5', 'claude-opus-5-5', 'claude-sonnet-4-5', 'claude-3-5-sonnet']
  const pairs = MODELS.flatMap((from) => MODELS.filter((to) => to !== from).map((to) => [from, to] as const))

  it.each(sampleCases(pairs, 3))(
    'from %s to %s is made with the new model, before any turn',
    async (from, to) => {
      for (const form of ['full', 'up_to'] as const) {
        const world = createTestTidemark({ modelId: from, turns: 2, thinkingTokens: 20, resultTokens: 2_500 })
        const session = await world.tide.open('talk')
        const prompts: string[] = []
        session.on('appended', ({ records }) => {
          for (const record of records)
            if (record.type === 'user' && JSON.stringify(record).includes('Do part'))
              prompts.push(record.uuid ?? '')
        })
        for (const part of [1, 2, 3, 4]) await session.run(`Do part ${part}.`, world.tools).outcome
        const choice = anthropic(to, { apiKey: 'any', fetch: world.simulator.fetch as typeof fetch })
        await session.switchModel(choice)
        const sent = world.simulator.requests.length
        const pivot = prompts.at(-1) ?? ''
        expect(await session.compact(form === 'full' ? {} : { form, pivot })).toMatchObject({ ok: true })
        const models = world.simulator.requests.slice(sent).map(({ model, status }) => [model, status])
        expect(models).toEqual(models.map(() => [to, 200]))
        expect(await session.run('Do part 5.', world.tools).outcome).toMatchObject({ ok: true })
      }
    },
  )

  it('leaves no summary block of the provider for a model that accepts none', async () => {
    const world = createTestTidemark({
      modelId: 'claude-opus-5-5',
      turns: 2,
      thinkingTokens: 20,
      resultTokens: 2_500,
    })
    const session = await world.tide.open('talk')
    const prompts: string[] = []
    session.on('appended', ({ records }) => {
      for (const record of records)
        if (record.type === 'user' && JSON.stringify(record).includes('Do part'))
          prompts.push(record.uuid ?? '')
    })
    for (const part of [1, 2, 3, 4]) await session.run(`Do part ${part}.`, world.tools).outcome
    const block = await session.compact({ form: 'up_to', pivot: prompts.at(-1) ?? '' })
    expect(block).toMatchObject({ ok: true, compaction: { summarizer: 'block' } })
    await session.run('Do part 5.', world.tools).outcome
    const choice = anthropic('claude-sonnet-4-5', {
      apiKey: 'any',
      fetch: world.simulator.fetch as typeof fetch,
    })
    expect(await session.switchModel(choice)).toMatchObject({ ok: true })
    expect(await session.run('Do part 6.', world.tools).outcome).toMatchObject({ ok: true })
  })
})

/** A session of four turns, and the uuids of their prompts. */
async function openWorked(modelId: string, resultTokens = 2_500) {
  const world = createTestTidemark({ modelId, turns: 2, thinkingTokens: 20, resultTokens })
  const session = await world.tide.open('talk')
  const prompts: string[] = []
  session.on('appended', ({ records }) => {
    for (const record of records)
      if (record.type === 'user' && JSON.stringify(record).includes('Do part'))
        prompts.push(record.uuid ?? '')
  })
  for (const part of [1, 2, 3, 4]) await session.run(`Do part ${part}.`, world.tools).outcome
  const choose = (id: string) =>
    anthropic(id, { apiKey: 'any', fetch: world.simulator.fetch as typeof fetch })
  return { world, session, prompts, choose }
}

describe('a finished session that was compacted', () => {
  it.each(['claude-sonnet-5-5', 'claude-opus-5-5', 'claude-sonnet-4-5'])(
    'has nothing to continue, until there is a prompt: %s',
    async (modelId) => {
      const { world, session } = await openWorked(modelId)
      expect(await session.compact()).toMatchObject({ ok: true })
      const sent = world.simulator.requests.length
      const refused = {
        ok: false,
        reason: 'invalid',
        message: 'The last message is an answer of the model: append a prompt first.',
      }
      expect(await session.run(null, world.tools).outcome).toMatchObject(refused)
      expect(await session.next()).toMatchObject(refused)
      await session.close()
      const again = await world.tide.open('talk')
      expect(await again.run(null, world.tools).outcome).toMatchObject(refused)
      expect(world.simulator.requests.length).toBe(sent)
      expect(await again.run('Do part 5.', world.tools).outcome).toMatchObject({ ok: true })
    },
  )

  it('goes on if a prompt or a tool result was waiting', async () => {
    const { world, session } = await openWorked('claude-sonnet-5-5')
    await session.append(user('Do part 5.'))
    expect(await session.compact()).toMatchObject({ ok: true })
    expect(await session.run(null, world.tools).outcome).toMatchObject({ ok: true })
  })
})

it('a finished session whose tools nothing runs has nothing to continue, and says so', async () => {
  const { world, session } = await openWorked('claude-sonnet-5-5')
  await session.close()
  const again = await world.tide.open('talk', { tools: world.coder.tools })
  expect(await again.run(null).outcome).toMatchObject({ ok: false, reason: 'invalid' })
  expect(() => again.run('Do part 5.')).toThrow(/^run: nothing runs the tools/)
  await again.append(user('Do part 5.'))
  expect(() => again.run(null)).toThrow(/^run: nothing runs the tools/)
})

describe('a session that is opened with another model', () => {
  it.each(['run', 'next'])(
    'goes on with %s though its context begins with a summary block that the model does not accept',
    async (way) => {
      for (const hasMore of [false, true]) {
        const { world, session, prompts, choose } = await openWorked('claude-opus-5-5')
        const block = await session.compact({ form: 'up_to', pivot: prompts.at(-1) ?? '' })
        expect(block).toMatchObject({ compaction: { summarizer: 'block' } })
        if (hasMore) await session.run('Do part 4b.', world.tools).outcome
        await session.close()
        const again = await world.tide.open('talk', { model: choose('claude-sonnet-4-5') })
        if (way === 'run')
          expect(await again.run('Do part 5.', world.tools).outcome).toMatchObject({ ok: true })
        await again.append(user('Do part 6.'))
        const request = await again.next()
        expect(request).toMatchObject({ ok: true })
        expect(request.ok && request.text).not.toContain('"type":"compaction"')
        expect(world.simulator.requests.every(({ status }) => status === 200)).toBe(true)
      }
    },
  )

  it('takes max_tokens that next was given, as far as the new model has them', async () => {
    const { session, choose } = await openWorked('claude-opus-5-5')
    await session.append(user('Do part 5.'))
    const thinking = { type: 'enabled', budget_tokens: 90_000 }
    await session.next({ parameters: { max_tokens: 100_000, thinking } })
    await session.switchModel(choose('claude-sonnet-4-5'))
    const limited = await session.next({ settle: true })
    expect(limited).toMatchObject({ body: { max_tokens: 64_000, thinking: { budget_tokens: 63_999 } } })
    await session.switchModel(choose('claude-opus-5-5'))
    const whole = await session.next({ parameters: { thinking: null } })
    expect(whole).toMatchObject({ body: { max_tokens: 100_000 } })
  })
})

describe('a compaction from a message on, right after a switch to a model with more tokens for the same text', () => {
  it.each(['claude-opus-5-5', 'claude-sonnet-5-5'])('is not refused as larger: %s', async (to) => {
    const { session, prompts, choose } = await openWorked('claude-sonnet-4-5', 600)
    expect(await session.switchModel(choose(to))).toMatchObject({ ok: true })
    const before = session.contextRemaining()
    const end = await session.compact({ form: 'from', pivot: prompts.at(-1) ?? '' })
    expect(end).toMatchObject({ ok: true })
    expect(before.source).toBe('estimated')
  })
})
