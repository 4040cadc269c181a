import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createMissingResultsRecord,
  flattenContext,
  listUnansweredCalls,
} from '../../src/context/flatten-context.ts'
import { blockFragments, generatedSessions } from './generated-sessions.ts'

describe('interrupted tools', () => {
  it('an answer appended for each open call leaves the request as it was, and none open', () => {
    let settled = 0
    const runs = countPropertyRuns(200, 40)
    fc.assert(
      fc.property(generatedSessions(), ({ builder }) => {
        const before = flattenContext(builder.view)
        const calls = listUnansweredCalls(before)
        fc.pre(calls.length > 0)
        settled += 1
        const { message, ...flags } = createMissingResultsRecord(calls)
        builder.user(message.content, flags)
        const after = flattenContext(builder.view)
        expect(blockFragments(after).toSorted()).toEqual(blockFragments(before).toSorted())
        expect(listUnansweredCalls(after)).toEqual([])
        const late = calls[0]?.id ?? ''
        builder.result(late, 'the real answer, too late')
        expect(blockFragments(flattenContext(builder.view))).toEqual(blockFragments(after))
        expect(flattenContext(builder.view).tailRepairs.map((repair) => repair.kind)).toContain(
          'duplicate-result',
        )
      }),
      { numRuns: runs },
    )
    expect(settled).toBeGreaterThan(runs / 10)
  })
})
