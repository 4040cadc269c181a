import { describe, expect, it } from 'vitest'
import { assistant, postMessage, simulate, type TestResponse, TOOL, user } from './ask.ts'
import {
  BETA,
  CONTROLS,
  createCompactionBlock,
  REQUEST,
  STRICT,
  summaryScript,
  WITH_COMPACTION_BETA,
} from './summaries.ts'

describe('thinking in kept turns', () => {
  /** u0, a1 (with thinking), u2, a3 (with thinking), u4; the first two are summarized. */
  async function talk(base: object = REQUEST) {
    const simulator = simulate({ script: summaryScript })
    const messages: object[] = [user('first')]
    for (const next of ['second', 'third']) {
      const { body } = await postMessage(simulator, { ...base, messages })
      messages.push({ role: 'assistant', content: body.content }, user(next))
    }
    return { simulator, messages }
  }

  async function keptAfter(
    change: {
      readonly cut?: number
      readonly between?: readonly object[]
      readonly now?: object
      readonly summariser?: object
    } = {},
  ): Promise<TestResponse> {
    const { simulator, messages } = await talk()
    const cut = change.cut ?? 2
    const block = await createCompactionBlock(simulator, messages.slice(0, cut), {
      ...REQUEST,
      ...change.summariser,
    })
    const next = [assistant(block), ...(change.between ?? []), ...messages.slice(cut)]
    return postMessage(
      simulator,
      { ...REQUEST, ...STRICT, ...change.now, messages: next },
      { betas: [BETA, CONTROLS] },
    )
  }

  it('stays valid after the block', async () => {
    const told = await keptAfter()
    expect(told.status).toBe(200)
    expect(told.body.input_transformations).toEqual([])
  })

  it.each([
    {
      name: 'the first kept message has the role of the last summarised one',
      change: { cut: 1, between: [user('more')] },
    },
    { name: 'something was put between', change: { between: [user('x'), assistant('y')] } },
    {
      name: 'a system message was put between',
      change: { between: [user('x'), { role: 'system', content: 'y' }, assistant('z')] },
    },
    { name: 'the system prompt changed', change: { now: { system: 'You help more.' } } },
    { name: 'the tools changed', change: { now: { tools: [{ ...TOOL, description: 'else' }] } } },
    {
      name: 'the summary came from a model that preserves nothing',
      change: { summariser: { model: 'claude-opus-5' } },
    },
    {
      name: 'the summary was made under another system prompt',
      change: { cut: 1, summariser: { system: 'Other.' } },
    },
  ])('is lost when $name', async ({ change }) => {
    const told = await keptAfter(change)
    expect(told.status).toBe(400)
    expect(told.body.error.message).toContain('The block is bound to a different conversation.')
  })

  it('is lost when the first kept message has the role of the last summarized one', async () => {
    const simulator = simulate({ script: summaryScript })
    const start = [user('first'), user('and')]
    const reply = await postMessage(simulator, { ...REQUEST, messages: start })
    const kept = [user('and'), { role: 'assistant', content: reply.body.content }, user('go')]
    const block = await createCompactionBlock(simulator, [user('first')])
    const told = await postMessage(
      simulator,
      { ...REQUEST, messages: [assistant(block), ...kept] },
      WITH_COMPACTION_BETA,
    )
    expect(told.status).toBe(400)
  })

  it('may start with the reply to the last summarized message', async () => {
    const told = await keptAfter({ cut: 1 })
    expect(told.status).toBe(200)
  })

  it('is lost when a kept turn was edited', async () => {
    const { simulator, messages } = await talk()
    const block = await createCompactionBlock(simulator, messages.slice(0, 2))
    const next = [assistant(block), user('second!'), ...messages.slice(3)]
    const told = await postMessage(simulator, { ...REQUEST, messages: next }, WITH_COMPACTION_BETA)
    expect(told.status).toBe(400)
  })

  it('stays valid after the next compaction', async () => {
    const { simulator, messages } = await talk()
    const first = await createCompactionBlock(simulator, messages.slice(0, 2))
    const second = [assistant(first), ...messages.slice(2)]
    const reply = await postMessage(simulator, { ...REQUEST, messages: second }, WITH_COMPACTION_BETA)
    const third = [...second, { role: 'assistant', content: reply.body.content }, user('fourth')]
    const block = await createCompactionBlock(simulator, third.slice(0, 3))
    const kept = [assistant(block), ...third.slice(3)]
    const told = await postMessage(
      simulator,
      { ...REQUEST, ...STRICT, messages: kept },
      { betas: [BETA, CONTROLS] },
    )
    expect(told.status).toBe(200)
    expect(told.body.input_transformations).toEqual([])
  })

  it('is bound to the block once there is one', async () => {
    const { simulator, messages } = await talk()
    const block = await createCompactionBlock(simulator, messages.slice(0, 2))
    const kept = [assistant(block), ...messages.slice(2)]
    const reply = await postMessage(simulator, { ...REQUEST, messages: kept }, WITH_COMPACTION_BETA)
    const thought = { role: 'assistant', content: reply.body.content }
    // The summarized messages are back and the block is gone, so thinking after the block is no longer valid.
    const undone = [...messages, thought, user('fourth')]
    expect(
      (await postMessage(simulator, { ...REQUEST, messages: undone }, WITH_COMPACTION_BETA)).status,
    ).toBe(400)
    expect(
      (
        await postMessage(
          simulator,
          { ...REQUEST, messages: [...kept, thought, user('fourth')] },
          WITH_COMPACTION_BETA,
        )
      ).status,
    ).toBe(200)
  })
})
