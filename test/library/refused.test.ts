/** In a loop of one's own, a refused request is never sent again: `refused` tells the engine what the provider said. */
import Anthropic from '@anthropic-ai/sdk'
import type { Script } from '@tidemark/simulator'
import { anthropic, type Session, toolResult, user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemark } from '../support/test-tidemark.ts'

type Body = Anthropic.MessageCreateParamsNonStreaming

function createClient({ simulator }: TestTidemark): Anthropic {
  return new Anthropic({
    apiKey: 'any',
    fetch: simulator.fetch,
    baseURL: 'http://simulator.test',
    maxRetries: 0,
  })
}

function errorBody(type: string) {
  return { type: 'error', error: { type, message: 'no' } }
}

/** Sends the next request, and tells the engine of every refusal, until there is a response. */
async function answer(
  world: TestTidemark,
  session: Session,
  sent: string[] = [],
): Promise<Anthropic.Message> {
  for (;;) {
    const request = await session.next<Body>({ tools: world.coder.tools })
    if (!request.ok) throw new Error(request.message)
    sent.push(request.text)
    try {
      return await createClient(world).messages.create(request.body, { headers: request.headers })
    } catch (error) {
      const outcome = await session.refused(error)
      if (!outcome.ok) throw error
    }
  }
}

async function loop(world: TestTidemark, session: Session, sent: string[] = []): Promise<void> {
  for (;;) {
    const response = await answer(world, session, sent)
    await session.append(response)
    const calls = response.content.filter((block) => block.type === 'tool_use')
    if (calls.length === 0) return
    for (const { id, name, input } of calls)
      await session.append(
        toolResult(id, String(world.coder.toolResult({ id, name, input: Object(input) }).content)),
      )
  }
}

describe('a refused request', () => {
  it.each(['claude-fable-5-1', 'claude-opus-5-5'])(
    'does not come of an up_to compaction and a switch to %s: the kept thinking is not sent',
    async (modelId) => {
      const world = createTestTidemark({ modelId: 'claude-opus-5', thinkingTokens: 40, turns: 3 })
      const session = await world.tide.open('a')
      await session.append(user('Mend the sums.'))
      await loop(world, session)
      const [pivot] = await session.append(user('And the dates.'))
      await loop(world, session)
      expect(await session.compact({ form: 'up_to', pivot: pivot ?? '' })).toMatchObject({ ok: true })
      const model = anthropic(modelId, { apiKey: 'any', fetch: world.simulator.fetch })
      expect(await session.switchModel(model)).toMatchObject({ ok: true })
      await session.append(user('And the names.'))
      const sent: string[] = []
      await loop(world, session, sent)
      expect(world.simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
      expect(sent[0]).not.toContain('"thinking":"')
    },
  )

  it('because it is too long is followed by a compacted one', async () => {
    const world = createTestTidemark({ window: 60_000, realWindow: 14_000, resultTokens: 3_000, turns: 12 })
    const session = await world.tide.open('a')
    await session.append(user('Mend the sums.'))
    const causes: string[] = []
    session.on('compact', ({ compaction }) => causes.push(compaction.cause))
    const sent: string[] = []
    await loop(world, session, sent)
    expect(causes[0]).toBe('reactive')
    expect(new Set(sent).size).toBe(sent.length)
  })

  it('for a reason that may pass is the same again after a wait, as often as the policy allows', async () => {
    const world = createTestTidemark({ policy: { turn: { network: { retries: 2, jitterPercent: 0 } } } })
    const session = await world.tide.open('a')
    await session.append(user('Mend the sums.'))
    const first = await session.next()
    const headers = new Headers({ 'retry-after': '7' })
    const error = new Anthropic.APIError(
      529,
      { type: 'error', error: { type: 'overloaded_error' } },
      'busy',
      headers,
    )
    expect(await session.refused(error)).toMatchObject({ ok: true, act: 'wait', delayMs: 7_000 })
    const second = await session.next()
    expect(second.ok && second.text).toBe(first.ok && first.text)
    const network = new Anthropic.APIConnectionError({ message: 'Connection error.' })
    expect(await session.refused(network)).toMatchObject({ act: 'wait', delayMs: 1_000 })
    expect(await session.refused(network)).toMatchObject({
      ok: false,
      reason: 'failed',
      failure: { kind: 'network' },
    })
  })

  it('that nothing can change is not given again until the session changes', async () => {
    const session = await createTestTidemark().tide.open('a')
    await session.append(user('Mend the sums.'))
    expect(await session.next()).toMatchObject({ ok: true })
    const body = { type: 'error', error: { type: 'invalid_request_error', message: 'tools.0: no such type' } }
    const refused = { ok: false, reason: 'failed', message: 'tools.0: no such type' }
    expect(await session.refused(body)).toMatchObject(refused)
    expect(await session.next()).toMatchObject(refused)
    expect(await session.compact()).not.toMatchObject({ reason: 'busy' })
    await session.append(user('And the dates.'))
    expect(await session.next()).toMatchObject({ ok: true })
  })

  it.each([
    [
      'the key was wrong',
      new Anthropic.APIError(401, errorBody('authentication_error'), 'no', new Headers()),
    ],
    ['the key had no right', new Anthropic.APIError(403, errorBody('permission_error'), 'no', new Headers())],
    ['there was no credit', new Anthropic.APIError(402, errorBody('billing_error'), 'no', new Headers())],
    ['the caller aborted it', new Anthropic.APIUserAbortError()],
  ])('because %s is given again: the same request may succeed', async (_, error) => {
    const session = await createTestTidemark().tide.open('a')
    await session.append(user('Mend the sums.'))
    const first = await session.next()
    expect(await session.refused(error)).toMatchObject({ ok: false })
    const second = await session.next()
    expect(second.ok && second.text).toBe(first.ok && first.text)
  })

  it.each([
    ['null', null],
    ['nothing', undefined],
    ['an empty object', {}],
    ['a text', 'oops'],
    ['an error of the program', new Error('oops')],
  ])('told by %s is not given again, until the caller says more', async (_, error) => {
    const session = await createTestTidemark().tide.open('a')
    await session.append(user('Mend the sums.'))
    const first = await session.next()
    const refused = await session.refused(error)
    expect(refused).toMatchObject({ ok: false, reason: 'failed', failure: { kind: 'unknown' } })
    expect(await session.next()).toEqual(refused)
    expect(await session.refused({ status: 503 })).toMatchObject({ ok: true, act: 'wait' })
    const second = await session.next()
    expect(second.ok && second.text).toBe(first.ok && first.text)
  })

  it('that is withheld is not announced as sent', async () => {
    const session = await createTestTidemark().tide.open('a')
    let sent = 0
    session.on('request-sent', () => {
      sent += 1
    })
    await session.append(user('Mend the sums.'))
    await session.next()
    await session.refused(errorBody('invalid_request_error'))
    expect(await session.next()).toMatchObject({ ok: false, reason: 'failed' })
    expect(sent).toBe(1)
  })

  it('is forgotten once there is a response', async () => {
    let calls = 0
    const script: Script = () => {
      calls += 1
      const message = 'messages.0.content.0: `thinking` or `redacted_thinking` blocks cannot be modified'
      const fault = { type: 'status', status: 400, errorType: 'invalid_request_error', message } as const
      return {
        blocks: [
          { type: 'thinking', thinking: 'Hm.' },
          { type: 'text', text: 'Yes.' },
        ],
        ...(calls % 2 === 0 ? { fault } : {}),
      }
    }
    const world = createTestTidemark({ script, modelId: 'claude-opus-5' })
    const session = await world.tide.open('a')
    for (const prompt of ['One?', 'Two?', 'Three?']) {
      await session.append(user(prompt))
      await loop(world, session)
    }
    expect(calls).toBe(5)
  })
})

describe('a prompt appended between next and its response', () => {
  it.each(['claude-fable-5-1', 'claude-opus-5-5', 'claude-sonnet-5'])(
    'is answered after it: %s',
    async (modelId) => {
      const world = createTestTidemark({ modelId, thinkingTokens: 40, turns: 3 })
      const session = await world.tide.open('a')
      await session.append(user('Mend the sums.'))
      const request = await session.next<Body>({ tools: world.coder.tools })
      if (!request.ok) throw new Error(request.message)
      const response = await createClient(world).messages.create(request.body, { headers: request.headers })
      await session.append(user('Also the dates.'))
      await session.append(response)
      const calls = response.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
      for (const id of calls) await session.append(toolResult(id, 'nothing'))
      expect(session.messages().map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
      expect(JSON.stringify(session.messages()[2])).toContain('Also the dates.')
      await loop(world, session)
      expect(world.simulator.requests.map(({ status }) => status).filter((status) => status !== 200)).toEqual(
        [],
      )
      const reopened = session.messages()
      await session.close()
      expect((await world.tide.open('a')).messages()).toEqual(reopened)
    },
  )
})
