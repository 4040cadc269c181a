import { basename, dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  createSystemError,
  type FileFaultInjector,
  type FileOperationKind,
} from '../testing/crash-file-node.ts'
import { type CrashFileSystem, createCrashFileSystem } from '../testing/crash-file-system.ts'
import {
  appendAllBytes,
  createDraftPath,
  createFileAtomic,
  readFileSnapshot,
  removeStaleDrafts,
  replaceFileAtomic,
} from './atomic-file.ts'

const bytes = Buffer.from('content')

async function textAt(files: CrashFileSystem, path: string): Promise<string | null> {
  const file = await readFileSnapshot(files, path)
  return file === null ? null : Buffer.from(file.bytes).toString()
}

function failing(kind: FileOperationKind, code: string): FileFaultInjector {
  return (operation) =>
    operation.kind === kind ? { error: createSystemError(code, operation.path) } : undefined
}

async function names(files: CrashFileSystem): Promise<readonly string[]> {
  return (await files.list('/')).map(({ name }) => name)
}

describe('createWhole', () => {
  it('creates the file once', async () => {
    const files = createCrashFileSystem()
    expect(await createFileAtomic(files, '/a', bytes)).toBe(true)
    expect(await createFileAtomic(files, '/a', Buffer.from('other'))).toBe(false)
    expect(await textAt(files, '/a')).toBe('content')
    expect(await names(files)).toEqual(['a'])
  })

  it('gives the file its name only when it is complete', async () => {
    const files = createCrashFileSystem()
    files.interfere(failing('link', 'EIO'))
    await expect(createFileAtomic(files, '/a', bytes)).rejects.toThrow('EIO')
    expect(await names(files)).toEqual([])
  })

  it.each(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])('works without hard links (%s)', async (code) => {
    const files = createCrashFileSystem()
    files.interfere(failing('link', code))
    expect(await createFileAtomic(files, '/a', bytes)).toBe(true)
    expect(await createFileAtomic(files, '/a', bytes)).toBe(false)
    expect(await textAt(files, '/a')).toBe('content')
    expect(await names(files)).toEqual(['a'])
  })
})

describe('replaceWhole', () => {
  it('replaces the file, durably on request', async () => {
    const files = createCrashFileSystem()
    await createFileAtomic(files, '/a', Buffer.from('old'))
    await files.syncDirectory('/')
    await replaceFileAtomic(files, '/a', { bytes, durable: true })
    expect(await textAt(files, '/a')).toBe('content')
    files.crash({ name: () => true })
    expect(await textAt(files, '/a')).toBe('content')
  })

  it.each<[FileOperationKind, string]>([
    ['append', 'ENOSPC'],
    ['sync', 'EIO'],
    ['rename', 'EIO'],
  ])('leaves the old content and no draft behind when %s fails', async (kind, code) => {
    const files = createCrashFileSystem()
    await createFileAtomic(files, '/a', Buffer.from('old'))
    files.interfere(failing(kind, code))
    await expect(replaceFileAtomic(files, '/a', { bytes, durable: true })).rejects.toThrow(code)
    expect(await textAt(files, '/a')).toBe('old')
    expect(await names(files)).toEqual(['a'])
  })
})

describe('appendAll', () => {
  it('continues after short writes', async () => {
    const files = createCrashFileSystem()
    const file = await files.open('/a', 'create')
    files.interfere(({ kind }) => (kind === 'append' ? { takes: 3 } : undefined))
    if (file !== null) await appendAllBytes(file, Buffer.from('123456789'))
    expect(await textAt(files, '/a')).toBe('123456789')
    expect(files.counts.append).toBe(3)
  })

  it('fails if the system takes no bytes', async () => {
    const files = createCrashFileSystem()
    const file = await files.open('/a', 'create')
    files.interfere(() => ({ takes: 0 }))
    await expect(file === null ? null : appendAllBytes(file, bytes)).rejects.toThrow(
      'the system took no bytes',
    )
  })
})

const DAY_MS = 86_400_000
const NOW_MS = 10 * DAY_MS

async function put(files: CrashFileSystem, path: string, modifiedMs: number): Promise<string> {
  await (await files.open(path, 'create'))?.close()
  await files.touch(path, modifiedMs)
  return basename(path)
}

async function namesDrafts(files: CrashFileSystem): Promise<readonly string[]> {
  return (await files.list('/')).map(({ name }) => name)
}

describe('a draft', () => {
  it('has a unique name in the same folder', () => {
    const [one, other] = [createDraftPath('/a/b.lock'), createDraftPath('/a/b.lock')]
    expect(dirname(one)).toBe('/a')
    expect(one).not.toBe(other)
  })

  it('is removed after a day, and nothing else is', async () => {
    const files = createCrashFileSystem()
    await put(files, createDraftPath('/x'), NOW_MS - DAY_MS - 1)
    const kept = [
      await put(files, createDraftPath('/x'), NOW_MS - DAY_MS),
      await put(files, '/.draft-of-a-letter', 0),
      await put(files, '/s.jsonl', 0),
      await put(files, `/${basename(createDraftPath('/x'))}.txt`, 0),
    ]
    const folder = createDraftPath('/x')
    await files.makeDirectory(folder)
    await removeStaleDrafts(files, '/', NOW_MS)
    expect(await namesDrafts(files)).toEqual([...kept, basename(folder)])
  })

  it('is removed with at most a hundred others at a time', async () => {
    const files = createCrashFileSystem()
    for (let count = 0; count < 130; count += 1) await put(files, createDraftPath('/x'), 0)
    await removeStaleDrafts(files, '/', NOW_MS)
    expect(await namesDrafts(files)).toHaveLength(30)
    await removeStaleDrafts(files, '/', NOW_MS)
    expect(await namesDrafts(files)).toEqual([])
  })

  it.each(['list', 'facts', 'remove'] as const)('that cannot be removed is left (%s)', async (kind) => {
    const files = createCrashFileSystem()
    const name = await put(files, createDraftPath('/x'), 0)
    files.interfere((operation) =>
      operation.kind === kind ? { error: createSystemError('EACCES', operation.path) } : undefined,
    )
    await removeStaleDrafts(files, '/', NOW_MS)
    files.interfere(null)
    expect(await namesDrafts(files)).toEqual([name])
  })
})
