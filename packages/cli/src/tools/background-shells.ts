/** The shell state of a session: the commands that the agent started, so that none outlives it, and the current directory. */
import type { ProcessEnd } from 'tidemark/internal'
import type { OutputBuffer } from './shell-output.ts'
import type { ShellProcess } from './shell-process.ts'
import { cutText } from './tool-definition.ts'

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
      await Promise.all(open.map((process) => process.stop()))
      for (const { output } of shells.values()) output.close()
    },
  }
}
