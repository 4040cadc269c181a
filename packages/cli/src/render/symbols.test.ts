import { expect, it } from 'vitest'
import { symbolsFor } from './symbols.ts'

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
  expect(symbolsFor(env).compacted).toBe(isUnicode ? '▲' : '^')
})
