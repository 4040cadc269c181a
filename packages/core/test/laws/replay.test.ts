import { runs } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { advance, emptyView, type View, viewOf } from '../../src/context/context-view.ts'
import { type Flat, flatten, messagesOf, repairsOf } from '../../src/context/flatten.ts'
import type { SessionRecord } from '../../src/log/record.ts'
import { branchOf, emptySession, reduce, type Session, sessionOf } from '../../src/log/session.ts'
import { generatedSessions } from './generated-sessions.ts'

const shown = (view: View) => ({
  entries: [...view.entries],
  acts: view.acts.map(({ kind, uuid, before }) => ({ kind, uuid, before: [...before] })),
  rewrittenAt: view.rewrittenAt,
  damage: [...view.damage],
})
const sent = (flat: Flat) => ({ messages: messagesOf(flat), repairs: repairsOf(flat) })

describe('law 1: replay', () => {
  it('the log after a JSON round trip gives the same session and the same bytes', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ records }) => {
        const lines = records.map((record) => JSON.stringify(record))
        const again = lines.map((line) => JSON.parse(line) as SessionRecord)
        expect(shown(viewOf(sessionOf(again)))).toEqual(shown(viewOf(sessionOf(records))))
        const bytes = (list: readonly SessionRecord[]) =>
          JSON.stringify(messagesOf(flatten(viewOf(sessionOf(list)))))
        expect(bytes(again)).toBe(bytes(records))
      }),
      { numRuns: runs(150) },
    )
  })

  it('what is kept up to date equals what is folded from scratch, after every record', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ records }) => {
        let session: Session = emptySession()
        let view = emptyView()
        let flat: Flat | undefined
        for (const record of records) {
          session = reduce(session, record)
          view = advance(view, session)
          flat = flatten(view, flat)
          expect([...session.branch]).toEqual([...branchOf(session)])
          const fresh = viewOf(session)
          expect(shown(view)).toEqual(shown(fresh))
          expect(sent(flat)).toEqual(sent(flatten(fresh)))
        }
      }),
      { numRuns: runs(60, 30) },
    )
  })

  it('an earlier state stays what it was when the log goes on, also in two ways', () => {
    fc.assert(
      fc.property(generatedSessions(), generatedSessions(), ({ records }, other) => {
        const half = sessionOf(records.slice(0, Math.ceil(records.length / 2)))
        const view = viewOf(half)
        const before = JSON.stringify([shown(view), sent(flatten(view))])
        for (const tail of [records.slice(Math.ceil(records.length / 2)), other.records]) {
          let session = half
          let grown = view
          for (const record of tail) {
            session = reduce(session, record)
            grown = advance(grown, session)
          }
          expect(shown(grown)).toEqual(shown(viewOf(session)))
        }
        expect(JSON.stringify([shown(viewOf(half)), sent(flatten(view))])).toBe(before)
      }),
      { numRuns: runs(60, 30) },
    )
  })
})
