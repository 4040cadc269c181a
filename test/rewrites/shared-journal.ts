/** A store that nobody can lock: what is written goes by position alone. */
import type { Journal } from '@tidemark/core'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'

/** Lets go of the session after every append, so that only compare-and-swap stands between writers. */
export function unlockedJournal(store: MemoryStore): Journal {
  const journal = createMemoryJournal(store)
  return {
    ...journal,
    append: async (session, after, records) => {
      const outcome = await journal.append(session, after, records)
      await journal.release(session)
      return outcome
    },
  }
}
