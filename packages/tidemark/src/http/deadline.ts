/** Waiting with an end: work that is called off when its time is up or the caller lets go. */
import type { Clock, Signal } from '@tidemark/core'

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
