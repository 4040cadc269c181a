/**
 * Measures how long work holds the event loop in one piece. CPU time of this thread counts, not time on the clock, so that
 * other programs on the machine do not count.
 */
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

function readCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
