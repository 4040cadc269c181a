import { expect, it } from 'vitest'
import { chooseSymbols, createTimeFormat } from './screen.ts'

it.each([
  ['nothing is said', {}, true],
  ['UTF-8', { LANG: 'en_US.UTF-8' }, true],
  ['C.UTF-8', { LC_ALL: 'C.utf8' }, true],
  ['the C locale', { LANG: 'C' }, false],
  ['Latin-1', { LC_CTYPE: 'de_DE.ISO-8859-1', LANG: 'en_US.UTF-8' }, false],
  ['LC_ALL comes first', { LC_ALL: 'C', LANG: 'en_US.UTF-8' }, false],
  ['an empty LC_ALL', { LC_ALL: '', LANG: 'en_US.UTF-8' }, true],
  ['the Linux console', { TERM: 'linux' }, false],
  ['the old console of Windows', { OS: 'Windows_NT' }, false],
  ['the new one', { OS: 'Windows_NT', WT_SESSION: 'x' }, true],
])('%s', (_what, env, isUnicode) => {
  expect(chooseSymbols(env).compacted).toBe(isUnicode ? '▲' : '^')
})

it.each([
  ['UTC', '2026-03-09T23:30:00.000Z', '2026-03-09 23:30'],
  ['Europe/Berlin', '2026-03-09T23:30:00.000Z', '2026-03-10 00:30'],
  ['UTC', 'not a time', '? ?'],
])('in %s, %s', (zone, at, expected) => {
  expect(createTimeFormat(zone).full(at)).toBe(expected)
})

it('takes the zone of the machine where the one given is none', () => {
  const at = '2026-03-09T12:00:00.000Z'
  expect(createTimeFormat(':/etc/localtime').full(at)).toBe(createTimeFormat(undefined).full(at))
})
