import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Block } from '../api.ts'
import type { PromptNode } from './prompt-node.ts'
import { createPromptTree, type PromptTree } from './prompt-tree.ts'

const text = (said: string): Block => ({ type: 'text', text: said })
const cost = (block: Block): number => String(block.text).length
const tree = (maxBytes = 1_000_000): PromptTree => createPromptTree({ costOf: cost, maxBytes })

function walk(on: PromptTree, words: readonly string[]): PromptNode {
  let node = on.root
  for (const word of words) node = on.place(node, 'user', text(word))
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
    const [user, model] = [on.place(on.root, 'user', text('x')), on.place(on.root, 'assistant', text('x'))]
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
    expect(on.place(resumed, 'user', text('c')).chain).toBe(whole.chain)
  })
})
