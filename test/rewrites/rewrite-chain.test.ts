/** Twenty rewrites, one after the other: nothing that must last fades, and each of them can be taken back. */
import { describe, expect, it } from 'vitest'
import { type Rewrite, RewriteChain } from './rewrite-chain.ts'

const KINDS: readonly Rewrite[] = ['full', 'clear', 'up_to', 'from', 'clear', 'full', 'up_to']

describe('twenty rewrites in a chain', () => {
  it('keep instructions, prompt, todos, plan, agents and pins byte for byte, once each; all can be undone', async () => {
    const chain = new RewriteChain()
    for (let number = 0; number < 20; number += 1) await chain.step(KINDS[number % KINDS.length] ?? 'full')
    expect([chain.rewritten.length, chain.pinned.length]).toEqual([20, 8])
    await chain.undoEach()
    await chain.undoAll()
  })
})
