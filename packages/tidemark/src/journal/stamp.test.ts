import type { NewRecord } from '@tidemark/core'
import { describe, expect, it } from 'vitest'
import { sampleRecord, sampleRecords } from '../testing/sample-records.ts'
import { draftsOf, stamp } from './stamp.ts'

describe('stamp', () => {
  it('gives each line its position, and those of a batch the batch', () => {
    const { text, records } = stamp(draftsOf(sampleRecords('a', 'b')), 7)
    expect(records).toEqual([
      { ...sampleRecord('a'), seq: 8, batch: { id: 'a', index: 0, of: 2 } },
      { ...sampleRecord('b', undefined, 'a'), seq: 9, batch: { id: 'a', index: 1, of: 2 } },
    ])
    expect(text.split('\n').map((line) => (line === '' ? null : JSON.parse(line)))).toEqual([
      ...records,
      null,
    ])
    expect(text.startsWith('{"seq":8,"batch":{"id":"a","index":0,"of":2},"type":"user"')).toBe(true)
  })

  it('gives a lone record no batch, and nothing no text', () => {
    expect(stamp(draftsOf(sampleRecords('a')), 0).records).toEqual([{ ...sampleRecord('a'), seq: 1 }])
    expect(stamp([], 5)).toEqual({ text: '', records: [] })
  })

  it('names the batch of records without uuid by its position', () => {
    const { records } = stamp(draftsOf([{ type: 'note' }, { type: 'note' }]), 2)
    expect(records.map(({ batch }) => batch?.id)).toEqual(['batch-3', 'batch-3'])
  })
})

describe('draftsOf', () => {
  it.each([
    [
      { ...sampleRecord('a'), extra: Number.POSITIVE_INFINITY },
      'Record 1 cannot be appended: extra is not a JSON value. Nothing was written.',
    ],
    [
      { ...sampleRecord('a'), type: 'tidemark' },
      'Record 1 cannot be appended: the type tidemark is for headers. Nothing was written.',
    ],
    [{ ...sampleRecord('') }, 'Record 1 cannot be appended: a record has a uuid. Nothing was written.'],
    [null, 'Record 1 cannot be appended: a record is an object. Nothing was written.'],
  ])('refuses %j', (record, message) => {
    expect(() => draftsOf([sampleRecord('ok'), record as NewRecord])).toThrow(
      expect.objectContaining({ code: 'bad-record', message }),
    )
  })

  it('refuses what is no list, and a gap in one', () => {
    expect(() => draftsOf(undefined as never)).toThrow(
      expect.objectContaining({
        code: 'bad-record',
        message: 'Records are appended as a list, and undefined is none. Nothing was written.',
      }),
    )
    expect(() => draftsOf(new Array(1))).toThrow('Record 0 cannot be appended: a record is an object')
  })
})
