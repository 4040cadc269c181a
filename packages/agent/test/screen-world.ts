/** `tidemark chat` on its screen, in a real terminal: tmux, which draws what the program writes and sends keys. */
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Script } from '@tidemark/simulator'
import { onTestFinished } from 'vitest'
import type { ChatCommandOptions } from '../src/commands/chat.ts'
import { type ChatWorld, createChatWorld } from './chat-world.ts'
import { TIDEMARK_COMMAND } from './simulate-process.ts'

export const hasTmux: boolean = spawnSync('tmux', ['-V']).status === 0

/** What is done and seen on a screen. */
export interface ScreenView extends ChatWorld {
  /** Types a text, without enter, and waits until its end is on the screen. */
  type(text: string): Promise<void>
  /** Presses keys by the names that tmux has for them. */
  press(...keys: readonly string[]): void
  /** Types a text and sends it; a command, which a running turn would refuse, when nothing runs. */
  send(text: string): Promise<void>
  /** Waits until a question with this text takes keys, and presses some. */
  answerQuestion(question: string | RegExp, ...keys: readonly string[]): Promise<string>
  /** Waits until nothing runs and the input is empty. */
  seeIdle(): Promise<string>
  /** What is visible now. */
  look(): string
  /** What is visible now, with colours. */
  lookAtColors(): string
  /** What is visible and what has scrolled away. */
  lookBack(): string
  /** Waits until the screen has a text, and returns what is visible then. */
  see(text: string | RegExp): Promise<string>
  /** Waits until the screen is another one than before. */
  seeOther(before: string): Promise<string>
  /** Waits until the screen does not change, as after a resize to a size at which no text can be waited for. */
  seeStill(): Promise<string>
  resize(columns: number, rows: number): void
  /** Starts the chat again in the same terminal, after the one before has ended. */
  restart(choices?: Partial<ChatCommandOptions>): void
}

export interface ScreenWorld extends Omit<ScreenView, 'restart'> {
  /** Runs a tmux command in this terminal. */
  tmux(...args: readonly string[]): string
  /** Starts the chat again in the same terminal, after the one before has ended. */
  restart(...args: readonly string[]): void
  /** The process id of the chat. */
  findPid(): number
}

export interface ScreenWorldOptions {
  readonly columns?: number
  readonly rows?: number
  /** The command with its first arguments. Default: chat. */
  readonly command?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** A command that the shell runs before the chat. */
  readonly shellCommand?: string
  /** Called before the chat starts. */
  readonly prepare?: (world: ChatWorld) => void
}

/** The input, with nothing typed. */
export const EMPTY_INPUT = /─\n❯(?: +Type a task[^\n]*)?\n─/

const PATIENCE_MS = 60_000
const POLL_MS = 20
/** A look at a terminal of tmux starts a process, which takes as long as some work of the chat. */
const TMUX_POLL_MS = 150

/** Opens a terminal with a shell that runs the chat, then prints its exit code and the state of the terminal. */
export async function createScreenWorld(
  script: Script,
  options: ScreenWorldOptions = {},
): Promise<ScreenWorld> {
  const { columns = 80, rows = 24, command = 'chat', args = [], env = {}, shellCommand = 'true' } = options
  const world = await createChatWorld(script)
  options.prepare?.(world)
  // Beside the working directory, so that the socket is removed with it.
  const socket = join(world.folder, '..', 'tmux')
  const tmux = (...given: readonly string[]): string =>
    execFileSync('tmux', ['-S', socket, '-f', '/dev/null', ...given], { encoding: 'utf8' })
  const variables = { ...world.env, ANTHROPIC_API_KEY: 'test', LC_ALL: 'C.UTF-8', ...env }
  const assignments = Object.entries(variables).map(([name, value]) => `${name}='${value}'`)
  const formatCommand = (given: readonly string[]): string =>
    [...assignments, process.execPath, ...TIDEMARK_COMMAND, command, ...given].join(' ')
  const size = ['-x', String(columns), '-y', String(rows)]
  tmux('new-session', '-d', '-s', 's', ...size, '-c', world.folder, 'exec sh')
  tmux('set-option', '-g', 'history-limit', '20000')
  onTestFinished(() => {
    spawnSync('tmux', ['-S', socket, 'kill-server'])
  })
  const press = (...keys: readonly string[]): void => void tmux('send-keys', '-t', 's', ...keys)
  const restart = (...given: readonly string[]): void => {
    tmux(
      'send-keys',
      '-t',
      's',
      '-l',
      `clear; ${shellCommand}; ${formatCommand(given)}; echo "EXIT $?"; stty -a | grep -o '.icanon'`,
    )
    press('Enter')
  }
  const look = (): string => tmux('capture-pane', '-t', 's', '-p')
  const type = async (text: string): Promise<void> => {
    tmux('send-keys', '-t', 's', '-l', text)
    await waitForText(look, text.trim().split(/\s/).at(-1) ?? '', TMUX_POLL_MS)
  }
  restart(...args)
  return {
    ...world,
    tmux,
    press,
    type,
    look,
    restart,
    async send(text) {
      if (text.startsWith('/')) await waitForRest(look, TMUX_POLL_MS)
      await type(text)
      press('Enter')
    },
    lookAtColors: () => tmux('capture-pane', '-t', 's', '-p', '-e'),
    lookBack: () => tmux('capture-pane', '-t', 's', '-p', '-S', '-'),
    resize: (width, height) =>
      void tmux('resize-window', '-t', 's', '-x', String(width), '-y', String(height)),
    ...createWaits(look, press, TMUX_POLL_MS),
    findPid: () => findChild(tmux('display-message', '-t', 's', '-p', '#{pane_pid}').trim()),
  }
}

function findChild(pid: string): number {
  return Number(execFileSync('pgrep', ['-P', pid], { encoding: 'utf8' }).trim().split('\n')[0])
}

type Waits = Pick<ScreenView, 'see' | 'answerQuestion' | 'seeOther' | 'seeStill' | 'seeIdle'>

/** Returns what waits for the screen, however long the machine takes. */
export function createWaits(look: () => string, press: ScreenView['press'], pollMs: number = POLL_MS): Waits {
  const see = (text: string | RegExp): Promise<string> => waitForText(look, text, pollMs)
  return {
    see,
    async answerQuestion(question, ...keys) {
      const isAsked = (seen: string): boolean => hasText(seen, question) && seen.includes('enter confirm')
      const screen = await waitUntil(look, isAsked, `the question ${String(question)}`, pollMs)
      press(...keys)
      return screen
    },
    seeOther: (before) => waitUntil(look, (seen) => seen !== before, 'another screen', pollMs),
    seeStill() {
      let [before, count] = ['', 0]
      const isStill = (screen: string): boolean => {
        const seen = screen.replaceAll(MOVING, '')
        count = seen === before ? count + 1 : 0
        before = seen
        return count >= STILL_LOOKS
      }
      return waitUntil(look, isStill, 'the same text for a while', pollMs)
    },
    seeIdle: () => see(new RegExp(`^(?![\\s\\S]*esc interrupts)[\\s\\S]*${EMPTY_INPUT.source}`)),
  }
}

/** The spinner, and figures that count seconds. */
const MOVING = /[\u2800-\u28ff\d]/g

/** Looks without a change after which a screen is still. */
const STILL_LOOKS = 15

function hasText(seen: string, wanted: string | RegExp): boolean {
  return typeof wanted === 'string' ? seen.includes(wanted) : wanted.test(seen)
}

export function waitForText(
  look: () => string,
  wanted: string | RegExp,
  pollMs: number = POLL_MS,
): Promise<string> {
  return waitUntil(look, (seen) => hasText(seen, wanted), String(wanted), pollMs)
}

/** Waits until nothing runs. The answer is on the screen shortly before the end of its turn. */
export function waitForRest(look: () => string, pollMs: number = POLL_MS): Promise<string> {
  return waitUntil(look, (seen) => !seen.includes('esc interrupts'), 'the end of what runs', pollMs)
}

async function waitUntil(
  look: () => string,
  isRight: (seen: string) => boolean,
  wanted: string,
  pollMs: number,
): Promise<string> {
  const end = Date.now() + PATIENCE_MS
  for (;;) {
    const seen = look()
    if (isRight(seen)) return seen
    if (Date.now() > end) throw new Error(`The screen never had ${wanted}. It has:\n${seen}`)
    await wait(pollMs)
  }
}
