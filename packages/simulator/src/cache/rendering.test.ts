import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { render, sameBlock } from './rendering.ts'

const value = fc.jsonValue({ maxDepth: 2 })
const text = fc.record({ type: fc.constant('text'), text: fc.string() })
const block = fc.oneof(
  text,
  fc.record({
    type: fc.constant('tool_use'),
    id: fc.string(),
    name: fc.string(),
    input: fc.dictionary(fc.string(), value),
  }),
  fc.record({ type: fc.constant('tool_result'), content: fc.oneof(fc.string(), fc.array(text)) }),
  fc.dictionary(fc.constantFrom('type', 'text', 'content', 'cache_control', 'a', 'b'), value),
)

describe('a block and its rendering', () => {
  it('two blocks are the same exactly when their renderings are', () => {
    fc.assert(
      fc.property(block, block, (one, other) => {
        expect(sameBlock(one, other)).toBe(render(one) === render(other))
      }),
      { numRuns: 2_000 },
    )
  })

  it('a block is the same as itself after a JSON round trip', () => {
    fc.assert(
      fc.property(block, (one) => {
        expect(sameBlock(one, JSON.parse(JSON.stringify(one)))).toBe(true)
      }),
    )
  })

  it.each([
    {
      name: 'a marker',
      one: { type: 'text', text: 'x' },
      other: { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } },
      same: true,
    },
    {
      name: 'a marker inside a result',
      one: { type: 'tool_result', content: [{ type: 'text', text: 'x' }] },
      other: { type: 'tool_result', content: [{ type: 'text', text: 'x', cache_control: {} }] },
      same: true,
    },
    {
      name: 'a reference',
      one: { type: 'tool_result', content: 'x' },
      other: { type: 'tool_result', content: 'x', cache_reference: 'a' },
      same: true,
    },
    {
      name: 'a null',
      one: { type: 'text', text: 'x', citations: null },
      other: { type: 'text', text: 'x' },
      same: true,
    },
    {
      name: 'a string for a text',
      one: { type: 'tool_result', content: 'x' },
      other: { type: 'tool_result', content: [{ text: 'x', type: 'text' }] },
      same: true,
    },
    {
      name: 'the order of fields',
      one: { type: 'text', text: 'x' },
      other: { text: 'x', type: 'text' },
      same: true,
    },
    {
      name: 'the order of keys in an input',
      one: { type: 'tool_use', input: { a: 1, b: 2 } },
      other: { type: 'tool_use', input: { b: 2, a: 1 } },
      same: false,
    },
    {
      name: 'a marker inside an input',
      one: { type: 'tool_use', input: { cache_control: 1 } },
      other: { type: 'tool_use', input: {} },
      same: false,
    },
    { name: 'one letter', one: { type: 'text', text: 'x' }, other: { type: 'text', text: 'y' }, same: false },
  ])('$name: same is $same', ({ one, other, same }) => {
    expect([sameBlock(one, other), render(one) === render(other)]).toEqual([same, same])
  })
})
