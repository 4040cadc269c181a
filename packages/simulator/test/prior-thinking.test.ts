/** Thinking of earlier turns in the cache, and diagnostics of requests as they were sent. */
import type { SimulatorOptions } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import {
  assistant,
  call,
  MARK,
  postMessage,
  readUsageFigures,
  result,
  simulate,
  TOOL,
  text,
  tokens,
  user,
} from './ask.ts'

describe('thinking of earlier turns', () => {
  const think: SimulatorOptions = {
    script: ({ messages }) => ({
      blocks: [
        { type: 'thinking', thinking: tokens(50, 'hm') },
        messages.length === 1
          ? { type: 'tool_use', name: 'look', input: {}, id: 'toolu_1' }
          : { type: 'text', text: 'ok' },
      ],
    }),
  }
  it.each([
    { model: 'claude-opus-4-5', size: 4_200, keeps: true },
    { model: 'claude-sonnet-4-5', size: 1_100, keeps: false },
    { model: 'claude-haiku-4-5', size: 4_200, keeps: false },
    { model: 'claude-opus-4-6', size: 4_200, keeps: true },
    { model: 'claude-sonnet-4-6', size: 1_100, keeps: true },
  ])('$model keeps it in the prompt after a new user prompt: $keeps', async ({ model, size, keeps }) => {
    const simulator = simulate(think)
    const thinking = { type: 'enabled', budget_tokens: 1_024 }
    const base = { model, tools: [TOOL], thinking, max_tokens: 2_000, ...MARK }
    const start = [user(tokens(size))]
    const first = await postMessage(simulator, { ...base, messages: start })
    const turn = [...start, { role: 'assistant', content: first.body.content }, user(result('toolu_1'))]
    const second = await postMessage(simulator, { ...base, messages: turn })
    const next = [...turn, { role: 'assistant', content: second.body.content }, user('thanks')]
    const told = readUsageFigures(await postMessage(simulator, { ...base, messages: next }))
    const { read, write5m } = readUsageFigures(second)
    expect(told.read).toBe(keeps ? read + write5m : readUsageFigures(first).write5m)
  })

  it('stays while a turn with tool calls goes on', async () => {
    const simulator = simulate({
      script: (request) => ({
        blocks: [
          { type: 'thinking', thinking: tokens(50, 'hm') },
          { type: 'tool_use', name: 'look', input: {}, id: `toolu_${request.messages.length}` },
        ],
      }),
    })
    const model = 'claude-haiku-4-5'
    const base = {
      model,
      tools: [TOOL],
      thinking: { type: 'enabled', budget_tokens: 1_024 },
      max_tokens: 2_000,
      ...MARK,
    }
    const start = [user(tokens(4_200))]
    const first = await postMessage(simulator, { ...base, messages: start })
    const turn = [...start, { role: 'assistant', content: first.body.content }, user(result('toolu_1'))]
    const second = await postMessage(simulator, { ...base, messages: turn })
    expect(second.status).toBe(200)
    const third = [...turn, { role: 'assistant', content: second.body.content }, user(result('toolu_3'))]
    const told = readUsageFigures(await postMessage(simulator, { ...base, messages: third }))
    expect(told.read).toBe(readUsageFigures(second).read + readUsageFigures(second).write5m)
  })
})

describe('diagnostics', () => {
  const base = { messages: [user(text(tokens(600), MARK))] }
  it('does not know a request without diagnostics', async () => {
    const simulator = simulate()
    const first = await postMessage(simulator, base)
    const told = await postMessage(simulator, {
      ...base,
      diagnostics: { previous_message_id: first.body.id },
    })
    expect(told.body.diagnostics).toEqual({ cache_miss_reason: { type: 'previous_message_not_found' } })
  })

  it('does not know a request of another workspace', async () => {
    const simulator = simulate()
    const first = await postMessage(simulator, { ...base, diagnostics: { previous_message_id: null } })
    expect(first.body.diagnostics).toBeNull()
    const body = { ...base, diagnostics: { previous_message_id: first.body.id } }
    const told = await postMessage(simulator, body, { headers: { 'anthropic-workspace-id': 'other' } })
    expect(told.body.diagnostics.cache_miss_reason.type).toBe('previous_message_not_found')
  })

  it('reports how many tokens follow the change', async () => {
    const simulator = simulate()
    const turns = (second: string): readonly object[] => [
      user(tokens(600)),
      assistant(tokens(500, second)),
      user('go'),
    ]
    const first = await postMessage(simulator, {
      messages: turns('a'),
      diagnostics: { previous_message_id: null },
    })
    const told = await postMessage(simulator, {
      messages: turns('b'),
      diagnostics: { previous_message_id: first.body.id },
    })
    expect(told.body.diagnostics.cache_miss_reason).toEqual({
      type: 'messages_changed',
      cache_missed_input_tokens: 504 + 5,
    })
  })

  it('is about the requests, not about what the cache did', async () => {
    const simulator = simulate()
    const call1 = [user(text(tokens(600))), assistant(call('a')), user(result('a', tokens(600), MARK))]
    const edits = {
      context_management: {
        edits: [
          {
            type: 'clear_tool_uses_20250919',
            trigger: { type: 'input_tokens', value: 1 },
            keep: { type: 'tool_uses', value: 0 },
          },
        ],
      },
    }
    const asked = { betas: ['context-management-2025-06-27'] }
    const body = (id: string | null): object => ({
      tools: [TOOL],
      messages: call1,
      ...edits,
      diagnostics: { previous_message_id: id },
    })
    const first = await postMessage(simulator, body(null), asked)
    const told = await postMessage(simulator, body(first.body.id), asked)
    expect(told.body.diagnostics).toBeNull()
  })
})
