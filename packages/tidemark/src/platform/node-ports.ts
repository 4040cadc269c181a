import { randomUUID } from 'node:crypto'
import type { Bounded, Clock, Deadlines, Ids, Signal } from '@tidemark/core'

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

/** Random uuids, whatever they are for: sessions of two machines can be put together. */
export const systemIds: Ids = { next: () => randomUUID() }

// Work bounded in time by a clock: the real one, or a fake one in tests.

export function createDeadlines(clock: Clock = systemClock): Deadlines {
  return { within: (ms, work, signal) => within({ clock, ms, signal }, work) }
}

interface Limits {
  readonly clock: Clock
  readonly ms: number
  readonly signal: Signal | undefined
}

async function within<T>(
  { clock, ms, signal }: Limits,
  work: (signal: Signal) => Promise<T>,
): Promise<Bounded<T>> {
  if (signal?.aborted === true) return { ok: false, why: 'aborted' }
  const inner = new AbortController()
  const over = new AbortController()
  const aborted = new Promise<Bounded<T>>((resolve) => {
    listener(signal)?.addEventListener('abort', () => resolve({ ok: false, why: 'aborted' }), {
      once: true,
      signal: over.signal,
    })
  })
  const late = clock.sleep(ms, over.signal).then((): Bounded<T> => ({ ok: false, why: 'timeout' }))
  try {
    const done = work(inner.signal).then((value): Bounded<T> => ({ ok: true, value }))
    done.catch(() => {})
    return await Promise.race([done, aborted, late])
  } finally {
    over.abort()
    inner.abort()
  }
}

/** The engine's signal need only say whether it was aborted; where it can be listened to, it is. */
function listener(signal: Signal | undefined): AbortSignal | null {
  return signal instanceof AbortSignal ? signal : null
}

// Waiting with an end: work that is called off when its time is up or the caller lets go.

/** Why the work was called off, where it was. */
export type CalledOff = 'too-late' | 'aborted'

export interface Deadline {
  readonly signal: AbortSignal
  readonly calledOff: CalledOff | null
  /** Starts the time anew: we wait for the next thing to come. */
  beat(): void
  /** Stops it: it is we who are busy, not the other side that is silent. */
  hold(): void
  /** Lets go of timers and listeners. */
  end(): void
}

/** Calls off after `ms` without a beat, or with `outer`. A beat costs nothing: the watch looks back when it wakes. */
export function createDeadline(clock: Clock, ms: number, outer?: Signal): Deadline {
  const controller = new AbortController()
  const ended = new AbortController()
  let calledOff: CalledOff | null = null
  let last = clock.now()
  let held = false
  const off = (why: CalledOff): void => {
    calledOff ??= why
    controller.abort()
  }
  const watch = async (): Promise<void> => {
    for (let left = ms; left > 0; left = held ? ms : ms - (clock.now() - last)) {
      await clock.sleep(left, ended.signal)
      if (ended.signal.aborted) return
    }
    off('too-late')
  }
  const aborted = (): void => off('aborted')
  if (outer?.aborted === true) aborted()
  else listen(outer, 'addEventListener', aborted)
  void watch()
  return {
    signal: controller.signal,
    get calledOff() {
      return calledOff
    },
    beat: () => {
      if (outer?.aborted === true) aborted()
      last = clock.now()
      held = false
    },
    hold: () => {
      held = true
    },
    end: () => {
      ended.abort()
      listen(outer, 'removeEventListener', aborted)
    },
  }
}

/** The engine's signal need only say whether it was aborted; where it can be listened to, it is. */
function listen(
  signal: Signal | undefined,
  how: 'addEventListener' | 'removeEventListener',
  aborted: () => void,
): void {
  const target = signal as (Signal & Partial<Pick<AbortSignal, typeof how>>) | undefined
  target?.[how]?.('abort', aborted)
}
