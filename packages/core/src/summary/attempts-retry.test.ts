import { countMaximumSummaryCalls } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import {
  buildLongSession,
  createContext,
  GOOD_SUMMARY,
  runAttempts,
  selectSpan,
} from '../../test/summarize/summary-attempts.ts'
import { isAttemptsOutcome, recordAttemptResult, rejectLargeSummary, startAttempts } from './attempt-chain.ts'
import type { AttemptResult } from './attempt-types.ts'

const binding = {
  thinking: { binding: 'prefix' as const },
  compaction: { blocks: true, onDemand: true, beta: 'compact-beta', maxInstructionCharacters: 16_384 },
}
const kept = selectSpan(buildLongSession(8, true), 'up_to')
const block: AttemptResult = {
  kind: 'answer',
  content: [{ type: 'compaction', content: 'short', signature: 's' }],
  stop: 'compacted',
}

describe('the end', () => {
  it('an abort changes nothing and is no error', () => {
    const { done } = runAttempts(createContext(), [{ kind: 'aborted' }])
    expect(done).toMatchObject({ ok: false, aborted: true, fallbackReason: null })
  })

  it('a block comes back as it is', () => {
    const { done } = runAttempts(createContext({ span: kept, profile: binding }), [block])
    expect(done).toMatchObject({
      ok: true,
      summarizer: 'block',
      block: { type: 'compaction', content: 'short', signature: 's' },
    })
  })

  it('a summary that does not fit in is asked for once more, and then written without a model', () => {
    let chain = runAttempts(createContext(), [GOOD_SUMMARY]).chain
    const found: string[] = []
    for (let count = 0; count < 9 && isAttemptsOutcome(chain.next); count += 1) {
      chain = rejectLargeSummary(chain, `above the target by ${count}`)
      const { next } = chain
      if (isAttemptsOutcome(next)) break
      if (next.kind === 'fork') expect(next.message.content).toContain('too long: above the target by 0')
      found.push(`${next.rung} ${next.kind}`)
      chain = recordAttemptResult(
        chain,
        next.kind === 'local' ? { kind: 'text', text: 'Summary:\nshort' } : GOOD_SUMMARY,
      )
    }
    expect(found).toEqual(['1 fork', '4 local'])
    expect(chain.next).toMatchObject({ ok: false, fallbackReason: 'no_summary' })
  })

  it('after a summary that does not fit in, a call that fails is not followed by another', () => {
    const { chain } = runAttempts(createContext(), [GOOD_SUMMARY])
    const failure = { kind: 'failure', failure: { kind: 'overloaded', message: 'busy' } } as const
    const next = recordAttemptResult(rejectLargeSummary(chain, 'above the target'), failure)
    expect(next.next).toMatchObject({ kind: 'local' })
    const cold = rejectLargeSummary({ ...chain, context: { ...chain.context, isWarm: false } }, 'above')
    expect(cold.next).toMatchObject({ kind: 'local' })
  })

  it('a local summary as large as what it replaces is none', () => {
    const context = createContext({ policy: { compact: { chain: { local: 'only' } } } })
    expect(runAttempts(context, [], 'x'.repeat(100_000)).done).toMatchObject({ ok: false })
    expect(runAttempts(context, [], ' ').done).toMatchObject({ ok: false })
    expect(runAttempts(context, [], 'Summary:\nx').done).toMatchObject({
      ok: true,
      summarizer: 'local',
      fallbackReason: null,
    })
  })

  it('what has ended stays so', () => {
    const { chain } = runAttempts(createContext(), [GOOD_SUMMARY])
    expect(recordAttemptResult(chain, GOOD_SUMMARY)).toBe(chain)
    const waiting = startAttempts(createContext())
    expect(rejectLargeSummary(waiting, 'x')).toBe(waiting)
  })

  it('leaves a summary without a model no more room than there is', () => {
    const { chain } = runAttempts(createContext({ policy: { compact: { chain: { fork: false } } } }), [
      GOOD_SUMMARY,
    ])
    expect(rejectLargeSummary(chain, 'above the target').next).toMatchObject({ kind: 'local' })
    expect(rejectLargeSummary(chain, 'above the target', { tokens: 50 }).next).toMatchObject({
      kind: 'local',
      maximumTokens: 50,
    })
  })

  it('the most calls there can be', () => {
    expect(countMaximumSummaryCalls(createContext().policy)).toBe(8)
    expect(
      countMaximumSummaryCalls(createContext({ policy: { compact: { chain: { local: 'only' } } } }).policy),
    ).toBe(0)
  })
})
