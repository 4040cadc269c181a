import { basename, dirname } from 'node:path'
import { createFakeClock } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSystemError } from '../testing/crash-file-node.ts'
import { type CrashFileSystem, createCrashFileSystem } from '../testing/crash-file-system.ts'
import { createDraftPath } from './atomic-file.ts'
import { createBlobFolder } from './blob-folder.ts'

const HELLO = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'
const PATH = `/home/blobs/2c/${HELLO}`
const DAY_MS = 86_400_000

async function damage(files: CrashFileSystem): Promise<void> {
  await files.remove(PATH)
  const file = await files.open(PATH, 'create')
  await file?.append(Buffer.from('hellx'))
  await file?.close()
}

describe('a blob', () => {
  it('is a file named by its SHA-256, under its first two digits', async () => {
    const files = createCrashFileSystem()
    expect(await createBlobFolder({ home: '/home', files }).put(Buffer.from('hello'))).toBe(HELLO)
    expect((await files.list('/home/blobs/2c')).map(({ name }) => name)).toEqual([HELLO])
  })

  it('that is damaged is not returned, and is repaired by storing it again', async () => {
    const files = createCrashFileSystem()
    const blobs = createBlobFolder({ home: '/home', files })
    await blobs.put(Buffer.from('hello'))
    await damage(files)
    await expect(blobs.get(HELLO)).rejects.toMatchObject({
      code: 'io-failed',
      message: `Blob ${HELLO} is damaged: its content does not match its id. Store the same content again to repair it.`,
    })
    await blobs.put(Buffer.from('hello'))
    expect(Buffer.from((await blobs.get(HELLO)) ?? []).toString()).toBe('hello')
  })

  it('that is not a Uint8Array is refused with a message', async () => {
    const blobs = createBlobFolder({ home: '/home', files: createCrashFileSystem() })
    await expect(blobs.put('text' as never)).rejects.toMatchObject({
      code: 'bad-blob',
      message: 'A blob must be a Uint8Array, found "text". For text, give new TextEncoder().encode(text).',
    })
  })

  it('needs a home with an absolute path', () => {
    expect(() => createBlobFolder({ home: 'here' })).toThrow(expect.objectContaining({ code: 'bad-home' }))
  })

  it('store removes old drafts of killed processes', async () => {
    const clock = createFakeClock()
    const files = createCrashFileSystem({ now: () => clock.now() })
    await createBlobFolder({ home: '/home', files, clock }).put(Buffer.from('hello'))
    const draft = createDraftPath(PATH)
    await (await files.open(draft, 'create'))?.close()
    await clock.advance(DAY_MS + 1)
    const fresh = createDraftPath(PATH)
    await (await files.open(fresh, 'create'))?.close()
    await createBlobFolder({ home: '/home', files, clock }).put(Buffer.from('hello'))
    expect((await files.list(dirname(PATH))).map(({ name }) => name)).toEqual([HELLO, basename(fresh)])
  })

  it.each(['append', 'sync', 'rename', 'syncDirectory'] as const)(
    'is not promised when %s fails',
    async (kind) => {
      const files = createCrashFileSystem()
      const blobs = createBlobFolder({ home: '/home', files })
      files.interfere((operation) =>
        operation.kind === kind ? { error: createSystemError('ENOSPC', operation.path) } : undefined,
      )
      await expect(blobs.put(Buffer.from('hello'))).rejects.toMatchObject({
        code: 'io-failed',
        cause: { code: 'ENOSPC' },
      })
    },
  )

  it('that was acknowledged survives a crash at any later moment, and a half-written one does not exist', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: 40 }),
        fc.nat({ max: 5 }),
        fc.boolean(),
        async (operations, kept, names) => {
          const files = createCrashFileSystem()
          const blobs = createBlobFolder({ home: '/home', files })
          files.interfere(({ number, path }) =>
            number > operations ? { error: createSystemError('EIO', path) } : undefined,
          )
          const promised = await blobs.put(Buffer.from('hello')).catch(() => null)
          files.crash({ write: () => kept, name: () => names })
          const found = await createBlobFolder({ home: '/home', files }).get(HELLO)
          if (promised !== null) expect(found).not.toBe(null)
          if (found !== null) expect(Buffer.from(found).toString()).toBe('hello')
        },
      ),
      { numRuns: 300 },
    )
  })
})
