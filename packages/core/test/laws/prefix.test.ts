import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { emptyContextView, updateContextView } from '../../src/context/context-view.ts'
import { type FlattenedContext, flattenContext } from '../../src/context/flatten-context.ts'
import { isPrompt, isRewriteBoundary, type KnownRecord, type SessionRecord } from '../../src/log/record.ts'
import { appendRecord, emptySessionLog } from '../../src/log/session-log.ts'
import { blockFragments, generatedSessions } from './generated-sessions.ts'

/** A request can go out when the response before it is whole and every call has its answer. */
function isRequestPoint(records: readonly SessionRecord[], index: number, flat: FlattenedContext): boolean {
  const responses = new Set(records.slice(0, index + 1).map(responseOf))
  const goesOn = records
    .slice(index + 1)
    .some((record) => responseOf(record) !== null && responses.has(responseOf(record)))
  return !goesOn && !flat.tailRepairs.some((repair) => repair.kind === 'missing-result')
}

function responseOf(record: SessionRecord): string | null {
  return record.type === 'assistant' ? (record as KnownRecord & { type: 'assistant' }).message.id : null
}

/** Acts and rewinds are declared breaks; everything else only appends. */
function isBreak(record: SessionRecord, parentIsTip: boolean): boolean {
  const subtype = (record as { subtype?: string }).subtype
  return (
    isRewriteBoundary(record) ||
    record.isCompactSummary === true ||
    subtype === 'compact_undone' ||
    subtype === 'clear_undone' ||
    (isPrompt(record) && !parentIsTip)
  )
}

function opensSearch(flat: FlattenedContext | undefined): boolean {
  return flat !== undefined && flat.waitingServer.length > 0
}

describe('law 5: prefix', () => {
  it('appending never changes what was sent before', () => {
    let compared = 0
    const runs = countPropertyRuns(100, 20)
    fc.assert(
      fc.property(generatedSessions({ settled: true }), ({ records }) => {
        let session = emptySessionLog()
        let view = emptyContextView()
        let flat: FlattenedContext | undefined
        let before: readonly string[] | null = null
        for (const [index, record] of records.entries()) {
          const tip = session.records.at(session.newestRecord)?.uuid ?? null
          // What the person adds goes in front of a system message that waits; a search nobody waits for is dropped.
          const moves = flat?.drafts.some((draft) => draft.role === 'system') === true || opensSearch(flat)
          if (moves || isBreak(record, record.parentUuid === tip)) before = null
          session = appendRecord(session, record)
          view = updateContextView(view, session)
          flat = flattenContext(view, flat)
          if (!isRequestPoint(records, index, flat)) continue
          const now = blockFragments(flat)
          if (before !== null) {
            expect(now.slice(0, before.length)).toEqual(before)
            compared += 1
          }
          before = now
        }
      }),
      { numRuns: runs },
    )
    expect(compared).toBeGreaterThan(2 * runs)
  })

  it('what is frozen is never touched again', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ records }) => {
        let session = emptySessionLog()
        let view = emptyContextView()
        let flat: FlattenedContext | undefined
        for (const record of records) {
          session = appendRecord(session, record)
          const next = updateContextView(view, session)
          const frozen: FlattenedContext['frozen'] | undefined = flat?.frozen
          const grown: FlattenedContext = flattenContext(next, flat)
          if (frozen !== undefined && flat !== undefined && next.entries.extends(flat.entries)) {
            expect(grown.frozen.extends(frozen)).toBe(true)
          }
          view = next
          flat = grown
        }
      }),
      { numRuns: countPropertyRuns(60, 12) },
    )
  })
})
