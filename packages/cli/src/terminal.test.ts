import { expect, it } from 'vitest'
import { chooseTerminalWidth, createProgressLine, type Terminal, wantsColors } from './terminal.ts'

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

function followed(isErrorTty: boolean) {
  const written: string[] = []
  let now = 0
  const terminal: Terminal = {
    write: () => {},
    warn: (text) => written.push(text),
    env: {},
    isTty: true,
    columns: 20,
    isErrorTty,
  }
  const line = createProgressLine(terminal, () => now)
  return { line, written, at: (moment: number) => (now = moment) }
}

it('is shown after a second, now and then, within the screen, and goes', () => {
  const { line, written, at } = followed(true)
  line.show('too early')
  at(999)
  line.show('still too early')
  at(1_000)
  line.show('reading a file with a long name')
  at(1_050)
  line.show('too soon again')
  at(1_100)
  line.show('done')
  line.clear()
  line.clear()
  expect(written).toEqual(['\r\u001b[2Kreading a file with', '\r\u001b[2Kdone', '\r\u001b[2K'])
})

it('is never shown where standard error is no terminal', () => {
  const { line, written, at } = followed(false)
  at(5_000)
  line.show('reading')
  line.clear()
  expect(written).toEqual([])
})
