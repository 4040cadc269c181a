import { stripVTControlCharacters } from 'node:util'
import type { Terminal } from '@earendil-works/pi-tui'
import { expect, it, onTestFinished } from 'vitest'
import { type ChatScreen, createChatScreen } from './screen.ts'
import { createTheme } from './theme.ts'
import { createTranscript } from './transcript.ts'

/** A terminal that keeps what is written to it. */
function createFakeTerminal() {
  const seen = { text: '', press: (_key: string): void => {} }
  const ignore = (): void => {}
  const terminal: Terminal = {
    ...{ columns: 100, rows: 30, kittyProtocolActive: false },
    start(onInput) {
      seen.press = onInput
    },
    stop: ignore,
    drainInput: () => Promise.resolve(),
    write(text) {
      seen.text += text
    },
    ...{ moveBy: ignore, hideCursor: ignore, showCursor: ignore, clearLine: ignore },
    ...{ clearFromCursor: ignore, clearScreen: ignore, setTitle: ignore, setProgress: ignore },
  }
  return { terminal, seen }
}

function createWorld() {
  const { terminal, seen } = createFakeTerminal()
  const transcript = createTranscript()
  const submitted: string[] = []
  const screen: ChatScreen = createChatScreen({
    terminal,
    transcript,
    theme: createTheme({ write() {}, warn() {}, env: {}, isTty: false, columns: 100 }),
    folder: '/project',
    now: () => 0,
    readState: () => ({ status: null, queue: [], meter: null, hint: '' }),
    actions: { submit: (text) => submitted.push(text), interrupt() {}, exit() {}, openLines() {} },
  })
  screen.start()
  onTestFinished(() => screen.stop())
  return { screen, transcript, seen, submitted }
}

const settle = (ms = 20): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

it('a streamed token costs as many bytes in a long session as in a short one', async () => {
  const { screen, transcript, seen } = createWorld()
  const reply = (event: object): void => {
    transcript.apply({ type: 'reply', event } as never)
    screen.update()
  }
  const measureTurn = async (): Promise<number> => {
    const before = seen.text.length
    reply({ type: 'block-started', index: 0, block: { type: 'text', text: '' } })
    for (let word = 0; word < 8; word += 1) {
      reply({ type: 'block-grew', index: 0, delta: { kind: 'text', text: 'word '.repeat(5) } })
      await settle()
    }
    const bytes = seen.text.length - before
    reply({ type: 'block-ended', index: 0, block: { type: 'text', text: '' } })
    return bytes
  }
  const addTurns = (count: number): void => {
    for (let turn = 0; turn < count; turn += 1) {
      const lines = Array.from({ length: 30 }, (_, index) => `Line ${index} of an answer.`)
      reply({ type: 'block-started', index: 0, block: { type: 'text', text: lines.join('\n\n') } })
      reply({ type: 'block-ended', index: 0, block: { type: 'text', text: '' } })
    }
  }
  addTurns(3)
  await settle()
  const early = await measureTurn()
  for (let turn = 0; turn < 30; turn += 1) {
    addTurns(10)
    await settle()
  }
  expect(await measureTurn()).toBeLessThanOrEqual(early * 1.1)
  // Nothing that has scrolled away was drawn again.
  expect(screen.fullRedraws).toBe(1)
  expect(seen.text).not.toContain('\u001b[3J')
})

it('all of it is drawn again after a change of how it looks, also what the screen had let go of', async () => {
  const { screen, transcript, seen } = createWorld()
  for (let line = 0; line < 2_000; line += 1)
    transcript.addLine({ tone: 'plain', mark: '·', text: `Line ${line}.`, detail: null })
  screen.update()
  await settle(50)
  const before = seen.text.length
  screen.toggleFold()
  await settle(100)
  const drawn = stripVTControlCharacters(seen.text.slice(before))
  expect([...drawn.matchAll(/Line (\d+)\./g)].map(([, line]) => Number(line))).toEqual(
    Array.from({ length: 2_000 }, (_, line) => line),
  )
})

it('a panel is drawn on the second screen, takes all keys, and leaves the first one as it was', async () => {
  const { screen, seen, submitted } = createWorld()
  await settle()
  const before = seen.text.length
  const rows = ['one', 'two', 'three'].map((text) => ({ text, isChoice: true }))
  const choice = screen.openPanel({
    title: 'Choose',
    rows: () => rows,
    actions: [{ key: 'enter', label: 'take it' }],
  })
  await settle()
  seen.press('\u001b[B')
  seen.press('\r')
  expect(await choice).toEqual({ key: 'enter', choice: 1 })
  const written = seen.text.slice(before)
  const places = ['\u001b[?1049h', 'Choose', '\u001b[?1049l'].map((part) => written.indexOf(part))
  expect(places).toEqual(places.toSorted((one, other) => one - other))
  expect(places).not.toContain(-1)
  expect(written).not.toContain('\u001b[3J')
  seen.press('h')
  seen.press('i')
  seen.press('\r')
  expect(submitted).toEqual(['hi'])
})

it('text in a panel or a question can set colours and nothing else', async () => {
  const { screen, seen } = createWorld()
  await settle()
  const evil = 'a\u001b]52;c;aGk=\u0007b\u001b[2Jc\u009b2Jd\u001b[31me'
  const safe = 'a]52;c;aGk=b[2Jc2Jd\u001b[31me'
  const panel = screen.openPanel({
    title: evil,
    rows: () => [{ text: evil }, { text: evil, isChoice: true }],
    actions: [],
  })
  await settle()
  seen.press('q')
  await panel
  void screen.ask({ title: evil, body: () => [evil], choices: [{ label: evil }] })
  await settle()
  expect(seen.text).not.toContain('\u001b]52')
  expect(seen.text).not.toContain('\u009b')
  expect(seen.text.split(safe).length - 1).toBeGreaterThanOrEqual(6)
})

it('a question that comes while a panel is open waits, and keys typed just before do not answer it', async () => {
  const { screen, seen } = createWorld()
  await settle()
  const panel = screen.openPanel({ title: 'Page', rows: () => [{ text: 'text' }], actions: [] })
  await settle()
  const question = { title: 'Allow it?', body: () => [], choices: [{ label: 'Yes' }, { label: 'No' }] }
  let answer: unknown = 'none'
  const asked = screen.ask(question).then((given) => {
    answer = given
  })
  await settle()
  expect(seen.text).not.toContain('Allow it?')
  seen.press('q')
  await panel
  await settle()
  expect(seen.text).toContain('Allow it?')
  seen.press('1')
  await settle()
  expect(answer).toBe('none')
  await settle(320)
  seen.press('1')
  await asked
  expect(answer).toEqual({ chosen: [0], text: '' })
})
