import { expect, it } from 'vitest'
import { checkFunctionNames, checkNames, checkUniqueExports, checkUnusedExports } from './names.ts'

const why = (
  path: string,
  text: string,
  allowed: ReadonlyMap<string, string> = new Map(),
): readonly string[] =>
  checkNames([{ path, text }], allowed).map((finding) => `${finding.line} ${finding.why}`)

it.each([
  ['a suffix', 'export class SessionManager {}', '1 SessionManager: "manager" says nothing; name what it is'],
  ['a prefix', 'export interface BaseRecord {}', '1 BaseRecord: "base" says nothing; name what it is'],
  [
    'a function',
    '\nexport function recordUtils() {}',
    '2 recordUtils: "utils" says nothing; name what it is',
  ],
  ['a list', 'const a = 1\nexport { a as viewUtil }', '2 viewUtil: "util" says nothing; name what it is'],
  ['a version', 'export interface MessageV2 {}', '1 MessageV2: "v2" says nothing; name what it is'],
])('refuses such a word in %s', (_what, text, expected) => {
  expect(why('packages/core/src/a.ts', text)).toEqual([expected])
})

it('refuses it in a file name, and any case but kebab', () => {
  expect(why('scripts/file-utils.ts', '')).toEqual(['0 file-utils: "utils" says nothing; name what it is'])
  expect(why('scripts/util.test.ts', '')).toEqual(['0 util: "util" says nothing; name what it is'])
  expect(why('scripts/fileName.ts', '')).toEqual(['0 file names are kebab-case'])
})

it('allows words that only look like it, inner names and what is listed', () => {
  expect(why('a.ts', 'export interface CompactMetadata {}')).toEqual([])
  expect(why('a.ts', 'export const database = 1, informed = 2')).toEqual([])
  expect(why('a.ts', 'const data = 1')).toEqual([])
  expect(why('a.ts', 'export interface RecordBase {}', new Map([['RecordBase', 'why']]))).toEqual([])
})

const NO_LIMIT = { participleShare: 1, ofShare: 1 }
const functionProblems = (text: string, limits = NO_LIMIT): readonly string[] =>
  checkFunctionNames([{ path: 'packages/core/src/a.ts', text }], limits).map(
    ({ line, why }) => `${line} ${why}`,
  )

it.each([
  ['a function', 'function told() {}', 'told'],
  ['an arrow function', 'const fitted = () => 1', 'fitted'],
  ['a property', 'const a = { answered: () => 1 }', 'answered'],
  ['a method', 'class A { kept() {} }', 'kept'],
  ['a method of an interface', 'interface A { written(): void }', 'written'],
])('refuses a participle as the whole name of %s', (_what, text, name) => {
  expect(functionProblems(text)).toEqual([
    `1 ${name}: a participle alone; say what the function does (a verb) or returns (a noun)`,
  ])
})

it('allows verbs, nouns and types that only look like participles', () => {
  const text =
    'function need() {}\nfunction embed() {}\nfunction user() {}\nfunction commitDraft() {}\nclass Told {}'
  expect(functionProblems(text, { participleShare: 0, ofShare: 0 })).toEqual([])
})

it('holds the share of names that begin with a participle or end in Of', () => {
  const text =
    'function writtenRecords() {}\nfunction keyOf() {}\nfunction readLog() {}\nfunction isOpen() {}'
  expect(functionProblems(text, { participleShare: 0.25, ofShare: 0.25 })).toEqual([])
  expect(functionProblems(text, { participleShare: 0.2, ofShare: 0.2 })).toEqual([
    '0 25.0% of function names begin with a participle, at most 20.0% may: writtenRecords (packages/core/src/a.ts)',
    '0 25.0% of function names end in Of, at most 20.0% may: keyOf (packages/core/src/a.ts)',
  ])
})

it('refuses an exported name that a package uses twice, entries and other packages left out', () => {
  const sources = [
    { path: 'packages/core/src/a.ts', text: 'export const a = 1\nexport interface B {}' },
    { path: 'packages/core/src/c.ts', text: 'export function a() {}' },
    { path: 'packages/core/src/index.ts', text: "export { a } from './a.ts'" },
    { path: 'packages/wire/src/a.ts', text: 'export const a = 1' },
  ]
  expect(checkUniqueExports(sources)).toEqual([
    { file: 'packages/core/src/c.ts', line: 1, why: 'a is exported by packages/core/src/a.ts too' },
  ])
})

it('refuses an export that no file imports, entries and files that are loaded whole left out', () => {
  const shipped = [
    { path: 'packages/core/src/a.ts', text: 'export const a = 1\nexport const alone = 2' },
    { path: 'packages/core/src/whole.ts', text: 'export const b = 1' },
    { path: 'packages/core/src/index.ts', text: 'export const c = 1' },
  ]
  const test = {
    path: 'packages/core/src/a.test.ts',
    text: "import { a as one } from './a.ts'\nconst whole = await import('./whole.ts')",
  }
  expect(checkUnusedExports(shipped, [...shipped, test], new Set(['packages/core/src/index.ts']))).toEqual([
    { file: 'packages/core/src/a.ts', line: 2, why: 'nobody imports alone: do not export it' },
  ])
})
