import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Block } from '../protocol/messages-request.ts'
import {
  createPromptTree,
  isSameBlock,
  type PromptTree,
  type PromptTreeNode,
  renderBlock,
} from './prompt-tree.ts'

const text = (said: string): Block => ({ type: 'text', text: said })
const cost = (block: Block): number => String(block.text).length
const tree = (maxBytes = 1_000_000): PromptTree => createPromptTree({ countTokens: cost, maxBytes })

function walk(on: PromptTree, words: readonly string[]): PromptTreeNode {
  let node = on.root
  for (const word of words) node = on.addBlock(node, 'user', text(word))
  return node
}

describe('the prompt tree', () => {
  it('gives one prefix one node, and its chain is that of any other tree', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string(), { minLength: 1 }),
        fc.array(fc.string(), { minLength: 1 }),
        (one, other) => {
          const both = tree()
          const [first, second] = [walk(both, one), walk(both, other)]
          const same = JSON.stringify(one) === JSON.stringify(other)
          expect(first === second).toBe(same)
          expect(first.chain === second.chain).toBe(same)
          expect(walk(tree(), one).chain).toBe(first.chain)
        },
      ),
    )
  })

  it('adds up tokens and bytes along the way', () => {
    const node = walk(tree(), ['one', 'three'])
    expect({ tokens: node.tokens, depth: node.depth }).toEqual({ tokens: 8, depth: 2 })
    expect(node.bytes).toBe('{"text":"one","type":"text"}{"text":"three","type":"text"}'.length)
  })

  it('tells zones apart', () => {
    const on = tree()
    const [user, model] = [
      on.addBlock(on.root, 'user', text('x')),
      on.addBlock(on.root, 'assistant', text('x')),
    ]
    expect(user.chain).not.toBe(model.chain)
  })

  it('finds its way among many siblings', () => {
    const on = tree()
    const words = Array.from({ length: 200 }, (_, index) => `word ${index}`)
    const nodes = words.map((word) => walk(on, [word]))
    expect(words.map((word) => walk(on, [word]))).toEqual(nodes)
    expect(new Set(nodes.map(({ chain }) => chain)).size).toBe(200)
  })

  it('forgets what was not used for long, and nothing else', () => {
    const on = tree(4_000)
    const kept = walk(on, ['kept', 'x'.repeat(100)])
    for (let index = 0; index < 200; index += 1) {
      walk(on, [`gone ${index}`, 'x'.repeat(100)])
      expect(walk(on, ['kept', 'x'.repeat(100)])).toBe(kept)
    }
    expect(on.bytes).toBeLessThan(6_000)
    expect(walk(on, ['gone 0']).chain).toBe(walk(tree(), ['gone 0']).chain)
  })

  it('goes on from a chain alone', () => {
    const whole = walk(tree(), ['a', 'b', 'c'])
    const on = tree()
    const resumed = on.resume(walk(tree(), ['a', 'b']).chain)
    expect(on.addBlock(resumed, 'user', text('c')).chain).toBe(whole.chain)
  })
})

const value = fc.jsonValue({ maxDepth: 2 })
const textRendering = fc.record({ type: fc.constant('text'), text: fc.string() })
const block = fc.oneof(
  textRendering,
  fc.record({
    type: fc.constant('tool_use'),
    id: fc.string(),
    name: fc.string(),
    input: fc.dictionary(fc.string(), value),
  }),
  fc.record({ type: fc.constant('tool_result'), content: fc.oneof(fc.string(), fc.array(textRendering)) }),
  fc.dictionary(fc.constantFrom('type', 'text', 'content', 'cache_control', 'a', 'b'), value),
)

describe('a block and its rendering', () => {
  it('two blocks are the same exactly when their renderings are', () => {
    fc.assert(
      fc.property(block, block, (one, other) => {
        expect(isSameBlock(one, other)).toBe(renderBlock(one) === renderBlock(other))
      }),
      { numRuns: 2_000 },
    )
  })

  it('a block is the same as itself after a JSON round trip', () => {
    fc.assert(
      fc.property(block, (one) => {
        expect(isSameBlock(one, JSON.parse(JSON.stringify(one)))).toBe(true)
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
    expect([isSameBlock(one, other), renderBlock(one) === renderBlock(other)]).toEqual([same, same])
  })
})
