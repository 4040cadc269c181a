import { describe, expect, it } from 'vitest'
import type { JsonObject } from './json.ts'
import {
  commandOf,
  type FileTouch,
  factsOfCall,
  kindOf,
  largeInputs,
  stringsIn,
  type ToolKind,
  touchesOf,
} from './tool-calls.ts'

const edit = (path: string, put: string | null): FileTouch => ({ path, act: 'edit', put })

describe('what a call does', () => {
  it.each<[JsonObject, ToolKind, readonly FileTouch[]]>([
    [{ file_path: '/a.ts' }, 'read', [{ path: '/a.ts', act: 'read', put: null }]],
    [{ file_path: '/a.ts', old_string: 'x', new_string: 'y' }, 'edit', [edit('/a.ts', 'y')]],
    [{ path: '/a.ts', old_str: 'x' }, 'edit', [edit('/a.ts', null)]],
    [{ file_path: '/a.ts', edits: [{ new_string: 'y' }, { new_string: 'z' }] }, 'edit', [edit('/a.ts', 'z')]],
    [{ notebook_path: '/a.ipynb', new_source: 'y' }, 'edit', [edit('/a.ipynb', 'y')]],
    [{ file_path: '/a.ts', content: 'all' }, 'write', [{ path: '/a.ts', act: 'write', put: 'all' }]],
    [{ pattern: 'x', path: '/src' }, 'search', []],
    [{ command: 'ls /src' }, 'shell', []],
    [{ cmd: ['git', 'diff'], workdir: '/' }, 'shell', []],
    [{ action: { command: ['ls'] } }, 'shell', []],
    [
      {
        command:
          "apply_patch <<'E'\n*** Update File: src/a.ts\n@@\n-old\n+new\n+line\n*** Delete File: src/b.ts\nE",
      },
      'shell',
      [edit('src/a.ts', 'new\nline'), edit('src/b.ts', null)],
    ],
    [{ todos: [] }, 'other', []],
    [{}, 'other', []],
  ])('%j: %s', (input, kind, touches) => {
    expect([kindOf(input), touchesOf(input, kindOf(input))]).toEqual([kind, touches])
  })

  it('is nothing where the input is no object', () => {
    expect([kindOf(null), kindOf('ls'), commandOf([]), touchesOf(null, 'other')]).toEqual([
      'other',
      'other',
      null,
      [],
    ])
  })

  it('is told by the text of its command', () => {
    expect([commandOf({ command: ['git', 'log'] }), commandOf({ command: 3 })]).toEqual(['git log', null])
  })
})

describe('the texts in a value', () => {
  it('are decoded, in order, without the names of fields', () => {
    expect(stringsIn({ a: 'one\ntwo', b: [1, 'three', { c: 'four' }], d: null })).toEqual([
      'one\ntwo',
      'three',
      'four',
    ])
  })
})

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
