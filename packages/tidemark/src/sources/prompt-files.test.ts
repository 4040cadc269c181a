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
  const readAll = (kind?: 'skill' | 'agent') =>
    readPromptFiles({ home: null, project, isPermitted: () => isPermitted }, kind)
  return {
    path,
    write(name: string, text: string): void {
      mkdirSync(dirname(path(name)), { recursive: true })
      writeFileSync(path(name), text)
    },
    forbid(): void {
      isPermitted = false
    },
    read: async (kind?: 'skill' | 'agent') => (await readAll(kind)).files,
    readAll,
  }
}

/** Longer than a file must be left alone before what was read of it is kept. */
const SETTLED_MS = 300
const SKILL = 'skills/a/SKILL.md'

describe('the front matter of a skill', () => {
  const readSkill = async (text: string, folder = 'folder') => {
    const { write, readAll } = createProject()
    write(`skills/${folder}/SKILL.md`, text)
    const { files, unread } = await readAll('skill')
    return { file: files[0], why: unread[0]?.why }
  }

  it.each([
    ['---\nname: review\ndescription: Reviews code.\n---\nText', ['review', 'Reviews code.', 'Text']],
    [
      '---\nname: "re-view" # why\ndescription: \'Says: "no".\'\n---\nText',
      ['re-view', 'Says: "no".', 'Text'],
    ],
    [
      '---\ndescription: |\n  One\n  two.\nwhen_to_use: Often.\n---\nText',
      ['folder', 'One two. Often.', 'Text'],
    ],
    ['---\nname: not a name\n---\nText', ['folder', '', 'Text']],
    ['\ufeff---\r\nname: crlf\r\n---\r\nText\r\n', ['crlf', '', 'Text\r\n']],
    ['No front matter', ['folder', '', 'No front matter']],
  ])('%j', async (text, expected) => {
    const { file } = await readSkill(text)
    expect([file?.name, file?.description, file?.body]).toEqual(expected)
  })

  it.each([
    ['Bash(git add:*), Read', ['Bash(git add:*)', 'Read']],
    ['[Read, "Edit(docs/**)"] # both', ['Read', 'Edit(docs/**)']],
    ['Read Grep mcp__x__y', ['Read', 'Grep', 'mcp__x__y']],
    ['\n  - Read\n  - Bash(npm test)', ['Read', 'Bash(npm test)']],
    ['', []],
  ])('names tools: %j', async (value, expected) => {
    expect((await readSkill(`---\nallowed-tools: ${value}\n---\n`)).file?.allowedTools).toEqual(expected)
  })

  it.each([
    ['disable-model-invocation: true', { isForModel: false, isForUser: true }],
    ['disable-model-invocation: True # never', { isForModel: false, isForUser: true }],
    ['user-invocable: false', { isForModel: true, isForUser: false }],
  ])('says who may invoke it: %s', async (line, expected) => {
    expect((await readSkill(`---\n${line}\n---\n`)).file).toMatchObject(expected)
  })

  it('a name that nobody could type is none', async () => {
    expect((await readSkill('Text', 'two words')).why).toContain('its name is not made of')
  })

  it('that is no YAML leaves the skill out, with one line that says why', async () => {
    const { file, why } = await readSkill('---\nname: a\nname: b\n---\nText')
    expect([file, why]).toEqual([
      undefined,
      'its front matter is not valid YAML: line 3: Map keys must be unique',
    ])
  })
})

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
