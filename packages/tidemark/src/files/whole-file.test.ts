import { describe, expect, it } from 'vitest'
import type { Interference, OperationKind } from '../testing/file-operations.ts'
import { systemError } from '../testing/file-operations.ts'
import { createForgetfulFiles, type ForgetfulFiles } from '../testing/forgetful-files.ts'
import { appendAll, createWhole, readWhole, replaceWhole } from './whole-file.ts'

const bytes = Buffer.from('content')

async function textAt(files: ForgetfulFiles, path: string): Promise<string | null> {
  const file = await readWhole(files, path)
  return file === null ? null : Buffer.from(file.bytes).toString()
}

function failing(kind: OperationKind, code: string): Interference {
  return (operation) => (operation.kind === kind ? { error: systemError(code, operation.path) } : undefined)
}

async function names(files: ForgetfulFiles): Promise<readonly string[]> {
  return (await files.list('/')).map(({ name }) => name)
}

describe('createWhole', () => {
  it('puts the content in place, once', async () => {
    const files = createForgetfulFiles()
    expect(await createWhole(files, '/a', bytes)).toBe(true)
    expect(await createWhole(files, '/a', Buffer.from('other'))).toBe(false)
    expect(await textAt(files, '/a')).toBe('content')
    expect(await names(files)).toEqual(['a'])
  })

  it('is never seen without content: it has its name only once it is whole', async () => {
    const files = createForgetfulFiles()
    files.interfere(failing('link', 'EIO'))
    await expect(createWhole(files, '/a', bytes)).rejects.toThrow('EIO')
    expect(await names(files)).toEqual([])
  })

  it.each(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])('does without hard links (%s)', async (code) => {
    const files = createForgetfulFiles()
    files.interfere(failing('link', code))
    expect(await createWhole(files, '/a', bytes)).toBe(true)
    expect(await createWhole(files, '/a', bytes)).toBe(false)
    expect(await textAt(files, '/a')).toBe('content')
    expect(await names(files)).toEqual(['a'])
  })
})

describe('replaceWhole', () => {
  it('replaces what is there, durable if asked', async () => {
    const files = createForgetfulFiles()
    await createWhole(files, '/a', Buffer.from('old'))
    await files.syncDirectory('/')
    await replaceWhole(files, '/a', { bytes, durable: true })
    expect(await textAt(files, '/a')).toBe('content')
    files.crash({ name: () => true })
    expect(await textAt(files, '/a')).toBe('content')
  })

  it.each<[OperationKind, string]>([
    ['append', 'ENOSPC'],
    ['sync', 'EIO'],
    ['rename', 'EIO'],
  ])('leaves the old content and no draft behind when %s fails', async (kind, code) => {
    const files = createForgetfulFiles()
    await createWhole(files, '/a', Buffer.from('old'))
    files.interfere(failing(kind, code))
    await expect(replaceWhole(files, '/a', { bytes, durable: true })).rejects.toThrow(code)
    expect(await textAt(files, '/a')).toBe('old')
    expect(await names(files)).toEqual(['a'])
  })
})

describe('appendAll', () => {
  it('goes on after short writes', async () => {
    const files = createForgetfulFiles()
    const file = await files.open('/a', 'create')
    files.interfere(({ kind }) => (kind === 'append' ? { takes: 3 } : undefined))
    if (file !== null) await appendAll(file, Buffer.from('123456789'))
    expect(await textAt(files, '/a')).toBe('123456789')
    expect(files.counts.append).toBe(3)
  })

  it('does not wait for ever on a system that takes nothing', async () => {
    const files = createForgetfulFiles()
    const file = await files.open('/a', 'create')
    files.interfere(() => ({ takes: 0 }))
    await expect(file === null ? null : appendAll(file, bytes)).rejects.toThrow('the system took no bytes')
  })
})
