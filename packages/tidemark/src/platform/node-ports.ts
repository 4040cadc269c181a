/** The clock, the ids and the deadlines of Node. Tests pass fakes in their place. */
import { randomUUID } from 'node:crypto'
import type { BoundedResult, Clock, Deadlines, IdGenerator, Signal } from '@tidemark/core'

/** The longest delay a timer takes; a longer one would fire at once. */
const MAX_TIMER_MS = 2_147_483_647

/** Real time. An aborted sleep resolves early; ask the signal whether it was aborted. */
export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    const end = performance.now() + Math.max(0, ms)
    for (let left = ms; left > 0 && signal?.aborted !== true; left = end - performance.now())
      await sleepOnce(Math.min(left, MAX_TIMER_MS), signal)
  },
}

function sleepOnce(ms: number, signal: Signal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer)
      onAbort(signal, 'removeEventListener', wake)
      resolve()
    }
    const timer = setTimeout(wake, ms)
    onAbort(signal, 'addEventListener', wake)
  })
}

/** Random UUIDs for every kind of id, so that sessions of two machines can be merged. */
export const systemIds: IdGenerator = { next: () => randomUUID() }

/** Work bounded in time by `clock`. */
export function createDeadlines(clock: Clock = systemClock): Deadlines {
  return {
    async within(ms, work, signal) {
      if (signal?.aborted === true) return { ok: false, why: 'aborted' }
      const deadline = createDeadline(clock, ms, signal)
      try {
        const result = work(deadline.signal).then((value) => ({ ok: true, value }) as const)
        // Work that fails after the deadline must not become an unhandled rejection.
        result.catch(() => {})
        return await Promise.race([result, deadline.expired.then((why) => ({ ok: false, why }) as const)])
      } finally {
        deadline.end()
      }
    },
  }
}

/** Why the deadline expired: no time left, or the caller's signal was aborted. */
type ExpiryReason = Exclude<BoundedResult<never>, { readonly ok: true }>['why']

/** A time limit that can be renewed while data keeps arriving. */
export interface Deadline {
  /** Aborted when the deadline expires and by `end`. */
  readonly signal: AbortSignal
  /** Resolves when the deadline expires; never after `end`. */
  readonly expired: Promise<ExpiryReason>
  /** Null while the deadline has not expired. */
  readonly expiryReason: ExpiryReason | null
  /** Restarts the time: data arrived and we wait for more. */
  renew(): void
  /** Pauses the time until the next `renew`: we are busy, not the other side. */
  pause(): void
  /** Releases timers and listeners and aborts what is left of the work. */
  end(): void
}

/**
 * Expires after `ms` without a `renew`, or when `outer` is aborted. A `renew` is cheap: it sets no timer, the sleeping
 * watch compares times when it wakes.
 */
export function createDeadline(clock: Clock, ms: number, outer?: Signal): Deadline {
  const controller = new AbortController()
  const ended = new AbortController()
  const expired = Promise.withResolvers<ExpiryReason>()
  let expiryReason: ExpiryReason | null = null
  let renewedAt: number | null = null
  let isPaused = false
  const expire = (why: ExpiryReason): void => {
    expiryReason ??= why
    // Before the abort, so that the deadline and not the failure of the aborted work is seen first.
    expired.resolve(expiryReason)
    controller.abort()
  }
  const abort = (): void => expire('aborted')
  const watch = async (): Promise<void> => {
    let left = ms
    do {
      await clock.sleep(left, ended.signal)
      if (ended.signal.aborted) return
      left = isPaused ? ms : renewedAt === null ? 0 : ms - (clock.now() - renewedAt)
    } while (left > 0)
    expire('timeout')
  }
  if (outer?.aborted === true) abort()
  else onAbort(outer, 'addEventListener', abort)
  void watch()
  return {
    signal: controller.signal,
    expired: expired.promise,
    get expiryReason() {
      return expiryReason
    },
    renew: () => {
      if (outer?.aborted === true) abort()
      renewedAt = clock.now()
      isPaused = false
    },
    pause: () => {
      isPaused = true
    },
    end: () => {
      ended.abort()
      onAbort(outer, 'removeEventListener', abort)
      controller.abort()
    },
  }
}

/** The engine's `Signal` promises only `aborted`; a signal that has events is listened to as well. */
function onAbort(
  signal: Signal | undefined,
  method: 'addEventListener' | 'removeEventListener',
  listener: () => void,
): void {
  const target = signal as (Signal & Partial<Pick<AbortSignal, typeof method>>) | undefined
  target?.[method]?.('abort', listener)
}
