import { describe, expect, it } from 'vitest'
import { createCrashFileSystem } from '../testing/crash-file-system.ts'
import type { OpenFile } from './file-system.ts'
import { type ResumeMark, ResumeMarks, readLastBytes, sliceLastBytes } from './read-log-file.ts'

async function fileOf(text: string): Promise<OpenFile> {
  const files = createCrashFileSystem()
  const file = await files.open('/log', 'create')
  await file?.append(Buffer.from(text))
  const opened = await files.open('/log', 'read')
  if (opened === null) throw new Error('there is no file')
  return opened
}

/** Lines of ten bytes. */
const TEXT = Array.from({ length: 100 }, (_, line) => `${String(line).padStart(9, '.')}\n`).join('')
const END = Number.POSITIVE_INFINITY

async function markAt(file: OpenFile, line: number): Promise<ResumeMark> {
  const { identity } = await file.facts()
  const tail = await readLastBytes(file, line * 10)
  return { line, position: line, version: 1, sizeBytes: line * 10, identity, damage: [], tail }
}

async function marksAt(file: OpenFile, lines: readonly number[]): Promise<ResumeMarks> {
  const marks = new ResumeMarks()
  for (const line of lines) marks.add(await markAt(file, line))
  return marks
}

describe('the marks of a log', () => {
  it.each<[string, number, number, number | undefined]>([
    ['the last', END, END, 60],
    ['none that is behind the position', 59, END, 20],
    ['one at the position', 20, END, 20],
    ['none that is behind the limit', END, 599, 20],
    ['none at all', 19, END, undefined],
  ])('give %s', async (_name, position, limit, line) => {
    const file = await fileOf(TEXT)
    const marks = await marksAt(file, [60, 20])
    expect((await marks.latest(file, position, limit))?.line).toBe(line)
  })

  it('are dropped for a file that is shorter, replaced or rewritten in part', async () => {
    const file = await fileOf(TEXT)
    const shorter = { ...(await fileOf(TEXT.slice(0, 300))), facts: file.facts }
    expect(await (await marksAt(file, [40])).latest(shorter, END, END)).toBe(null)
    expect(await (await marksAt(file, [40])).latest(await fileOf(TEXT), END, END)).toBe(null)
    const rewritten = { ...(await fileOf(TEXT.replace('35', 'xx'))), facts: file.facts }
    const marks = await marksAt(file, [30, 40])
    expect((await marks.latest(rewritten, END, END))?.line).toBe(30)
    expect((await marks.latest(file, END, END))?.line).toBe(30)
  })

  it('are limited to the newest ones of the current file', async () => {
    const file = await fileOf(TEXT)
    const marks = await marksAt(
      file,
      Array.from({ length: 20 }, (_, line) => line + 1),
    )
    expect((await marks.latest(file, 13, END))?.line).toBe(13)
    expect(await marks.latest(file, 12, END)).toBe(null)
    const other = await fileOf(TEXT)
    marks.add(await markAt(other, 5))
    expect(await marks.latest(file, END, END)).toBe(null)
  })

  it('are verified by the bytes before them', async () => {
    const file = await fileOf(TEXT)
    expect(await readLastBytes(file, 20)).toEqual(new Uint8Array(Buffer.from(TEXT.slice(0, 20))))
    expect(await readLastBytes(file, 1000)).toEqual(sliceLastBytes(new Uint8Array(Buffer.from(TEXT))))
    expect(sliceLastBytes(Buffer.from(TEXT))).toHaveLength(512)
  })
})
