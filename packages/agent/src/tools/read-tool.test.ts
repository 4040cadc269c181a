import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { isFileUnchangedNotice } from '@tidemark/core/facts/tool-calls'
import { describe, expect, it } from 'vitest'
import { type AgentFolder, createAgentFolder } from '../../test/agent-folder.ts'
import { MAX_WHOLE_FILE_BYTES } from './file-content.ts'
import { createReadTool } from './read-tool.ts'

function open(given: Parameters<typeof createAgentFolder>[0] = {}) {
  const folder = createAgentFolder(given)
  const tool = createReadTool(folder.environment)
  return { folder, read: (input: object) => folder.call(tool, input) }
}

describe('a text', () => {
  it('has line numbers, whatever its line ends', async () => {
    const { folder, read } = open()
    const path = folder.write('a.txt', '\uFEFFone\r\ntwo\n\nfour')
    expect(await read({ file_path: path })).toEqual({
      text: '     1\tone\n     2\ttwo\n     3\t\n     4\tfour',
      blocks: [],
      isError: false,
    })
  })

  it('can be read in parts, and what is left out is told', async () => {
    const { folder, read } = open()
    folder.write('a.txt', 'one\ntwo\nthree\nfour\n')
    const { text } = await read({ file_path: 'a.txt', offset: 2, limit: 2 })
    expect(text).toBe(
      '     2\ttwo\n     3\tthree\n\n[1 more line: read on with offset 4. The file has 4 lines.]',
    )
    expect((await read({ file_path: 'a.txt', offset: 4, limit: 2 })).text).toBe('     4\tfour')
    expect(await read({ file_path: 'a.txt', offset: 9 })).toMatchObject({
      text: 'The file has 4 lines; there is no line 9.',
      isError: true,
    })
  })

  it('stops after 2,000 lines', async () => {
    const { folder, read } = open()
    folder.write('a.txt', 'x\n'.repeat(2_500))
    const { text } = await read({ file_path: 'a.txt' })
    expect(text).toContain(
      '  2000\tx\n\n[500 more lines: read on with offset 2001. The file has 2,500 lines.]',
    )
  })

  it('stops at the limit of bytes, but shows one line at least', async () => {
    const { folder, read } = open({ readLimitBytes: 100 })
    folder.write('a.txt', `${'y'.repeat(40)}\n`.repeat(5))
    expect((await read({ file_path: 'a.txt' })).text).toContain('[3 more lines: read on with offset 3.')
    folder.write('b.txt', `${'z'.repeat(400)}\nend`)
    expect((await read({ file_path: 'b.txt' })).text).toMatch(/^ {5}1\tz{400}\n\n\[1 more line:/)
  })

  it('has its long lines cut, with a mark and whole characters', async () => {
    const { folder, read } = open()
    folder.write('a.txt', `${'a'.repeat(1_999)}${'😀'.repeat(9)}\nshort`)
    expect((await read({ file_path: 'a.txt' })).text).toBe(
      `     1\t${'a'.repeat(1_999)} … [line cut]\n     2\tshort`,
    )
  })

  it('may be empty, in Latin-1 or in UTF-16', async () => {
    const { folder, read } = open()
    folder.write('empty', '')
    folder.write('latin', Buffer.from('caf\xe9', 'latin1'))
    folder.write('wide', Buffer.from('\uFEFFgrüß', 'utf16le'))
    const texts = ['empty', 'latin', 'wide'].map(async (name) => (await read({ file_path: name })).text)
    expect(await Promise.all(texts)).toEqual(['The file is empty.', '     1\tcafé', '     1\tgrüß'])
  })

  it('of a huge file is read only as far as needed', async () => {
    const { folder, read } = open()
    const line = `${'x'.repeat(99)}\n`
    folder.write('huge.log', line.repeat(MAX_WHOLE_FILE_BYTES / 100 + 10))
    const first = await read({ file_path: 'huge.log', limit: 2 })
    expect(first.text).toMatch(
      /^ {5}1\tx+\n {5}2\tx+\n\n\[There is more: read on with offset 3\. The file has 32\.0 MB/,
    )
    const end = await read({ file_path: 'huge.log', offset: 320_009 })
    expect(end.text).toMatch(/^320009\tx+\n320010\tx+\n\n\[The file ends here\./)
    expect(await read({ file_path: 'huge.log', offset: 400_000 })).toMatchObject({ isError: true })
    expect((await read({ file_path: 'huge.log', limit: 2 })).text).toMatch(/^File unchanged/)
  })
})

describe('an unchanged file', () => {
  async function readTwice({
    folder,
    read,
  }: {
    folder: AgentFolder
    read: (input: object) => Promise<{ text: string }>
  }) {
    folder.write('a.txt', 'one\ntwo\n')
    await read({ file_path: 'a.txt' })
    return read({ file_path: 'a.txt' })
  }

  it('is answered as unchanged, in words that the engine knows', async () => {
    const { text } = await readTwice(open())
    expect(text).toMatch(/^File unchanged since you last read it\. .*call_1/)
    expect(isFileUnchangedNotice(text)).toBe(true)
  })

  it('that was only touched, or is reached by a link, is unchanged', async () => {
    const opened = open()
    await readTwice(opened)
    utimesSync(opened.folder.path('a.txt'), 1, 1)
    symlinkSync('a.txt', opened.folder.path('link'))
    expect((await opened.read({ file_path: 'link' })).text).toMatch(/^File unchanged/)
  })

  it('is shown again for another range, and after its text changed, with the same size and time', async () => {
    const opened = open()
    const path = opened.folder.write('a.txt', 'one\ntwo\n')
    utimesSync(path, 5, 5)
    await opened.read({ file_path: 'a.txt' })
    expect((await opened.read({ file_path: 'a.txt', offset: 2 })).text).toBe('     2\ttwo')
    writeFileSync(path, 'one\nTWO\n')
    utimesSync(path, 5, 5)
    expect((await opened.read({ file_path: 'a.txt' })).text).toBe('     1\tone\n     2\tTWO')
  })

  it('is shown again once its text has left the context', async () => {
    const opened = open()
    await readTwice(opened)
    opened.folder.environment.seenFiles.forget({ kind: 'clear', toolUseIds: ['call_1'], filePaths: [] })
    expect((await opened.read({ file_path: 'a.txt' })).text).toBe('     1\tone\n     2\ttwo')
    opened.folder.environment.seenFiles.forget({ kind: 'compact', toolUseIds: [], filePaths: [] })
    expect((await opened.read({ file_path: 'a.txt' })).text).toBe('     1\tone\n     2\ttwo')
  })
})

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

describe('pictures, documents and notebooks', () => {
  it.each([
    ['a.png', PNG, 'image', 'image/png'],
    ['a.bin', Buffer.from('ffd8ffe000104a46', 'hex'), 'image', 'image/jpeg'],
    ['a.gif', Buffer.from('GIF89a......'), 'image', 'image/gif'],
    ['a.webp', Buffer.from('RIFF\0\0\0\0WEBPVP8 '), 'image', 'image/webp'],
    ['a.pdf', Buffer.from('%PDF-1.7\n%\xe2'), 'document', 'application/pdf'],
  ])('%s is shown as a block', async (name, bytes, type, media_type) => {
    const { folder, read } = open()
    const path = folder.write(name, bytes)
    const { blocks } = await read({ file_path: path })
    expect(blocks).toEqual([
      { type: 'text', text: `${path} (${media_type}, ${bytes.length} B)` },
      { type, source: { type: 'base64', media_type, data: bytes.toString('base64') } },
    ])
  })

  it('that are too large are refused', async () => {
    const { folder, read } = open()
    folder.write('a.png', Buffer.concat([PNG, Buffer.alloc(3_000_000)]))
    const answer = await read({ file_path: 'a.png' })
    expect(answer).toMatchObject({ isError: true })
    expect(answer.text).toContain('image/png with 3.0 MB, over the limit of 3.0 MB')
  })

  it('a notebook is shown as cells with outputs', async () => {
    const { folder, read } = open()
    const cells = [
      { cell_type: 'markdown', source: ['# Title\n', 'text'] },
      {
        cell_type: 'code',
        id: 'c2',
        source: 'plot()',
        outputs: [
          { output_type: 'stream', text: ['hello\n', 'world\n'] },
          { output_type: 'display_data', data: { 'image/png': 'AAAA\n', 'text/plain': '<Figure>' } },
          { output_type: 'error', ename: 'KeyError', evalue: "'x'", traceback: ['\x1b[31mline 1\x1b[0m'] },
          { output_type: 'stream', text: 'z'.repeat(10_005) },
        ],
      },
    ]
    folder.write('a.ipynb', JSON.stringify({ cells }))
    const { text, blocks } = await read({ file_path: 'a.ipynb' })
    expect(text.replace(/^ *\d+\t/gm, '').replace(/z{10,}( … \[line cut\])?/, 'zzz')).toBe(
      [
        '<cell number="1" type="markdown">\n# Title\ntext\n</cell>',
        '<cell number="2" type="code" id="c2">\nplot()\n</cell>',
        '<output cell="2">\nhello\nworld\n</output>',
        '<output cell="2">\n<Figure>\n[picture 1, below]\n</output>',
        '<output cell="2">\nKeyError: \'x\'\nline 1\n</output>',
        '<output cell="2">\nzzz\n[5 more characters]\n</output>',
      ].join('\n'),
    )
    expect(blocks[1]).toEqual({
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'AAAA' },
    })
    const pictures = Array.from({ length: 25 }, () => ({ data: { 'image/png': 'AAAA' } }))
    folder.write('many.ipynb', JSON.stringify({ cells: [{ cell_type: 'code', outputs: pictures }] }))
    const many = await read({ file_path: 'many.ipynb' })
    expect(many.blocks).toHaveLength(21)
    expect(many.text.match(/left out: there are too many/g)).toHaveLength(5)
    folder.write('broken.ipynb', '{"cells": ')
    expect((await read({ file_path: 'broken.ipynb' })).text).toBe('     1\t{"cells": ')
  })
})

describe('what cannot be read', () => {
  it('is told clearly', async () => {
    const { folder, read } = open()
    mkdirSync(folder.path('dir'))
    folder.write('binary', Buffer.from([1, 0, 2]))
    folder.write('src/config.ts', '')
    execFileSync('mkfifo', [folder.path('pipe')])
    symlinkSync('nowhere', folder.path('dangling'))
    const answers = [
      'dir',
      'binary',
      'pipe',
      '/dev/zero',
      'src/confg.ts',
      'src/config.js',
      'dangling',
      ' ',
    ].map((file_path) => read({ file_path }))
    const texts = (await Promise.all(answers)).map(({ text, isError }) => [text, isError])
    expect(texts).toEqual([
      [`${folder.path('dir')} is a directory, not a file. Use Glob to list the files in it.`, true],
      [`${folder.path('binary')} is a binary file (3 B), which Read cannot show.`, true],
      [`${folder.path('pipe')} is a device, a pipe or a socket, which cannot be read.`, true],
      ['/dev/zero is a device, a pipe or a socket, which cannot be read.', true],
      [
        `There is no file ${folder.path('src/confg.ts')}. The folder has files with similar names: config.ts.`,
        true,
      ],
      [
        `There is no file ${folder.path('src/config.js')}. The folder has files with similar names: config.ts.`,
        true,
      ],
      [`There is no file ${folder.path('nowhere')}.`, true],
      ['file_path is empty.', true],
    ])
  })
})
