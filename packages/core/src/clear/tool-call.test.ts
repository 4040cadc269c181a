import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../conversation/json.ts'
import { factsOfCall, largeInputs } from './tool-call.ts'

const call = (input: JsonObject) => ({ type: 'tool_use' as const, id: 'c', name: 'T', input })

describe('what a call is about', () => {
  it.each([
    ['a whole file', { file_path: '/a' }, false, { concern: 'read', path: '/a', range: null, command: null }],
    [
      'a part',
      { path: '/a', offset: 3 },
      false,
      { concern: 'read', path: '/a', range: '[["offset",3]]', command: null },
    ],
    [
      'a limit that is null',
      { file_path: '/a', limit: null },
      false,
      { concern: 'read', path: '/a', range: null, command: null },
    ],
    [
      'a search',
      { path: '/a', pattern: 'x' },
      false,
      { concern: 'other', path: null, range: null, command: null },
    ],
    ['a command', { command: 'ls' }, false, { concern: 'other', path: null, range: null, command: 'ls' }],
    [
      'a command in words',
      { command: ['ls', '-l'] },
      false,
      { concern: 'other', path: null, range: null, command: 'ls -l' },
    ],
    [
      'a write',
      { file_path: '/a', content: 'x' },
      true,
      { concern: 'write', path: '/a', range: null, command: null },
    ],
    [
      'an edit',
      { file_path: '/a', old_string: 'x' },
      true,
      { concern: 'edit', path: '/a', range: null, command: null },
    ],
    ['nothing', {}, true, { concern: 'other', path: null, range: null, command: null }],
  ] as const)('%s', (_, input, isWrite, facts) => {
    expect(factsOfCall(call(input), isWrite)).toEqual(facts)
  })

  it('large inputs are texts from the figure on', () => {
    const input = {
      file_path: '/a',
      content: 'x'.repeat(12),
      old: 'y'.repeat(8),
      count: 99,
      list: ['z'.repeat(99)],
    }
    expect(largeInputs(call(input), 2, (text) => text.length / 4)).toEqual([
      { field: 'content', tokens: 3 },
      { field: 'old', tokens: 2 },
    ])
  })
})
