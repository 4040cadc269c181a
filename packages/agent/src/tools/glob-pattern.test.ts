import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { compilePathFilter, decideIgnored, parseIgnoreRules, splitGlob, toFileGlob } from './glob-pattern.ts'

it.each([
  ['*.ts', ['a.ts', '.ts'], ['a.js', 'src/a.ts', 'axts']],
  ['**/*.ts', ['a.ts', 'src/a.ts', 'src/b/a.ts'], ['src/a.js']],
  ['src/**', ['src/a', 'src/b/c'], ['src', 'other/src/a']],
  ['**', ['a', 'a/b'], ['']],
  ['a**b', ['ab', 'axxb'], ['a/b']],
  ['src/**/test/*.ts', ['src/test/a.ts', 'src/x/y/test/a.ts'], ['src/test/x/a.ts']],
  ['?.[jt]s', ['a.js', 'b.ts'], ['ab.js', 'a.cs', '/.js']],
  ['[!a]*', ['b', 'bc'], ['a', 'ab']],
  ['[a-c]x', ['ax', 'bx'], ['dx', '-x']],
  ['*.{js,ts{,x}}', ['a.js', 'a.ts', 'a.tsx'], ['a.jsx', 'a.{js}']],
  ['{a,b}/{c,d}', ['a/c', 'b/d'], ['a/b']],
  ['a{b}c', ['a{b}c'], ['abc']],
  ['a(b)+$^.|', ['a(b)+$^.|'], ['ab']],
  ['a\\*b', ['a*b'], ['axb']],
  ['!a', ['!a'], ['b']],
  ['[^a]', ['b'], ['a']],
  ['@(a|b)', ['@(a|b)'], ['a']],
])('the glob %s', (pattern, matching, others) => {
  const isMatch = compilePathFilter(pattern)
  expect([...matching, ...others].filter(isMatch)).toEqual(matching)
})

it('a glob without a slash selects files in any folder', () => {
  const paths = ['a.ts', 'src/a.ts', 'src/b/a.ts']
  expect(paths.filter((path) => compilePathFilter(toFileGlob('a.ts'))(path))).toEqual(paths)
  expect(paths.filter((path) => compilePathFilter(toFileGlob('/a.ts'))(path))).toEqual(['a.ts'])
  expect(paths.filter((path) => compilePathFilter(toFileGlob('./src/*.ts'))(path))).toEqual(['src/a.ts'])
})

it.each([
  ['*.ts', '', '*.ts'],
  ['src/a/*.ts', 'src/a', '*.ts'],
  ['src/a.ts', 'src', 'a.ts'],
  ['/etc/*', '/etc', '*'],
  ['/*', '/', '*'],
  ['../x/**', '../x', '**'],
  ['{a,b}/c', '', '{a,b}/c'],
])('the folders at the beginning of %s', (pattern, folder, rest) => {
  expect(splitGlob(pattern)).toEqual({ folder, rest })
})

it('the last rule of a .gitignore that matches decides', () => {
  const rules = parseIgnoreRules('# comment\n\n*.log\n!keep.log\nbuild/\n/top\ndocs/*.pdf\nspace\\ \n[\n')
  const isIgnored = (path: string, isFolder = false): boolean =>
    decideIgnored(rules, path.split('/'), isFolder) === true
  expect(
    [
      'a.log',
      'x/a.log',
      'keep.log',
      'x/keep.log',
      'build',
      'top',
      'x/top',
      'docs/a.pdf',
      'docs/x/a.pdf',
    ].filter((path) => isIgnored(path)),
  ).toEqual(['a.log', 'x/a.log', 'top', 'docs/a.pdf'])
  expect([isIgnored('build', true), isIgnored('x/build', true)]).toEqual([true, true])
})

const NAMES = ['a', 'b', 'ab', 'b.a', '.a', 'a b', 'a ', '[a', 'a]', 'a-b', '#a', '!a', '{a,b}', '^', '1']
const FOLDERS = ['', ...['a', 'b', 'ab', '.a', 'a b'].flatMap((one) => [one, `${one}/a`, `${one}/b`])]

/** Creates a repository with these names in these folders, and returns a function that asks Git which it ignores. */
function createRepository(folder: string): {
  readonly paths: readonly string[]
  ask(rules: string): readonly string[]
} {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CEILING_DIRECTORIES: folder,
  }
  execFileSync('git', ['init', '--quiet', '--template='], { cwd: folder, env })
  for (const each of FOLDERS) mkdirSync(join(folder, each), { recursive: true })
  const files = FOLDERS.flatMap((each) => NAMES.map((name) => (each === '' ? name : `${each}/${name}`)))
  for (const path of files.filter((each) => !FOLDERS.includes(each))) writeFileSync(join(folder, path), '')
  return {
    paths: files,
    ask(rules) {
      writeFileSync(join(folder, '.gitignore'), rules)
      try {
        const input = files.join('\0')
        const options = { cwd: folder, env, input, encoding: 'utf8' as const }
        return execFileSync('git', ['check-ignore', '--no-index', '--stdin', '-z'], options)
          .split('\0')
          .slice(0, -1)
      } catch (error) {
        // Exit code 1: Git ignores none of them.
        if (error instanceof Error && 'status' in error && error.status === 1) return []
        throw error
      }
    },
  }
}

/** Four backslashes, a set that is not closed, a slash in a set, an escaped slash, spaces at the end and the like. */
const UNUSUAL_LINES = [
  '\\\\\\\\',
  '[a',
  'a\\',
  '[a-b/]',
  '\\/**',
  'a\\ ',
  'a\\  ',
  'a\r',
  '\uFEFFa',
  '!',
  '/',
  '//a',
  '*a'.repeat(24),
]

it('a walk leaves out exactly what Git ignores, whatever a .gitignore contains', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ignored-'))
  try {
    const { paths, ask } = createRepository(folder)
    const signs = [
      'a',
      'b',
      'ab',
      '.',
      '*',
      '**',
      '***',
      '?',
      '/',
      '/**',
      '**/',
      '\\',
      '[',
      ']',
      '[!',
      '[^',
      '[a-b',
      '-',
    ]
    const others = [
      ' ',
      '!',
      '#',
      '{a,b}',
      '[[:alpha:]',
      '[:digit:]',
      '[[:no:]]',
      '1',
      '\t',
      '\r',
      '^',
      '[]a]',
      '[\\]]',
    ]
    const line = fc
      .array(fc.constantFrom(...signs, ...others), { maxLength: 6 })
      .map((parts) => parts.join(''))
      // Two stars after a letter are one star by the documentation of Git, but not always by its code.
      .filter((text) => !/[^/*]\*\*/.test(text))
    fc.assert(
      fc.property(
        fc.array(line, { minLength: 1, maxLength: 4 }),
        fc.constantFrom('\n', '\r\n'),
        (lines, end) => {
          const text = lines.join(end)
          const rules = parseIgnoreRules(text)
          const isIgnored = (path: string): boolean => {
            const names = path.split('/')
            return names.some(
              (_, index) =>
                decideIgnored(
                  rules,
                  names.slice(0, index + 1),
                  index < names.length - 1 || FOLDERS.includes(path),
                ) === true,
            )
          }
          expect(paths.filter(isIgnored)).toEqual(ask(text))
        },
      ),
      { numRuns: countPropertyRuns(200), examples: UNUSUAL_LINES.map((text) => [[text], '\n']) },
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
})
