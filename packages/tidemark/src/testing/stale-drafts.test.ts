import { basename } from 'node:path'
import { createFakeClock, readAllRecords, sampleRecords } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { createDraftPath } from '../storage/atomic-file.ts'
import { createFileJournal } from '../storage/file-journal.ts'
import { createSystemError } from './crash-file-node.ts'
import { type CrashFileSystem, createCrashFileSystem } from './crash-file-system.ts'

async function touch(files: CrashFileSystem, path: string): Promise<void> {
  await (await files.open(path, 'create'))?.close()
}

describe('a journal', () => {
  it('removes the old drafts of killed processes at its first write', async () => {
    const clock = createFakeClock()
    const files = createCrashFileSystem({ directories: ['/home', '/home/sessions'], now: () => clock.now() })
    const [old, fresh] = [
      createDraftPath('/home/sessions/s.jsonl'),
      createDraftPath('/home/sessions/s.jsonl'),
    ]
    await touch(files, old)
    await clock.advance(86_400_001)
    await touch(files, fresh)
    const journal = createFileJournal({ home: '/home', files, clock })
    await readAllRecords(journal, 's')
    expect((await files.facts(old))?.kind).toBe('file')
    await journal.append('s', 0, sampleRecords('a'))
    const names = (await files.list('/home/sessions')).map(({ name }) => name)
    expect(names.sort()).toEqual([basename(fresh), 's.jsonl', 's.lock'])
  })

  it('writes even if it cannot remove drafts', async () => {
    const files = createCrashFileSystem()
    files.interfere(({ kind, path }) =>
      kind === 'list' ? { error: createSystemError('EACCES', path) } : undefined,
    )
    expect(
      await createFileJournal({ home: '/home', files }).append('s', 0, sampleRecords('a')),
    ).toMatchObject({ ok: true })
  })
})
