/** A log that was read, as a journal of its own: what is appended stands behind it in memory, ready to be written out. */
import type { Journal, SessionRecord } from '@tidemark/core'
import { draftsOf, stamp } from '../journal/stamp.ts'

export interface LogJournal extends Journal {
  /** The lines that were appended, each with its newline. */
  readonly added: string
}

/** Of one session, whatever it is called. */
export function createLogJournal(read: readonly SessionRecord[]): LogJournal {
  const records = [...read]
  let added = ''
  return {
    get added() {
      return added
    },
    async read(_session, visit, from = 0) {
      if (records.length > from) visit(records.slice(from))
      return { exists: true, position: records.length, damage: [] }
    },
    async append(_session, after, given) {
      const position = records.length
      if (after !== position) return { ok: false, reason: 'conflict', position }
      const { text, records: stamped } = stamp(draftsOf(given), position)
      records.push(...stamped)
      added += text
      return { ok: true, position: records.length, records: stamped }
    },
    list: async () => [],
    release: async () => {},
  }
}
