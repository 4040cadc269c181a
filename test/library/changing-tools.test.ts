/** Tools that come, go and change between the turns of one session, on every kind of model. */
import { sampleCases } from '@tidemark/core/testing'
import type { Script } from '@tidemark/simulator'
import { anthropic, type Session, type Tools, toolResult, user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemark } from '../support/test-tidemark.ts'

type Blocks = readonly { readonly type: string; readonly [field: string]: unknown }[]

/** The tools that the model can call: those declared, and those that messages added and did not remove. */
function listCallable({ body }: Parameters<Script>[0]): ReadonlySet<string> {
  const names = new Set((body.tools ?? []).map(({ name }) => String(name)))
  for (const { content } of body.messages)
    for (const { type, tool } of Array.isArray(content) ? (content as Blocks) : []) {
      const { definition, name } = (tool ?? {}) as { definition?: { name: string }; name?: string }
      const changed = definition?.name ?? String(name)
      if (type === 'tool_addition') names.add(changed)
      if (type === 'tool_removal') names.delete(changed)
    }
  return names
}

/** A model that thinks, and calls the tool that the last prompt names ("Use Read.") if it can. */
const obedient: Script = (request) => {
  const { messages, kind } = request
  const thinking = { type: 'thinking', thinking: 'Hm.' } as const
  if (kind === 'compaction') return { blocks: [{ type: 'text', text: 'Much was done.' }] }
  const last = messages.findLast(({ role }) => role === 'user')
  const text = JSON.stringify(last?.content)
  const wanted = [...text.matchAll(/Use (\w+)\./g)].at(-1)?.[1]
  if (wanted === undefined || text.includes('tool_result'))
    return { blocks: [thinking, { type: 'text', text: 'Done.' }] }
  if (!listCallable(request).has(wanted))
    return { blocks: [thinking, { type: 'text', text: `No ${wanted}.` }] }
  return { blocks: [thinking, { type: 'tool_use', name: wanted, input: {} }] }
}

const MODELS = [
  'claude-sonnet-5-5',
  'claude-opus-5-5',
  'claude-haiku-5-5',
  'claude-fable-5-2',
  'claude-opus-4-8',
  'claude-sonnet-4-5',
]

interface World extends TestTidemark {
  readonly session: Session
  readonly used: string[]
  /** Runs a turn with these tools. */
  run(prompt: string, names: readonly string[]): Promise<string>
}

async function createWorld(modelId: string): Promise<World> {
  const world = createTestTidemark({ modelId, script: obedient, history: false })
  const session = await world.tide.open('talk')
  const used: string[] = []
  const toTools = (names: readonly string[]): Tools =>
    Object.fromEntries(
      names.map((name) => [
        name,
        { description: `Does ${name}.`, run: () => `${used.push(name)} ${'a line of text '.repeat(300)}` },
      ]),
    )
  const run: World['run'] = async (prompt, names) => {
    const outcome = await session.run(prompt, { tools: toTools(names) }).outcome
    return outcome.ok ? outcome.text : `${outcome.reason}: ${outcome.message}`
  }
  return { ...world, session, used, run }
}

/** Every request was accepted: thinking that was bound to the tools from before is not sent with others. */
function expectAccepted({ simulator }: TestTidemark): void {
  expect(simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
}

describe.each(MODELS)('tools of a session with %s', (modelId) => {
  it('work in a later run, although the first run had none', async () => {
    const world = await createWorld(modelId)
    expect(await world.run('Hello.', [])).toBe('Done.')
    expect(await world.run('Use Read.', ['Read'])).toBe('Done.')
    expect(await world.run('Use Read. Again.', ['Read'])).toBe('Done.')
    expect(world.used).toEqual(['Read', 'Read'])
    expectAccepted(world)
  })

  it('work in a session opened again, although it had none before', async () => {
    const world = await createWorld(modelId)
    expect(await world.run('Hello.', [])).toBe('Done.')
    await world.session.close()
    const again = await world.tide.open('talk')
    const tools = { Read: { description: 'Does Read.', run: () => `${world.used.push('Read')}` } }
    expect(await again.run('Use Read.', { tools }).outcome).toMatchObject({ ok: true, text: 'Done.' })
    expect(world.used).toEqual(['Read'])
    expectAccepted(world)
  })

  it('that are added later can be called at once', async () => {
    const world = await createWorld(modelId)
    await world.run('Use Read.', ['Read'])
    expect(await world.run('Use Write.', ['Read', 'Write'])).toBe('Done.')
    expect(await world.run('Use Read.', ['Read', 'Write'])).toBe('Done.')
    expect(world.used).toEqual(['Read', 'Write', 'Read'])
    expectAccepted(world)
  })

  it('can all be exchanged or taken away, and come back', async () => {
    const world = await createWorld(modelId)
    await world.run('Use Read.', ['Read', 'Bash'])
    expect(await world.run('Use Write.', ['Write'])).toBe('Done.')
    expect(await world.run('Go on.', [])).toBe('Done.')
    expect(await world.run('Use Read.', ['Read', 'Write'])).toBe('Done.')
    expectAccepted(world)
  })

  it.each(sampleCases(MODELS, 3))('may have changed before the session goes on with %s', async (next) => {
    const world = await createWorld(modelId)
    await world.run('Use Read.', ['Read', 'Bash'])
    await world.run('Use Write.', ['Write'])
    const choice = anthropic(next, { apiKey: 'any', fetch: world.simulator.fetch as typeof fetch })
    expect(await world.session.switchModel(choice)).toMatchObject({ ok: true })
    expect(await world.run('Use Write.', ['Write'])).toBe('Done.')
    expect(await world.run('Go on.', [])).toBe('Done.')
    expect(await world.session.switchModel(choice)).toMatchObject({ ok: true })
    expect(await world.run('Use Grep.', ['Grep'])).toBe('Done.')
    expectAccepted(world)
  })

  it('may have changed before a compaction and its undo', async () => {
    const world = await createWorld(modelId)
    for (const prompt of ['Use Read.', 'Use Bash.', 'Use Read. Now.'])
      await world.run(prompt, ['Read', 'Bash'])
    await world.run('Use Write.', ['Write'])
    expect(await world.session.compact({ summarizer: 'local' })).toMatchObject({ ok: true })
    expect(await world.run('Use Write.', ['Write'])).toBe('Done.')
    expect(await world.session.undo()).toMatchObject({ ok: true })
    expect(await world.run('Use Write.', ['Write'])).toBe('Done.')
    expect(await world.run('Use Nothing.', [])).toBe('No Nothing.')
    expectAccepted(world)
  })
})

/** A model whose first answer to "Think." stops after its thinking. */
function createSlowThinker(): Script {
  let isSlow = true
  return ({ messages }) => {
    const isAsked = JSON.stringify(messages.at(-1)).includes('Think.')
    const delays = isAsked && isSlow ? { blockMs: 1_000 } : {}
    if (isAsked) isSlow = false
    return {
      blocks: [
        { type: 'thinking', thinking: 'Hm.' },
        { type: 'text', text: 'Done.' },
      ],
      delays,
    }
  }
}

describe.each(['claude-sonnet-5-5', 'claude-opus-5-5', 'claude-haiku-5-5', 'claude-fable-5-2'])(
  'a turn of %s that is interrupted while the model thinks',
  (modelId) => {
    const toTools = (names: readonly string[]): Tools =>
      Object.fromEntries(names.map((name) => [name, { description: `Does ${name}.`, run: () => 'text' }]))

    it.each([
      [['Read'], ['Read', 'Write']],
      [['Read', 'Bash'], ['Read']],
      [['Read'], []],
      [[], ['Read']],
    ])('and has the tools %j goes on with %j, and needs no prompt', async (before, after) => {
      // The system prompt is long enough to be cached, so that changes of tools are announced in messages.
      const system = 'Be careful. '.repeat(4_000)
      const world = createTestTidemark({ modelId, script: createSlowThinker(), history: false, system })
      const session = await world.tide.open('talk')
      await session.run('Hello.', { tools: toTools(before) }).outcome
      const control = new AbortController()
      session.on('reply', ({ event }) => {
        if (event.type === 'block-ended') control.abort()
      })
      const cut = session.run('Think.', { tools: toTools(before), signal: control.signal })
      expect(await cut.outcome).toMatchObject({ ok: false, reason: 'aborted' })
      const tools = toTools(after)
      expect(await session.run(null, { tools }).outcome).toMatchObject({ ok: true, text: 'Done.' })
      const sent = session.messages()
      expect(await session.run('More.', { tools }).outcome).toMatchObject({ ok: true })
      expect(session.messages().slice(0, sent.length)).toEqual(sent)
      expectAccepted(world)
    })
  },
)

describe('a session that goes on without its tools', () => {
  it('declares the tools that its messages use, and says that they cannot be called', async () => {
    const world = createTestTidemark({ script: obedient })
    const session = await world.tide.open('talk')
    await session.append(user('Read it.'), {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'toolu_1', name: 'Read', input: {} }],
    })
    await session.append(toolResult('toolu_1', 'text'))
    const request = await session.next()
    expect(request).toMatchObject({ ok: true, body: { tools: [{ name: 'Read' }] } })
    expect(JSON.stringify(request.ok && request.body.messages)).toContain('tool_removal')
  })

  it('knows, opened again, the tools that were added and removed since its prefix snapshot', async () => {
    const world = await createWorld('claude-sonnet-5-5')
    await world.run('Use Read.', ['Read', 'Bash'])
    await world.run('Use Write.', ['Read', 'Write'])
    await world.session.close()
    const session = await world.tide.open('talk')
    await session.append(user('Go on.'))
    const request = await session.next()
    const text = JSON.stringify(request.ok && request.body.messages)
    expect(request).toMatchObject({ ok: true, body: { tools: [{ name: 'Bash' }, { name: 'Read' }] } })
    expect(text.match(/tool_addition|tool_removal/g)).toEqual(['tool_removal', 'tool_addition'])
  })
})
