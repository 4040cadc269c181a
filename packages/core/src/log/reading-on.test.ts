import { describe, expect, it } from 'vitest'
import { alone, foreign, HEADER, part, read } from '../../test/log-lines.ts'
import { createLogLineReader } from '../log/decode-log.ts'

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
    const reader = createLogLineReader({ from })
    const taken = more.flatMap((line) => reader.readLine(line))
    expect(taken.map(({ uuid }) => uuid)).toEqual(uuids)
    expect(reader.finish().position).toBe(8)
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
      const reader = createLogLineReader({ start, from: start.position })
      const uuids = more.slice(count).flatMap((line) => reader.readLine(line).map(({ uuid }) => uuid))
      const { records, damage, ...end } = reader.finish('{')
      expect([...uuids, ...records]).toEqual(all.uuids.slice(all.uuids.length - uuids.length))
      expect(damage).toEqual(all.damage.filter(({ line }) => line > count))
      const { uuids: _uuids, damage: _damage, ...expected } = all
      expect(end).toEqual(expected)
    }
  })

  it('gives the line number of each record', () => {
    const reader = createLogLineReader()
    const lines = more.map((line) => {
      reader.readLine(line)
      return reader.lineNumbers
    })
    expect(lines).toEqual([[], [], [2, 3], [4], [], [6], [], [], [7, 8, 9], [10]])
    reader.finish('{"type":"note"}')
    expect(reader.lineNumbers).toEqual([11])
  })
})
