/** Signatures, the newest response, and what the server itself does to thinking. */
import type { SimulatorOptions } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { assistant, postMessage, result, simulate, type TestResponse, tokens, user } from './ask.ts'
import { CONTROLS, conversation, REQUEST, THINKING_SIMULATOR } from './thinker.ts'

describe('the newest response', () => {
  const MODIFIED =
    'messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.'
  const shown = { ...REQUEST, thinking: { type: 'adaptive', display: 'summarized' } }
  const edit = (content: readonly { type: string }[]): readonly object[] =>
    content.map((block) => (block.type === 'thinking' ? { ...block, thinking: 'something else' } : block))

  it('must keep the text of its thinking', async () => {
    const simulator = simulate(THINKING_SIMULATOR)
    const first = await postMessage(simulator, { ...shown, messages: [user('look')] })
    const messages = [
      user('look'),
      { role: 'assistant', content: edit(first.body.content) },
      user(result('toolu_1')),
    ]
    expect((await postMessage(simulator, { ...shown, messages })).body.error.message).toBe(MODIFIED)
  })

  it('may be edited if the simulator allows it', async () => {
    const simulator = simulate({ ...THINKING_SIMULATOR, binding: { editedText: 'allow' } })
    const first = await postMessage(simulator, { ...shown, messages: [user('look')] })
    const messages = [
      user('look'),
      { role: 'assistant', content: edit(first.body.content) },
      user(result('toolu_1')),
    ]
    expect((await postMessage(simulator, { ...shown, messages })).status).toBe(200)
  })

  it('must keep all of its thinking or none', async () => {
    const twice: SimulatorOptions = {
      script: () => ({
        blocks: [
          { type: 'thinking', thinking: 'one' },
          { type: 'redacted_thinking', data: 'two' },
          { type: 'tool_use', name: 'look', input: {}, id: 'toolu_1' },
        ],
      }),
    }
    const simulator = simulate(twice)
    const first = await postMessage(simulator, { ...REQUEST, messages: [user('look')] })
    const [one, two, tool] = first.body.content
    const send = (...content: readonly object[]): Promise<TestResponse> =>
      postMessage(simulator, {
        ...REQUEST,
        messages: [user('look'), assistant(...content), user(result('toolu_1'))],
      })
    expect((await send(one, two, tool)).status).toBe(200)
    expect((await send(tool)).status).toBe(200)
    expect((await send(one, tool)).body.error.message).toBe(MODIFIED)
  })

  it('has signatures that cannot be cut or altered', async () => {
    const simulator = simulate(THINKING_SIMULATOR)
    const first = await postMessage(simulator, { ...REQUEST, messages: [user('hi')] })
    const [thought, ...rest] = first.body.content
    const send = (signature: string): Promise<TestResponse> =>
      postMessage(simulator, {
        ...REQUEST,
        messages: [user('hi'), assistant({ ...thought, signature }, ...rest), user('go')],
      })
    const { signature } = thought
    const said = 'messages.1.content.0: Invalid `signature` in `thinking` block'
    for (const changed of [
      signature.slice(0, -8),
      `${signature}AAAA`,
      signature.replace(/.$/, '!'),
      `A${signature.slice(1)}`,
    ])
      expect((await send(changed)).body.error.message).toBe(said)
    expect((await send(signature)).status).toBe(200)
  })
})

describe('signatures', () => {
  it('outlive the simulator, with the same seed', async () => {
    const { messages, base } = await conversation()
    const told = await postMessage(simulate(THINKING_SIMULATOR), { ...base, messages })
    expect(told.status).toBe(200)
    const other = await postMessage(simulate({ ...THINKING_SIMULATOR, seed: 'other' }), { ...base, messages })
    expect(other.status).toBe(400)
    const lenient = await postMessage(
      simulate({ ...THINKING_SIMULATOR, seed: 'other', binding: { foreignSignatures: 'allow' } }),
      { ...base, messages },
    )
    expect(lenient.status).toBe(200)
  })

  it('grow with the thinking, as real ones do', async () => {
    const simulator = simulate({
      script: () => ({
        blocks: [
          { type: 'thinking', thinking: tokens(1_000) },
          { type: 'text', text: 'x' },
        ],
      }),
    })
    const { body } = await postMessage(simulator, { ...REQUEST, max_tokens: 2_000, messages: [user('hi')] })
    expect(Math.round(body.content[0].signature.length * 0.205 - 38)).toBe(1_000)
  })
})

describe('what the server takes away', () => {
  it('never counts as an edit', async () => {
    const { simulator, messages, base } = await conversation()
    const context_management = {
      edits: [
        { type: 'clear_thinking_20251015', keep: { type: 'thinking_turns', value: 1 } },
        {
          type: 'clear_tool_uses_20250919',
          trigger: { type: 'input_tokens', value: 1 },
          keep: { type: 'tool_uses', value: 0 },
        },
      ],
    }
    const betas = [CONTROLS, 'context-management-2025-06-27']
    const told = await postMessage(simulator, { ...base, messages, context_management }, { betas })
    expect(told.body.input_transformations).toEqual([])
  })

  it('keeps a turn-scoped message in its place, where it must stay', async () => {
    const simulator = simulate(THINKING_SIMULATOR)
    const asked = { betas: ['mid-conversation-system-clear-at-2026-08-21'] }
    const note = { role: 'system', content: 'be quick', clear_at: 'next_user_message' }
    const start = [user('look'), note]
    const first = await postMessage(simulator, { ...REQUEST, messages: start }, asked)
    const rest = [{ role: 'assistant', content: first.body.content }, user('go')]
    expect((await postMessage(simulator, { ...REQUEST, messages: [...start, ...rest] }, asked)).status).toBe(
      200,
    )
    expect(
      (await postMessage(simulator, { ...REQUEST, messages: [user('look'), ...rest] }, asked)).status,
    ).toBe(400)
    const reworded = [user('look'), { ...note, content: 'be slow' }, ...rest]
    expect((await postMessage(simulator, { ...REQUEST, messages: reworded }, asked)).status).toBe(400)
  })
})
