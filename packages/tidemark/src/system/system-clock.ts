import type { Clock, Signal } from '@tidemark/core'

/** The longest wait a timer takes; one that is asked for more would fire at once. */
const LONGEST_MS = 2_147_483_647

/** Real time. A sleep that is called off ends early and quietly: ask the signal which it was. */
export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    const end = performance.now() + Math.max(0, ms)
    for (let left = ms; left > 0 && signal?.aborted !== true; left = end - performance.now())
      await pause(Math.min(left, LONGEST_MS), signal)
  },
}

function pause(ms: number, signal: Signal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    if (signal instanceof AbortSignal) signal.addEventListener('abort', done, { once: true })
    function done(): void {
      clearTimeout(timer)
      if (signal instanceof AbortSignal) signal.removeEventListener('abort', done)
      resolve()
    }
  })
}
