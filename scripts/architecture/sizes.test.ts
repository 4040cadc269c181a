import { expect, it } from 'vitest'
import { checkFolderBudgets, checkSizes, checkSmallFiles, type SizeLimits } from './sizes.ts'

const limits: SizeLimits = { fileLines: 6, functionLines: 3, excepted: new Map([['table.ts', 'a table']]) }
const body = '  a()\n'
const why = (path: string, text: string, given = limits): readonly string[] =>
  checkSizes([{ path, text }], given).map((finding) => `${finding.line} ${finding.why}`)

it('counts lines as an editor does', () => {
  expect(why('a.ts', 'a\n'.repeat(6))).toEqual([])
  expect(why('a.ts', 'a\n'.repeat(7))).toEqual(['0 has 7 lines; the limit is 6'])
  expect(why('a.ts', `${'a\n'.repeat(6)}a`)).toEqual(['0 has 7 lines; the limit is 6'])
})

it.each([
  ['a function', `function long() {\n${body}${body}}`, '1 long has 4 lines; the limit is 3'],
  [
    'an arrow bound to a name',
    `\nconst long = () => {\n${body}${body}}`,
    '2 long has 4 lines; the limit is 3',
  ],
  ['a method', `class A {\nlong() {\n${body}${body}}}`, '2 long has 4 lines; the limit is 3'],
  ['a nameless callback', `run(() => {\n${body}${body}})`, '1 (anonymous) has 4 lines; the limit is 3'],
])('measures %s', (_what, text, expected) => {
  expect(why('a.ts', text)).toEqual([expected])
})

it('leaves a contract comment out of the count', () => {
  expect(why('a.ts', `/**\n * Contract.\n */\nfunction short() {\n${body}}`)).toEqual([])
})

it('leaves functions of tests alone, not their length', () => {
  expect(why('a.test.ts', `describe(() => {\n${body}${body}})`)).toEqual([])
  expect(why('a.test.ts', 'a\n'.repeat(7))).toHaveLength(1)
})

it('excepts what is listed by name', () => {
  expect(why('table.ts', 'a\n'.repeat(7))).toEqual([])
  const excepted = new Map([['a.ts#schema', 'a schema']])
  expect(why('a.ts', `const schema = () => {\n${body}${body}}`, { ...limits, excepted })).toEqual([])
})

it('refuses a small file with a single importer, entries left out', () => {
  const sources = [
    { path: 'src/small.ts', text: 'export const a = 1\n' },
    { path: 'src/shared.ts', text: 'export const b = 1\n' },
    { path: 'src/large.ts', text: 'export const c = 1\n'.repeat(5) },
    { path: 'src/port.ts', text: 'export interface Port {}\n' },
    {
      path: 'src/one.ts',
      text: "import './small.ts'\nimport './shared.ts'\nimport './large.ts'\nimport './port.ts'\n",
    },
    { path: 'src/two.ts', text: "import './shared.ts'\n" },
    { path: 'src/index.ts', text: "export { a } from './small.ts'\n" },
  ]
  expect(checkSmallFiles(sources, 4, new Map([['src/port.ts', 'an interface']]))).toEqual([
    { file: 'src/small.ts', line: 0, why: 'has 1 lines and one importer: move it into src/one.ts' },
  ])
})

it('refuses a folder over its budget, one without a budget, and a budget without a folder', () => {
  const sources = [
    { path: 'packages/core/src/log/record.ts', text: 'a\n'.repeat(3) },
    { path: 'packages/core/src/log/inner/json.ts', text: 'a\n'.repeat(2) },
    { path: 'packages/core/src/log/record.test.ts', text: 'a\n'.repeat(9) },
    { path: 'packages/cli/src/index.ts', text: 'a\n' },
    { path: 'packages/cli/test/chat.ts', text: 'a\n'.repeat(9) },
  ]
  const check = (budgets: Readonly<Record<string, number>>): readonly string[] =>
    checkFolderBudgets(sources, budgets).map(({ file, why }) => `${file} ${why}`)
  expect(check({ 'core/log': 5, cli: 1 })).toEqual([])
  expect(check({ 'core/log': 4, 'core/gone': 7 })).toEqual([
    'core/log has 5 lines; its budget is 4',
    'cli has 1 lines; its budget is 0',
    'core/gone has a budget, and no sources',
  ])
})
