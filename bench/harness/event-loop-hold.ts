/**
 * Measures how long work holds the event loop in one piece. CPU time of this thread counts, not time on the clock, so that
 * other programs on the machine do not count.
 */
import { openSync, readSync } from 'node:fs'

export interface EventLoopHold {
  /** CPU milliseconds between two turns of the event loop, at most. */
  readonly longestMs: number
  /** CPU milliseconds of the whole work. */
  readonly totalMs: number
}

export async function measureEventLoopHold(work: () => Promise<unknown>): Promise<EventLoopHold> {
  const start = readCpuMs()
  let last = start
  let longestMs = 0
  let isOver = false
  const tick = (): void => {
    const now = readCpuMs()
    longestMs = Math.max(longestMs, now - last)
    last = now
    if (!isOver) setImmediate(tick)
  }
  setImmediate(tick)
  try {
    await work()
  } finally {
    isOver = true
    tick()
  }
  return { longestMs, totalMs: last - start }
}

/**
 * Returns the CPU milliseconds of this thread. Linux brings what `threadCpuUsage` reads up to date only every few
 * milliseconds; its file `schedstat`, whose first number is nanoseconds, is exact.
 */
function readCpuMs(): number {
  if (schedstat !== null) return Number.parseInt(readText(schedstat), 10) / 1_000_000
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

const schedstat = openSchedstat()
const buffer = Buffer.alloc(64)

function openSchedstat(): number | null {
  try {
    return openSync('/proc/thread-self/schedstat', 'r')
  } catch {
    return null
  }
}

function readText(file: number): string {
  return buffer.toString('latin1', 0, readSync(file, buffer, 0, buffer.length, 0))
}
