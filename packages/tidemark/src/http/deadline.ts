/** Waiting with an end: work that is called off when its time is up or the caller lets go. */
import type { Clock, Signal } from '@tidemark/core'

/** Why the work was called off, where it was. */
export type CalledOff = 'too-late' | 'aborted'

export interface Deadline {
  readonly signal: AbortSignal
  readonly calledOff: CalledOff | null
  /** Starts the time anew: something has come. */
  beat(): void
  /** Lets go of timers and listeners. */
  end(): void
}

/** Calls off after `ms` without a beat, or with `outer`. A beat costs nothing: the watch looks back when it wakes. */
export function createDeadline(clock: Clock, ms: number, outer?: Signal): Deadline {
  const controller = new AbortController()
  const ended = new AbortController()
  let calledOff: CalledOff | null = null
  let last = clock.now()
  const off = (why: CalledOff): void => {
    calledOff ??= why
    controller.abort()
  }
  const watch = async (): Promise<void> => {
    for (let left = ms; left > 0; left = ms - (clock.now() - last)) {
      await clock.sleep(left, ended.signal)
      if (ended.signal.aborted) return
    }
    off('too-late')
  }
  const aborted = (): void => off('aborted')
  if (outer?.aborted === true) aborted()
  else if (outer instanceof AbortSignal) outer.addEventListener('abort', aborted, { once: true })
  void watch()
  return {
    signal: controller.signal,
    get calledOff() {
      return calledOff
    },
    beat: () => {
      last = clock.now()
    },
    end: () => {
      ended.abort()
      if (outer instanceof AbortSignal) outer.removeEventListener('abort', aborted)
    },
  }
}
