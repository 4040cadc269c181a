/** Every implementation of a port, real and fake, goes through the suite of its port. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { createBlobFolder } from '../blobs/blob-folder.ts'
import { nodeFiles } from '../files/node-files.ts'
import { createFileJournal, type FileJournal } from '../journal/file-journal.ts'
import { createDeadlines } from '../system/deadlines.ts'
import { systemClock } from '../system/system-clock.ts'
import { systemIds } from '../system/system-ids.ts'
import { blobStoreCases } from './blob-store-cases.ts'
import { clockCases } from './clock-cases.ts'
import type { ConformanceCase } from './conformance.ts'
import { createCountingIds } from './counting-ids.ts'
import { deadlinesCases } from './deadlines-cases.ts'
import { createFakeClock } from './fake-clock.ts'
import { createFakeMachine } from './fake-machine.ts'
import { filePortCases } from './file-port-cases.ts'
import { createForgetfulFiles } from './forgetful-files.ts'
import { idsCases } from './ids-cases.ts'
import { journalCases } from './journal-cases.ts'
import { createMemoryBlobs } from './memory-blobs.ts'
import { createMemoryJournal } from './memory-journal.ts'

function run(name: string, cases: readonly ConformanceCase[]): void {
  describe(name, () => {
    for (const one of cases) it(one.name, () => one.run())
  })
}

async function folder(): Promise<{ readonly root: string; end(): Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-'))
  return { root, end: () => rm(root, { recursive: true, force: true }) }
}

run(
  'file port: Node',
  filePortCases(async () => ({ files: nodeFiles, ...(await folder()) })),
)
run(
  'file port: forgetful',
  filePortCases(() => ({
    files: createForgetfulFiles({ directories: ['/root'] }),
    root: '/root',
    end: async () => {},
  })),
)
run(
  'journal: files',
  journalCases(async () => {
    const { root, end } = await folder()
    const open: FileJournal[] = []
    return {
      locks: true,
      async open() {
        const journal = createFileJournal({ home: join(root, 'home') })
        open.push(journal)
        return journal
      },
      async end() {
        for (const journal of open) await journal.close()
        await end()
      },
    }
  }),
)
run(
  'journal: files, on the forgetful port',
  journalCases(() => {
    const files = createForgetfulFiles()
    const machine = createFakeMachine()
    return {
      locks: true,
      open: async () => createFileJournal({ home: '/home', files, processes: machine.start() }),
      end: async () => {},
    }
  }),
)
run(
  'journal: memory',
  journalCases(() => {
    const store = new Map()
    return { locks: true, open: async () => createMemoryJournal(store), end: async () => {} }
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
    const files = createForgetfulFiles()
    return { open: async () => createBlobFolder({ home: '/home', files }), end: async () => {} }
  }),
)
run(
  'blobs: memory',
  blobStoreCases(() => {
    const store = createMemoryBlobs()
    return { open: async () => store, end: async () => {} }
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
