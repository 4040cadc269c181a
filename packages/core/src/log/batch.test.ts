import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { alone, foreign, found, HEADER, part, read, textOf } from '../../test/log-lines.ts'
import {
  abandonBatch,
  addNextRecord,
  createLogReadState,
  findSeqOrBatchProblem,
  type LogReadState,
  type PositionedRecord,
} from './decode-log.ts'
import type { SessionRecord } from './record.ts'

function partBatch(seq: number, index: number, of: number): SessionRecord {
  return { type: 'note', uuid: `r${seq}`, seq, batch: { id: 'b', index, of } }
}

describe('a batch', () => {
  it('counts only when its last record is read', () => {
    const gathering = createLogReadState(0)
    const parts = [partBatch(1, 0, 3), partBatch(2, 1, 3), partBatch(3, 2, 3)]
    const counted = parts.map(
      (record, index): PositionedRecord => ({ record, line: index + 5, position: index + 1 }),
    )
    expect(counted.map(({ record, line }) => addNextRecord(gathering, record, line))).toEqual([
      [],
      [],
      counted,
    ])
    expect(gathering).toEqual<LogReadState>({ damage: [], position: 3, openBatch: null })
  })

  it('of one record counts at once', () => {
    expect(addNextRecord(createLogReadState(0), partBatch(1, 0, 1), 1)).toEqual([
      { record: partBatch(1, 0, 1), line: 1, position: 1 },
    ])
  })

  it('that is incomplete is set aside when the log ends', () => {
    const gathering = createLogReadState(0)
    addNextRecord(gathering, partBatch(1, 0, 3), 5)
    abandonBatch(gathering)
    abandonBatch(gathering)
    const why = '1 of the 3 records appended together are there; none of them counts'
    expect(gathering).toEqual<LogReadState>({
      damage: [{ kind: 'incomplete-batch', line: 5, why }],
      position: 0,
      openBatch: null,
    })
  })
})

describe('the stamp of a batch', () => {
  const bad = 'batch has an id, an index and how many there are'
  it.each<[object, string | null]>([
    [{}, null],
    [{ batch: 'of another tool' }, null],
    [{ seq: 1 }, null],
    [{ seq: 1, batch: { id: 'b', index: 0, of: 1 } }, null],
    [{ seq: 0 }, 'seq is a whole number from 1 on'],
    [{ seq: 2 ** 53 }, 'seq is a whole number from 1 on'],
    [{ seq: 1, batch: 7 }, bad],
    [{ seq: 1, batch: { id: 'b', index: 1, of: 1 } }, bad],
    [{ seq: 1, batch: { id: 'b', index: 0.5, of: 1 } }, bad],
    [{ seq: 1, batch: { id: 7, index: 0, of: 1 } }, bad],
  ])('of %j is %s', (fields, problem) => {
    expect(findSeqOrBatchProblem({ type: 'note', ...fields })).toBe(problem)
  })
})

const whole = [part(1, 'a', [0, 2]), part(2, 'a', [1, 2])]

describe('a log', () => {
  it.each<[string, readonly string[], string | undefined, unknown]>([
    [
      'with a part copied behind itself',
      [HEADER, part(1, 'b', [0, 3]), part(2, 'b', [1, 3]), part(2, 'b', [1, 3]), part(3, 'b', [2, 3])],
      undefined,
      { uuids: ['b0', 'b1', 'b2'], position: 3, damage: ['duplicate-uuid 4'] },
    ],
    [
      'with a first part copied among the others',
      [HEADER, part(1, 'b', [0, 3]), part(2, 'b', [1, 3]), part(1, 'b', [0, 3]), part(3, 'b', [2, 3])],
      undefined,
      { uuids: ['b0', 'b1', 'b2'], position: 3, damage: ['duplicate-uuid 4'] },
    ],
    [
      'with a first part copied among the others twice',
      [
        HEADER,
        part(1, 'b', [0, 3]),
        part(2, 'b', [1, 3]),
        part(1, 'b', [0, 3]),
        part(1, 'b', [0, 3]),
        part(3, 'b', [2, 3]),
      ],
      undefined,
      { uuids: ['b0', 'b1', 'b2'], position: 3, damage: ['duplicate-uuid 4', 'duplicate-uuid 5'] },
    ],
    [
      'with a batch that was cut off and told again, the same at first and then otherwise',
      [
        HEADER,
        part(1, 'b', [0, 3]),
        part(2, 'b', [1, 3]),
        part(1, 'b', [0, 3]),
        part(2, 'b', [1, 3]).replace('b1', 'other'),
        part(3, 'b', [2, 3]),
      ],
      undefined,
      { uuids: ['b0', 'other', 'b2'], position: 3, damage: ['incomplete-batch 2'] },
    ],
    [
      'with two parts that want the same place',
      [HEADER, part(1, 'b', [0, 3]), part(2, 'b', [1, 3]), part(2, 'b', [1, 3]).replace('b1', 'x'), alone(1)],
      undefined,
      { uuids: ['r1'], position: 1, damage: ['incomplete-batch 2'] },
    ],
    [
      'with lines of another tool inside a batch: they keep their places and count behind it',
      [HEADER, part(1, 'b', [0, 2]), foreign('x'), part(2, 'b', [1, 2]), alone(4)],
      undefined,
      { uuids: ['b0', 'x', 'b1', 'r4'], position: 4, damage: [] },
    ],
    [
      'with lines of another tool behind a batch that was cut off',
      [HEADER, part(1, 'b', [0, 2]), foreign('x'), foreign('y'), alone(3)],
      undefined,
      { uuids: ['x', 'y', 'r3'], position: 3, damage: ['incomplete-batch 2'] },
    ],
    [
      'with lines of another tool behind a batch that was cut off, and nothing more',
      [HEADER, part(1, 'b', [0, 2]), foreign('x')],
      foreign('y'),
      { uuids: ['x', 'y'], position: 2, damage: ['incomplete-batch 2'] },
    ],
    [
      'with an old line again inside a batch',
      [HEADER, alone(1), part(2, 'b', [0, 2]), alone(1), part(3, 'b', [1, 2])],
      undefined,
      { uuids: ['r1', 'b0', 'r1', 'b1'], position: 3, damage: ['out-of-order 4'] },
    ],
    [
      'with part of an old batch again inside another',
      [HEADER, ...whole, part(3, 'b', [0, 2]), ...whole.slice(1), part(4, 'b', [1, 2])],
      undefined,
      { uuids: ['a0', 'a1', 'b0', 'b1'], position: 4, damage: ['out-of-order 5'] },
    ],
    [
      'that goes on after a batch was lost and the next one cut off',
      [HEADER, alone(1), '\0\0\0', part(4, 'c', [0, 2]), part(2, 'd', [0, 2]), part(3, 'd', [1, 2])],
      undefined,
      { uuids: ['r1', 'd0', 'd1'], position: 3, damage: ['bad-json 3', 'incomplete-batch 4'] },
    ],
    [
      'that goes on with a single record after a batch was lost and the next one cut off',
      [HEADER, alone(1), '\0\0\0', part(4, 'c', [0, 2]), alone(2)],
      undefined,
      { uuids: ['r1', 'r2'], position: 2, damage: ['bad-json 3', 'incomplete-batch 4'] },
    ],
    [
      'with its header again inside a batch',
      [HEADER, part(1, 'b', [0, 2]), HEADER, part(2, 'b', [1, 2])],
      undefined,
      { uuids: ['b0', 'b1'], position: 2, damage: [] },
    ],
    [
      'with another log behind a batch that was cut off',
      [HEADER, ...whole, part(3, 'b', [0, 2]), HEADER, alone(1), alone(2)],
      undefined,
      {
        uuids: ['a0', 'a1', 'r1', 'r2'],
        position: 2,
        damage: ['incomplete-batch 4', 'out-of-order 6', 'out-of-order 7'],
      },
    ],
  ])('%s', (_name, lines, rest, expected) => {
    expect(found(read(lines, rest))).toEqual(expected)
  })
})

const batchSizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 })

describe('a log in which any line is repeated anywhere after itself', () => {
  it.each([
    ['a line of its own', null],
    ['a line of another tool', foreign('foreign')],
  ])('%s: loses nothing and keeps its order', (_name, given) => {
    fc.assert(
      fc.property(batchSizes, fc.nat(), fc.nat(), (sizes, one, other) => {
        const lines = textOf(sizes).split('\n').slice(0, -1)
        const [first = 0, second = 0] = [one % lines.length, other % lines.length].sort((a, b) => a - b)
        const inserted = given ?? lines[first] ?? ''
        const { uuids } = read(lines.toSpliced(second + 1, 0, inserted))
        const expected = read(lines).uuids
        expect([...new Set(uuids)].filter((uuid) => uuid !== 'foreign')).toEqual(expected)
        expect(uuids.includes('foreign')).toBe(given !== null)
      }),
      { numRuns: 500 },
    )
  })
})
