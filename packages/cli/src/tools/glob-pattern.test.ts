import { expect, it } from 'vitest'
import { compileFileGlob, compileGlob, parseIgnoreRules, splitGlob } from './glob-pattern.ts'

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
  const glob = compileGlob(pattern)
  expect([...matching, ...others].filter((path) => glob.test(path))).toEqual(matching)
})

it('a glob without a slash selects files in any folder', () => {
  const paths = ['a.ts', 'src/a.ts', 'src/b/a.ts']
  expect(paths.filter((path) => compileFileGlob('a.ts').test(path))).toEqual(paths)
  expect(paths.filter((path) => compileFileGlob('/a.ts').test(path))).toEqual(['a.ts'])
  expect(paths.filter((path) => compileFileGlob('./src/*.ts').test(path))).toEqual(['src/a.ts'])
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
  const isIgnored = (path: string, isFolder = false): boolean => {
    const rule = rules.findLast(
      ({ pattern, onlyFolders }) => (isFolder || !onlyFolders) && pattern.test(path),
    )
    return rule !== undefined && !rule.includes
  }
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
