import { describe, expect, it } from 'vitest'
import { createForgetfulFiles } from '../testing/forgetful-files.ts'
import { createFileJournal, type FileJournalOptions } from './file-journal.ts'

describe('a journal', () => {
  it.each<[FileJournalOptions, string, string]>([
    [
      { home: 'here' },
      'bad-home',
      'The home is "here": it has to be an absolute path. Give one, or leave it out.',
    ],
    [
      { staleLockMs: -5 },
      'bad-option',
      'staleLockMs is -5: it has to be a number of milliseconds from 1 to 1000000000000.',
    ],
    [
      { staleLockMs: Number.POSITIVE_INFINITY },
      'bad-option',
      'staleLockMs is Infinity: it has to be a number of milliseconds from 1 to 1000000000000.',
    ],
    [
      { staleLockMs: '5' as never },
      'bad-option',
      'staleLockMs is "5": it has to be a number of milliseconds from 1 to 1000000000000.',
    ],
    [
      { program: 'two\nlines' },
      'bad-option',
      'program is "two\\nlines": it has to be a name of at most 200 characters, all on one line.',
    ],
  ])('with %j is refused', (options, code, message) => {
    expect(() => createFileJournal({ home: '/home', ...options })).toThrow(
      expect.objectContaining({ code, message }),
    )
  })

  it('says which argument is wrong, and what it has to be', async () => {
    const journal = createFileJournal({ home: '/home', files: createForgetfulFiles() })
    await expect(journal.append('s', undefined as never, [])).rejects.toMatchObject({
      code: 'bad-option',
      message: 'after is undefined: it has to be the position to append behind, 0 in an empty session.',
    })
    await expect(journal.read('s', () => {}, -1)).rejects.toMatchObject({
      code: 'bad-option',
      message: 'from is -1: it has to be the position to read on from, a whole number from 0 on.',
    })
    await expect(journal.acquire(null as never)).rejects.toMatchObject({ code: 'bad-session-id' })
  })
})
