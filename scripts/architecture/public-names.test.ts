import { expect, it } from 'vitest'
import { checkBarrels, checkPublicNames, checkSurfaceSize, publicNames } from './public-names.ts'

const entries = new Map([['tidemark', 'packages/tidemark/src/index.ts']])
const index = (text: string) => ({ path: 'packages/tidemark/src/index.ts', text })

it('reads the names of an entry, however they are exported', () => {
  const text = `export { b, type A, c as renamed } from './x.ts'
export type { D } from './y.ts'
export const e = 1, f = 2
export function g(): void {}
export class H {}
export interface I {}
export type J = 1
const inner = 1`
  expect(publicNames([index(text)], entries)).toEqual({
    tidemark: ['A', 'D', 'H', 'I', 'J', 'b', 'e', 'f', 'g', 'renamed'],
  })
})

it('tells what came and what went', () => {
  expect(checkPublicNames({ a: ['x', 'y'], b: ['z'] }, { a: ['y', 'w'], c: ['v'] })).toEqual([
    'a: + x',
    'a: - w',
    'b: + z',
    'c: - v',
  ])
  expect(checkPublicNames({ a: ['x'] }, { a: ['x'] })).toEqual([])
})

it('refuses an entry with too many names', () => {
  expect(checkSurfaceSize({ a: ['x', 'y'], b: ['z'] }, { a: 1, b: 1, c: 1 })).toEqual([
    'a: 2 names, at most 1',
  ])
})

it.each([
  ['export * in an entry', index("export * from './x.ts'"), 'export *: name what is public'],
  ['export * as', index("export * as x from './x.ts'"), 'export *: name what is public'],
  [
    'a file that hands on',
    { path: 'packages/tidemark/src/journal/journal.ts', text: "export { a } from './x.ts'" },
    'hands on a from ./x.ts: import it from where it is made',
  ],
  [
    'an index that is no entry',
    { path: 'packages/tidemark/src/journal/index.ts', text: '' },
    'is an index that no package exports',
  ],
])('refuses %s', (_what, source, why) => {
  expect(checkBarrels([source], entries).map((finding) => finding.why)).toEqual([why])
})

it('allows an entry to hand on by name', () => {
  expect(checkBarrels([index("export { a, type B } from './x.ts'")], entries)).toEqual([])
})
