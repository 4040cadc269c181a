import { expect, it } from 'vitest'
import { chooseTerminalWidth, wantsColors } from './terminal.ts'

it.each([
  ['a terminal', {}, true, true],
  ['a pipe', {}, false, false],
  ['a dumb terminal', { TERM: 'dumb' }, true, false],
  ['NO_COLOR', { NO_COLOR: '1' }, true, false],
  ['an empty NO_COLOR', { NO_COLOR: '' }, true, true],
  ['FORCE_COLOR on a pipe', { FORCE_COLOR: '1' }, false, true],
  ['FORCE_COLOR=0', { FORCE_COLOR: '0' }, true, false],
  ['FORCE_COLOR=false', { FORCE_COLOR: 'false' }, true, false],
  ['an empty FORCE_COLOR', { FORCE_COLOR: '' }, false, false],
  ['both: NO_COLOR wins', { NO_COLOR: '1', FORCE_COLOR: '1' }, true, false],
  ['CI alone', { CI: 'true' }, false, false],
])('%s', (_what, env, isTty, expected) => {
  expect(wantsColors({ env, isTty })).toBe(expected)
})

it.each([
  ['the screen', 132, '90', 132],
  ['COLUMNS where there is none', undefined, '132', 132],
  ['80 without either', undefined, undefined, 80],
  ['80 where COLUMNS is no width', undefined, 'wide', 80],
  ['80 where COLUMNS is 0', undefined, '0', 80],
])('as wide as %s', (_what, screen, variable, expected) => {
  expect(chooseTerminalWidth(screen, variable)).toBe(expected)
})
