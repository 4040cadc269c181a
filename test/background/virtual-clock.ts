/** A clock whose time passes as soon as nobody has anything left to do: hours of a session take seconds. */

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

export interface VirtualClock {
  now(): number
  sleep(ms: number, signal?: { readonly aborted: boolean }): Promise<void>
  /** Lets time pass until `work` has ended, and returns its result. */
  passUntil<T>(work: Promise<T>): Promise<T>
}

/** Rounds of the event loop without which nobody is taken to be busy. Everything in these tests is in this process. */
const QUIET_ROUNDS = 40

export function createVirtualClock(start = Date.UTC(2026, 0, 1)): VirtualClock {
  let now = start
  let sleepers: readonly Sleeper[] = []
  const remove = (sleeper: Sleeper): void => {
    sleepers = sleepers.filter((other) => other !== sleeper)
    sleeper.wake()
  }
  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (!(ms > 0) || signal?.aborted === true) return resolve()
        const sleeper: Sleeper = { at: now + ms, wake: resolve }
        sleepers = [...sleepers, sleeper]
        const target = signal as AbortSignal | undefined
        target?.addEventListener?.('abort', () => remove(sleeper), { once: true })
      }),
    async passUntil(work) {
      let isOver = false
      const end = (): void => {
        isOver = true
      }
      work.then(end, end)
      while (!isOver) {
        for (let round = 0; round < QUIET_ROUNDS && !isOver; round = isPausing() ? 0 : round + 1)
          await nextRound()
        const due = sleepers.toSorted((one, other) => one.at - other.at)[0]
        if (isOver || due === undefined) continue
        now = Math.max(now, due.at)
        remove(due)
      }
      return work
    },
  }
}

/** True if somebody works in slices and has let the event loop go on: such work takes no time on this clock. */
function isPausing(): boolean {
  return process.getActiveResourcesInfo().includes('Immediate')
}

function nextRound(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
