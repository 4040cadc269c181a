import { describe, expect, it } from 'vitest'
import {
  describeLostError,
  describeSummaryAttempts,
  formatCompactionFigures,
  shortenFact,
} from './compaction-text.ts'

describe('a compaction in words', () => {
  it('says why it was made, and why not with the usual summary', () => {
    const figures = { trigger: 'auto', cause: 'threshold', summarizer: 'local', durationMs: 2_000 } as const
    expect(formatCompactionFigures({ ...figures, fallbackReason: 'api_error: 529 overloaded' })).toEqual([
      'Why: the context was nearly full',
      'Summary: a summary made from the log, without a model',
      'Why not the usual one: the call for the summary failed: 529 overloaded',
      'Took: 2 s',
    ])
  })

  it('lists different attempts once each, and none if there was one', () => {
    const step = (kind: string, outcome: string) => ({ rung: 1, kind, outcome, reason: '', message: 'So.' })
    const accepted = step('direct', 'accepted')
    expect(describeSummaryAttempts([accepted, accepted] as never)).toEqual([])
    expect(describeSummaryAttempts([step('fork', 'refused'), accepted, accepted] as never)).toEqual([
      '',
      'Attempts (2)',
      '  at the end of the cached conversation: refused. So.',
      '  in a call of its own: accepted. So. (2 times)',
    ])
  })

  it('shows a cut error from its first whole line on', () => {
    const text = `t.js:38)\nExpected 3.${' '.repeat(600)}`
    expect(describeLostError({ text, command: 'npm test', isSettled: false } as never)).toBe(
      'npm test: Expected 3.',
    )
  })

  it('shows a long message of the user from its first line on', () => {
    expect(shortenFact('One\ntwo')).toBe('One two')
    expect(shortenFact(`Deploy only after my review.\n${'detail '.repeat(100)}`)).toMatch(
      /^Deploy only after my review\. detail/,
    )
  })
})
