/**
 * How long the entries of a trace's cache lived. A trace does not say which lifetime its host asked for, but its own
 * usage does: pauses longer than the shorter lifetime and not longer than the longer one were either survived or not.
 */
import type { Profile } from '@tidemark/core'
import type { Trace } from './trace.ts'

export type Lifetime = Profile['cache']['ttls'][number]

export interface LifetimeFound extends Lifetime {
  /** Pauses that tell: behind them most was still read, or it was not. */
  readonly survived: number
  readonly lost: number
}

/**
 * The longer lifetime where more of the telling pauses were survived than not, else the default. One bit a session;
 * a majority, since a clock that counts answers instead of requests may be off by the time an answer took, and a loss
 * may have another cause.
 */
export function lifetimeOfTrace({ calls }: Trace, { ttls, defaultTtl }: Profile['cache']): LifetimeFound {
  const byLength = ttls.toSorted((one, other) => one.seconds - other.seconds)
  const usual = ttls.find(({ name }) => name === defaultTtl) ?? { name: defaultTtl, seconds: 0 }
  const [short = usual, long = usual] = [byLength[0], byLength.at(-1)]
  let [survived, lost] = [0, 0]
  for (const [index, call] of calls.entries()) {
    const before = calls[index - 1]
    const pause = before === undefined ? 0 : call.at - before.at
    if (before === undefined || pause <= short.seconds * 1000 || pause > long.seconds * 1000) continue
    const isRead = call.usage.read * 2 >= before.usage.read + before.usage.written
    if (isRead) survived += 1
    else lost += 1
  }
  return { ...(survived > lost ? long : usual), survived, lost }
}
