import { expect, it } from 'vitest'
import { applyMutant, type Mutant } from './mutant.ts'
import { judge, type TestOutcome } from './verdict.ts'

const mutant: Mutant = {
  name: 'm',
  law: 'Law 5: prefix',
  file: 'a.ts',
  find: 'a > b',
  replace: 'a >= b',
  tests: ['a'],
}
const green: TestOutcome = { ran: 3, failed: [], broken: [], timedOut: false }

it.each<[string, Partial<TestOutcome>]>([
  ['survived', {}],
  ['noticed', { failed: ['other > x', 'law 5: PREFIX > holds'] }],
  ['noticed', { failed: ['law 5: prefix > holds'], broken: ['b.test.ts'] }],
  ['unexpected', { failed: ['law 7: undo > holds'] }],
  ['broken', { ran: 0, broken: ['b.test.ts'] }],
  ['no-tests', { ran: 0 }],
  ['hung', { ran: 0, timedOut: true }],
])('%s: %j', (kind, outcome) => {
  expect(judge(mutant, { ...green, ...outcome }).kind).toBe(kind)
})

it('names the tests of the law first', () => {
  const failed = ['other > x', 'law 5: prefix > holds']
  expect(judge(mutant, { ...green, failed }).noticedBy).toEqual(['law 5: prefix > holds', 'other > x'])
})

it.each<[string, string, Partial<Mutant>, ReturnType<typeof applyMutant>]>([
  ['applies', 'if (a > b) c()', {}, { ok: true, text: 'if (a >= b) c()' }],
  ['takes the text literally', 'x', { find: 'x', replace: '$& $1' }, { ok: true, text: '$& $1' }],
  ['refuses none', 'if (a < b) c()', {}, { ok: false, why: '`find` is not in the file' }],
  ['refuses two', 'a > b, a > b', {}, { ok: false, why: '`find` occurs 2 times in the file' }],
  ['refuses nothing to find', 'a', { find: '' }, { ok: false, why: '`find` is empty' }],
  ['refuses no change', 'a > b', { replace: 'a > b' }, { ok: false, why: '`replace` changes nothing' }],
])('%s', (_what, text, given, expected) => {
  expect(applyMutant(text, { ...mutant, ...given })).toEqual(expected)
})
