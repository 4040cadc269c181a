/**
 * Identifies this process and checks whether another process is still running. Used to detect locks of dead processes.
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** Identifies one run of one process. A process id alone is not enough, because the system reuses process ids. */
export interface ProcessIdentity {
  readonly pid: number
  readonly host: string
  /** Start time of the process, in a system-specific format; null if the system does not report it. */
  readonly processStart: string | null
  /**
   * Namespace of the process id, because each container has its own process ids; null if the system has no namespaces.
   */
  readonly pidSpace: string | null
}

type ProcessStatus = 'running' | 'gone' | 'unknown'

export interface ProcessPort {
  readonly own: ProcessIdentity
  /**
   * Whether a process is running. `unknown` if it cannot be checked, for example in another container or on another
   * machine.
   */
  checkStatus(mark: ProcessIdentity): ProcessStatus
}

/**
 * The processes of this machine. On systems without /proc, a process id that exists gives `unknown`, because another
 * process may have it by now.
 */
export const systemProcesses: ProcessPort = {
  get own() {
    ownIdentity ??= identifyProcess()
    return ownIdentity
  },
  checkStatus(mark) {
    const here = this.own
    if (mark.host !== here.host || mark.pidSpace !== here.pidSpace) return 'unknown'
    if (!isAlive(mark.pid)) return 'gone'
    const start = readStart(mark.pid)
    if (start === 'ended') return 'gone'
    if (start === null || mark.processStart === null) return 'unknown'
    return start === mark.processStart ? 'running' : 'gone'
  },
}

let ownIdentity: ProcessIdentity | undefined

function identifyProcess(): ProcessIdentity {
  return {
    pid: process.pid,
    host: hostname(),
    processStart: readStart(process.pid),
    pidSpace: readOrNull(() => readlinkSync('/proc/self/ns/pid')),
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid < 1) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/**
 * Returns the process's start time in clock ticks since boot together with the boot id, or null on systems without
 * /proc. Returns `ended` for a zombie process.
 */
function readStart(pid: number): string | null {
  const text = readOrNull(() => readFileSync(`/proc/${pid}/stat`, 'latin1'))
  // The second field is the process name in parentheses and may contain any character, even a closing parenthesis.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, start] = [fields?.[0], fields?.[19]]
  if (state === 'Z' || state === 'X') return 'ended'
  if (start === undefined) return null
  return `${start}@${readOrNull(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()) ?? ''}`
}

function readOrNull(read: () => string): string | null {
  try {
    return read()
  } catch {
    return null
  }
}
