/**
 * Runs a shell command as a process group of its own, so that it can be ended together with every process that it
 * started. Standard input is empty; output and errors arrive in order.
 */
import { spawn } from 'node:child_process'
import {
  findProgram,
  isGroupAlive,
  type ProcessEnd,
  signalGroup,
  stopGroup,
  waitForExit,
} from 'tidemark/tools'
import type { ConfinedRun } from '../sandbox/sandbox.ts'
import type { OutputBuffer } from './shell-output.ts'
import { cutText, ToolError } from './tool-definition.ts'

interface ShellCommand {
  readonly command: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** File that receives the shell's working directory when the shell exits. */
  readonly cwdFile: string
  readonly onOutput: (text: string) => void
  /** Values of `$1`, `$2` and so on. Default: none. */
  readonly args?: readonly string[]
  /** Returns the call that runs another one confined. Default: it is run as it is. */
  readonly wrap?: ConfinedRun['wrap']
}

export interface ShellProcess {
  /** Resolves when the shell has exited and its output was read. Rejects if the shell cannot be started. */
  readonly ended: Promise<ProcessEnd>
  /** Returns false once no process of the group is left. */
  isAlive(): boolean
  /** Ends the whole group: first with SIGTERM, and with SIGKILL what is left after two seconds. */
  stop(): Promise<void>
  /** Ends the shell and everything it started at once, without waiting. */
  kill(): void
}

/** Linux passes no longer argument to a program. */
export const MAX_COMMAND_BYTES = 120_000

export function startShell(given: ShellCommand): ShellProcess {
  const { command, cwd, env, cwdFile, onOutput, args = [], wrap = (...call) => call } = given
  if (Buffer.byteLength(command) > MAX_COMMAND_BYTES)
    throw new ToolError('The command is too long. Write it to a file with Write, and run that file.')
  const saveFolder = `pwd -P >|${quoteForShell(cwdFile)} 2>/dev/null`
  const script = `exec 2>&1; trap ${quoteForShell(saveFolder)} EXIT\n${command}`
  const shell = findProgram('bash', env) ?? 'sh'
  const [program, programArguments] = wrap(shell, ['-c', script, shell, ...args])
  const child = spawn(program, programArguments, {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', onOutput)
  const group = child.pid ?? null
  return {
    ended: waitForExit(child, [child.stdout]).catch((error: Error) => {
      throw new ToolError(`The shell could not be started: ${error.message}`)
    }),
    isAlive: () => group !== null && isGroupAlive(group),
    stop: async () => (group === null ? undefined : stopGroup(group)),
    kill() {
      if (group !== null && isGroupAlive(group)) signalGroup(group, 'SIGKILL')
    },
  }
}

/** Quotes a text as one word of a shell command. */
export function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

// The shell state of a session: the commands that the agent started, so that none outlives it, and the current directory.

export interface BackgroundShell {
  readonly command: string
  readonly output: OutputBuffer
  readonly process: ShellProcess
  /** How the command ended; null while it runs. */
  readonly end: () => ProcessEnd | null
}

export interface BackgroundShells {
  /** Ends this command in `close`, with everything that it started. */
  track(process: ShellProcess): void
  /** Adds a command that runs in the background. Returns its id. */
  add(shell: BackgroundShell): string
  find(id: string): BackgroundShell | null
  listIds(): readonly string[]
  /** The directory in which the next command starts; null for the working directory of the session. */
  folder: string | null
  /** Describes what the model must know of the shell if it no longer sees its commands; null if there is nothing. */
  describe(): string | null
  /**
   * Ends all commands and everything that they left running. Every process has got its first signal when the call
   * returns, so that it can also be called while the program exits.
   */
  close(): Promise<void>
}

/** Characters of a command that are shown. */
const COMMAND_CHARACTERS = 200

export function createBackgroundShells(): BackgroundShells {
  const shells = new Map<string, BackgroundShell>()
  let tracked: readonly ShellProcess[] = []
  let isClosed = false
  return {
    track(process) {
      // Groups that have ended are dropped, because the system may give their number to another process.
      tracked = [...tracked.filter((other) => other.isAlive()), process]
      if (isClosed) void process.stop()
    },
    add(shell) {
      const id = `bash_${shells.size + 1}`
      shells.set(id, shell)
      return id
    },
    find: (id) => shells.get(id) ?? null,
    listIds: () => [...shells.keys()],
    folder: null,
    describe() {
      const running = [...shells].filter(([, { end }]) => end() === null)
      const lines = [
        ...(this.folder === null ? [] : [`The next command of Bash starts in ${this.folder}.`]),
        ...running.map(
          ([id, { command }]) => `${id} runs in the background: ${cutText(command, COMMAND_CHARACTERS)}`,
        ),
      ]
      return lines.length === 0 ? null : lines.join('\n')
    },
    async close() {
      isClosed = true
      const open = tracked.filter((process) => process.isAlive())
      tracked = []
      // A program that ends by a signal does not wait until a command that ignores the first signal gets the second.
      const killRest = (): void => {
        for (const shell of open) shell.kill()
      }
      process.once('exit', killRest)
      await Promise.all(open.map((shell) => shell.stop()))
      process.off('exit', killRest)
      for (const { output } of shells.values()) output.close()
    },
  }
}
