/**
 * Runs programs in process groups, so that a program can be ended together with every process that it started. A
 * process that leaves its group (`setsid`) is not ended.
 */
import type { ChildProcess } from 'node:child_process'
import { accessSync, constants, readdirSync, readFileSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Returns the path of a program on the PATH of `env`; null if none of its folders has it. Relative folders in PATH are
 * ignored.
 */
export function findProgram(name: string, env: NodeJS.ProcessEnv): string | null {
  const candidates = (env.PATH ?? '')
    .split(delimiter)
    .flatMap((folder) => (isAbsolute(folder) ? [join(folder, name)] : []))
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

export interface ProcessEnd {
  /** Null if a signal ended the process. */
  readonly code: number | null
  readonly signal: string | null
  /** True if a process that the program started still has the output open. */
  readonly hasRunningChildren: boolean
}

/** After the exit, reading stops when nothing arrives for `QUIET_MS`, at the latest after `DRAIN_MS`. */
const QUIET_MS = 100
const DRAIN_MS = 1_000

/**
 * Waits until a process has exited and its output is closed. A background process may keep the output open for ever, so
 * the wait after the exit is short. The output is still read after that, so that the process is not blocked. Rejects if
 * the process cannot be started.
 */
export function waitForExit(child: ChildProcess, outputs: readonly Readable[]): Promise<ProcessEnd> {
  return new Promise((resolve, reject) => {
    let exit: Omit<ProcessEnd, 'hasRunningChildren'> | null = null
    let quiet: NodeJS.Timeout | undefined
    let drain: NodeJS.Timeout | undefined
    function end(hasRunningChildren: boolean): void {
      clearTimeout(quiet)
      clearTimeout(drain)
      if (exit === null) return
      if (hasRunningChildren)
        for (const output of outputs)
          if ('unref' in output && typeof output.unref === 'function') output.unref()
      resolve({ ...exit, hasRunningChildren })
    }
    function restartQuietTime(): void {
      clearTimeout(quiet)
      if (exit !== null) quiet = setTimeout(() => end(true), QUIET_MS)
    }
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      exit = { code, signal }
      drain = setTimeout(() => end(true), DRAIN_MS)
      restartQuietTime()
    })
    for (const output of outputs) output.on('data', restartQuietTime)
    child.on('close', () => end(false))
  })
}

const STOP_MS = 2_000
const KILL_MS = 500
const POLL_MS = 20

/** Ends a whole group with SIGTERM, and with SIGKILL the processes that still run after two seconds. */
export async function stopGroup(group: number): Promise<void> {
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
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
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
export function isGroupAlive(group: number): boolean {
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
