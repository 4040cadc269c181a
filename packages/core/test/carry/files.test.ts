/** Which files come back after a compaction, as they are on disk now. */
import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import type { ContextEntry } from '../../src/context/context-entry.ts'
import { DEFAULT_POLICY } from '../../src/policy/create-policy.ts'
import { collectSourceAttachments } from '../../src/sources/collect-sources.ts'
import { type FilesSourceOptions, filesSource } from '../../src/sources/file-source.ts'
import { addCall, compactWith, createCarryContext, Disk, measure } from './carried-session.ts'

function world(options: Partial<FilesSourceOptions> = {}) {
  const builder = new SessionBuilder()
  const disk = new Disk()
  const carrier = filesSource({ reader: disk, folder: '/project', ...options })
  const read = (path: string, answer = {}): string => addCall(builder, 'Read', { file_path: path }, answer)
  const names = async (kept: readonly ContextEntry[] = [], overrides = {}): Promise<readonly string[]> => {
    const { carried } = await collectSourceAttachments(
      [carrier],
      createCarryContext(builder, kept, overrides),
    )
    return carried.map(({ source }) => source)
  }
  return { builder, disk, carrier, read, names }
}

const TEN_FILES = { rehydrate: { files: { count: 10 } } }

describe('files', () => {
  describe('under a client', () => {
    const FILES = ['a', 'b', 'c', 'd', 'e', 'f']
    const edit = (builder: SessionBuilder, name: string) =>
      addCall(builder, 'Edit', { file_path: `/project/${name}`, old_string: 'x', new_string: 'y' })
    const usesAll = ({ disk, read }: ReturnType<typeof world>) => {
      for (const name of FILES) disk.files.set(`/project/${name}`, name)
      for (const name of FILES) read(`/project/${name}`)
    }
    const runCommands = (builder: SessionBuilder) => {
      for (let count = 0; count < 25; count += 1) addCall(builder, 'Bash', { command: 'true' })
    }
    const listNames = async ({ builder, carrier }: ReturnType<typeof world>, isClientLed = true) => {
      const context = { ...createCarryContext(builder, [], TEN_FILES), isClientLed }
      return (await collectSourceAttachments([carrier], context)).carried
        .map(({ source }) => source.slice(-1))
        .sort()
    }

    it('are attached if the model edits what it has in view, and are not if it reads it again first', async () => {
      const [editor, reader] = [world(), world()]
      for (const each of [editor, reader]) {
        usesAll(each)
        runCommands(each.builder)
        for (const name of FILES) {
          if (each === reader) each.read(`/project/${name}`)
          edit(each.builder, name)
        }
      }
      expect(await listNames(editor)).toEqual(FILES)
      expect(await listNames(reader)).toEqual([])
      expect(await listNames(reader, false)).toEqual(FILES)
    })

    it('are no longer attached once the model has read again what a compaction attached', async () => {
      const self = world()
      usesAll(self)
      runCommands(self.builder)
      for (const name of FILES) edit(self.builder, name)
      await compactWith(self.builder, [self.carrier])
      for (const name of FILES) {
        self.read(`/project/${name}`)
        edit(self.builder, name)
      }
      runCommands(self.builder)
      for (const name of FILES) edit(self.builder, name)
      expect(await listNames(self)).toEqual([])
    })

    it('are not attached if the model works on other files until the next compaction', async () => {
      const [inTurn, onTwo] = [world(), world()]
      for (const each of [inTurn, onTwo]) {
        usesAll(each)
        for (let round = 0; round < 12; round += 1) {
          edit(each.builder, FILES[round % (each === onTwo ? 2 : 6)] ?? '')
          for (let count = 0; count < 9; count += 1) addCall(each.builder, 'Bash', { command: 'true' })
        }
      }
      expect(await listNames(inTurn)).toEqual([])
      expect(await listNames(onTwo)).toEqual(expect.arrayContaining(['a', 'b']))
    })

    it('are not attached if the model prints them again with a command', async () => {
      const self = world()
      usesAll(self)
      runCommands(self.builder)
      for (const name of FILES) addCall(self.builder, 'Bash', { command: `cat /project/${name}` })
      expect(await listNames(self)).toEqual([])
    })

    it('are attached while the log does not show what the model does with them', async () => {
      const self = world()
      usesAll(self)
      expect(await listNames(self)).toEqual(FILES)
    })
  })

  it('are those edited or read last, as many as the policy says, edited ones first, with what the disk has now', async () => {
    const { builder, disk, carrier, read } = world()
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'a']) {
      disk.files.set(`/project/${name}`, `now ${name}`)
      read(`/project/${name}`, { text: 'as it was' })
    }
    addCall(builder, 'Edit', { file_path: 'b', old_string: 'x', new_string: 'y' })
    read('/project/k')
    const { carried } = await collectSourceAttachments([carrier], createCarryContext(builder, [], TEN_FILES))
    expect(carried.map(({ attachment }) => attachment)).toEqual(
      ['b', 'k', 'a', 'j', 'i', 'h', 'g', 'f', 'e', 'd'].map((name) => ({
        type: 'file',
        filename: `/project/${name}`,
        content: `now ${name}`,
        key: `files:/project/${name}`,
      })),
    )
  })

  it('that a shell command printed come back like those that were read, with the lines that it printed', async () => {
    const { builder, disk, carrier } = world()
    const lines = Array.from({ length: 3_000 }, (_, index) => `line ${index + 1}`)
    disk.files.set('/project/sub/a', lines.join('\n'))
    addCall(builder, 'exec_command', { cmd: "cd sub && sed -n '2000,2010p' a", workdir: '/project' })
    const { carried } = await collectSourceAttachments([carrier], createCarryContext(builder))
    expect(carried.map(({ source }) => source)).toEqual(['/project/sub/a'])
    expect(carried[0]?.attachment.content).toMatch(/line 2000\nline 2001\n/)
  })

  it('that a patch changed come back with the lines that it put there', async () => {
    const { builder, disk, carrier } = world()
    const lines = Array.from({ length: 9_000 }, (_, index) => `line ${index + 1}`)
    disk.files.set('/project/a', lines.join('\n'))
    const input = '*** Update File: a\n@@\n line 6999\n-old\n+line 7000\n line 7001\n*** End Patch'
    addCall(builder, 'apply_patch', { input })
    const { carried } = await collectSourceAttachments([carrier], createCarryContext(builder))
    expect(carried[0]?.attachment.content).toMatch(/line 6999\nline 7000\nline 7001/)
  })

  it('that were only read, and not used since they last came back, stay away; those that were edited come back', async () => {
    const { builder, disk, read, names } = world()
    for (const name of ['a', 'b', 'c']) disk.files.set(`/project/${name}`, name)
    addCall(builder, 'Edit', { file_path: 'a', old_string: 'x', new_string: 'y' })
    read('/project/c')
    builder.compact('Done so far.')
    for (let time = 0; time < 9; time += 1) read('/project/b')
    expect(await names()).toEqual(['/project/a', '/project/b', '/project/c'])
    read('/project/b')
    expect(await names()).toEqual(['/project/a', '/project/b'])
  })

  it('that cannot be read are told, and the next one comes in their place', async () => {
    const { builder, disk, carrier, read } = world()
    for (const name of ['a', 'gone', 'b']) read(`/project/${name}`)
    disk.files.set('/project/a', 'A').set('/project/b', 'B')
    const { carried, skipped } = await collectSourceAttachments(
      [carrier],
      createCarryContext(builder, [], { rehydrate: { files: { count: 2 } } }),
    )
    expect(carried.map(({ source }) => source)).toEqual(['/project/b', '/project/a'])
    expect(skipped).toEqual([{ carrier: 'files', key: 'files:/project/gone', why: 'there is no such file' }])
  })

  it('whose read failed, or has no answer yet, were not touched', async () => {
    const { builder, disk, read, names } = world()
    disk.files.set('/project/a', 'A').set('/project/b', 'B')
    read('/project/a', { isError: true })
    builder.assistant('m', [
      { type: 'tool_use', id: 'open', name: 'Read', input: { file_path: '/project/b' } },
    ])
    expect(await names()).toEqual([])
  })

  it.each([
    '/project/CLAUDE.md',
    '/project/sub/AGENTS.md',
    '/project/.claude/rules/style.md',
    '/project/log.jsonl',
    '/project/plan.md',
    '/project/link.md',
  ])('never are %s', async (path) => {
    const { disk, read, names } = world({ never: () => ['/project/log.jsonl', 'plan.md'] })
    disk.files.set(path, 'text').set('/project/ok', 'ok').set('/project/AGENTS.md', 'rules')
    disk.links.set('/project/link.md', '/project/AGENTS.md')
    read('/project/ok')
    read(path)
    expect(await names()).toEqual(['/project/ok'])
  })

  it('are memory files only if the model itself has edited them', async () => {
    const { builder, disk, read, names } = world()
    disk.files.set('/project/CLAUDE.md', 'rules').set('/project/sub/AGENTS.md', 'more rules')
    for (const path of disk.files.keys()) read(path)
    addCall(builder, 'Edit', { file_path: 'CLAUDE.md', old_string: 'x', new_string: 'rules' })
    expect(await names()).toEqual(['/project/CLAUDE.md'])
  })

  it('under two names are one file', async () => {
    const { disk, read, names } = world()
    disk.files.set('/project/a', 'A')
    disk.links.set('/project/b', '/project/a')
    for (const path of ['/project/a', './a', '/project/x/../a', '/project/b']) read(path)
    expect(await names()).toEqual(['/project/b'])
  })

  it('that are larger than one may be are cut with a marker; of what is left the next ones have half each', async () => {
    const { builder, disk, carrier, read } = world()
    disk.files
      .set('/project/small', 'x'.repeat(800))
      .set('/project/mid', 'line\n'.repeat(240))
      .set('/project/big', 'line\n'.repeat(9_000))
    for (const name of ['small', 'mid', 'big']) read(`/project/${name}`)
    const files = { eachTokens: 400, totalTokens: 650 }
    const { carried, skipped } = await collectSourceAttachments(
      [carrier],
      createCarryContext(builder, [], { rehydrate: { files } }),
    )
    expect(carried.map(({ source }) => source)).toEqual(['/project/big', '/project/mid'])
    expect(carried[0]?.attachment.content).toMatch(/^(line\n){200,}\[lines \d+ to 9000 are not shown\]$/)
    expect(carried[1]?.attachment.content).toMatch(/^(line\n){40,}\[lines \d+ to 240 are not shown\]$/)
    expect(carried[0]?.tokens).toBeLessThanOrEqual(650 / 2)
    expect(carried[1]?.tokens).toBeLessThanOrEqual(200)
    expect(skipped.map(({ key }) => key)).toEqual(['files:/project/small'])
  })

  it('have at most half of what is left each, unless all that may follow fits', async () => {
    const { builder, disk, carrier, read } = world()
    for (const name of ['a', 'b', 'c']) {
      disk.files.set(`/project/${name}`, 'line\n'.repeat(9_000))
      read(`/project/${name}`)
    }
    const sizes = async (files: object): Promise<readonly number[]> => {
      const context = createCarryContext(builder, [], { rehydrate: { files } })
      const { carried } = await collectSourceAttachments([carrier], context)
      return carried.map(({ tokens }) => Math.round(tokens / 100) * 100)
    }
    const count = { count: 3, eachTokens: 2_000, middleTokens: 2_000, lastTokens: 2_000 }
    expect(await sizes({ ...count, totalTokens: 6_000 })).toEqual([2_000, 2_000, 2_000])
    expect(await sizes({ ...count, totalTokens: 2_000 })).toEqual([1_000, 500, 500])
    expect(await sizes({ ...count, middleRank: 2, middleTokens: 500, totalTokens: 3_000 })).toEqual([
      2_000, 500, 500,
    ])
  })

  it('have what the files before them leave, and what no file after them needs, up to the size of the first', async () => {
    const { builder, disk, carrier, read } = world()
    for (const [name, lines] of [
      ['last', 9_000],
      ['middle', 9_000],
      ['short', 100],
      ['first', 9_000],
    ] as const) {
      disk.files.set(`/project/${name}`, 'line\n'.repeat(lines))
      read(`/project/${name}`)
    }
    const files = { eachTokens: 2_000, middleRank: 2, middleTokens: 800, lastRank: 4, lastTokens: 300 }
    const sizes = async (totalTokens: number): Promise<readonly number[]> => {
      const context = createCarryContext(builder, [], { rehydrate: { files: { ...files, totalTokens } } })
      const { carried } = await collectSourceAttachments([carrier], context)
      return carried.map(({ tokens }) => Math.round(tokens / 100) * 100)
    }
    expect(await sizes(20_000)).toEqual([2_000, 100, 2_000, 2_000])
    expect(await sizes(5_000)).toEqual([2_000, 100, 2_000, 900])
    expect(await sizes(3_900)).toEqual([2_000, 100, 1_500, 300])
    expect(await sizes(3_000)).toEqual([1_500, 100, 1_100, 300])
  })

  it('that are long come back as the lines round the last edit and the part last read', async () => {
    const { builder, disk, carrier, read } = world()
    const line = (number: number): string => `line ${number}`
    const all = Array.from({ length: 9_000 }, (_, index) => line(index + 1))
    disk.files.set('/project/long', all.join('\n'))
    read('/project/long')
    const edit = { file_path: '/project/long', old_string: 'x', new_string: `${line(5_000)}\n${line(5_001)}` }
    addCall(builder, 'Edit', edit)
    addCall(builder, 'Read', { file_path: '/project/long', offset: 7_000, limit: 10 })
    const { carried } = await collectSourceAttachments(
      [carrier],
      createCarryContext(builder, [], { rehydrate: { files: { eachTokens: 200 } } }),
    )
    const [first, ...rest] = String(carried[0]?.attachment.content).split('\n')
    expect(first).toMatch(/^\[lines 1 to 49\d\d are not shown\]$/)
    expect(rest).toContain(line(4_980))
    expect(rest).toContain(line(5_021))
    expect(rest.slice(rest.indexOf(line(7_000)))).toEqual([
      ...Array.from({ length: 10 }, (_, index) => line(7_000 + index)),
      '[lines 7010 to 9000 are not shown]',
    ])
    expect(carried[0]).toMatchObject({ attachment: { truncated: true } })
    expect(carried[0]?.tokens).toBeLessThanOrEqual(200)
  })

  it('that are long come back as the lines round the last twelve edits before any other of their lines', async () => {
    const { builder, disk, carrier, read } = world()
    disk.files.set(
      '/project/long',
      Array.from({ length: 9_000 }, (_, index) => `line ${index + 1}`).join('\n'),
    )
    const edited = Array.from({ length: 13 }, (_, index) => `line ${8_500 - 400 * index}`)
    for (const line of edited)
      addCall(builder, 'Edit', { file_path: '/project/long', old_string: 'x', new_string: `${line}\n` })
    read('/project/long')
    addCall(builder, 'Read', { file_path: '/project/long', offset: 100, limit: 2_000 })
    const { carried } = await collectSourceAttachments(
      [carrier],
      createCarryContext(builder, [], { rehydrate: { files: { eachTokens: 2_000 } } }),
    )
    const shown = String(carried[0]?.attachment.content).split('\n')
    const wanted = [...edited, 'line 100', 'line 1']
    expect(wanted.filter((line) => shown.includes(line))).toEqual([...edited.slice(1), 'line 100'])
  })

  it('may be named by the host', async () => {
    const { disk, read, names } = world({ recent: () => ['b', '/project/a'] })
    disk.files.set('/project/a', 'A').set('/project/b', 'B').set('/project/c', 'C')
    read('/project/c')
    expect(await names()).toEqual(['/project/b', '/project/a'])
  })
})

describe('a file whose read is among the kept messages', () => {
  function kept(builder: SessionBuilder, ...ids: readonly string[]): readonly ContextEntry[] {
    const text = ({ record }: ContextEntry): string => JSON.stringify(record)
    return [...builder.view.entries].filter((entry) => ids.some((id) => text(entry).includes(`"${id}"`)))
  }

  it('is not brought a second time', async () => {
    const { builder, disk, read, names } = world()
    disk.files.set('/project/a', 'A').set('/project/b', 'B')
    const first = read('/project/a')
    read('/project/b')
    expect(await names(kept(builder, first))).toEqual(['/project/b'])
  })

  it('is, where only some of its lines were read', async () => {
    const { builder, disk, names } = world()
    disk.files.set('/project/a', 'one\ntwo\nthree')
    const part = addCall(builder, 'Read', { file_path: '/project/a', offset: 2, limit: 1 })
    expect(await names(kept(builder, part))).toEqual(['/project/a'])
  })

  it.each(['FILE_UNCHANGED', 'File unchanged since last read. See above.'])(
    'is, where the answer was only %j',
    async (text) => {
      const { builder, disk, read, names } = world()
      disk.files.set('/project/a', 'A')
      read('/project/a')
      expect(await names(kept(builder, read('/project/a', { text })))).toEqual(['/project/a'])
    },
  )

  it('is, where the answer was cleared', async () => {
    const { builder, disk, read, names } = world()
    disk.files.set('/project/a', 'A')
    const id = read('/project/a')
    const cleared = kept(builder, id).map((entry) => ({
      ...entry,
      cleared: { whole: false, thinking: false, inputs: [], results: [{ id, note: null }] },
    }))
    expect(await names(cleared)).toEqual(['/project/a'])
  })

  it('is, where it was changed since and the change is not kept', async () => {
    const { builder, disk, read, names } = world()
    disk.files.set('/project/a', 'A')
    const first = read('/project/a')
    const edit = addCall(builder, 'Edit', { file_path: '/project/a' })
    read('/project/a')
    expect(await names(kept(builder, first))).toEqual(['/project/a'])
    expect(await names(kept(builder, first, edit))).toEqual([])
  })
})

it('no more of a file is read than could be shown', async () => {
  const { builder, disk, carrier, read } = world()
  disk.files.set('/project/a', 'word '.repeat(1_000_000))
  read('/project/a')
  const { carried } = await collectSourceAttachments([carrier], createCarryContext(builder))
  const content = String(carried[0]?.attachment.content)
  expect(measure(content)).toBeLessThanOrEqual(DEFAULT_POLICY.rehydrate.files.eachTokens)
  expect(content.endsWith('of a file of 5000000 bytes; read the file for the rest]')).toBe(true)
})
