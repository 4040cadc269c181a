/** Stores in memory: a journal, blobs and notes. The journal stores JSON text, so callers cannot change stored records. */
import type { AppendOutcome, BlobStore, Journal, NotesStore, StoredNotes } from '@tidemark/core/engine/ports'
import { isNotesClaimExpired } from '@tidemark/core/notes/notes-file'
import { fromStoredRecord } from '@tidemark/wire/readers/stored-records'
import { computeBlobId, copyBlobBytes } from './blob-folder.ts'
import {
  checkAppendPosition,
  checkReadPosition,
  checkVisitor,
  toLogLines,
  toRecordDrafts,
} from './check-records.ts'
import { checkSessionId } from './home-paths.ts'

/** The sessions of an in-memory journal. Several journals can share one store, to simulate several processes. */
export type MemoryStore = Map<string, MemorySession>

interface MemorySession {
  readonly lines: string[]
  holder: Journal | null
}

/** Creates a journal in memory. A session is locked by the first journal that appends to it, until that journal releases it. */
export function createMemoryJournal(store: MemoryStore = new Map()): Journal {
  const journal: Journal = {
    async read(session, visit, from = 0) {
      checkSessionId(session)
      checkVisitor(visit)
      checkReadPosition(from)
      const lines = store.get(session)?.lines ?? []
      if (lines.length > from) visit(lines.slice(from).map((line) => fromStoredRecord(JSON.parse(line))))
      return { exists: lines.length > 0, position: lines.length, damage: [] }
    },
    async append(session, after, records) {
      checkSessionId(session)
      checkAppendPosition(after)
      const drafts = toRecordDrafts(records)
      const stored = store.get(session) ?? { lines: [], holder: null }
      if (stored.holder !== null && stored.holder !== journal) return refuseLocked(session)
      store.set(session, stored)
      stored.holder = journal
      const position = stored.lines.length
      if (after !== position) return { ok: false, reason: 'conflict', position }
      const { text, records: stamped } = toLogLines(drafts, position)
      stored.lines.push(...text.split('\n').slice(0, -1))
      return { ok: true, position: stored.lines.length, records: stamped }
    },
    list: async () => [...store].filter(([, { lines }]) => lines.length > 0).map(([session]) => session),
    async release(session) {
      checkSessionId(session)
      const stored = store.get(session)
      if (stored?.holder === journal) stored.holder = null
    },
  }
  return journal
}

function refuseLocked(session: string): AppendOutcome {
  const owner = 'another journal'
  const message = `Session "${session}" is open for writing by ${owner}: release it there first.`
  return { ok: false, reason: 'locked', owner, message }
}

/** Creates a blob store in memory. Blobs get the same ids as in a blob folder. */
export function createMemoryBlobs(): BlobStore {
  const blobs = new Map<string, Uint8Array>()
  return {
    async put(given) {
      const bytes = copyBlobBytes(given)
      const id = computeBlobId(bytes)
      blobs.set(id, bytes)
      return id
    },
    async get(id) {
      const bytes = blobs.get(id)
      return bytes === undefined ? null : Uint8Array.from(bytes)
    },
    has: async (id) => blobs.has(id),
  }
}

/** Creates a store for notes in memory. */
export function createMemoryNotesStore(): NotesStore {
  const notes = new Map<string, StoredNotes>()
  const claims = new Map<string, { readonly startedAt: number }>()
  return {
    read: async (session) => notes.get(session) ?? null,
    async write(session, given) {
      notes.set(session, { ...given })
    },
    readOverrides: async () => ({}),
    path: (session) => `${session}/session-memory/summary.md`,
    async claim(session, { now, deadAfterMs }) {
      const running = claims.get(session)
      if (running !== undefined && !isNotesClaimExpired(running.startedAt, now, deadAfterMs)) return null
      const mine = { startedAt: now }
      claims.set(session, mine)
      return {
        async release() {
          if (claims.get(session) === mine) claims.delete(session)
        },
      }
    },
    readClaim: async (session) => claims.get(session)?.startedAt ?? null,
  }
}
