import { describe, expect, it } from 'vitest'
import { findClientHarm, findHarm, formatClients, type Pair } from './clients-table.ts'
import type { ClientRun } from './run-client.ts'

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
    ['it costs more', createPair({ cost: 1.02 }), ['dearer: 1.0200 of the direct cost']],
    [
      'it costs a little more where nothing was cached',
      { ...createPair({ cost: 1.009 }), caches: false },
      ['dearer: 1.0090 of the direct cost'],
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

describe('the table of clients', () => {
  const died = { answer: null, error: tooLong, steps: 12, requests: 13 }
  const client = { name: 'A client', isStream: true }
  const pairs = {
    client,
    small: createPair({ cacheRead: 3_000_000, fresh: 1_000_000, callsBeforeRewrite: 0 }, died),
    large: createPair({ cost: 0.25 }),
  }

  it('has one row for each client: where it dies, and what it costs where it fits', () => {
    expect(formatClients([pairs]).split('\n').at(-1)).toBe(
      '| A client | yes | dies at call 13 | ends | 0 | 1 | 0 | 75.0 % | $1.000 | 0.2500 × | 2 ms | 2 ms |',
    )
    expect(findClientHarm(pairs)).toEqual([])
  })

  it('judges a server without prices by its tokens', () => {
    const large = createPair({ cost: 0, cacheRead: 2_000_000 }, { cost: 0 })
    expect(formatClients([{ ...pairs, large }])).toContain('| no price | 1.1620 × |')
  })

  it('finds a client that dies with Tidemark where it dies without, and calls that are others', () => {
    const call = { id: '1', name: 'Read', input: {} }
    const small = createPair({ ...died, calls: [call] }, { ...died, calls: [{ ...call, name: 'Write' }] })
    expect(findClientHarm({ ...pairs, small })).toEqual([
      `A client: fails past the window: ${tooLong}`,
      'A client: other calls before the first rewrite',
    ])
  })
})
