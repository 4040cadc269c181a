/**
 * `tidemark chat` on its screen in this process, on a terminal that is only memory: xterm without a window. Faster than
 * tmux, for what needs neither a process of its own nor a real terminal.
 */
import { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import type { Terminal as ScreenTerminal } from '@earendil-works/pi-tui'
import type { Script } from '@tidemark/simulator'
import xterm from '@xterm/headless'
import { onTestFinished } from 'vitest'
import type { ScreenDevice } from '../src/chat/chat-context.ts'
import { type ChatCommandOptions, runChatCommand } from '../src/commands/chat.ts'
import { type ChatWorld, createChatWorld } from './chat-world.ts'
import {
  createWaits,
  type ScreenView,
  type ScreenWorldOptions,
  waitForRest,
  waitForText,
} from './screen-world.ts'

/** What keys send, by the names that tmux has for them. Other keys send their name. */
const KEYS: Readonly<Record<string, string>> = {
  Enter: '\r',
  Escape: '\u001b',
  Space: ' ',
  Tab: '\t',
  BTab: '\u001b[Z',
  Up: '\u001b[A',
  Down: '\u001b[B',
  'C-c': '\u0003',
  End: '\u001b[F',
  'C-d': '\u0004',
  'C-j': '\n',
  'C-o': '\u000f',
  'C-t': '\u0014',
}

export interface VirtualScreen extends ScreenView {
  /** What was written to the terminal, with its control sequences. */
  readWritten(): string
  /** Sends a signal to the chat, as if it were a process. */
  signal(name: 'SIGTERM' | 'SIGHUP'): void
}

export interface VirtualScreenOptions
  extends Pick<ScreenWorldOptions, 'columns' | 'rows' | 'env' | 'prepare'> {
  readonly choices?: Partial<ChatCommandOptions>
}

/** Runs the chat in a new folder. After its end, the terminal has the line `EXIT` with the exit code. */
export async function createVirtualScreen(
  script: Script,
  options: VirtualScreenOptions = {},
): Promise<VirtualScreen> {
  const { columns = 80, rows = 24 } = options
  const world = await createChatWorld(script)
  options.prepare?.(world)
  const memory = new xterm.Terminal({ cols: columns, rows, scrollback: 20_000, allowProposedApi: true })
  const chats = createChatRunner(world, memory, options)
  const look = (): string => readRows(memory, memory.buffer.active.baseY)
  const type = async (text: string): Promise<void> => {
    for (const character of text) chats.device.press(character)
    await waitForText(look, text.trim().split(/\s/).at(-1) ?? '')
  }
  const press = (...keys: readonly string[]): void => {
    for (const key of keys) chats.device.press(KEYS[key] ?? key)
  }
  chats.start()
  onTestFinished(async () => {
    await chats.end()
    memory.dispose()
  })
  return {
    ...world,
    press,
    type,
    look,
    async send(text) {
      if (text.startsWith('/')) await waitForRest(look)
      await type(text)
      press('Enter')
    },
    restart: chats.start,
    lookAtColors: () => readRows(memory, memory.buffer.active.baseY, readColoredRow),
    lookBack: () => readRows(memory, 0),
    readWritten: () => chats.written,
    signal: (name) => void chats.device.process.emit(name),
    resize(width, height) {
      memory.resize(width, height)
      chats.device.tellResize()
    },
    ...createWaits(look, press),
  }
}

interface ChatRunner {
  /** What the chat that was started last draws on. */
  readonly device: VirtualDevice
  /** What all chats have written. */
  readonly written: string
  start(choices?: Partial<ChatCommandOptions>): void
  /** Ends the chat that runs, and waits for its end. */
  end(): Promise<void>
}

/** Creates what runs one chat after the other in the same terminal. */
function createChatRunner(
  { folder, env }: ChatWorld,
  memory: xterm.Terminal,
  options: VirtualScreenOptions,
): ChatRunner {
  const fixed = { ANTHROPIC_API_KEY: 'test', LC_ALL: 'C.UTF-8', TERM: 'xterm-256color' }
  const variables = { ...env, ...fixed, ...options.env }
  let written = ''
  const write = (text: string): void => {
    written += text
    memory.write(text)
  }
  const writeLines = (text: string): void => write(text.replaceAll('\n', '\r\n'))
  let device = createDevice(memory, write)
  let ended: Promise<void> = Promise.resolve()
  return {
    get device() {
      return device
    },
    get written() {
      return written
    },
    start(choices = options.choices) {
      device = createDevice(memory, write)
      memory.write('\u001b[2J\u001b[H')
      const terminal = {
        ...{ env: variables, isTty: true, isInputTty: true, columns: memory.cols, rows: memory.rows },
        ...{ write: writeLines, warn: writeLines },
      }
      const whole = { outputFormat: 'text', inputFormat: 'text', cwd: folder, ...choices, device } as const
      const run = runChatCommand(whole, terminal, Readable.from([]))
      ended = Promise.race([run, device.exited]).then((code) => write(`EXIT ${code}\r\n`))
    },
    async end() {
      device.process.emit('SIGTERM')
      await ended
    },
  }
}

interface VirtualDevice extends ScreenDevice {
  readonly process: EventEmitter & ScreenDevice['process']
  /** Resolves with the code with which the process would have exited. */
  readonly exited: Promise<number>
  press(key: string): void
  tellResize(): void
}

function createDevice(memory: xterm.Terminal, write: (text: string) => void): VirtualDevice {
  const { promise: exited, resolve: exit } = Promise.withResolvers<number>()
  const output = Object.assign(new EventEmitter(), { write })
  let [onKey, onResize]: [(data: string) => void, () => void] = [() => {}, () => {}]
  // What the terminal itself answers, as to the question where its cursor is.
  const answers = memory.onData((data) => onKey(data))
  const terminal: ScreenTerminal = {
    start(keys, resize) {
      onKey = keys
      onResize = resize
      write('\u001b[?2004h')
    },
    stop() {
      onKey = () => {}
      onResize = () => {}
      answers.dispose()
      write('\u001b[?2004l')
    },
    drainInput: () => Promise.resolve(),
    write,
    get columns() {
      return memory.cols
    },
    get rows() {
      return memory.rows
    },
    kittyProtocolActive: false,
    moveBy: (lines) => write(lines === 0 ? '' : `\u001b[${Math.abs(lines)}${lines > 0 ? 'B' : 'A'}`),
    hideCursor: () => write('\u001b[?25l'),
    showCursor: () => write('\u001b[?25h'),
    clearLine: () => write('\u001b[K'),
    clearFromCursor: () => write('\u001b[J'),
    clearScreen: () => write('\u001b[2J\u001b[H'),
    setTitle: (title) => write(`\u001b]0;${title}\u0007`),
    setProgress() {},
  }
  return {
    terminal,
    process: Object.assign(new EventEmitter(), { exit, stdin: {}, stdout: output, stderr: output }),
    exited,
    press: (key) => onKey(key),
    tellResize: () => onResize(),
  }
}

type BufferLine = NonNullable<ReturnType<xterm.IBuffer['getLine']>>

function readRows(
  memory: xterm.Terminal,
  from: number,
  read = (line: BufferLine): string => line.translateToString(true),
): string {
  const { active } = memory.buffer
  let text = ''
  for (let row = from; row < active.baseY + memory.rows; row += 1) {
    const line = active.getLine(row)
    text += `${line === undefined ? '' : read(line).trimEnd()}\n`
  }
  return text
}

/** The text with a sequence before each cell of another of the sixteen colours. */
function readColoredRow(line: BufferLine): string {
  let [text, before] = ['', -1]
  for (let column = 0; column < line.length; column += 1) {
    const cell = line.getCell(column)
    if (cell === undefined || cell.getWidth() === 0) continue
    const color = cell.isFgDefault() ? -1 : cell.getFgColor()
    if (color !== before) text += `\u001b[${color < 0 ? 39 : color < 8 ? 30 + color : 82 + color}m`
    before = color
    text += cell.getChars() || ' '
  }
  return text
}
