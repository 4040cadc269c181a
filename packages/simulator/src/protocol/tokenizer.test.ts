import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  CALL_OVERHEAD_TOKENS,
  countBlockTokens,
  countTextTokens,
  countToolDefinitionTokens,
  TOKENS_PER_DOCUMENT,
  TOKENS_PER_IMAGE,
  TOOL_OVERHEAD_TOKENS,
} from './tokenizer.ts'

const tokensOf = (block: { type: string; [field: string]: unknown }): number =>
  countBlockTokens(block, () => 77)

describe('the tokenizer', () => {
  it('counts bytes by four, rounded up', () => {
    expect(['', 'a', 'abcd', 'abcde', 'é'.repeat(3), '😀'].map(countTextTokens)).toEqual([0, 1, 1, 2, 2, 1])
  })

  it('differs by less than one token per block from the sum', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, other) => {
        const apart = countTextTokens(one) + countTextTokens(other)
        expect(apart - countTextTokens(one + other)).toBeLessThanOrEqual(1)
      }),
    )
  })

  it.each([
    { name: 'text', block: { type: 'text', text: 'eight by' }, tokens: 2 },
    {
      name: 'thinking, by its signature',
      block: { type: 'thinking', thinking: '', signature: 'x' },
      tokens: 77,
    },
    { name: 'an image', block: { type: 'image', source: {} }, tokens: TOKENS_PER_IMAGE },
    {
      name: 'a text document',
      block: { type: 'document', source: { type: 'text', data: 'eight by' } },
      tokens: 2,
    },
    {
      name: 'a document of blocks',
      block: { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'four' }] } },
      tokens: 1,
    },
    {
      name: 'any other document',
      block: { type: 'document', source: { type: 'base64', data: 'x' } },
      tokens: TOKENS_PER_DOCUMENT,
    },
    {
      name: 'a call',
      block: { type: 'tool_use', name: 'look', input: { a: 1 } },
      tokens: CALL_OVERHEAD_TOKENS + 1 + 2,
    },
    { name: 'a result', block: { type: 'tool_result', content: 'four' }, tokens: CALL_OVERHEAD_TOKENS + 1 },
    {
      name: 'a result of blocks',
      block: { type: 'tool_result', content: [{ type: 'text', text: 'four' }, { type: 'image' }] },
      tokens: CALL_OVERHEAD_TOKENS + 1 + TOKENS_PER_IMAGE,
    },
    { name: 'a result of nothing', block: { type: 'tool_result' }, tokens: CALL_OVERHEAD_TOKENS },
    { name: 'anything else, by its JSON', block: { type: 'x', cache_control: {}, y: 1 }, tokens: 5 },
  ])('$name', ({ block, tokens }) => {
    expect(tokensOf(block)).toBe(tokens)
  })

  it('does not charge for a marker on a tool', () => {
    const tool = { name: 'look', input_schema: { type: 'object' } }
    expect(countToolDefinitionTokens({ ...tool, cache_control: { type: 'ephemeral' } })).toBe(
      countToolDefinitionTokens(tool),
    )
    expect(countToolDefinitionTokens(tool)).toBe(
      TOOL_OVERHEAD_TOKENS + Math.ceil(JSON.stringify(tool).length / 4),
    )
  })
})
