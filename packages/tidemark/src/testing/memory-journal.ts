/** A journal in memory. It keeps texts, not objects, so that nobody shares what only a file would part. */
import type { AppendOutcome, Journal, SessionRecord } from '@tidemark/core'
import { checkSessionId } from '../home/session-id.ts'
import { checkAfter, checkFrom, checkVisit } from '../journal/check-given.ts'
import { draftsOf, stamp } from '../journal/stamp.ts'

/** Sessions that several journals, standing for several processes, can work on. */
export type MemoryStore = Map<string, MemorySession>

interface MemorySession {
  readonly lines: string[]
  holder: Journal | null
}

export function createMemoryJournal(store: MemoryStore = new Map()): Journal {
  const journal: Journal = {
    async read(session, visit, from = 0) {
      checkSessionId(session)
      checkVisit(visit)
      checkFrom(from)
      const lines = store.get(session)?.lines ?? []
      if (lines.length > from) visit(lines.slice(from).map((line): SessionRecord => JSON.parse(line)))
      return { exists: lines.length > 0, position: lines.length, damage: [] }
    },
    async append(session, after, records) {
      checkSessionId(session)
      checkAfter(after)
      const drafts = draftsOf(records)
      const kept = store.get(session) ?? { lines: [], holder: null }
      if (kept.holder !== null && kept.holder !== journal) return refused(session)
      store.set(session, kept)
      kept.holder = journal
      const position = kept.lines.length
      if (after !== position) return { ok: false, reason: 'conflict', position }
      const { text, records: stamped } = stamp(drafts, position)
      kept.lines.push(...text.split('\n').slice(0, -1))
      return { ok: true, position: kept.lines.length, records: stamped }
    },
    list: async () => [...store].filter(([, { lines }]) => lines.length > 0).map(([session]) => session),
    async release(session) {
      checkSessionId(session)
      const kept = store.get(session)
      if (kept?.holder === journal) kept.holder = null
    },
  }
  return journal
}

function refused(session: string): AppendOutcome {
  const owner = 'another journal'
  const message = `Session "${session}" is open for writing by ${owner}: release it there first.`
  return { ok: false, reason: 'locked', owner, message }
}
