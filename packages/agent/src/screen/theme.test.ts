import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { visibleWidth } from '@earendil-works/pi-tui'
import { expect, it } from 'vitest'
import { createTheme, toAscii } from './theme.ts'

const createFor = (env: Record<string, string>) =>
  createTheme({ write() {}, warn() {}, env, isTty: true, columns: 80 })

it.each([
  ['a locale with UTF-8', { LANG: 'de_DE.UTF-8' }, '❯ é'],
  ['LC_ALL=C', { LANG: 'de_DE.UTF-8', LC_ALL: 'C' }, '> ?'],
  ['LC_ALL=POSIX', { LC_ALL: 'POSIX' }, '> ?'],
  ['Latin-1', { LANG: 'de_DE.ISO-8859-1' }, '> ?'],
  ['the Linux console without a locale', { TERM: 'linux' }, '> ?'],
  ['an old terminal without a locale', { TERM: 'vt220' }, '> ?'],
  ['no locale', { TERM: 'xterm-256color' }, '❯ é'],
])('the screen with %s', (_, env, drawn) => {
  expect(createFor(env).toTerminalText('❯ é')).toBe(drawn)
})

it('characters without Unicode are as wide as before, and colours stay', () => {
  expect(toAscii('\u001b[2m─┼ 日本 e\u0301 👩‍👩‍👧\u001b[0m')).toBe('\u001b[2m-+ ???? e ??\u001b[0m')
})

it('every character that the screen draws itself has one that looks alike, of the same width', () => {
  const folders = [import.meta.dirname, join(import.meta.dirname, '../chat')]
  const files = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
  const sources = files.filter((file) => !file.endsWith('.test.ts')).map((file) => readFileSync(file, 'utf8'))
  const characters = new Set(sources.join('').match(/\P{ASCII}/gu))
  const replaced = [...characters].map((each) => [each, toAscii(each)] as const)
  expect(replaced.length).toBeGreaterThan(30)
  expect(
    replaced.filter(([each, ascii]) => ascii.includes('?') || visibleWidth(each) !== ascii.length),
  ).toEqual([])
})
