import { expect, it } from 'vitest'
import { checkNames } from './names.ts'

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
  [
    'a constant',
    'export const ERROR_HANDLER = 1',
    '1 ERROR_HANDLER: "handler" says nothing; name what it is',
  ],
  ['a type', 'export type FileInfo = 1', '1 FileInfo: "info" says nothing; name what it is'],
  ['a list', 'const a = 1\nexport { a as viewData }', '2 viewData: "data" says nothing; name what it is'],
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
