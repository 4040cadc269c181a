import { expect, it } from 'vitest'
import type { Terminal } from '../terminal.ts'
import { createProgressLine } from './progress-line.ts'

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

it('never cuts a character in two, and counts wide ones as two columns', () => {
  const { line, written, at } = followed(true)
  at(1_000)
  line.show('reading 日本語😀😀😀😀😀')
  expect(written).toEqual(['\r\u001b[2Kreading 日本語😀😀'])
})

it('is not shown while the user is asked a question', async () => {
  const { line, written, at } = followed(true)
  at(1_000)
  line.show('working')
  const answer = await line.hideDuring(async () => {
    at(2_000)
    line.show('over the question')
    return 'yes'
  })
  at(3_000)
  line.show('working on')
  expect([answer, written]).toEqual(['yes', ['\r\u001b[2Kworking', '\r\u001b[2K', '\r\u001b[2Kworking on']])
})
