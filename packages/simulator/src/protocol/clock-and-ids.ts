/** Clocks, ids, random numbers and hashes. All are injected or seeded, so that a run can be repeated exactly. */
import { createHmac, hash } from 'node:crypto'

/** The clock that measures cache lifetimes, thread lifetimes, rate limits and delays. */
export interface Clock {
  /** Returns the current time in milliseconds since 1970. */
  now(): number
  /** Resolves after `ms` milliseconds, or as soon as the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const timer = setTimeout(wakeUp, ms)
      function wakeUp(): void {
        clearTimeout(timer)
        signal?.removeEventListener('abort', wakeUp)
        resolve()
      }
      signal?.addEventListener('abort', wakeUp)
    }),
}

/** A clock for tests: time passes only when `advance` is called. */
export interface ManualClock extends Clock {
  /**
   * Sets the clock forward by `ms` milliseconds. Calls of `sleep` that end within this time resolve, earliest first.
   */
  advance(ms: number): Promise<void>
}

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/**
 * Creates a clock whose time changes only when `advance` is called. `start` is in milliseconds since 1970.
 *
 * @example
 * const clock = createManualClock()
 * const simulator = createSimulator({ clock })
 * await clock.advance(301_000) // cache entries of five minutes have now expired
 */
export function createManualClock(start = 1_800_000_000_000): ManualClock {
  let now = start
  let sleepers: readonly Sleeper[] = []
  function wake(sleeper: Sleeper): void {
    sleepers = sleepers.filter((other) => other !== sleeper)
    sleeper.wake()
  }
  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (ms <= 0 || signal?.aborted) return resolve()
        const sleeper: Sleeper = { at: now + ms, wake: resolve }
        sleepers = [...sleepers, sleeper]
        signal?.addEventListener('abort', () => wake(sleeper), { once: true })
      }),
    async advance(ms) {
      const until = now + ms
      for (
        let due = findDueSleeper(sleepers, until);
        due !== undefined;
        due = findDueSleeper(sleepers, until)
      ) {
        now = Math.max(now, due.at)
        wake(due)
        await runPendingCallbacks()
      }
      now = until
    },
  }
}

function findDueSleeper(sleepers: readonly Sleeper[], until: number): Sleeper | undefined {
  return sleepers.filter((sleeper) => sleeper.at <= until).sort((a, b) => a.at - b.at)[0]
}

/** Waits until the code that follows a finished `sleep` has run up to its next wait. */
function runPendingCallbacks(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * A running clock that can be set forward, so that a test need not wait for a cache entry to expire. A `sleep` that
 * has begun is not shortened.
 */
export interface AdjustableClock extends Clock {
  advance(ms: number): void
}

export function createAdjustableClock(clock: Clock): AdjustableClock {
  let offset = 0
  return {
    now: () => clock.now() + offset,
    sleep: (ms, signal) => clock.sleep(ms, signal),
    advance: (ms) => {
      offset += ms
    },
  }
}

/** A generator of ids in the provider's format. The same seed gives the same ids in every run. */
export interface IdGenerator {
  next(prefix: string): string
}

export function createIdGenerator(seed: string): IdGenerator {
  const counts = new Map<string, number>()
  return {
    next(prefix) {
      const count = (counts.get(prefix) ?? 0) + 1
      counts.set(prefix, count)
      const text = hashText(`${seed}/${prefix}/${count}`).replaceAll('-', 'A').replaceAll('_', 'B')
      return `${prefix}_01${text}`
    },
  }
}

/** Creates a generator of pseudo-random numbers in [0, 1) with the mulberry32 algorithm. */
export function createSeededRandom(seed: string): () => number {
  let state = Number.parseInt(Buffer.from(hashText(seed)).toString('hex').slice(0, 8), 16)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Returns the first 22 characters of the SHA-256 hash: short enough for a key, long enough to rule out collisions. */
export function hashText(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 22)
}

export function hashWithKey(key: string, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url')
}
