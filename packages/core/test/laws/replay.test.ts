import { countPropertyRuns, listRepairs } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  buildContextView,
  type ContextView,
  emptyContextView,
  updateContextView,
} from '../../src/context/context-view.ts'
import { type FlattenedContext, flattenContext, toApiMessages } from '../../src/context/flatten-context.ts'
import type { SessionRecord } from '../../src/log/record.ts'
import {
  appendRecord,
  buildSessionLog,
  computeActiveBranch,
  emptySessionLog,
  type SessionLog,
} from '../../src/log/session-log.ts'
import { generatedSessions } from './generated-sessions.ts'

const shown = (view: ContextView) => ({
  entries: [...view.entries],
  acts: view.rewrites.map(({ kind, uuid, replacedEntries: before }) => ({ kind, uuid, before: [...before] })),
  rewrittenAt: view.rewrittenAt,
  damage: [...view.damage],
})
const sent = (flat: FlattenedContext) => ({ messages: toApiMessages(flat), repairs: listRepairs(flat) })

describe('law 1: replay', () => {
  it('the log after a JSON round trip gives the same session and the same bytes', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ records }) => {
        const lines = records.map((record) => JSON.stringify(record))
        const again = lines.map((line) => JSON.parse(line) as SessionRecord)
        expect(shown(buildContextView(buildSessionLog(again)))).toEqual(
          shown(buildContextView(buildSessionLog(records))),
        )
        const bytes = (list: readonly SessionRecord[]) =>
          JSON.stringify(toApiMessages(flattenContext(buildContextView(buildSessionLog(list)))))
        expect(bytes(again)).toBe(bytes(records))
      }),
      { numRuns: countPropertyRuns(150) },
    )
  })

  it('what is kept up to date equals what is folded from scratch, after every record', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ records }) => {
        let session: SessionLog = emptySessionLog()
        let view = emptyContextView()
        let flat: FlattenedContext | undefined
        for (const record of records) {
          session = appendRecord(session, record)
          view = updateContextView(view, session)
          flat = flattenContext(view, flat)
          expect([...session.branch]).toEqual([...computeActiveBranch(session)])
          const fresh = buildContextView(session)
          expect(shown(view)).toEqual(shown(fresh))
          expect(sent(flat)).toEqual(sent(flattenContext(fresh)))
        }
      }),
      { numRuns: countPropertyRuns(60, 12) },
    )
  })

  it('an earlier state stays what it was when the log goes on, also in two ways', () => {
    fc.assert(
      fc.property(generatedSessions(), generatedSessions(), ({ records }, other) => {
        const half = buildSessionLog(records.slice(0, Math.ceil(records.length / 2)))
        const view = buildContextView(half)
        const before = JSON.stringify([shown(view), sent(flattenContext(view))])
        for (const tail of [records.slice(Math.ceil(records.length / 2)), other.records]) {
          let session = half
          let grown = view
          for (const record of tail) {
            session = appendRecord(session, record)
            grown = updateContextView(grown, session)
          }
          expect(shown(grown)).toEqual(shown(buildContextView(session)))
        }
        expect(JSON.stringify([shown(buildContextView(half)), sent(flattenContext(view))])).toBe(before)
      }),
      { numRuns: countPropertyRuns(60, 12) },
    )
  })
})
