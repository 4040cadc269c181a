import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { readPromptFiles } from './prompt-files.ts'

function createProject() {
  const project = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-prompts-')))
  onTestFinished(() => rmSync(project, { recursive: true, force: true }))
  const path = (name: string): string => join(project, '.claude', name)
  let isPermitted = true
  return {
    path,
    write(name: string, text: string): void {
      mkdirSync(dirname(path(name)), { recursive: true })
      writeFileSync(path(name), text)
    },
    forbid(): void {
      isPermitted = false
    },
    read: async (kind?: 'skill' | 'agent') =>
      (await readPromptFiles({ home: null, project, isPermitted: () => isPermitted }, kind)).files,
  }
}

/** Longer than a file must be left alone before what was read of it is kept. */
const SETTLED_MS = 300
const SKILL = 'skills/a/SKILL.md'

describe('a file that was read before', () => {
  it('is not read again while it has not changed', async () => {
    const { write, read } = createProject()
    write(SKILL, 'One.')
    await wait(SETTLED_MS)
    const [first] = await read('skill')
    const [second] = await read()
    expect(first).toMatchObject({ name: 'a', body: 'One.' })
    expect(second).toBe(first)
  })

  it.each<[string, (path: string) => void]>([
    ['in place, with as many bytes and the old time', (path) => writeFileSync(path, 'Two.')],
    [
      'by another file under its name',
      (path) => {
        writeFileSync(`${path}.new`, 'Two.')
        renameSync(`${path}.new`, path)
      },
    ],
    [
      'by a link to another file',
      (path) => {
        writeFileSync(`${path}.other`, 'Two.')
        rmSync(path)
        symlinkSync(`${path}.other`, path)
      },
    ],
  ])('is read again when it was changed %s', async (_, change) => {
    const { path, write, read } = createProject()
    write(SKILL, 'One.')
    const old = new Date(Date.now() - 60_000)
    utimesSync(path(SKILL), old, old)
    await wait(SETTLED_MS)
    await read('skill')
    change(path(SKILL))
    utimesSync(path(SKILL), old, old)
    await wait(SETTLED_MS)
    expect((await read('skill')).map(({ body }) => body)).toEqual(['Two.'])
  })

  it('is left out when it is gone, or may no longer be read', async () => {
    const { path, write, read, forbid } = createProject()
    write(SKILL, 'One.')
    write('skills/b/SKILL.md', 'Other.')
    await wait(SETTLED_MS)
    expect(await read('skill')).toHaveLength(2)
    rmSync(path('skills/b'), { recursive: true })
    expect((await read('skill')).map(({ name }) => name)).toEqual(['a'])
    forbid()
    expect(await read('skill')).toEqual([])
  })

  it('that was changed just now is read each time, because its time of change may stay', async () => {
    const { write, read } = createProject()
    write(SKILL, 'One.')
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now())
    onTestFinished(() => clock.mockRestore())
    const [first] = await read('skill')
    const [second] = await read('skill')
    expect(second).toEqual(first)
    expect(second).not.toBe(first)
  })
})

it('definitions of agents are neither skills nor commands', async () => {
  const { write, read } = createProject()
  write('agents/web/review.md', '---\nname: review\n---\nReview.')
  write('commands/go.md', 'Go.')
  expect((await read()).map(({ name }) => name)).toEqual(['go'])
  expect((await read('agent')).map(({ kind, name }) => [kind, name])).toEqual([['agent', 'review']])
})
