/**
 * Runs a shell command in its own process group, so that it can be ended with every process that it started. Standard input is empty;
 * output and errors are read in order.
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
  /** Returns the call that runs another call confined. If omitted, the command is not confined. */
  readonly wrap?: ConfinedRun['wrap']
}

/** A running command with its process group. */
export interface ShellProcess {
  /** Resolves when the shell has exited and its output was read. Rejects if the shell cannot be started. */
  readonly ended: Promise<ProcessEnd>
  /** Returns false when no process of the group is left. */
  isAlive(): boolean
  /** Ends the whole group with SIGTERM, and with SIGKILL the processes that still run after two seconds. */
  stop(): Promise<void>
  /** Kills the whole process group with SIGKILL, without waiting. */
  kill(): void
}

/** Maximum bytes of a command: Linux accepts no longer argument. */
export const MAX_COMMAND_BYTES = 120_000

/** Starts a command with `bash`, or `sh` if there is none. Throws a `ToolError` if it is too long. It has no time limit. */
export function startShellCommand(given: ShellCommand): ShellProcess {
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

// The shell state of a session: the commands that the agent started, so that none outlives the session, and the current directory.

/** A command that runs in the background, or has ended there. */
export interface BackgroundShell {
  readonly command: string
  readonly output: OutputBuffer
  readonly process: ShellProcess
  /** How the command ended; null while it runs. */
  readonly end: () => ProcessEnd | null
}

export interface SessionShells {
  /** Registers a command, so that `close` ends it with everything that it started. */
  track(process: ShellProcess): void
  /** Adds a command that runs in the background. Returns its id. */
  add(shell: BackgroundShell): string
  find(id: string): BackgroundShell | null
  listIds(): readonly string[]
  /** The directory in which the next command starts; null for the working directory of the session. */
  folder: string | null
  /** Returns what the model must know about the shell after its commands have left the context; null if there is nothing. */
  describe(): string | null
  /**
   * Ends all commands and everything that they left running. The first signals are sent before the call returns, so that it also works
   * while the program exits.
   */
  close(): Promise<void>
}

/** Maximum characters of a command that are shown. */
const COMMAND_CHARACTERS = 200

export function createSessionShells(): SessionShells {
  const shells = new Map<string, BackgroundShell>()
  let tracked: readonly ShellProcess[] = []
  let isClosed = false
  return {
    track(process) {
      // Ended groups are dropped, because the system may give their number to another process.
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
      // A program ended by a signal does not wait until the second signal ends commands that ignore the first.
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
