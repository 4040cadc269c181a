import { describe, expect, it } from 'vitest'
import { createIdGenerator } from '../protocol/clock-and-ids.ts'
import type { Reply } from '../scripts/script.ts'
import { limitModelOutput, type OutputLimits } from './call-script.ts'

const LIMITS: OutputLimits = { stopSequences: [], maxTokens: 1_000, windowTokensLeft: 1_000 }

function limited(reply: Reply, limits: Partial<OutputLimits> = {}) {
  return limitModelOutput(reply, { ...LIMITS, ...limits }, createIdGenerator('s'))
}

describe('what a script wrote', () => {
  it('has the stop reason of its blocks, unless it sets one', () => {
    const call = { type: 'tool_use', name: 'look', input: {} } as const
    const text = { type: 'text', text: 'x' } as const
    const reasons = [
      limited({ blocks: [text] }),
      limited({ blocks: [text, call] }),
      limited({ blocks: [text], stopReason: 'refusal' }),
      limited({ blocks: [] }),
    ].map(({ stopReason }) => stopReason)
    expect(reasons).toEqual(['end_turn', 'tool_use', 'refusal', 'end_turn'])
  })

  it('gets ids for its calls, and keeps its own', () => {
    const { blocks } = limited({
      blocks: [
        { type: 'tool_use', name: 'a', input: {} },
        { type: 'tool_use', name: 'b', input: {}, id: 'mine' },
      ],
    })
    expect(blocks.map(({ id }) => id)).toEqual([expect.stringMatching(/^toolu_01/), 'mine'])
  })

  it('stops at the first sequence, and drops what follows', () => {
    const { blocks, stopReason, stopSequence } = limited(
      {
        blocks: [
          { type: 'text', text: 'one' },
          { type: 'text', text: 'two B three A' },
          { type: 'text', text: 'four' },
        ],
      },
      { stopSequences: ['A', 'B'] },
    )
    expect(blocks.map(({ text }) => text)).toEqual(['one', 'two '])
    expect([stopReason, stopSequence]).toEqual(['stop_sequence', 'B'])
  })

  it.each([
    { name: 'max_tokens', limits: { maxTokens: 3, windowTokensLeft: 9 }, reason: 'max_tokens' },
    {
      name: 'the window',
      limits: { maxTokens: 9, windowTokensLeft: 3 },
      reason: 'model_context_window_exceeded',
    },
    { name: 'both at once', limits: { maxTokens: 3, windowTokensLeft: 3 }, reason: 'max_tokens' },
  ])('is cut at $name', ({ limits, reason }) => {
    const cut = limited({ blocks: [{ type: 'text', text: 'x'.repeat(100) }] }, limits)
    expect([cut.blocks, cut.tokens, cut.stopReason]).toEqual([
      [{ type: 'text', text: 'x'.repeat(12) }],
      3,
      reason,
    ])
  })

  it('counts thinking, and can be cut inside it', () => {
    const reply: Reply = {
      blocks: [
        { type: 'thinking', thinking: 'x'.repeat(40) },
        { type: 'text', text: 'y' },
      ],
    }
    expect(limited(reply)).toMatchObject({ tokens: 11, thinkingTokens: 10 })
    expect(limited(reply, { maxTokens: 5 })).toMatchObject({
      tokens: 5,
      thinkingTokens: 5,
      stopReason: 'max_tokens',
    })
  })

  it('keeps the part of a call that fits', () => {
    const reply: Reply = { blocks: [{ type: 'tool_use', name: 'look', input: { at: 'xyz' }, id: 'a' }] }
    expect(limited(reply, { maxTokens: 10 })).toMatchObject({
      blocks: [{ type: 'tool_use', id: 'a', input: {} }],
      cutInputs: [{ index: 0, text: '{"at":"x' }],
    })
    expect(limited(reply, { maxTokens: 8 })).toMatchObject({ blocks: [], cutInputs: [] })
  })
})
