import { describe, expect, it } from 'vitest'
import { createLaterUseIndex, type IndexedResponse } from './later-uses.ts'

function call(request: number, ...content: readonly object[]): IndexedResponse {
  const message = { id: `m${request}`, role: 'assistant', model: 'any', content }
  return { request, record: { type: 'assistant', uuid: `u${request}`, message } as never }
}

const uses = createLaterUseIndex([
  call(0, { type: 'text', text: 'handleRequest is called by loadUserTwice.' }),
  call(1, { type: 'tool_use', id: 'a', name: 'Read', input: { file_path: 'C:\\work\\my notes.md' } }),
  call(2, { type: 'text', text: 'See (/home/user/Makefile), then loadUser.' }),
  call(3, {
    type: 'tool_use',
    id: 'b',
    name: 'Edit',
    input: { file_path: '/a.ts', old_string: '  const total = sumOf(parts)', new_string: 'x' },
  }),
  call(4, { type: 'text', text: 'handleRequest again' }),
])

describe('what later requests used', () => {
  it('finds the first request from a place on that names a whole name', () => {
    expect([0, 1, 5].map((from) => uses.findNamed('handleRequest', from))).toEqual([0, 4, null])
    expect(uses.findNamed('loadUser', 0)).toBe(2)
  })

  it('finds paths in prose and in tool calls, whatever characters they have', () => {
    expect(uses.findNamed('/home/user/Makefile', 0)).toBe(2)
    expect(uses.findNamed('C:\\work\\my notes.md', 0)).toBe(1)
    expect(uses.findNamed('file_path', 0)).toBeNull()
  })

  it('finds files that were read and lines that were edited', () => {
    expect([uses.findRead('C:\\work\\my notes.md', 0), uses.findRead('/a.ts', 0)]).toEqual([1, null])
    expect(uses.findEdited('const total = sumOf(parts)', 2, '/a.ts')).toBe(3)
    expect(uses.findEdited('const total = sumOf(parts)', 2, 'grep sumOf')).toBe(3)
  })

  it('counts an edit of another file with the same line for no block of this file', () => {
    expect(uses.findEdited('const total = sumOf(parts)', 2, 'C:\\work\\my notes.md')).toBeNull()
  })
})
