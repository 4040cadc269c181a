/** Work bounded in time by a clock: the real one, or a fake one in tests. */
import type { Bounded, Clock, Deadlines, Signal } from '@tidemark/core'
import { systemClock } from './system-clock.ts'

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
