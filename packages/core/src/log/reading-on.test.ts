import { describe, expect, it } from 'vitest'
import { alone, foreign, HEADER, part, read } from '../../test/log-lines.ts'
import { createLineReader } from './log-reader.ts'

const whole = [part(1, 'a', [0, 2]), part(2, 'a', [1, 2])]

describe('continuing a reading', () => {
  const log = [HEADER, ...whole, foreign('x'), 'garbage', alone(4), part(5, 'c', [0, 2])]
  const more = [...log, foreign('y'), part(6, 'c', [1, 2]), alone(8)]

  it.each<[number, readonly string[]]>([
    [0, ['a0', 'a1', 'x', 'r4', 'c0', 'y', 'c1', 'r8']],
    [1, ['a1', 'x', 'r4', 'c0', 'y', 'c1', 'r8']],
    [3, ['r4', 'c0', 'y', 'c1', 'r8']],
    [6, ['y', 'r8']],
    [7, ['r8']],
    [8, []],
  ])('from position %i gives what stands behind it', (from, uuids) => {
    const reader = createLineReader({ from })
    const taken = more.flatMap((line) => reader.take(line))
    expect(taken.map(({ uuid }) => uuid)).toEqual(uuids)
    expect(reader.end().position).toBe(8)
  })

  it('is possible between any two lines that are not inside a batch', () => {
    const places = more.map((_, count) => read(more.slice(0, count)).resume)
    expect(places).toEqual([
      null,
      { line: 1, position: 0, version: 1 },
      null,
      { line: 3, position: 2, version: 1 },
      { line: 4, position: 3, version: 1 },
      { line: 5, position: 3, version: 1 },
      { line: 6, position: 4, version: 1 },
      null,
      null,
      { line: 9, position: 7, version: 1 },
    ])
    expect(read(log.slice(0, 4), 'x').resume).toBe(null)
  })

  it('gives the same result as reading the whole log', () => {
    const all = read(more, '{')
    for (const [count, start] of more.map((_, at) => [at, read(more.slice(0, at)).resume] as const)) {
      if (start === null) continue
      const reader = createLineReader({ start, from: start.position })
      const uuids = more.slice(count).flatMap((line) => reader.take(line).map(({ uuid }) => uuid))
      const { records, damage, ...end } = reader.end('{')
      expect([...uuids, ...records]).toEqual(all.uuids.slice(all.uuids.length - uuids.length))
      expect(damage).toEqual(all.damage.filter(({ line }) => line > count))
      const { uuids: _uuids, damage: _damage, ...expected } = all
      expect(end).toEqual(expected)
    }
  })

  it('gives the line number of each record', () => {
    const reader = createLineReader()
    const lines = more.map((line) => {
      reader.take(line)
      return reader.lines
    })
    expect(lines).toEqual([[], [], [2, 3], [4], [], [6], [], [], [7, 8, 9], [10]])
    reader.end('{"type":"note"}')
    expect(reader.lines).toEqual([11])
  })
})
