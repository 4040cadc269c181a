import { describe, expect, it } from 'vitest'
import { sampleRecord } from '../testing/sample-records.ts'
import { readNewRecord } from './new-record.ts'

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
  ])('%s is taken as it is', (_name, record) => {
    expect(readNewRecord(record)).toEqual({ ok: true, record })
  })

  it('leaves position and batch to the journal', () => {
    expect(readNewRecord({ ...whole, seq: 9, batch: 'any' })).toEqual({ ok: true, record: whole })
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
    expect(readNewRecord(record)).toEqual({ ok: false, why })
  })
})
