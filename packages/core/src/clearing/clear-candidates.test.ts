import { describe, expect, it } from 'vitest'
import { createResultPlaceholder, NO_RETRIEVAL, retrievalHint } from './clear-candidates.ts'

describe('what stands where a result was', () => {
  const all = { historyTool: 'history', transcript: '/t.jsonl' }

  it.each([
    ['the tool, where there is one', all, 'To read it, call history with {"id":"call-1"}.'],
    ['else the transcript', { ...all, historyTool: null }, 'To read it, look for call-1 in /t.jsonl.'],
    [
      'else that it cannot be read',
      NO_RETRIEVAL,
      'It cannot be read back here. If you need it, obtain it again.',
    ],
  ])('%s', (_, retrieval, note) => {
    expect(retrievalHint('call-1', retrieval)).toBe(note)
  })

  it('begins with the line that says so', () => {
    expect(createResultPlaceholder('c', NO_RETRIEVAL).content).toBe(
      '[Old tool result content cleared]\nIt cannot be read back here. If you need it, obtain it again.',
    )
    expect(createResultPlaceholder('c', all).content).toBe(
      '[Old tool result content cleared]\nTo read it, call history with {"id":"c"}.',
    )
  })
})
