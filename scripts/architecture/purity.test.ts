import { describe, expect, it } from 'vitest'
import { checkPurity } from './purity.ts'

const whyOf = (text: string): readonly string[] =>
  checkPurity([{ path: 'packages/core/src/a.ts', text }]).map(({ why }) => why)

describe('refuses', () => {
  it.each([
    ['Date.now()', 'Date.now: the clock'],
    ["Date['now']()", 'Date.now: the clock'],
    ['new Date()', 'new Date(): the clock'],
    ['new Date', 'new Date(): the clock'],
    ['Date()', 'Date: the clock'],
    ['const D = Date', 'Date: the clock'],
    ['const { now } = Date', 'Date: the clock'],
    ['export const a = { Date }', 'Date: the clock'],
    ['Math.random()', 'Math.random: chance'],
    ["Math['random']()", 'Math.random: chance'],
    ['const { random } = Math', 'Math as a value: call its functions by name'],
    ["a.localeCompare('b')", "localeCompare without a locale: depends on the machine's"],
    ['list.sort(String.prototype.localeCompare)', "localeCompare without a locale: depends on the machine's"],
    ['a.toLocaleUpperCase()', "toLocaleUpperCase without a locale: depends on the machine's"],
    ['(5).toLocaleString()', "toLocaleString: depends on the machine's locale or time zone"],
    ['at.getHours()', "getHours: depends on the machine's locale or time zone"],
    ['console.log(1)', 'console: the platform'],
    ['const a = process.env', 'process: the platform'],
    ['globalThis.a = 1', 'globalThis: the platform'],
    ['setTimeout(() => 1, 5)', 'setTimeout: the platform'],
    ['const wait = setTimeout', 'setTimeout: the platform'],
    ["Buffer.from('a')", 'Buffer: the platform'],
    ['new AbortController()', 'AbortController: the platform'],
    ['AbortSignal.timeout(5)', 'AbortSignal: the platform'],
    ["eval('1')", 'eval: the platform'],
    ['new Intl.NumberFormat()', 'Intl: the platform'],
    ['import.meta.url', 'import.meta: the platform'],
    ['function f(process: string) { return process }\nprocess.exit()', 'process: the platform'],
  ])('%s', (text, why) => {
    expect(whyOf(text)).toEqual([why])
  })
})

describe('allows', () => {
  it.each([
    'new Date(stamp)',
    'Date.UTC(2026, 0)',
    'Date.parse(stamp)',
    'if (a instanceof Date) b()',
    'new TextEncoder().encode(text)',
    "new TextDecoder('utf-8', { fatal: true }).decode(bytes)",
    'atob(text)',
    'structuredClone(value)',
    'function f(signal: AbortSignal): boolean { return signal.aborted }',
    'function f(at: Date): void {}',
    'Math.max(1, 2)',
    "a.localeCompare(b, 'en')",
    "a.toLocaleUpperCase('en')",
    'function f(process: string): string { return process }',
    "import { fetch } from './fetch.ts'\nfetch()",
    'const record = { console: 1, setTimeout() {} }\nrecord.console',
    'interface A { process: string; now(): number }',
    'ports.process.exit()',
    "// Date.now()\nconst text = 'Math.random()'",
  ])('%s', (text) => {
    expect(whyOf(text)).toEqual([])
  })
})

it('names file and line', () => {
  expect(checkPurity([{ path: 'packages/wire/src/a.ts', text: '\n\n  const now = Date.now()' }])).toEqual([
    { file: 'packages/wire/src/a.ts', line: 3, why: 'Date.now: the clock' },
  ])
})
