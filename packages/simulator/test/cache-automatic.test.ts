import { describe, expect, it } from 'vitest'
import {
  assistant,
  HOUR,
  MARK,
  MODEL,
  postMessage,
  readUsageFigures,
  result,
  simulate,
  TOOL,
  text,
  tokens,
  user,
} from './ask.ts'

describe('automatic caching', () => {
  const turn = (...more: readonly object[]): readonly object[] => [user(text(tokens(600))), ...more]
  it('marks the last block and moves on with the conversation', async () => {
    const simulator = simulate()
    const first = await postMessage(simulator, { ...MARK, messages: turn() })
    expect(readUsageFigures(first)).toEqual({ read: 0, write5m: 604, write1h: 0, input: 0 })
    const second = await postMessage(simulator, { ...MARK, messages: turn(assistant('ok'), user('go on')) })
    expect(readUsageFigures(second)).toMatchObject({ read: 604, input: 0 })
  })

  it('adds nothing if the last block has the same marker', async () => {
    const told = await postMessage(simulate(), { ...MARK, messages: [user(text(tokens(600), MARK))] })
    expect(readUsageFigures(told)).toEqual({ read: 0, write5m: 604, write1h: 0, input: 0 })
  })

  it('is rejected if the last block has another TTL', async () => {
    const told = await postMessage(simulate(), { ...MARK, messages: [user(text(tokens(600), HOUR))] })
    expect(told.status).toBe(400)
    expect(told.body.error.message).toContain("ttl='1h'")
  })

  it('is rejected as the fifth marker', async () => {
    const four = [1, 2, 3, 4].map((index) => text(`block ${index}`, MARK))
    const told = await postMessage(simulate(), { ...MARK, messages: [user(...four, 'last')] })
    expect(told.body.error.message).toBe('A maximum of 4 blocks with cache_control may be provided. Found 5.')
  })

  it('skips blocks that cannot carry a marker', async () => {
    const simulator = simulate({ binding: { foreignSignatures: 'allow' } })
    const messages = [
      user(text(tokens(600))),
      { role: 'system', content: 'be brief', clear_at: 'next_user_message' },
    ]
    const betas = ['mid-conversation-system-clear-at-2026-08-21']
    const told = await postMessage(simulator, { ...MARK, messages }, { betas })
    expect(readUsageFigures(told)).toMatchObject({ write5m: 604 })
  })
})

describe('warming the cache', () => {
  const prompt = { max_tokens: 0, messages: [user(text(tokens(600), MARK))] }
  it('generates nothing and writes the whole prompt', async () => {
    const simulator = simulate()
    const { body } = await postMessage(simulator, prompt)
    expect(body).toMatchObject({ content: [], stop_reason: 'max_tokens', usage: { output_tokens: 0 } })
    expect(readUsageFigures(await postMessage(simulator, { ...prompt, max_tokens: 10 })).read).toBe(604)
  })

  it.each([
    { name: 'stream', more: { stream: true } },
    {
      name: 'a thinking budget',
      more: { model: 'claude-opus-4-6', thinking: { type: 'enabled', budget_tokens: 1024 } },
    },
    { name: 'a format', more: { output_config: { format: { type: 'json_schema', schema: {} } } } },
    { name: 'tool_choice any', more: { tools: [TOOL], tool_choice: { type: 'any' } } },
    { name: 'tool_choice tool', more: { tools: [TOOL], tool_choice: { type: 'tool', name: 'look' } } },
  ])('is refused with $name', async ({ more }) => {
    expect((await postMessage(simulate(), { model: MODEL, ...prompt, ...more })).status).toBe(400)
  })
})

describe('what the cache treats as equal', () => {
  const same = [
    { name: 'a string and one text block', one: tokens(600), other: [text(tokens(600))] },
    {
      name: 'fields in another order',
      one: [{ text: tokens(600), type: 'text' }],
      other: [text(tokens(600))],
    },
    {
      name: 'a field set to null',
      one: [text(tokens(600), { citations: null })],
      other: [text(tokens(600))],
    },
  ]
  it.each(same)('$name', async ({ one, other }) => {
    const simulator = simulate()
    await postMessage(simulator, { ...MARK, messages: [{ role: 'user', content: one }] })
    const version = '2023-06-01'
    const told = await postMessage(
      simulator,
      { ...MARK, messages: [{ role: 'user', content: other }] },
      { version },
    )
    expect(readUsageFigures(told).read).toBe(604)
  })

  it('keys of a tool input in another order are different', async () => {
    const simulator = simulate()
    const turn = (input: object): object => ({
      ...MARK,
      tools: [TOOL],
      messages: [
        user(tokens(600)),
        assistant({ type: 'tool_use', id: 'a', name: 'look', input }),
        user(result('a')),
      ],
    })
    await postMessage(simulator, turn({ one: 1, two: 2 }))
    expect(readUsageFigures(await postMessage(simulator, turn({ one: 1, two: 2 }))).write5m).toBe(0)
    expect(readUsageFigures(await postMessage(simulator, turn({ two: 2, one: 1 }))).read).toBe(0)
  })

  it('messages of one role in a row are one turn', async () => {
    const simulator = simulate()
    await postMessage(simulator, { ...MARK, messages: [user(tokens(600), 'and')] })
    const told = await postMessage(simulator, { ...MARK, messages: [user(tokens(600)), user('and')] })
    expect(readUsageFigures(told)).toEqual({ read: 605, write5m: 0, write1h: 0, input: 0 })
  })
})
