import { describe, expect, it } from 'vitest'
import { createSystemError } from '../testing/crash-file-node.ts'
import { createCrashFileSystem } from '../testing/crash-file-system.ts'
import { ensureDirectory, syncDirectoryNames } from './file-system.ts'

describe('ensureDirectory', () => {
  it('makes missing directories, which survive a crash', async () => {
    const files = createCrashFileSystem({ directories: ['/home'] })
    await ensureDirectory(files, '/home/user/data/sessions')
    files.crash()
    expect((await files.facts('/home/user/data/sessions'))?.kind).toBe('directory')
  })

  it('does nothing for an existing directory', async () => {
    const files = createCrashFileSystem({ directories: ['/home'] })
    await ensureDirectory(files, '/home')
    expect(files.counts.syncDirectory).toBe(0)
  })
})

describe('syncNames', () => {
  it('makes names durable that an earlier process did not sync', async () => {
    const files = createCrashFileSystem()
    for (const path of ['/top', '/top/mid', '/top/mid/low']) await files.makeDirectory(path)
    await syncDirectoryNames(files, '/top/mid/low', '/top')
    files.crash()
    expect((await files.facts('/top/mid/low'))?.kind).toBe('directory')
  })

  it('skips directories without permission, but not failing ones', async () => {
    const files = createCrashFileSystem({ directories: ['/a', '/a/b'] })
    const failWith = (code: string) =>
      files.interfere(({ path }) => ({ error: createSystemError(code, path) }))
    failWith('EACCES')
    await syncDirectoryNames(files, '/a/b', '/a')
    failWith('EIO')
    await expect(syncDirectoryNames(files, '/a/b', '/a')).rejects.toThrow('EIO')
  })
})
