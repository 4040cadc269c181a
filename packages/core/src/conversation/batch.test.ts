import { describe, expect, it } from 'vitest'
import { type Counted, closeBatch, gather, gatheringFrom, stampProblem } from './batch.ts'
import type { SessionRecord } from './record.ts'

function part(seq: number, index: number, of: number): SessionRecord {
  return { type: 'note', uuid: `r${seq}`, seq, batch: { id: 'b', index, of } }
}

describe('gather', () => {
  it('holds the parts back until the last one is there, then gives them all', () => {
    const gathering = gatheringFrom(0)
    const parts = [part(1, 0, 3), part(2, 1, 3), part(3, 2, 3)]
    const counted = parts.map((record, index): Counted => ({ record, line: index + 5, position: index + 1 }))
    expect(counted.map(({ record, line }) => gather(gathering, record, line))).toEqual([[], [], counted])
    expect(gathering).toEqual({ damage: [], position: 3, open: null })
  })

  it('takes a batch of one for what it is', () => {
    expect(gather(gatheringFrom(0), part(1, 0, 1), 1)).toEqual([
      { record: part(1, 0, 1), line: 1, position: 1 },
    ])
  })

  it('sets an incomplete batch aside when told that no more will come', () => {
    const gathering = gatheringFrom(0)
    gather(gathering, part(1, 0, 3), 5)
    closeBatch(gathering)
    closeBatch(gathering)
    const why = '1 of the 3 records appended together are there; none of them counts'
    expect(gathering).toEqual({
      damage: [{ kind: 'incomplete-batch', line: 5, why }],
      position: 0,
      open: null,
    })
  })
})

describe('stampProblem', () => {
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
    expect(stampProblem({ type: 'note', ...fields })).toBe(problem)
  })
})
