/** Which process this is, and whether another one still runs: how the lock of a dead writer is known. */
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** Names one run of one process. A process id alone does not: the system gives it out again. */
export interface ProcessMark {
  readonly pid: number
  readonly host: string
  /** When it started, as its system counts; null where the system does not tell. */
  readonly processStart: string | null
  /** Within what its id means something (containers number their own); null where there is only one such. */
  readonly pidSpace: string | null
}

export type Fate = 'running' | 'gone' | 'unknown'

export interface Processes {
  readonly own: ProcessMark
  /** `unknown` where it cannot be told from here: another machine, another container. */
  fateOf(mark: ProcessMark): Fate
}

export const systemProcesses: Processes = {
  get own() {
    own ??= ownMark()
    return own
  },
  fateOf(mark) {
    const here = this.own
    if (mark.host !== here.host || mark.pidSpace !== here.pidSpace) return 'unknown'
    if (!isAlive(mark.pid)) return 'gone'
    const start = startOf(mark.pid)
    if (start === 'ended') return 'gone'
    if (start === null || mark.processStart === null) return 'unknown'
    return start === mark.processStart ? 'running' : 'gone'
  },
}

let own: ProcessMark | undefined

function ownMark(): ProcessMark {
  return {
    pid: process.pid,
    host: hostname(),
    processStart: startOf(process.pid),
    pidSpace: orNull(() => readlinkSync('/proc/self/ns/pid')),
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
 * Clock ticks from boot to start, with the boot they are counted from; null where there is no /proc. A
 * process that has ended but that its parent has not asked after is `ended`.
 */
function startOf(pid: number): string | null {
  const text = orNull(() => readFileSync(`/proc/${pid}/stat`, 'latin1'))
  // The second field is the name in parentheses, and may hold anything.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, start] = [fields?.[0], fields?.[19]]
  if (state === 'Z' || state === 'X') return 'ended'
  return start === undefined ? null : `${start}@${bootId()}`
}

function bootId(): string {
  return orNull(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()) ?? ''
}

function orNull(read: () => string): string | null {
  try {
    return read()
  } catch {
    return null
  }
}
