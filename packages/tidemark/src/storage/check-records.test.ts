import type { NewRecord } from '@tidemark/core/engine/ports'
import { sampleRecord, sampleRecords } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { createCrashFileSystem } from '../testing/crash-file-system.ts'
import { parseNewRecord, toLogLines, toRecordDrafts } from './check-records.ts'
import { createFileJournal, type FileJournalOptions } from './file-journal.ts'

describe('stamp', () => {
  it('gives each line its position, and each line of a batch its batch', () => {
    const { text, records } = toLogLines(toRecordDrafts(sampleRecords('a', 'b')), 7)
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

  it('gives a single record no batch, and an empty list no text', () => {
    expect(toLogLines(toRecordDrafts(sampleRecords('a')), 0).records).toEqual([
      { ...sampleRecord('a'), seq: 1 },
    ])
    expect(toLogLines([], 5)).toEqual({ text: '', records: [] })
  })

  it('names a batch of records without uuid after its position', () => {
    const { records } = toLogLines(toRecordDrafts([{ type: 'note' }, { type: 'note' }]), 2)
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
    expect(() => toRecordDrafts([sampleRecord('ok'), record as NewRecord])).toThrow(
      expect.objectContaining({ code: 'bad-record', message }),
    )
  })

  it('refuses a value that is not a list, and a list with a gap', () => {
    expect(() => toRecordDrafts(undefined as never)).toThrow(
      expect.objectContaining({
        code: 'bad-record',
        message: 'Records must be a list, found undefined. Nothing was written.',
      }),
    )
    expect(() => toRecordDrafts(new Array(1))).toThrow('Record 0 cannot be appended: a record is an object')
  })
})

const whole = sampleRecord('a')
const PARENT = 'parentUuid is the uuid it follows, or null where it follows nothing'
const TIMESTAMP = 'timestamp is when it was made, as a text'
const SESSION = 'sessionId is the session it was made in, as a text'
const RAW = 'rawBlocks is a list of texts, each with the index of its block'
const DEEP = 'it is nested more than 1000 levels deep, or in itself'

function without(field: string): object {
  return Object.fromEntries(Object.entries(whole).filter(([name]) => name !== field))
}

function nested(levels: number): object {
  return { ...whole, extra: JSON.parse('['.repeat(levels) + ']'.repeat(levels)) }
}

function inItself(): object {
  const record: { [field: string]: unknown } = { ...whole }
  record.extra = { record }
  return record
}

describe('a new record', () => {
  it.each<[string, object]>([
    ['whole', whole],
    ['of a kind we do not know, without links', { type: 'note' }],
    ['with raw blocks', { ...whole, rawBlocks: [{ index: 0, text: '{"type":"text","text":"1.0"}' }] }],
    ['with no raw blocks in the list', { ...whole, rawBlocks: [] }],
    ['as deep as may be', nested(999)],
  ])('%s is accepted unchanged', (_name, record) => {
    expect(parseNewRecord(record)).toEqual({ ok: true, record })
  })

  it('gets its position and batch from the journal', () => {
    expect(parseNewRecord({ ...whole, seq: 9, batch: 'any' })).toEqual({ ok: true, record: whole })
  })

  it.each<[string, unknown, string]>([
    ['that is null', null, 'a record is an object'],
    ['that is a text', 'user', 'a record is an object'],
    ['that is a list', [whole], 'a record is an object'],
    ['without a type', without('type'), 'a record says its type'],
    ['without a uuid', without('uuid'), 'a record has a uuid'],
    ['without a parent', without('parentUuid'), PARENT],
    ['without a time', without('timestamp'), TIMESTAMP],
    ['with a time of another kind', { ...whole, timestamp: 0 }, TIMESTAMP],
    ['with an empty time', { ...whole, timestamp: '' }, TIMESTAMP],
    ['without a session', without('sessionId'), SESSION],
    ['of another kind without a session', { ...without('sessionId'), type: 'progress' }, SESSION],
    ['with raw blocks that are no list', { ...whole, rawBlocks: { index: 0, text: '' } }, RAW],
    ['with raw blocks that are null', { ...whole, rawBlocks: null }, RAW],
    ['with a raw block without text', { ...whole, rawBlocks: [{ index: 0 }] }, RAW],
    ['with a raw block without index', { ...whole, rawBlocks: [{ text: '' }] }, RAW],
    ['with a raw block of no place', { ...whole, rawBlocks: [{ index: -1, text: '' }] }, RAW],
    ['with a gap among its raw blocks', { ...whole, rawBlocks: new Array(1) }, RAW],
    ['with raw blocks, of whatever kind', { type: 'note', rawBlocks: 7 }, RAW],
    ['deeper than may be', nested(1000), DEEP],
    ['far deeper', nested(20_000), DEEP],
    ['in itself', inItself(), DEEP],
    ['with a gap in a list', { ...whole, extra: { list: new Array(1) } }, 'extra.list.0 is not a JSON value'],
    [
      'with usage that would be left out',
      {
        ...whole,
        type: 'assistant',
        message: { id: 'm', model: 'x', content: [], usage: { input_tokens: '7' } },
      },
      'it would not be read back as it is: usage that is no figures was left out',
    ],
  ])('%s is refused', (_name, record, why) => {
    expect(parseNewRecord(record)).toEqual({ ok: false, why })
  })
})

describe('a journal', () => {
  it.each<[FileJournalOptions, string, string]>([
    [
      { home: 'here' },
      'bad-home',
      'The home is "here"; expected an absolute path. Give one, or leave it out.',
    ],
    [
      { staleLockMs: -5 },
      'bad-option',
      'staleLockMs is -5; expected a number of milliseconds from 1 to 1000000000000.',
    ],
    [
      { staleLockMs: Number.POSITIVE_INFINITY },
      'bad-option',
      'staleLockMs is Infinity; expected a number of milliseconds from 1 to 1000000000000.',
    ],
    [
      { staleLockMs: '5' as never },
      'bad-option',
      'staleLockMs is "5"; expected a number of milliseconds from 1 to 1000000000000.',
    ],
    [
      { program: 'two\nlines' },
      'bad-option',
      'program is "two\\nlines"; expected a name of at most 200 characters, all on one line.',
    ],
  ])('with %j is refused', (options, code, message) => {
    expect(() => createFileJournal({ home: '/home', ...options })).toThrow(
      expect.objectContaining({ code, message }),
    )
  })

  it('says which argument is wrong and what was expected', async () => {
    const journal = createFileJournal({ home: '/home', files: createCrashFileSystem() })
    await expect(journal.append('s', undefined as never, [])).rejects.toMatchObject({
      code: 'bad-option',
      message: 'after is undefined; expected the position to append after, 0 in an empty session.',
    })
    await expect(journal.read('s', () => {}, -1)).rejects.toMatchObject({
      code: 'bad-option',
      message: 'from is -1; expected the position to read from, an integer from 0.',
    })
    await expect(journal.acquire(null as never)).rejects.toMatchObject({ code: 'bad-session-id' })
  })
})
