import { isNestedTooDeep, MAX_JSON_DEPTH } from '@tidemark/core/log/json'
import { describe, expect, it } from 'vitest'
import { createDamageCollector, mergeDamage } from './log-reader.ts'

describe('notes of damage', () => {
  it('become one entry if consecutive lines have the same problem', () => {
    const notes = createDamageCollector()
    for (const line of [3, 4, 5, 9]) notes.add('bad-json', line, 'x')
    notes.add('bad-shape', 10, 'x')
    notes.add('bad-shape', 11, 'y')
    expect(notes.list).toEqual([
      { kind: 'bad-json', line: 3, why: 'lines 3 to 5: x' },
      { kind: 'bad-json', line: 9, why: 'x' },
      { kind: 'bad-shape', line: 10, why: 'x' },
      { kind: 'bad-shape', line: 11, why: 'y' },
    ])
  })

  it('are limited, with the number of those left out', () => {
    const notes = createDamageCollector()
    for (let line = 1; line <= 5000; line += 2) notes.add('bad-json', line, 'x')
    expect(notes.list).toHaveLength(1001)
    expect(notes.list.at(-1)).toEqual({
      kind: 'bad-json',
      line: 1999,
      why: '1500 more places behind this one are damaged too',
    })
  })

  it('from two sources are merged in line order', () => {
    const at = (line: number, why: string): { kind: 'bad-json'; line: number; why: string } => ({
      kind: 'bad-json',
      line,
      why,
    })
    expect(mergeDamage([at(1, 'a'), at(5, 'a')], [at(1, 'b'), at(3, 'b')])).toEqual([
      at(1, 'a'),
      at(1, 'b'),
      at(3, 'b'),
      at(5, 'a'),
    ])
  })
})

it.each([
  [MAX_JSON_DEPTH, false],
  [MAX_JSON_DEPTH + 1, true],
  [1_000_000, true],
])('%i levels: %s', (levels, expected) => {
  expect(isNestedTooDeep(JSON.parse('['.repeat(levels) + ']'.repeat(levels)))).toBe(expected)
  expect(isNestedTooDeep(JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`))).toBe(expected)
})

it.each([[null], ['x'], [{ a: [1, { b: null }] }]])('%j is not', (value) => {
  expect(isNestedTooDeep(value)).toBe(false)
})
