/**
 * Work bounded in time, as a port: core can make neither timers nor signals. Whoever waits for a hook, a file or a
 * model waits through this, so that a person's abort is heard at once, whatever the thing waited for does.
 */
import type { Signal } from './ports.ts'

export type Bounded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly why: 'timeout' | 'aborted' }

export interface Deadlines {
  /**
   * Runs `work` with a signal that is aborted when `ms` have passed, when `signal` is, and when the work is over, so
   * that nothing it began outlives it. Work that does not listen is left; nothing keeps the process alive for it.
   * What `work` throws in time is thrown on. With a signal already aborted the work is not begun.
   */
  within<T>(ms: number, work: (signal: Signal) => Promise<T>, signal?: Signal): Promise<Bounded<T>>
}
