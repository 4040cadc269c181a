/**
 * Runs a shell command as a process group of its own, so that it can be ended together with every process that it
 * started. Standard input is empty; output and errors arrive in order.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants, readdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { ToolError } from './tool-definition.ts'

export interface ShellCommand {
  readonly command: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** File that receives the shell's working directory when the shell exits. */
  readonly cwdFile: string
  readonly onOutput: (text: string) => void
}

export interface ShellEnd {
  /** Null if a signal ended the shell. */
  readonly code: number | null
  readonly signal: string | null
  /** True if a process that the command started still has the output open. */
  readonly hasRunningChildren: boolean
}

export interface ShellProcess {
  /** Resolves when the shell has exited and its output was read. Rejects if the shell cannot be started. */
  readonly ended: Promise<ShellEnd>
  /** Returns false once no process of the group is left. */
  isAlive(): boolean
  /** Ends the whole group: first with SIGTERM, and with SIGKILL what is left after two seconds. */
  stop(): Promise<void>
}

/** Linux passes no longer argument to a program. */
const MAX_COMMAND_BYTES = 120_000

export function startShell({ command, cwd, env, cwdFile, onOutput }: ShellCommand): ShellProcess {
  if (Buffer.byteLength(command) > MAX_COMMAND_BYTES)
    throw new ToolError('The command is too long. Write it to a file with Write, and run that file.')
  const saveFolder = `pwd -P >|${quoteForShell(cwdFile)} 2>/dev/null`
  const script = `exec 2>&1; trap ${quoteForShell(saveFolder)} EXIT\n${command}`
  const shell = findProgram('bash', env) ?? 'sh'
  const child = spawn(shell, ['-c', script], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', onOutput)
  const group = child.pid ?? null
  return {
    ended: waitForEnd(child, child.stdout),
    isAlive: () => group !== null && isGroupAlive(group),
    stop: async () => (group === null ? undefined : stopGroup(group)),
  }
}

function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** Returns the path of a program on the PATH of `env`; null if it is not installed. */
export function findProgram(name: string, env: NodeJS.ProcessEnv): string | null {
  const candidates = (env.PATH ?? '')
    .split(delimiter)
    .flatMap((folder) => (folder === '' ? [] : [join(folder, name)]))
  return candidates.find(isExecutable) ?? null
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** After the shell has exited, its output counts as read if nothing arrives for `QUIET_MS`, at the latest after `DRAIN_MS`. */
const QUIET_MS = 100
const DRAIN_MS = 1_000

/**
 * Waits until the shell has exited and its output is closed. A background process may keep the output open for ever, so
 * after the exit only a short time is waited; the output is then read on, so that the process can go on writing.
 */
function waitForEnd(child: ChildProcess, output: Readable): Promise<ShellEnd> {
  return new Promise((resolve, reject) => {
    let exit: Omit<ShellEnd, 'hasRunningChildren'> | null = null
    let quiet: NodeJS.Timeout | undefined
    let drain: NodeJS.Timeout | undefined
    function end(hasRunningChildren: boolean): void {
      clearTimeout(quiet)
      clearTimeout(drain)
      if (exit === null) return
      if (hasRunningChildren && 'unref' in output && typeof output.unref === 'function') output.unref()
      resolve({ ...exit, hasRunningChildren })
    }
    function restartQuietTime(): void {
      clearTimeout(quiet)
      if (exit !== null) quiet = setTimeout(() => end(true), QUIET_MS)
    }
    child.on('error', (error) => reject(new ToolError(`The shell could not be started: ${error.message}`)))
    child.on('exit', (code, signal) => {
      exit = { code, signal }
      drain = setTimeout(() => end(true), DRAIN_MS)
      restartQuietTime()
    })
    output.on('data', restartQuietTime)
    child.on('close', () => end(false))
  })
}

const STOP_MS = 2_000
const KILL_MS = 500
const POLL_MS = 20

async function stopGroup(group: number): Promise<void> {
  for (const [signal, waitMs] of [
    ['SIGTERM', STOP_MS],
    ['SIGKILL', KILL_MS],
  ] as const) {
    if (!signalGroup(group, signal)) return
    for (let waited = 0; waited < waitMs; waited += POLL_MS) {
      await sleep(POLL_MS)
      if (!isGroupAlive(group)) return
    }
  }
}

/** Sends a signal to a process group; 0 only checks. Returns false if the group has no process that can be signalled. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal)
  } catch {
    return false
  }
}

/**
 * Returns true if a process of the group runs. A process that has ended but was not collected by its parent does not
 * count: in a container without an init process such processes stay for ever.
 */
function isGroupAlive(group: number): boolean {
  if (!signalGroup(group, 0)) return false
  const states = listGroupStates(group)
  return states === null || states.some((state) => state !== 'Z' && state !== 'X')
}

/** Returns the state letters of the processes of a group; null on systems without /proc. */
function listGroupStates(group: number): readonly string[] | null {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        const text = readProcessStatus(pid)
        // The name of the program stands in parentheses and may contain any character.
        const [state = '', , groupId] = text.slice(text.lastIndexOf(')') + 2).split(' ')
        return Number(groupId) === group ? [state] : []
      })
  } catch {
    return null
  }
}

function readProcessStatus(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return ''
  }
}
