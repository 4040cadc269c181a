import { basename, dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemError } from '../testing/file-operations.ts'
import { createForgetfulFiles, type ForgetfulFiles } from '../testing/forgetful-files.ts'
import { draftBeside, sweepDrafts } from './drafts.ts'

const DAY_MS = 86_400_000
const NOW_MS = 10 * DAY_MS

async function put(files: ForgetfulFiles, path: string, modifiedMs: number): Promise<string> {
  await (await files.open(path, 'create'))?.close()
  await files.touch(path, modifiedMs)
  return basename(path)
}

async function names(files: ForgetfulFiles): Promise<readonly string[]> {
  return (await files.list('/')).map(({ name }) => name)
}

describe('a draft', () => {
  it('has a name that nobody has, in the same folder', () => {
    const [one, other] = [draftBeside('/a/b.lock'), draftBeside('/a/b.lock')]
    expect(dirname(one)).toBe('/a')
    expect(one).not.toBe(other)
  })

  it('is swept a day after it was left, and nothing else is', async () => {
    const files = createForgetfulFiles()
    await put(files, draftBeside('/x'), NOW_MS - DAY_MS - 1)
    const kept = [
      await put(files, draftBeside('/x'), NOW_MS - DAY_MS),
      await put(files, '/.draft-of-a-letter', 0),
      await put(files, '/s.jsonl', 0),
      await put(files, `/${basename(draftBeside('/x'))}.txt`, 0),
    ]
    const folder = draftBeside('/x')
    await files.makeDirectory(folder)
    await sweepDrafts(files, '/', NOW_MS)
    expect(await names(files)).toEqual([...kept, basename(folder)])
  })

  it('is swept with at most a hundred others at a time', async () => {
    const files = createForgetfulFiles()
    for (let count = 0; count < 130; count += 1) await put(files, draftBeside('/x'), 0)
    await sweepDrafts(files, '/', NOW_MS)
    expect(await names(files)).toHaveLength(30)
    await sweepDrafts(files, '/', NOW_MS)
    expect(await names(files)).toEqual([])
  })

  it.each(['list', 'facts', 'remove'] as const)('that cannot be swept is left (%s)', async (kind) => {
    const files = createForgetfulFiles()
    const name = await put(files, draftBeside('/x'), 0)
    files.interfere((operation) =>
      operation.kind === kind ? { error: systemError('EACCES', operation.path) } : undefined,
    )
    await sweepDrafts(files, '/', NOW_MS)
    files.interfere(null)
    expect(await names(files)).toEqual([name])
  })
})
