/** `context_management`: what is cleared, how the response reports it, and its effect on the cache. */
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
  type TestResponse,
  TOOL,
  tokens,
  user,
} from './ask.ts'

const ASKED = { betas: ['context-management-2025-06-27'] }
const TOOLS = [TOOL, { ...TOOL, name: 'write' }]
const PLACEHOLDER = '[cleared to save context]'

/** A prompt, then this many calls with a result of 1,000 tokens each; every third is a `write`. */
function work(calls: number): readonly object[] {
  const turns = Array.from({ length: calls }, (_, index) => {
    const id = `toolu_${index}`
    const name = index % 3 === 2 ? 'write' : 'look'
    return [
      assistant(call(id, { name, input: { text: tokens(100, id) } })),
      user(result(id, tokens(1_000, id))),
    ]
  })
  return [user('do it'), ...turns.flat()]
}

function edit(type: string, more: object = {}): object {
  return { context_management: { edits: [{ type, ...more }] } }
}

const CLEAR = 'clear_tool_uses_20250919'
const inputTokens = (value: number): object => ({ trigger: { type: 'input_tokens', value } })
const toolUses = (value: number): object => ({ trigger: { type: 'tool_uses', value } })
const keep = (value: number): object => ({ keep: { type: 'tool_uses', value } })

interface Row {
  readonly name: string
  readonly edit: object
  readonly cleared: number
}

describe('clearing tool uses', () => {
  const rows: readonly Row[] = [
    { name: 'keeps three by default', edit: inputTokens(1_000), cleared: 7 },
    { name: 'keeps as many as it is told', edit: { ...inputTokens(1_000), ...keep(1) }, cleared: 9 },
    { name: 'keeps none', edit: { ...inputTokens(1_000), ...keep(0) }, cleared: 10 },
    { name: 'waits for 100,000 tokens by default', edit: {}, cleared: 0 },
    { name: 'waits for its trigger', edit: inputTokens(20_000), cleared: 0 },
    { name: 'counts tool uses', edit: { ...toolUses(9), ...keep(3) }, cleared: 7 },
    { name: 'is not triggered by as many as the trigger', edit: { ...toolUses(10), ...keep(3) }, cleared: 0 },
    {
      name: 'leaves tools it is told to',
      edit: { ...inputTokens(1_000), exclude_tools: ['write'] },
      cleared: 5,
    },
    {
      name: 'is not done for too little',
      edit: { ...inputTokens(1_000), clear_at_least: { type: 'input_tokens', value: 8_000 } },
      cleared: 0,
    },
    {
      name: 'is done for enough',
      edit: { ...inputTokens(1_000), clear_at_least: { type: 'input_tokens', value: 6_000 } },
      cleared: 7,
    },
  ]
  it.each(rows)('$name', async ({ edit: given, cleared }) => {
    const { body } = await postMessage(
      simulate(),
      { tools: TOOLS, messages: work(10), ...edit(CLEAR, given) },
      ASKED,
    )
    const applied = body.context_management.applied_edits
    // A placeholder costs 7 tokens instead of 1,000.
    expect(applied).toEqual(
      cleared === 0 ? [] : [{ type: CLEAR, cleared_tool_uses: cleared, cleared_input_tokens: cleared * 993 }],
    )
  })

  it.each([
    { name: 'all inputs', inputs: true, tokens: 7 * (993 + 102) },
    { name: 'inputs of one tool', inputs: ['write'], tokens: 7 * 993 + 2 * 102 },
    { name: 'no inputs', inputs: false, tokens: 7 * 993 },
  ])('clears $name', async ({ inputs, tokens: expected }) => {
    const given = { ...inputTokens(1_000), clear_tool_inputs: inputs }
    const { body } = await postMessage(
      simulate(),
      { tools: TOOLS, messages: work(10), ...edit(CLEAR, given) },
      ASKED,
    )
    expect(body.context_management.applied_edits[0].cleared_input_tokens).toBe(expected)
  })

  it('bills exactly what remains, and count_tokens agrees', async () => {
    const simulator = simulate()
    const body = { tools: TOOLS, messages: work(10), ...edit(CLEAR, inputTokens(1_000)) }
    const told = await postMessage(simulator, body, ASKED)
    const counted = await postMessage(simulator, body, { ...ASKED, path: '/v1/messages/count_tokens' })
    const plain = await postMessage(
      simulator,
      { tools: TOOLS, messages: work(10) },
      { path: '/v1/messages/count_tokens' },
    )
    const cleared = told.body.context_management.applied_edits[0].cleared_input_tokens
    expect(counted.body).toEqual({
      input_tokens: plain.body.input_tokens - cleared,
      context_management: { original_input_tokens: plain.body.input_tokens },
    })
    expect(told.body.usage.input_tokens).toBe(counted.body.input_tokens)
  })

  it('shows the model a placeholder, which can be configured', async () => {
    const shown: string[] = []
    const options: SimulatorOptions = {
      script: ({ messages }) => {
        shown.push(JSON.stringify(messages))
        return { blocks: [{ type: 'text', text: 'ok' }] }
      },
    }
    const body = { tools: TOOLS, messages: work(5), ...edit(CLEAR, inputTokens(1_000)) }
    await postMessage(simulate(options), body, ASKED)
    await postMessage(simulate({ ...options, clearedPlaceholder: '(gone)' }), body, ASKED)
    expect(shown.map((all) => all.split(PLACEHOLDER).length - 1)).toEqual([2, 0])
    expect(shown[1]?.split('(gone)')).toHaveLength(3)
  })

  it('breaks the cache where it clears, and only from there on', async () => {
    const simulator = simulate()
    const messages = (calls: number): readonly object[] => [user(tokens(600)), ...work(calls).slice(1)]
    const marked = (calls: number): readonly object[] => {
      const all = messages(calls)
      return [
        ...all.slice(0, -1),
        user({ ...result(`toolu_${calls - 1}`, tokens(1_000, `toolu_${calls - 1}`)), ...MARK }),
      ]
    }
    const first = { tools: TOOLS, messages: [user({ type: 'text', text: tokens(600), ...MARK })] }
    await postMessage(simulator, first, ASKED)
    await postMessage(
      simulator,
      { tools: TOOLS, messages: marked(4), ...edit(CLEAR, inputTokens(5_000)) },
      ASKED,
    )
    const told = await postMessage(
      simulator,
      { tools: TOOLS, messages: marked(6), ...edit(CLEAR, inputTokens(5_000)) },
      ASKED,
    )
    expect(told.body.context_management.applied_edits[0].cleared_tool_uses).toBe(3)
    // The prefix before the first cleared result was a breakpoint of an earlier request.
    const { read } = readUsageFigures(told)
    expect(read).toBeGreaterThan(600)
    expect(read).toBeLessThan(800)
  })
})

describe('clearing thinking', () => {
  const EDIT = 'clear_thinking_20251015'
  const thinks: SimulatorOptions = {
    script: ({ messages }) => ({
      blocks: [
        { type: 'thinking', thinking: tokens(40, `t${messages.length}`) },
        { type: 'text', text: 'ok' },
      ],
    }),
  }
  async function talk(keeping: object, model = 'claude-opus-5'): Promise<TestResponse> {
    const simulator = simulate(thinks)
    const thinking =
      model === 'claude-opus-5'
        ? {}
        : { thinking: { type: 'enabled', budget_tokens: 1_024 }, max_tokens: 2_000 }
    const messages: object[] = [user('a')]
    for (const next of ['b', 'c', 'd']) {
      const { body } = await postMessage(simulator, { model, ...thinking, messages })
      messages.push({ role: 'assistant', content: body.content }, user(next))
    }
    return postMessage(simulator, { model, ...thinking, messages, ...edit(EDIT, keeping) }, ASKED)
  }
  it.each([
    { name: 'all', keeping: { keep: 'all' }, turns: 0 },
    { name: 'all, as an object', keeping: { keep: { type: 'all' } }, turns: 0 },
    { name: 'one turn', keeping: { keep: { type: 'thinking_turns', value: 1 } }, turns: 2 },
    { name: 'two turns', keeping: { keep: { type: 'thinking_turns', value: 2 } }, turns: 1 },
    { name: 'more than there are', keeping: { keep: { type: 'thinking_turns', value: 9 } }, turns: 0 },
    { name: 'the default of a newer model', keeping: {}, turns: 0 },
  ])('keeps $name', async ({ keeping, turns }) => {
    const { body } = await talk(keeping)
    expect(body.context_management.applied_edits).toEqual(
      turns === 0 ? [] : [{ type: EDIT, cleared_thinking_turns: turns, cleared_input_tokens: turns * 40 }],
    )
  })

  it('keeps the last turn by default on an older model, and all turns on request', async () => {
    const byDefault = await talk({}, 'claude-haiku-4-5')
    expect(byDefault.body.context_management.applied_edits).toMatchObject([{ cleared_thinking_turns: 2 }])
    const all = await talk({ keep: 'all' }, 'claude-haiku-4-5')
    expect(all.body.context_management.applied_edits).toEqual([])
  })
})

describe('in a stream', () => {
  it('is reported at the end, beside the usage', async () => {
    const response = await simulate().fetch('http://simulator/v1/messages', {
      method: 'POST',
      headers: { 'x-api-key': 'k', 'anthropic-version': '2026-10-21', 'anthropic-beta': ASKED.betas.join() },
      body: JSON.stringify({
        model: 'claude-opus-5',
        max_tokens: 50,
        stream: true,
        tools: TOOLS,
        messages: work(10),
        ...edit(CLEAR, inputTokens(1_000)),
      }),
    })
    const frames = (await response.text())
      .split('\n\n')
      .map((frame) => frame.replace(/^event: .*\ndata: /, ''))
    const delta = JSON.parse(frames.find((frame) => frame.includes('message_delta')) ?? '{}')
    expect(delta.context_management.applied_edits).toMatchObject([{ type: CLEAR, cleared_tool_uses: 7 }])
    expect(delta.delta).toEqual({ stop_reason: 'end_turn', stop_sequence: null, stop_details: null })
  })

  it('is null without edits', async () => {
    const { body } = await postMessage(simulate(), { messages: [user('x')] }, ASKED)
    expect(body.context_management).toBeNull()
  })
})
