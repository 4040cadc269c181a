import { createPolicy } from '@tidemark/core/policy/create-policy'
import { describe, expect, it } from 'vitest'
import {
  findMemoryImports,
  isInFolder,
  type MemoryFileDisk,
  type MemoryFilePlaces,
  MemoryFileReader,
} from './memory-reader.ts'

describe('imports', () => {
  it.each<[string, readonly string[]]>([
    ['@a.md', ['a.md']],
    ['See @docs/a.md, @./b.md. (@no.md) and "@no.md"', ['docs/a.md', './b.md']],
    ['@~/x.md\n@/abs/y.md\n  - @../z', ['~/x.md', '/abs/y.md', '../z']],
    ['a@b.com `@code` ``@code`` @@x @', []],
    ['```\n@code\n~~~\n@code\n```\n@a\n~~~md\n@code\n~~~', ['a']],
    ['@a @b @a', ['a', 'b']],
    ['@日本語/規則.md', ['日本語/規則.md']],
  ])('%j', (text, paths) => {
    expect(findMemoryImports(text)).toEqual(paths)
  })

  it('without end are cut off', () => {
    expect(
      findMemoryImports(Array.from({ length: 5_000 }, (_, index) => `@f${index}`).join(' ')),
    ).toHaveLength(100)
  })
})

/** A disk with these files and links. */
function createDisk(files: Readonly<Record<string, string>>): MemoryFileDisk {
  const folders = new Set(Object.keys(files).flatMap((path) => [path, path.slice(0, path.lastIndexOf('/'))]))
  return {
    locate: async (path) => (folders.has(path) || path === '/' ? path : null),
    async parseRule(text) {
      if (text === 'bad rule') return { ok: false, why: 'its front matter is bad' }
      const [, glob, body = text] = /^---\npaths: "?(.*?)"?\n---\n(.*)$/s.exec(text) ?? []
      return { ok: true, text: body, globs: glob === undefined ? null : [glob] }
    },
    async read(path) {
      const text = files[path] ?? ''
      if (text === 'broken') return { ok: false, why: 'it may not be read' }
      return { ok: true, text, bytes: text.length, isWhole: true, realPath: path }
    },
    async list(folder) {
      if (folder === '/p/lib/.claude/rules') throw new Error('The folder cannot be listed.')
      const inside = Object.keys(files).filter((path) => path.startsWith(`${folder}/`))
      return inside.map((path) => path.slice(folder.length + 1)).filter((name) => !name.includes('/'))
    },
  }
}

function createReader(
  files: Readonly<Record<string, string>>,
  places: Partial<MemoryFilePlaces> = {},
): MemoryFileReader {
  const all: MemoryFilePlaces = {
    ...{ cwd: '/p/src', project: '/p', home: '/me', excludes: [], followsImports: true },
    isPermitted: (path) => isInFolder(path, '/p'),
    ...places,
  }
  return new MemoryFileReader(createDisk(files), all, createPolicy({}).memoryFiles)
}

const FILES = {
  '/me/.claude/CLAUDE.md': 'user',
  '/me/.claude/rules/ts.md': '---\npaths: "**/*.ts"\n---\nuser rule',
  '/p/AGENTS.md': 'root',
  '/p/.claude/rules/z.md': 'root rule z',
  '/p/.claude/rules/a.md': 'root rule a',
  '/p/.claude/rules/lib.md': '---\npaths: lib/**\n---\nlib rule',
  '/p/src/CLAUDE.local.md': 'src local',
  '/p/src/CLAUDE.md': 'src',
  '/p/src/deep/er/CLAUDE.md': 'deeper',
  '/p/src/deep/AGENTS.md': 'deep',
  '/p/src/deep/.claude/rules/a.md': 'deep rule',
  '/p/lib/CLAUDE.md': 'lib',
  '/p/lib/AGENTS.md': 'broken',
}

const toTexts = ({ files }: { readonly files: readonly { readonly text: string }[] }) =>
  files.map(({ text }) => text)

describe('memory files', () => {
  it('that are rules with bad front matter are left out, with the reason', async () => {
    const bad = { '/p/.claude/rules/bad.md': 'bad rule', '/p/.claude/rules/a.md': 'root rule a' }
    const found = await createReader(bad).readRoot()
    expect(toTexts(found)).toEqual(['root rule a'])
    expect(found.unread).toEqual([{ path: '/p/.claude/rules/bad.md', why: 'its front matter is bad' }])
  })

  it('of the session come from the user, then from the project down to the working directory', async () => {
    const order = ['user', 'root', 'root rule a', 'root rule z', 'src', 'src local']
    expect(toTexts(await createReader(FILES).readRoot())).toEqual(order)
    expect(toTexts(await createReader(FILES, { home: null }).readRoot())).toEqual(order.slice(1))
  })

  it.each<[string, readonly string[]]>([
    ['/p/src/deep/er/x.ts', ['user rule', 'deep', 'deep rule', 'deeper']],
    ['/p/src/deep/x.md', ['deep', 'deep rule']],
    ['/p/src/new/folder/x.md', []],
    ['/p/lib/x.ts', ['user rule', 'lib rule', 'lib']],
    ['/p/src/x.md', []],
    ['/p/../etc/x.ts', []],
    ['/etc/x.ts', []],
    ['/pp/x.ts', []],
  ])('of %s', async (path, texts) => {
    expect(toTexts(await createReader(FILES).readForPath(path))).toEqual(texts)
  })

  it('that cannot be read are named, and the others are there', async () => {
    expect(await createReader(FILES).readForPath('/p/lib/x.ts')).toMatchObject({
      unread: expect.arrayContaining([
        { path: '/p/lib/AGENTS.md', why: 'it may not be read' },
        { path: '/p/lib/.claude/rules', why: 'The folder cannot be listed.' },
      ]),
    })
  })

  it('that were seen are not returned again', async () => {
    const reader = createReader(FILES)
    const seen = new Set<string>()
    expect(toTexts(await reader.readForPath('/p/src/deep/x.md', seen))).toEqual(['deep', 'deep rule'])
    expect(toTexts(await reader.readForPath('/p/src/deep/er/x.md', seen))).toEqual(['deeper'])
  })

  it('of the user import what they like, and those of the project what is permitted', async () => {
    const files = {
      '/me/.claude/CLAUDE.md': '@/etc/user @~/own',
      '/etc/user': 'by the user',
      '/me/own': 'own',
      '/p/CLAUDE.md': '@/etc/project @~/own2',
      '/etc/project': 'by the project',
      '/me/own2': 'own2',
    }
    const { files: found, unread } = await createReader(files).readRoot()
    expect(found.map(({ path, importedBy }) => [path, importedBy])).toEqual([
      ['/me/.claude/CLAUDE.md', null],
      ['/etc/user', '/me/.claude/CLAUDE.md'],
      ['/me/own', '/me/.claude/CLAUDE.md'],
      ['/p/CLAUDE.md', null],
    ])
    expect(unread.map(({ path }) => path)).toEqual(['/etc/project', '/me/own2'])
  })

  it.each<[boolean, string]>([
    [true, '/p/CLAUDE.md imports it, and there is no such file'],
    [false, '/p/CLAUDE.md imports it, and the folder is not trusted'],
  ])(
    'name the imports that were skipped, and no mere words with an @ (followed: %s)',
    async (followsImports, why) => {
      const files = { '/p/CLAUDE.md': 'Ask @ada about @types/node. @docs/gone.md @./gone @old.md' }
      const places = { followsImports, excludes: ['old.md'] }
      const { skippedImports, unread } = await createReader(files, places).readRoot()
      expect(unread).toEqual([])
      expect(skippedImports).toEqual([
        { path: '/p/docs/gone.md', why },
        { path: '/p/gone', why },
      ])
    },
  )
})
