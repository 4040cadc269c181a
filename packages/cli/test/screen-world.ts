/** `tidemark chat` on its screen, in a real terminal: tmux, which draws what the program writes and sends keys. */
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Script } from '@tidemark/simulator'
import { onTestFinished } from 'vitest'
import { type ChatWorld, createChatWorld } from './chat-world.ts'
import { TIDEMARK_SOURCES } from './simulate-process.ts'

export const hasTmux: boolean = spawnSync('tmux', ['-V']).status === 0

export interface ScreenWorld extends ChatWorld {
  /** Types a text, without enter. */
  type(text: string): Promise<void>
  /** Presses keys by the names that tmux has for them. */
  press(...keys: readonly string[]): void
  /** Types a text and sends it. */
  send(text: string): Promise<void>
  /** What is visible now. */
  look(): string
  /** What is visible now, with colours. */
  lookAtColors(): string
  /** What is visible and what has scrolled away. */
  lookBack(): string
  /** Waits until the screen has a text, and returns what is visible then. */
  see(text: string | RegExp): Promise<string>
  resize(columns: number, rows: number): void
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
  /** Called before the chat starts. */
  readonly prepare?: (world: ChatWorld) => void
}

const PATIENCE_MS = 40_000

/** Opens a terminal with a shell that runs the chat, then prints its exit code and the state of the terminal. */
export async function createScreenWorld(
  script: Script,
  options: ScreenWorldOptions = {},
): Promise<ScreenWorld> {
  const { columns = 80, rows = 24, command = 'chat', args = [], env = {} } = options
  const world = await createChatWorld(script)
  options.prepare?.(world)
  // Beside the working directory, so that the socket is removed with it.
  const socket = join(world.folder, '..', 'tmux')
  const tmux = (...given: readonly string[]): string =>
    execFileSync('tmux', ['-S', socket, '-f', '/dev/null', ...given], { encoding: 'utf8' })
  const variables = { ...world.env, ANTHROPIC_API_KEY: 'test', ...env }
  const assignments = Object.entries(variables).map(([name, value]) => `${name}='${value}'`)
  const formatCommand = (given: readonly string[]): string =>
    [...assignments, process.execPath, ...TIDEMARK_SOURCES, command, ...given].join(' ')
  const size = ['-x', String(columns), '-y', String(rows)]
  tmux('new-session', '-d', '-s', 's', ...size, '-c', world.folder, 'sh')
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
      `clear; ${formatCommand(given)}; echo "EXIT $?"; stty -a | grep -o '.icanon'`,
    )
    press('Enter')
  }
  const look = (): string => tmux('capture-pane', '-t', 's', '-p')
  const type = async (text: string): Promise<void> => {
    tmux('send-keys', '-t', 's', '-l', text)
    await wait(150)
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
      await type(text)
      press('Enter')
    },
    lookAtColors: () => tmux('capture-pane', '-t', 's', '-p', '-e'),
    lookBack: () => tmux('capture-pane', '-t', 's', '-p', '-S', '-'),
    resize: (width, height) =>
      void tmux('resize-window', '-t', 's', '-x', String(width), '-y', String(height)),
    see: (text) => waitForText(look, text),
    findPid() {
      const shell = tmux('display-message', '-t', 's', '-p', '#{pane_pid}').trim()
      return Number(execFileSync('pgrep', ['-P', shell], { encoding: 'utf8' }).trim().split('\n')[0])
    },
  }
}

async function waitForText(look: () => string, wanted: string | RegExp): Promise<string> {
  const end = Date.now() + PATIENCE_MS
  for (;;) {
    const seen = look()
    if (typeof wanted === 'string' ? seen.includes(wanted) : wanted.test(seen)) return seen
    if (Date.now() > end) throw new Error(`The screen never had ${String(wanted)}. It has:\n${seen}`)
    await wait(50)
  }
}
