/** Signs of life while something takes long, so that nobody who watches thinks that it hangs. */
import type { Deadlines } from '../deadlines.ts'
import type { TurnEvent } from '../turn-event.ts'
import type { TurnRun } from '../turn-run.ts'

export interface KeepAlive {
  readonly deadlines: Deadlines
  readonly keepAliveMs: number
  /** When it began, in milliseconds since 1970; now unless told. */
  readonly since?: number
}

/** Waits for `work`, which bounds itself: an abort is its business, and only ends the signs of life. */
export async function* keepAlive<Value>(
  { host, signal }: TurnRun,
  work: Promise<Value>,
  { deadlines, keepAliveMs, since = host.clock.now() }: KeepAlive,
): AsyncGenerator<TurnEvent, Value> {
  for (;;) {
    const end = await deadlines.within(keepAliveMs, () => work, signal)
    if (end.ok) return end.value
    if (end.why === 'aborted') return await work
    yield { type: 'keep-alive', waitedMs: host.clock.now() - since }
  }
}
