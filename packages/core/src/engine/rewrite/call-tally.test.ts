import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { advanceTally, NO_TALLY } from './call-tally.ts'

const MINUTE = 60_000
const at = (minutes: number) => ({ timestamp: new Date(minutes * MINUTE).toISOString() })

describe('the calls of a session', () => {
  const teller = new Teller('told')
  teller.user('one', at(0))
  teller.assistant('a', [{ type: 'text', text: 'x' }], at(1))
  teller.assistant('a', [{ type: 'text', text: 'of the same response' }], at(2))
  const early = advanceTally(NO_TALLY, teller.session, 5 * MINUTE)
  teller.assistant('b', 'y', at(3))
  teller.assistant('c', 'after lunch', at(60))
  teller.assistant('side', 'another conversation', { ...at(200), isSidechain: true })
  teller.assistant('error', 'API error', {
    ...at(300),
    isApiErrorMessage: true,
    message: { id: 'error', role: 'assistant', model: '<synthetic>', content: 'API error' },
  })

  it('are counted as they come, and the gaps that outlasted the cache', () => {
    const grown = advanceTally(early, teller.session, 5 * MINUTE)
    expect(early.runs).toEqual({ calls: 1, lapses: 0 })
    expect(grown.runs).toEqual({ calls: 3, lapses: 1 })
    expect(advanceTally(NO_TALLY, teller.session, 5 * MINUTE)).toEqual(grown)
  })

  it('are counted anew for another lifetime', () => {
    expect(advanceTally(early, teller.session, 60 * MINUTE).runs).toEqual({ calls: 3, lapses: 0 })
  })
})
