/** A loop of one's own, with the official client: the engine says what to send and learns from what comes back. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import type { Session, SessionEvent } from 'tidemark'
import { assistant, attachment, toolResult, user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemark } from '../support/test-tidemark.ts'

type Body = Anthropic.MessageCreateParamsNonStreaming

function clientOf({ simulator }: TestTidemark): Anthropic {
  return new Anthropic({
    apiKey: 'any',
    fetch: simulator.fetch,
    baseURL: 'http://simulator.test',
    maxRetries: 0,
  })
}

async function send(
  world: TestTidemark,
  session: Session,
  how: 'create' | 'stream',
): Promise<Anthropic.Message> {
  const request = await session.next<Body>({ tools: world.coder.tools })
  if (!request.ok) throw new Error(request.message)
  const client = clientOf(world)
  const { body, headers } = request
  return how === 'create'
    ? client.messages.create(body, { headers })
    : client.messages.stream(body, { headers }).finalMessage()
}

async function loop(world: TestTidemark, session: Session, how: 'create' | 'stream'): Promise<void> {
  for (;;) {
    const response = await send(world, session, how)
    await session.append(assistant(response))
    const calls = response.content.filter((block) => block.type === 'tool_use')
    if (calls.length === 0) return
    const results = calls.map(({ id, name, input }) =>
      toolResult(id, String(world.coder.toolResult({ id, name, input: Object(input) }).content)),
    )
    await session.append(...results)
  }
}

describe.each(['create', 'stream'] as const)('with the client, by %s', (how) => {
  it('every call reads of the cache what was foreseen, and what comes back is sent back as it came', async () => {
    const world = createTestTidemark({ thinkingTokens: 20 })
    const session = await world.tide.open('a')
    const told: SessionEvent[] = []
    session.on('*', (event) => told.push(event))
    await session.append(user('Mend the sums.'))
    await loop(world, session, how)
    const answered = told.filter((event) => event.type === 'answered')
    expect(answered.length).toBeGreaterThan(3)
    for (const { usage, forecast } of answered) expect(usage?.cache_read_input_tokens).toBe(forecast.read)
    expect(told.filter((event) => event.type === 'cache-break')).toEqual([])
    expect(told.filter((event) => event.type === 'priced')).toHaveLength(answered.length)
    expect(session.contextRemaining()).toMatchObject({ source: 'measured', percentLeft: 100 })
    expect(session.money()).toMatchObject({ calls: answered.length, unpricedCalls: 0 })
    expect(world.simulator.requests.every(({ status }) => status === 200)).toBe(true)
  })
})

describe('append', () => {
  it('gives back a uuid for each record: one a message, one a block of a response', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    const first = await session.append(user('Mend the sums.'), attachment('selection', 'lines 3 to 9'))
    const response = await send(world, session, 'create')
    const second = await session.append(response)
    expect([first.length, second.length]).toEqual([2, response.content.length])
    const markdown = await session.export()
    for (const uuid of [...first, ...second]) expect(markdown).toContain(uuid)
  })

  it.each([
    ['a text', 'hello', 'append: expected a message, found text: give user(…).'],
    ['nothing', null, 'append: expected messages, such as user("…") or a response of the model.'],
    [
      'another role',
      { role: 'tool', content: '' },
      'append: expected a message with the role "user" or "assistant".',
    ],
    [
      'no content',
      { role: 'user' },
      'append: expected content as text or a list of blocks, each with a type.',
    ],
    [
      'words of the user in another shape',
      { role: 'user', content: 'Yes.', userInputs: [{ kind: 'guess' }] },
      'append: userInputs: expected the list that toolResult(id, content, { answers, userReason }) creates.',
    ],
    [
      'a result without its call',
      toolResult('toolu_1', 'x'),
      'append: there is no tool call toolu_1 in this session. Append the response that made it first.',
    ],
  ])('refuses %s', async (_, said, message) => {
    const session = await createTestTidemark().tide.open('a')
    await expect(session.append(said as object)).rejects.toMatchObject({ code: 'bad-record', message })
    expect(session.messages()).toEqual([])
  })
})

describe('next', () => {
  it.each(['claude-haiku-4-5', 'claude-sonnet-5-5'])(
    'gives no request after a finished answer: %s',
    async (modelId) => {
      const world = createTestTidemark({ modelId })
      const session = await world.tide.open('a')
      await session.append(user('Mend the sums.'))
      await loop(world, session, 'create')
      expect(await session.next()).toMatchObject({
        ok: false,
        reason: 'invalid',
        message: 'The last message is an answer of the model: append a prompt first.',
      })
    },
  )

  it('waits for the results of calls, none of which is lost, and answers them itself only when told to', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    await session.append(user('Mend the sums.'))
    const response = await send(world, session, 'create')
    await session.append(response)
    const calls = response.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
    const before = session.messages()
    expect(await session.next()).toEqual({
      ok: false,
      reason: 'open-calls',
      calls,
      message: `next: no result for ${calls.join(', ')}. Append toolResult(id, …) for each, or give { settle: true } to go on without.`,
    })
    expect(session.messages()).toEqual(before)
    const settled: number[] = []
    session.on('calls-settled', ({ calls: some }) => settled.push(some.length))
    expect(await session.next({ settle: true })).toMatchObject({ ok: true })
    expect(settled).toEqual([calls.length])
    await expect(session.append(toolResult(calls[0] ?? '', 'late'))).rejects.toMatchObject({
      code: 'bad-record',
      details: { id: calls[0] },
    })
  })

  it('puts large results aside where the model can read them again, and the history has them whole', async () => {
    const world = createTestTidemark({ history: true })
    const session = await world.tide.open('a')
    const [call] = [{ type: 'tool_use', id: 'toolu_9', name: 'Bash', input: {} }]
    await session.append(user('List all.'), assistant({ role: 'assistant', content: [call] }))
    const lines = Array.from({ length: 40_000 }, (_, line) => `line ${line}`).join('\n')
    await session.append(toolResult('toolu_9', lines))
    const shown = JSON.stringify(session.messages())
    expect(shown.length).toBeLessThan(lines.length / 2)
    expect(shown).toContain('call history with')
    // Two lines tell the call itself.
    const found = await session.history({ id: 'toolu_9', lines: '31000-31001' })
    expect(found.body).toBe('line 30997\nline 30998')
    const request = await session.next<Body>({ tools: world.coder.tools })
    expect(request.ok && request.body.tools?.map((tool) => ('name' in tool ? tool.name : ''))).toContain(
      'history',
    )
  })

  it('names the exact text of the body, which is what the body says', async () => {
    const session = await createTestTidemark({ system: 'Be brief.' }).tide.open('a')
    await session.append(user('hello'))
    const request = await session.next()
    if (!request.ok) throw new Error(request.message)
    expect(JSON.parse(request.text)).toMatchObject({ model: 'claude-sonnet-5-5', max_tokens: 20_000 })
    expect(request.headers['anthropic-beta']).toBe(request.betas.join(','))
  })
})

describe('a prompt whose append has not ended when the response is appended', () => {
  it('comes after the response, and the next request is valid', async () => {
    const home = await mkdtemp(join(tmpdir(), 'tidemark-'))
    try {
      const world = createTestTidemark({ home, modelId: 'claude-sonnet-5-5', thinkingTokens: 100 })
      const session = await world.tide.open('a')
      await session.append(user('Begin.'))
      for (let round = 1; round <= 3; round += 1) {
        const response = await send(world, session, 'create')
        const typed = session.append(user(`Typed ${round}.`))
        await session.append(assistant(response))
        await typed
        const calls = response.content.filter((block) => block.type === 'tool_use')
        await session.append(...calls.map(({ id }) => toolResult(id, 'Done.')))
      }
      const roles = session.messages().map(({ role, content }) => `${role} ${JSON.stringify(content)}`)
      expect(roles.findIndex((text) => text.includes('Typed 1.'))).toBeGreaterThan(1)
      expect(world.simulator.requests.map(({ status }) => status)).toEqual([200, 200, 200])
      await world.tide.close()
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })
})
