import { describe, expect, it } from 'vitest'
import { NOWHERE, noteOn, stubOf } from './stub.ts'

describe('what stands where a result was', () => {
  const blobOf = (id: string): string | null => (id === 'saved' ? 'b1' : null)
  const all = { historyTool: 'history', blobOf, transcript: '/t.jsonl' }

  it.each([
    ['the tool, where there is one', 'saved', all, 'Call history with the id saved to read it again.'],
    ['else the blob', 'saved', { ...all, historyTool: null }, 'It was saved as blob b1.'],
    [
      'else the transcript',
      'other',
      { ...all, historyTool: null },
      'It is in the transcript: /t.jsonl (tool_use_id other).',
    ],
    ['else nothing', 'other', NOWHERE, null],
  ])('%s', (_, id, retrieval, note) => {
    expect(noteOn(id, retrieval)).toBe(note)
  })

  it('begins with the line that says so', () => {
    expect(stubOf('c', NOWHERE).content).toBe('[Old tool result content cleared]')
    expect(stubOf('c', all).content).toBe(
      '[Old tool result content cleared]\nCall history with the id c to read it again.',
    )
  })
})
