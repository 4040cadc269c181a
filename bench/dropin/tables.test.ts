import { describe, expect, it } from 'vitest'
import type { ClientRun } from './run-client.ts'
import { findHarm, formatDelays, formatLengths, formatPairs, type Pair } from './tables.ts'

const door = { compactions: 1, clearings: 2, remarks: [], delays: [3, 1, 2] }
const run: ClientRun = {
  client: 'A client',
  window: 60_000,
  isManaged: false,
  isProcess: false,
  ownSummaries: 0,
  requests: 41,
  refused: 0,
  refusals: [],
  changes: [],
  cacheRead: 0,
  cacheWritten: 0,
  fresh: 1_234_567,
  cost: 1,
  steps: 40,
  calls: [],
  callsBeforeRewrite: null,
  answer: 'Done.',
  error: null,
  door: { ...door, compactions: 0, clearings: 0 },
}

function createPair(managed: Partial<ClientRun>, direct: Partial<ClientRun> = {}): Pair {
  return {
    direct: { ...run, ...direct },
    managed: { ...run, isManaged: true, door, ...managed },
    caches: true,
    expectedAnswer: 'Done.',
    steps: 40,
  }
}

const tooLong = '400 {"message":"prompt is too long: 60681 tokens > 60000 maximum"}'

describe('findHarm', () => {
  it.each([
    ['nothing differs', createPair({}), []],
    ['it costs a little more', createPair({ cost: 1.009 }), []],
    ['it costs more', createPair({ cost: 1.02 }), ['dearer: +2.0 %']],
    [
      'it costs a little more where nothing was cached',
      { ...createPair({ cost: 1.009 }), caches: false },
      ['dearer: +0.9 %'],
    ],
    [
      'it costs more, but goes on where the client failed',
      createPair({ cost: 2 }, { answer: null, error: tooLong }),
      [],
    ],
    ['a request is refused', createPair({ refused: 1 }), ['1 requests refused']],
    ['steps are missing', createPair({ steps: 38 }), ['2 steps lost']],
    ['the answer differs', createPair({ answer: 'No.' }), ['another final answer']],
    ['a tool differs', createPair({ changes: ['no tool Read', 'no tool Read'] }), ['no tool Read']],
    ['it fails', createPair({ answer: null, error: 'no' }), ['failed: no']],
  ])('where %s', (_, pair, expected) => {
    expect(findHarm(pair)).toEqual(expected)
  })
})

it('the table has a row for each way, with the change of cost where both came to the end', () => {
  const failed = createPair({}, { answer: null, error: tooLong, steps: 12 })
  const rows = formatPairs([createPair({ cost: 0.25, cacheRead: 1_000_000, fresh: 0 }), failed]).split('\n')
  expect(rows[0]).toBe('Window of 60,000 tokens, 40 steps:')
  expect(rows.slice(4)).toEqual([
    '| A client | direct | 41 | 0 | 0 | 0 | 1,234,567 | $1.000 | 0 | 0 | 40 of 40 | same answer |',
    '|  | Tidemark | 41 | 0 | 1,000,000 | 0 | 0 | $0.250 (−75.0 %) | 1 | 2 | 40 of 40 | same answer |',
    '| A client | direct | 41 | 0 | 0 | 0 | 1,234,567 | $1.000 | 0 | 0 | 12 of 40 | failed: prompt is too long |',
    '|  | Tidemark | 41 | 0 | 0 | 0 | 1,234,567 | $1.000 | 1 | 2 | 40 of 40 | same answer |',
  ])
})

it('delays are those of all runs of a way', () => {
  const { direct, managed } = createPair({})
  expect(formatDelays([direct, managed, managed]).split('\n').slice(2)).toEqual([
    '| `fetch`, passes everything on | 3 | 2 ms | 3 ms |',
    '| `fetch`, Tidemark | 6 | 2 ms | 3 ms |',
  ])
})

it('a run that ends just after a clearing shows what that cost', () => {
  expect(
    formatLengths([createPair({ cost: 1.087 })])
      .split('\n')
      .at(-1),
  ).toBe('| 40 | $1.000 | $1.087 | +8.7 % | 2 | 1 |')
})
