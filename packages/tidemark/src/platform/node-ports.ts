/** Implements the clock, id, deadline and write lock ports with Node. Tests replace them with fakes. */
import { randomUUID } from 'node:crypto'
import type { Clock, DeadlineResult, Deadlines, IdGenerator, Signal } from '@tidemark/core/engine/ports'
import type { WriteLock } from '@tidemark/core/engine/session-writer'
import { runStepsInSlices, type WorkInSteps } from '@tidemark/core/log/work-steps'

/** Longest delay in milliseconds that `setTimeout` supports; a longer delay would fire at once. */
const MAX_TIMER_MS = 2_147_483_647

/** The system clock. An aborted sleep resolves early without an error; check `signal.aborted` afterwards. */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) => sleepFor(ms, signal, true),
  sleepInBackground: (ms, signal) => sleepFor(ms, signal, false),
}

async function sleepFor(ms: number, signal: Signal | undefined, keepsAlive: boolean): Promise<void> {
  const end = performance.now() + Math.max(0, ms)
  for (let left = ms; left > 0 && signal?.aborted !== true; left = end - performance.now())
    await sleepOnce(Math.min(left, MAX_TIMER_MS), signal, keepsAlive)
}

function sleepOnce(ms: number, signal: Signal | undefined, keepsAlive: boolean): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer)
      onAbort(signal, 'removeEventListener', wake)
      resolve()
    }
    const timer = setTimeout(wake, ms)
    if (!keepsAlive) timer.unref()
    onAbort(signal, 'addEventListener', wake)
  })
}

/** The id generator of the system: a random UUID for every kind of id, so that sessions from two machines can be merged. */
export const systemIds: IdGenerator = { next: () => randomUUID() }

/**
 * Creates a lock that runs functions one at a time, in the order of the calls. A function that throws does not stop
 * later ones.
 */
export function createWriteLock(): WriteLock {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work)
    last = next.catch(() => {})
    return next
  }
}

/** Resolves after all events that wait now, such as input, timers and answers of the network, have been handled. */
export function pauseForEvents(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Runs long work in slices, between which waiting events are handled. */
export async function runWithPauses<Result>(steps: WorkInSteps<Result>): Promise<Result> {
  const pause = async (): Promise<boolean> => pauseForEvents().then(() => true)
  return (await runStepsInSlices(steps, pause)) as Result
}

/** Characters above which one step, such as parsing a request, takes milliseconds. */
const LARGE_TEXT = 500_000

/**
 * Lets waiting events run first if the text has more than 500,000 characters. Called before a step whose time grows
 * with the text.
 */
export async function pauseIfLarge({ length }: string): Promise<void> {
  if (length > LARGE_TEXT) await pauseForEvents()
}

/** The signal for work that does not use one. */
const NO_SIGNAL: Signal = { aborted: false }

/**
 * Creates the `Deadlines` port, which runs asynchronous work with a time limit, measured by `clock`. The engine uses it
 * for every piece of a reply, so it creates an AbortController only for work that takes a signal.
 */
export function createDeadlines(clock: Clock = systemClock): Deadlines {
  return {
    async within<T>(ms: number, work: (signal: Signal) => Promise<T>, signal?: Signal) {
      if (signal?.aborted === true) return { ok: false, why: 'aborted' }
      const end = Promise.withResolvers<DeadlineResult<T>>()
      const inner = work.length === 0 ? null : new AbortController()
      // A user's clock may pass the signal on to a function that accepts only a real AbortSignal. `SleepEnd` is cheaper.
      const sleep = clock === systemClock ? new SleepEnd() : new AbortController()
      const expire = (why: ExpiryReason): void => {
        // The promise is resolved before the work is aborted, so that callers get the expiry and not the work's abort
        // error.
        end.resolve({ ok: false, why })
        inner?.abort()
      }
      const abort = (): void => expire('aborted')
      onAbort(signal, 'addEventListener', abort)
      // A clock that fails must not end the process: the deadline expires instead.
      clock.sleep(ms, sleep.signal).then(
        () => sleep.signal.aborted || expire('timeout'),
        () => expire('timeout'),
      )
      try {
        work(inner?.signal ?? NO_SIGNAL).then((value) => end.resolve({ ok: true, value }), end.reject)
        return await end.promise
      } finally {
        onAbort(signal, 'removeEventListener', abort)
        sleep.abort(WORK_ENDED)
        inner?.abort(WORK_ENDED)
      }
    },
  }
}

/** Ends a sleep as an `AbortController` does, but without creating an event. */
class SleepEnd {
  readonly #listeners = new Set<() => void>()
  readonly signal = {
    aborted: false,
    addEventListener: (_: 'abort', listener: () => void): void => void this.#listeners.add(listener),
    removeEventListener: (_: 'abort', listener: () => void): void => void this.#listeners.delete(listener),
  }

  abort(_reason: unknown): void {
    this.signal.aborted = true
    for (const listener of this.#listeners) listener()
  }
}

/** Why a deadline expired: the time ran out, or the caller's signal was aborted. */
type ExpiryReason = Exclude<DeadlineResult<never>, { readonly ok: true }>['why']

/** A time limit that can be renewed while data keeps arriving. */
export interface Deadline {
  /** Signal to pass to the work. Aborted when the deadline expires or `end` is called. */
  readonly signal: AbortSignal
  /** Resolves with the reason when the deadline expires. Never resolves if `end` was called before. */
  readonly expired: Promise<ExpiryReason>
  /** Reason why the deadline expired; null while it has not expired. */
  readonly expiryReason: ExpiryReason | null
  /** Restarts the time limit. Call this when data has arrived and more is expected. */
  renew(): void
  /** Stops the time limit until the next `renew`. Call this while data is being processed and none is awaited. */
  pause(): void
  /** Releases the timers and listeners, and aborts work that is still running. */
  end(): void
}

/** The abort reason of signals whose work has ended. Shared, because a deadline ends with every event of a reply. */
const WORK_ENDED = new DOMException('The work has ended.', 'AbortError')

/**
 * Creates a deadline that expires if `renew` is not called for `ms` milliseconds, or when `outer` is aborted. `renew`
 * is cheap: it stores the current time and does not restart the timer.
 */
export function createRenewableDeadline(clock: Clock, ms: number, outer?: Signal): Deadline {
  const controller = new AbortController()
  const ended = new AbortController()
  const expired = Promise.withResolvers<ExpiryReason>()
  let expiryReason: ExpiryReason | null = null
  let renewedAt: number | null = null
  let isPaused = false
  const expire = (why: ExpiryReason): void => {
    expiryReason ??= why
    // The promise is resolved before the work is aborted, so that callers get the expiry and not the work's abort
    // error.
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
  // A clock that fails must not end the process: the deadline expires instead.
  watch().catch(() => expire('timeout'))
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
      ended.abort(WORK_ENDED)
      onAbort(outer, 'removeEventListener', abort)
      controller.abort(WORK_ENDED)
    },
  }
}

/**
 * Adds or removes an abort listener. Does nothing for a signal without events, because the `Signal` type guarantees
 * only `aborted`.
 */
function onAbort(
  signal: Signal | undefined,
  method: 'addEventListener' | 'removeEventListener',
  listener: () => void,
): void {
  const target = signal as (Signal & Partial<Pick<AbortSignal, typeof method>>) | undefined
  target?.[method]?.('abort', listener)
}
