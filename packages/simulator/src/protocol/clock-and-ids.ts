import { createHmac, hash } from 'node:crypto'

/** Time is injected: lifetimes of cache entries, threads and limits are all measured on one of these. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Resolves after `ms`, or at once when the signal fires. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const timer = setTimeout(done, ms)
      function done(): void {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      signal?.addEventListener('abort', done)
    }),
}

/** A clock that stands still until it is told to go on. */
export interface ManualClock extends Clock {
  /** Moves on by `ms` and wakes whoever was to wake by then, earliest first. */
  advance(ms: number): Promise<void>
}

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

export function manualClock(start = 1_800_000_000_000): ManualClock {
  let now = start
  let sleepers: readonly Sleeper[] = []
  function leave(sleeper: Sleeper): void {
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
        signal?.addEventListener('abort', () => leave(sleeper), { once: true })
      }),
    async advance(ms) {
      const until = now + ms
      for (let next = dueBy(sleepers, until); next !== undefined; next = dueBy(sleepers, until)) {
        const due = next
        sleepers = sleepers.filter((sleeper) => sleeper !== due)
        now = Math.max(now, due.at)
        due.wake()
        await settle()
      }
      now = until
    },
  }
}

function dueBy(sleepers: readonly Sleeper[], until: number): Sleeper | undefined {
  return sleepers.filter((sleeper) => sleeper.at <= until).sort((a, b) => a.at - b.at)[0]
}

/** Lets whoever was woken run on to where it waits next. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A clock set forward on command, so that a person can let a cache expire without waiting for it. */
export interface ShiftedClock extends Clock {
  shift(ms: number): void
}

export function shiftedClock(clock: Clock): ShiftedClock {
  let offset = 0
  return {
    now: () => clock.now() + offset,
    sleep: (ms, signal) => clock.sleep(ms, signal),
    shift: (ms) => {
      offset += ms
    },
  }
}

// Ids that look like the provider's and are the same in every run with the same seed.

export interface Ids {
  next(prefix: string): string
}

export function seededIds(seed: string): Ids {
  const counts = new Map<string, number>()
  return {
    next(prefix) {
      const count = (counts.get(prefix) ?? 0) + 1
      counts.set(prefix, count)
      const text = digest(`${seed}/${prefix}/${count}`).replaceAll('-', 'A').replaceAll('_', 'B')
      return `${prefix}_01${text}`
    },
  }
}

/** Numbers in [0, 1): mulberry32 over a seed made of text. */
export function seededRandom(seed: string): () => number {
  let state = Number.parseInt(Buffer.from(digest(seed)).toString('hex').slice(0, 8), 16)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

// Hashes, for chains of blocks and for signatures. Short enough to be keys, long enough not to meet.

export function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 22)
}

export function keyedDigest(key: string, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url')
}
