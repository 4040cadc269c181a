import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sampleRecords } from '@tidemark/core/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBlobFolder } from '../src/storage/blob-folder.ts'
import { createFileJournal } from '../src/storage/file-journal.ts'

let root = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tidemark-private-'))
})
afterEach(() => {
  rmSync(root, { recursive: true, force: true, maxRetries: 10 })
})

describe.runIf(process.platform !== 'win32')('what is kept on disk', () => {
  it('is readable by its owner only, from the home folder down', async () => {
    const home = join(root, 'not', 'yet', 'there')
    const journal = createFileJournal({ home })
    await journal.append('s', 0, sampleRecords('a'))
    const id = await createBlobFolder({ home }).put(Buffer.from('x'))
    const blob = join('blobs', id.slice(0, 2), id)
    const modes = Object.fromEntries(
      ['.', 'sessions', 'sessions/s.jsonl', 'sessions/s.lock', 'blobs', join(blob, '..'), blob].map(
        (name) => [name, statSync(join(home, name)).mode & 0o777],
      ),
    )
    await journal.close()
    expect(modes).toEqual({
      '.': 0o700,
      sessions: 0o700,
      'sessions/s.jsonl': 0o600,
      'sessions/s.lock': 0o600,
      blobs: 0o700,
      [join(blob, '..')]: 0o700,
      [blob]: 0o600,
    })
  })

  it('is not reached through a symbolic link in place of a log', async () => {
    mkdirSync(join(root, 'sessions'))
    writeFileSync(join(root, 'secret'), '{"type":"note","uuid":"a"}\n')
    symlinkSync(join(root, 'secret'), join(root, 'sessions', 's.jsonl'))
    const journal = createFileJournal({ home: root })
    const refused = {
      code: 'not-a-session',
      message: `Session "s" cannot be read: ${join(root, 'sessions', 's.jsonl')} is not a regular file (symbolic links are not followed). Put the log itself there.`,
    }
    await expect(journal.read('s', () => {})).rejects.toMatchObject(refused)
    await expect(journal.append('s', 0, sampleRecords('b'))).rejects.toMatchObject(refused)
    await journal.close()
    expect(readFileSync(join(root, 'secret'), 'utf8')).toBe('{"type":"note","uuid":"a"}\n')
    expect(await journal.list()).toEqual([])
  })
})
