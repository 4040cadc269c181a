import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createAgentFolder } from '../../test/agent-folder.ts'
import { createReadTool } from './read-tool.ts'
import type { AgentTool } from './tool-definition.ts'
import { createWriteTools } from './write-tools.ts'

function open() {
  const folder = createAgentFolder()
  const tools = createWriteTools(folder.environment) as Record<'Write' | 'Edit' | 'MultiEdit', AgentTool>
  const readTool = createReadTool(folder.environment)
  const edit = (file_path: string, old_string: string, new_string: string, more: object = {}) =>
    folder.call(tools.Edit, { file_path, old_string, new_string, ...more })
  return {
    folder,
    edit,
    read: (file_path: string) => folder.call(readTool, { file_path }),
    write: (file_path: string, content: string) => folder.call(tools.Write, { file_path, content }),
    multiEdit: (file_path: string, edits: readonly object[]) =>
      folder.call(tools.MultiEdit, { file_path, edits }),
    text: (name: string) => readFileSync(folder.path(name), 'utf8'),
    /** Puts a file on disk, reads it and edits it. */
    async editNew(text: string | Uint8Array, old_string: string, new_string: string, more: object = {}) {
      folder.write('a.txt', text)
      await folder.call(readTool, { file_path: 'a.txt' })
      return edit('a.txt', old_string, new_string, more)
    },
  }
}

describe('Write', () => {
  it('creates a file with its folders', async () => {
    const { folder, write, text } = open()
    expect(await write('new/deep/a.txt', 'one\ntwo\n')).toMatchObject({
      text: `Created ${folder.path('new/deep/a.txt')} (2 lines).`,
      isError: false,
    })
    expect(text('new/deep/a.txt')).toBe('one\ntwo\n')
    expect(readdirSync(folder.path('new/deep'))).toEqual(['a.txt'])
  })

  it('replaces only a file that was read and has not changed since', async () => {
    const { folder, write, read, text } = open()
    const path = folder.write('a.txt', 'one\ntwo\nthree\n')
    expect(await write('a.txt', 'new')).toMatchObject({
      text: `${path} exists and has not been read in this session. Read it first.`,
      isError: true,
    })
    await read('a.txt')
    folder.write('a.txt', 'one\nTWO\nthree\n')
    expect(await write('a.txt', 'new')).toMatchObject({
      text: `${path} has changed on disk since you last saw it. Read it again, then change it.`,
      isError: true,
    })
    expect(text('a.txt')).toBe('one\nTWO\nthree\n')
    await read('a.txt')
    expect((await write('a.txt', 'one\n2\n2b\nthree\n')).text).toBe(
      `Wrote ${path}: from line 2 on, 1 line removed and 2 added.`,
    )
    expect((await write('a.txt', 'one\n2\n2b\nthree\n')).text).toBe(
      `Wrote ${path}: its text is the same as before.`,
    )
  })

  it('still knows a file whose text has left the context', async () => {
    const { folder, write, read } = open()
    folder.write('a.txt', 'one')
    await read('a.txt')
    folder.environment.seenFiles.forget({ kind: 'compact', toolUseIds: [], filePaths: [] })
    expect(await write('a.txt', 'two')).toMatchObject({ isError: false })
  })

  it('keeps mode, line ends, byte order mark and encoding', async () => {
    const { folder, write, read } = open()
    chmodSync(folder.write('run.sh', '\uFEFFone\r\ntwo\r\n'), 0o751)
    folder.write('latin', Buffer.from('caf\xe9', 'latin1'))
    await read('run.sh')
    await read('latin')
    await write('run.sh', 'three\nfour\n')
    await write('latin', 'th\xe9')
    expect(readFileSync(folder.path('run.sh'), 'utf8')).toBe('\uFEFFthree\r\nfour\r\n')
    expect(statSync(folder.path('run.sh')).mode & 0o777).toBe(0o751)
    expect(readFileSync(folder.path('latin'), 'latin1')).toBe('th\xe9')
    await write('latin', 'th\xe9 €')
    expect(readFileSync(folder.path('latin'), 'utf8')).toBe('thé €')
  })

  it('writes through a symbolic link, also one whose target is missing', async () => {
    const { folder, write, read, text } = open()
    folder.write('real/a.txt', 'one')
    symlinkSync('real/a.txt', folder.path('link'))
    symlinkSync('real/b.txt', folder.path('dangling'))
    await read('link')
    await write('link', 'two')
    await write('dangling', 'new')
    expect([text('real/a.txt'), text('real/b.txt')]).toEqual(['two', 'new'])
    expect([readlinkSync(folder.path('link')), readlinkSync(folder.path('dangling'))]).toEqual([
      'real/a.txt',
      'real/b.txt',
    ])
  })

  it('refuses folders and binary files', async () => {
    const { folder, write } = open()
    mkdirSync(folder.path('dir'))
    folder.write('bin', Buffer.from([0, 1]))
    expect(await write('dir', 'x')).toMatchObject({
      isError: true,
      text: expect.stringContaining('is a directory'),
    })
    expect(await write('bin', 'x')).toMatchObject({
      isError: true,
      text: expect.stringContaining('is a binary file'),
    })
  })
})

describe('Edit', () => {
  it('replaces a text and shows the changed lines with numbers', async () => {
    const { folder, editNew, text } = open()
    const { text: answer } = await editNew('1\n2\n3\n4\nfive\n6\n7\n8\n9\n', 'five', 'FIVE\nhalf')
    expect(answer).toBe(
      `Edited ${folder.path('a.txt')}. The changed lines:\n     2\t2\n     3\t3\n     4\t4\n     5\tFIVE\n     6\thalf\n     7\t6\n     8\t7\n     9\t8`,
    )
    expect(text('a.txt')).toBe('1\n2\n3\n4\nFIVE\nhalf\n6\n7\n8\n9\n')
  })

  it('can follow an edit or a write without a read between', async () => {
    const { edit, write, text } = open()
    await write('a.txt', 'one two')
    await edit('a.txt', 'one', '1')
    await edit('a.txt', 'two', '2')
    expect(text('a.txt')).toBe('1 2')
  })

  it('loses nothing if several calls change one file at once', async () => {
    const { edit, write, text } = open()
    await write('a.txt', 'a b c d')
    await Promise.all(['a', 'b', 'c', 'd'].map((letter) => edit('a.txt', letter, letter.toUpperCase())))
    expect(text('a.txt')).toBe('A B C D')
  })

  it.each([
    [
      'a text that is not there',
      'let total = 1\nlet b = 2',
      'let totals = 1',
      'The nearest place differs at line 1: the file has "let total = 1", old_string has "let totals = 1".',
    ],
    [
      'other indentation',
      'if (x) {\n    go()\n}',
      'if (x) {\n  go()\n}',
      'The nearest place differs at line 2: the file has "    go()", old_string has "  go()".',
    ],
    [
      'a text beyond the end',
      'end',
      'end\nmore',
      'The nearest place differs at line 2: the file has the end of the file, old_string has "more".',
    ],
    ['a text like no line', 'alpha\nbeta', 'zzzz', 'No line is like its first line. Read the file again.'],
  ])('tells the nearest line for %s', async (_, file, wanted, hint) => {
    const { editNew, text } = open()
    expect(await editNew(file, wanted, 'x')).toMatchObject({
      text: `old_string is not in the file. ${hint}`,
      isError: true,
    })
    expect(text('a.txt')).toBe(file)
  })

  it('refuses a text that occurs several times, unless all are meant', async () => {
    const { editNew, edit, text } = open()
    expect((await editNew('x = 1\ny\nx = 1\n', 'x = 1', 'x = 2')).text).toBe(
      'old_string occurs 2 times (lines 1, 3). Add surrounding lines to make it unique, or set replace_all.',
    )
    expect((await edit('a.txt', 'x = 1', 'x = 2', { replace_all: true })).isError).toBe(false)
    expect(text('a.txt')).toBe('x = 2\ny\nx = 2\n')
  })

  it('replaces a hundred thousand occurrences in a moment', async () => {
    const { editNew, text } = open()
    const started = process.cpuUsage()
    const { text: answer } = await editNew('some words\n'.repeat(100_000), 'o', 'OO', { replace_all: true })
    expect(process.cpuUsage(started).user).toBeLessThan(5_000_000)
    expect(text('a.txt')).toBe('sOOme wOOrds\n'.repeat(100_000))
    expect(answer).toContain('(further changed lines are not shown)')
  })

  it('takes new_string as it is, without patterns', async () => {
    const { editNew, text } = open()
    await editNew('a.b', 'a.b', '$& $1 \\n')
    expect(text('a.txt')).toBe('$& $1 \\n')
  })

  it.each([
    ['one\r\ntwo\r\nthree\r\n', 'one\ntwo', '1\n2', '1\r\n2\r\nthree\r\n'],
    ['\uFEFFone\r\ntwo\r\n', '\ntwo', '\n2\n3', '\uFEFFone\r\n2\r\n3\r\n'],
    ['one\ntwo\r\nthree\nfour\n', 'two\nthree', '2\n3', 'one\n2\n3\nfour\n'],
    ['a\r\nb\r\na\r\nb', 'a\r\nb', 'c', 'c\r\nc'],
    ['one\ntwo', 'one\r\ntwo', 'x\r\ny', 'x\ny'],
  ])('keeps line ends and byte order mark of %j', async (before, old, put, after) => {
    const { editNew, text } = open()
    expect(await editNew(before, old, put, { replace_all: true })).toMatchObject({ isError: false })
    expect(text('a.txt')).toBe(after)
  })

  it('edits UTF-16 in place', async () => {
    const { folder, editNew } = open()
    await editNew(Buffer.from('\uFEFFgrün', 'utf16le'), 'ün', 'au')
    expect(readFileSync(folder.path('a.txt'), 'utf16le')).toBe('\uFEFFgrau')
  })

  it('needs a file that was read and is unchanged', async () => {
    const { folder, edit, read } = open()
    const path = folder.write('a.txt', 'one')
    expect((await edit('a.txt', 'one', 'two')).text).toBe(
      `${path} exists and has not been read in this session. Read it first.`,
    )
    await read('a.txt')
    writeFileSync(path, 'one!')
    expect((await edit('a.txt', 'one', 'two')).text).toContain('has changed on disk since you last saw it')
    expect((await edit('b.txt', 'one', 'two')).text).toBe(
      `There is no file ${folder.path('b.txt')}. To create it, use Write or an empty old_string.`,
    )
  })

  it('with an empty old_string creates a file or fills an empty one, and overwrites nothing', async () => {
    const { folder, edit, read, text } = open()
    await edit('new.txt', '', 'hello\n')
    folder.write('empty.txt', '')
    await edit('empty.txt', '', 'filled')
    folder.write('full.txt', 'content')
    await read('full.txt')
    expect(await edit('full.txt', '', 'gone')).toMatchObject({
      text: 'old_string is empty, but the file is not.',
      isError: true,
    })
    expect(await edit('full.txt', 'same', 'same')).toMatchObject({
      text: 'old_string and new_string are the same.',
      isError: true,
    })
    expect([text('new.txt'), text('empty.txt'), text('full.txt')]).toEqual(['hello\n', 'filled', 'content'])
  })
})

describe('MultiEdit', () => {
  it('makes all replacements in order, and shows each', async () => {
    const { folder, write, multiEdit, text } = open()
    const lines = Array.from({ length: 30 }, (_, index) => `line ${index + 1}`)
    await write('a.txt', lines.join('\n'))
    const { text: answer } = await multiEdit('a.txt', [
      { old_string: 'line 28', new_string: 'LINE 28' },
      { old_string: 'line 3\n', new_string: 'three\nand more\n' },
      { old_string: 'three', new_string: 'THREE' },
    ])
    expect(text('a.txt')).toContain('line 2\nTHREE\nand more\nline 4')
    expect(answer).toContain('     3\tTHREE\n     4\tand more\n')
    expect(answer).toContain('   ...\n    26\tline 25\n    27\tline 26\n    28\tline 27\n    29\tLINE 28\n')
    expect(answer.startsWith(`Edited ${folder.path('a.txt')}.`)).toBe(true)
  })

  it('changes nothing if one does not fit', async () => {
    const { write, multiEdit, text } = open()
    await write('a.txt', 'one two')
    const answer = await multiEdit('a.txt', [
      { old_string: 'one', new_string: '1' },
      { old_string: 'zzz', new_string: '2' },
    ])
    expect(answer.text).toMatch(/^Edit 2 of 2: old_string is not in the file\./)
    expect(text('a.txt')).toBe('one two')
    expect(await multiEdit('a.txt', [])).toMatchObject({ text: 'edits is empty.', isError: true })
  })
})

it('a folder that was replaced by a link after the permission is not written through', async () => {
  const permittedWrites = new Map<string, string>()
  const folder = createAgentFolder({ permittedWrites })
  const { Write } = createWriteTools(folder.environment) as Record<'Write', AgentTool>
  mkdirSync(folder.path('docs'))
  mkdirSync(folder.path('elsewhere'))
  permittedWrites.set('call', folder.path('docs/a.txt'))
  rmdirSync(folder.path('docs'))
  symlinkSync(folder.path('elsewhere'), folder.path('docs'))
  const input = { file_path: 'docs/a.txt', content: 'x' }
  expect(await folder.call(Write, input, { id: 'call' })).toMatchObject({
    isError: true,
    text: expect.stringContaining('Nothing was written.'),
  })
  expect(readdirSync(folder.path('elsewhere'))).toEqual([])
})
