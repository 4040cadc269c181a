import type { SessionRecord } from '@tidemark/core/log/record'
import { describe, expect, it } from 'vitest'
import { cutLogAtRecord, findRecordByIdStart, renumberRecords } from './select-records.ts'

const common = { timestamp: '2026-03-09T09:00:00.000Z', sessionId: 's' }

function prompt(uuid: string, parentUuid: string | null): SessionRecord {
  return { ...common, type: 'user', uuid, parentUuid, message: { role: 'user', content: uuid } }
}

function says(uuid: string, parentUuid: string, block: object = { type: 'text', text: uuid }): SessionRecord {
  const id = uuid.slice(0, 2)
  const content = [block as { readonly type: string }]
  return {
    ...common,
    type: 'assistant',
    uuid,
    parentUuid,
    message: { id, role: 'assistant', model: 'm', content },
  }
}

function result(uuid: string, parentUuid: string, call: string): SessionRecord {
  const content = [{ type: 'tool_result', tool_use_id: call, content: 'done' }]
  return { ...common, type: 'user', uuid, parentUuid, message: { role: 'user', content } }
}

const call = (id: string) => ({ type: 'tool_use', id, name: 'Bash', input: {} })

/** A prompt; a response in two records, its call and the result; another prompt; a call that nobody answers. */
const records: readonly SessionRecord[] = [
  prompt('p1', null),
  says('r1a', 'p1'),
  says('r1b', 'r1a', call('c1')),
  result('t1', 'r1b', 'c1'),
  prompt('p2', 't1'),
  says('r2a', 'p2', call('c2')),
]

describe('a log as of a record', () => {
  it.each([
    ['p1', 'p1', false, 1],
    ['r1a', 'p1', true, 1],
    ['r1b', 'p1', true, 1],
    ['t1', 't1', false, 4],
    ['p2', 'p2', false, 5],
    ['r2a', 'p2', true, 5],
    [null, 'p2', true, 5],
  ] as const)('%s', (asked, at, isMoved, kept) => {
    expect(cutLogAtRecord(records, asked)).toEqual({
      ok: true,
      records: records.slice(0, kept),
      at,
      movedFrom: isMoved ? (asked ?? 'r2a') : null,
      leftOut: records.length - kept,
    })
  })

  it('that a rewind left behind is the branch that counted then', () => {
    const rewound = [...records.slice(0, 5), prompt('p3', 'p1'), says('r3', 'p3')]
    const found = cutLogAtRecord(rewound, 't1')
    expect(found.ok && found.at).toBe('t1')
  })

  it('with nothing before it is told', () => {
    expect(cutLogAtRecord([], null).ok).toBe(false)
    expect(cutLogAtRecord([says('r1b', 'none', call('c1'))], 'r1b').ok).toBe(false)
    expect(cutLogAtRecord(records, 'nope')).toEqual({ ok: false, why: 'no record has the id nope' })
  })
})

describe('a record by its id', () => {
  const named = ['abcdef-1', 'abcdef-2', 'fedcba-1'].map((uuid) => prompt(uuid, null))
  it.each([
    ['abcdef-1', { ok: true, uuid: 'abcdef-1' }],
    ['fedcba', { ok: true, uuid: 'fedcba-1' }],
    ['fedcb', { ok: false, why: 'no record has the id fedcb' }],
    ['abcdef', { ok: false, why: '2 records have an id that begins with abcdef: abcdef-1, abcdef-2' }],
  ])('%s', (given, expected) => {
    expect(findRecordByIdStart(named, given)).toEqual(expected)
  })
})

it('records keep their batch where it is whole, and lose it where it is not', () => {
  const batch = (index: number, of: number) => ({ batch: { id: 'b', index, of } })
  const own = [
    { ...prompt('p1', null), seq: 7, ...batch(0, 2) },
    { ...prompt('p2', 'p1'), seq: 8, ...batch(1, 2) },
  ]
  expect(renumberRecords(own).map(({ seq, batch: stamp }) => [seq, stamp?.index])).toEqual([
    [1, 0],
    [2, 1],
  ])
  expect(renumberRecords(own.slice(0, 1))).toEqual([{ ...prompt('p1', null), seq: 1 }])
  expect(renumberRecords([prompt('p1', null)])).toEqual([prompt('p1', null)])
})
