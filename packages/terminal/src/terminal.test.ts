import { EventEmitter, once } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { chooseTerminalWidth, createProcessTerminal, isColorEnabled } from './terminal.ts'

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
  expect(isColorEnabled({ env, isTty })).toBe(expected)
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

it.each([
  ['Ctrl-C interrupts the command', '\u0003', ['SIGINT']],
  ['Ctrl-D does not answer it', '\u0004', []],
])('at a question, %s', async (_what, key, signals) => {
  const received: string[] = []
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode() {} })
  const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 80 })
  const from = Object.assign(new EventEmitter(), { stdin, stderr, stdout: stderr, env: {} })
  from.on('SIGINT', (signal) => received.push(signal))
  const terminal = createProcessTerminal(from as unknown as NodeJS.Process)
  const answer = terminal.ask?.('Allow it? ')
  await once(stderr, 'data')
  stdin.write(key)
  expect([await answer, received]).toEqual([null, signals])
})

it('a question that is no longer needed closes, and the next one gets the answer', async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const terminal = createProcessTerminal({ stdin, stdout, stderr, env: {} } as unknown as NodeJS.Process)
  const stop = new AbortController()
  const asked = terminal.ask?.('Allow it? ', stop.signal)
  stop.abort()
  expect(await asked).toBeNull()
  const next = terminal.ask?.('And now? ')
  await once(stderr, 'data')
  stdin.write('yes\n')
  expect(await next).toBe('yes')
})

it.each(['y\n', 'y', 'yes\n\n'])(
  'what was typed before a question is shown does not answer it: %j',
  async (typed) => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    const [stdout, stderr] = [new PassThrough(), new PassThrough()]
    const terminal = createProcessTerminal({ stdin, stdout, stderr, env: {} } as unknown as NodeJS.Process)
    stdin.write(typed)
    const answer = terminal.ask?.('Allow it? ')
    await once(stderr, 'data')
    stdin.write('no\n')
    expect(await answer).toBe('no')
  },
)

it('Ctrl-C that was typed before a question is shown interrupts the command', async () => {
  const received: string[] = []
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  const stderr = new PassThrough()
  const from = Object.assign(new EventEmitter(), { stdin, stderr, stdout: stderr, env: {} })
  from.on('SIGINT', (signal) => received.push(signal))
  stdin.write('\u0003')
  const answer = createProcessTerminal(from as unknown as NodeJS.Process).ask?.('Allow it? ')
  expect([await answer, received]).toEqual([null, ['SIGINT']])
})
