import type { Clock, Signal } from '@tidemark/core'

/** Time that passes only when told to. */
export interface FakeClock extends Clock {
  /** Wakes, in order, the sleepers whose time has come and those whose signal was aborted. */
  advance(ms: number): Promise<void>
  /** To a moment, also backwards; sleepers go by how long they have slept. */
  set(ms: number): void
}

interface Sleeper {
  readonly until: number
  readonly signal: Signal | undefined
  readonly wake: () => void
}

export function createFakeClock(startMs: number = Date.UTC(2026, 0, 1)): FakeClock {
  let shown = startMs
  let passed = 0
  let sleepers: Sleeper[] = []
  return {
    now: () => shown,
    sleep(ms, signal) {
      if (!(ms > 0) || signal?.aborted === true) return Promise.resolve()
      return new Promise((wake) => {
        sleepers.push({ until: passed + ms, signal, wake })
      })
    },
    async advance(ms) {
      shown += ms
      passed += ms
      const due = sleepers.filter(({ until, signal }) => until <= passed || signal?.aborted === true)
      sleepers = sleepers.filter((sleeper) => !due.includes(sleeper))
      for (const { wake } of due.sort((one, other) => one.until - other.until)) wake()
      await settled()
    },
    set(ms) {
      shown = ms
    },
  }
}

/** Lets whoever was woken go on to its next wait. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
