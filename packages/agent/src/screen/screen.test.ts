import { stripVTControlCharacters } from 'node:util'
import type { Terminal } from '@earendil-works/pi-tui'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
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
    actions: {
      submit: (text) => submitted.push(text),
      interrupt() {},
      exit() {},
      openLines() {},
      switchMode() {},
    },
  })
  screen.start()
  onTestFinished(() => screen.stop())
  return { screen, transcript, seen, submitted }
}

/** Advances the fake time of the screen. On a busy machine, real time would pass between two steps of a test. */
const settle = async (ms = 20): Promise<void> => {
  await vi.advanceTimersByTimeAsync(ms)
}
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('a prompt that was typed while the chat started is sent by its Enter, and not shown twice', async () => {
  const { screen, seen, submitted } = createWorld()
  expect(seen.text.startsWith('\r\u001b[K')).toBe(true)
  // Before the screen starts, the terminal converts Enter to a line feed, and the first read has everything that was typed.
  for (const key of 'hi\nnex') seen.press(key)
  await settle()
  for (const key of 't\n!') seen.press(key)
  expect([submitted, screen.input.read()]).toEqual([['hi'], 'next\n!'])
})

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

it('Ctrl-O unfolds what is visible and what follows; what has scrolled away is not drawn again', async () => {
  const { screen, transcript, seen } = createWorld()
  const addCall = (number: number): void => {
    const call = { type: 'tool_use', id: `call-${number}`, name: 'Bash', input: { command: `run ${number}` } }
    const output = Array.from({ length: 9 }, (_, line) => `Output ${number}.${line}.`).join('\n')
    const result = { type: 'tool_result', tool_use_id: call.id, content: output }
    for (const event of [
      { type: 'reply', event: { type: 'block-started', index: 0, block: call } },
      { type: 'reply', event: { type: 'block-ended', index: 0, block: call } },
      { type: 'tool-started', call },
      { type: 'tool-ended', call, result },
    ])
      transcript.apply(event as never)
    screen.update()
  }
  for (let number = 0; number < 40; number += 1) addCall(number)
  await settle(50)
  const before = seen.text.length
  screen.toggleFold()
  await settle(50)
  const drawn = stripVTControlCharacters(seen.text.slice(before))
  expect(drawn).not.toContain('run 30')
  expect(drawn).toContain('Output 39.0.')
  expect(drawn).toContain('shown in full from here on')
  addCall(40)
  await settle(50)
  expect(stripVTControlCharacters(seen.text)).toContain('Output 40.0.')
  expect(seen.text).not.toContain('\u001b[3J')
  expect(seen.text).not.toContain('\u001b[2J')
})

it('calls that still run stay below what has ended, so that no line changes after it has scrolled away', async () => {
  const { screen, transcript, seen } = createWorld()
  const calls = Array.from({ length: 40 }, (_, number) => ({
    ...{ type: 'tool_use', id: `call-${number}`, name: 'Bash', input: { command: `run ${number}.` } },
  }))
  for (const [index, block] of calls.entries()) {
    transcript.apply({ type: 'reply', event: { type: 'block-started', index, block } } as never)
    transcript.apply({ type: 'reply', event: { type: 'block-ended', index, block } } as never)
  }
  screen.update()
  await settle()
  expect(stripVTControlCharacters(seen.text)).toMatch(/○ Bash run 0\.[\s\S]*… \d+ more lines/)
  for (const call of calls.toReversed()) {
    const result = { type: 'tool_result', tool_use_id: call.id, content: 'one\ntwo\nthree' }
    transcript.apply({ type: 'tool-started', call } as never)
    transcript.apply({ type: 'tool-ended', call, result } as never)
    screen.update()
    await settle()
  }
  const written = seen.text.split('\n').map((line) => stripVTControlCharacters(line))
  for (const { input } of calls) {
    const ended = written.filter((line) => line.includes(`● Bash ${input.command}`))
    expect(ended.length, input.command).toBeGreaterThan(0)
  }
  expect(seen.text).not.toContain('\u001b[2J')
  expect(screen.fullRedraws).toBe(1)
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
  await settle(200)
  await asked
  expect(answer).toEqual({ chosen: [0], text: '' })
})

it('the question of an agent that was stopped closes by itself, and the next one can be answered', async () => {
  const { screen, seen, submitted } = createWorld()
  await settle()
  const stop = new AbortController()
  const question = { title: 'Allow it?', body: () => [], choices: [{ label: 'Yes' }, { label: 'No' }] }
  const asked = screen.ask(question, stop.signal)
  await settle()
  expect(seen.text).toContain('Allow it?')
  stop.abort()
  expect(await asked).toBeNull()
  // The input gets the keys again, and a question that is no longer needed is not shown.
  for (const key of ['h', 'i', '\r']) seen.press(key)
  expect(submitted).toEqual(['hi'])
  expect(await screen.ask({ ...question, title: 'Too late?' }, stop.signal)).toBeNull()
  await settle()
  expect(seen.text).not.toContain('Too late?')
  const next = screen.ask(question)
  await settle(320)
  seen.press('2')
  await settle(200)
  expect(await next).toEqual({ chosen: [1], text: '' })
})
