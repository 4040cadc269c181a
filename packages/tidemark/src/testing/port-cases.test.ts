/** Every implementation of a port, real and fake, goes through the suite of its port. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Journal } from '@tidemark/core/engine/ports'
import { createCountingIds, createFakeClock } from '@tidemark/core/testing'
import { describe, it } from 'vitest'
import { createDeadlines, systemClock, systemIds } from '../platform/node-ports.ts'
import { createBlobFolder } from '../storage/blob-folder.ts'
import { checkedJournal, type RawJournal } from '../storage/checked-journal.ts'
import { createFileJournal } from '../storage/file-journal.ts'
import { nodeFileSystem } from '../storage/file-system.ts'
import { createMemoryBlobs, createMemoryJournal, createMemoryNotesStore } from '../storage/memory-stores.ts'
import { createNotesFolder } from '../storage/notes-folder.ts'
import { createSqliteJournal } from '../storage/sqlite-journal.ts'
import { createCrashFileSystem } from './crash-file-system.ts'
import { createFakeProcessTable } from './fake-machine.ts'
import { filePortCases } from './file-system-cases.ts'
import { journalCases } from './journal-cases.ts'
import type { JournalSubject } from './journal-refusal-cases.ts'
import { notesStoreCases } from './notes-store-cases.ts'
import { blobStoreCases, type ConformanceCase, clockCases, deadlinesCases, idsCases } from './port-cases.ts'

/** The smallest store: lists of lines in a map. */
function lineStore(sessions: Map<string, readonly string[]>): RawJournal {
  const readLines = (session: string): readonly string[] => sessions.get(session) ?? []
  return {
    read: async (session, from) => readLines(session).slice(from, from + 500),
    async append(session, after, lines) {
      if (readLines(session).length !== after) return false
      sessions.set(session, [...readLines(session), ...lines])
      return true
    },
    list: async () => [...sessions.keys()],
  }
}

function run(name: string, cases: readonly ConformanceCase[]): void {
  describe(name, () => {
    for (const one of cases) it(one.name, () => one.run())
  })
}

async function folder(): Promise<{ readonly root: string; end(): Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-'))
  return { root, end: () => rm(root, { recursive: true, force: true }) }
}

/** Journals in a folder on the disk: those opened are closed before it is removed. */
async function journalsIn<Opened extends Journal & { close(): Promise<void> }>(
  create: (root: string) => Opened,
): Promise<JournalSubject> {
  const { root, end } = await folder()
  const opened: Opened[] = []
  return {
    locks: true,
    async open() {
      const journal = create(root)
      opened.push(journal)
      return journal
    },
    async end() {
      for (const journal of opened) await journal.close()
      await end()
    },
  }
}

const nothingToEnd = async () => {}

run(
  'file port: Node',
  filePortCases(async () => ({ files: nodeFileSystem, ...(await folder()) })),
)
run(
  'file port: forgetful',
  filePortCases(() => ({
    files: createCrashFileSystem({ directories: ['/root'] }),
    root: '/root',
    end: nothingToEnd,
  })),
)
run(
  'journal: files',
  journalCases(() => journalsIn((root) => createFileJournal({ home: join(root, 'home') }))),
)
run(
  'journal: files, on the forgetful port',
  journalCases(() => {
    const files = createCrashFileSystem()
    const machine = createFakeProcessTable()
    return {
      locks: true,
      open: async () => createFileJournal({ home: '/home', files, processes: machine.start() }),
      end: nothingToEnd,
    }
  }),
)
run(
  'journal: memory',
  journalCases(() => {
    const store = new Map()
    return { locks: true, open: async () => createMemoryJournal(store), end: nothingToEnd }
  }),
)
run(
  'journal: SQLite',
  journalCases(() => journalsIn((root) => createSqliteJournal(join(root, 'sessions.db')))),
)
run(
  'journal: lines in memory, checked, without locks',
  journalCases(() => {
    const sessions = new Map<string, string[]>()
    return { locks: false, open: async () => checkedJournal(lineStore(sessions)), end: nothingToEnd }
  }),
)
run(
  'blobs: folder',
  blobStoreCases(async () => {
    const { root, end } = await folder()
    return { open: async () => createBlobFolder({ home: join(root, 'home') }), end }
  }),
)
run(
  'blobs: folder, on the forgetful port',
  blobStoreCases(() => {
    const files = createCrashFileSystem()
    return { open: async () => createBlobFolder({ home: '/home', files }), end: nothingToEnd }
  }),
)
run(
  'blobs: memory',
  blobStoreCases(() => {
    const store = createMemoryBlobs()
    return { open: async () => store, end: nothingToEnd }
  }),
)
run(
  'notes: folder',
  notesStoreCases(async () => {
    const { root, end } = await folder()
    return { open: async () => createNotesFolder({ home: join(root, 'home') }), end }
  }),
)
run(
  'notes: folder, on the forgetful port',
  notesStoreCases(() => {
    const files = createCrashFileSystem()
    return { open: async () => createNotesFolder({ home: '/home', files }), end: nothingToEnd }
  }),
)
run(
  'notes: memory',
  notesStoreCases(() => {
    const store = createMemoryNotesStore()
    return { open: async () => store, end: nothingToEnd }
  }),
)
run(
  'clock: system',
  clockCases(() => ({ clock: systemClock, pass: (ms) => systemClock.sleep(ms) })),
)
run(
  'clock: fake',
  clockCases(() => {
    const clock = createFakeClock()
    return { clock, pass: (ms) => clock.advance(ms) }
  }),
)
run(
  'ids: system',
  idsCases(() => systemIds),
)
run('ids: counting', idsCases(createCountingIds))
run(
  'deadlines: system',
  deadlinesCases(() => ({ deadlines: createDeadlines(), pass: (ms) => systemClock.sleep(ms) })),
)
run(
  'deadlines: on a fake clock',
  deadlinesCases(() => {
    const clock = createFakeClock()
    return { deadlines: createDeadlines(clock), pass: (ms) => clock.advance(ms) }
  }),
)
