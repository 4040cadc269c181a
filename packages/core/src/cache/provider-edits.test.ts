import { describe, expect, it } from 'vitest'
import type { TracedMessage } from '../context/flatten.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { MessageList } from '../request/block-index.ts'
import { createForkEdits } from './provider-edits.ts'

const NAMES = { clearThinking: 'thinking', clearToolUses: 'results', compact: null, minimumCompactTrigger: 0 }

/** Messages with so many tool calls, each with thinking before it. */
function callsOf(count: number): MessageList {
  const tail = Array.from({ length: count }, (_, index): TracedMessage => {
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'tool_use', id: `call-${index}`, name: 'Read', input: {} },
    ]
    return { message: { role: 'assistant', content }, origins: ['', ''] }
  })
  return { frozen: AppendList.of<TracedMessage>(), tail }
}

const EDITS = {
  edits: [
    { type: 'thinking', keep: { type: 'thinking_turns', value: 2 } },
    { type: 'results', trigger: { type: 'input_tokens', value: 9 }, keep: { type: 'tool_uses', value: 3 } },
    { type: 'another', keep: { type: 'tool_uses', value: 1 } },
  ],
}

describe('the context edits of a fork', () => {
  it.each([
    { what: 'what the parent kept and what is new', results: true, thinking: true, keeps: [4, 5, 1] },
    { what: 'all where nothing was cleared', results: false, thinking: false, keeps: [10, 10, 1] },
    {
      what: 'all thinking where only results were cleared',
      results: true,
      thinking: false,
      keeps: [10, 5, 1],
    },
  ])('keep $what', ({ results, thinking, keeps }) => {
    const isCleared = { results, thinking }
    const made = createForkEdits(EDITS, { names: NAMES, parent: callsOf(8), fork: callsOf(10), isCleared })
    expect(made).toEqual({
      edits: EDITS.edits.map((edit, at) => ({ ...edit, keep: { ...edit.keep, value: keeps[at] } })),
    })
  })

  it('stay as they are where nothing is counted', () => {
    const input = {
      names: NAMES,
      parent: callsOf(1),
      fork: callsOf(2),
      isCleared: { results: true, thinking: true },
    }
    const all = { edits: [{ type: 'thinking', keep: 'all' }] }
    expect([createForkEdits(all, input), createForkEdits({}, input)]).toEqual([all, {}])
  })
})
