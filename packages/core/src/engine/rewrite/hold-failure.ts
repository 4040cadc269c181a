/** A failure that may be recovered from is nobody's business until the recovery has failed too. */
import type { Responded } from '../respond.ts'
import type { TurnEvent } from '../turn-event.ts'
import type { TurnHost } from '../turn-host.ts'
import { isRecoverable } from './recover.ts'

export interface Held {
  readonly responded: Responded
  /** The failure, which nobody has been told of yet; null where there is none. */
  readonly held: TurnEvent | null
}

export async function* holdFailure(
  host: TurnHost,
  events: AsyncGenerator<TurnEvent, Responded>,
): AsyncGenerator<TurnEvent, Held> {
  let held: TurnEvent | null = null
  try {
    for (;;) {
      const step = await events.next()
      if (step.done === true) return { responded: step.value, held }
      if (isHeldBack(step.value, host)) held = step.value
      else yield step.value
    }
  } finally {
    // Who stops listening stops the call too.
    await events.return({ ok: false, reason: 'aborted' })
  }
}

function isHeldBack(event: TurnEvent, host: TurnHost): boolean {
  if (event.type !== 'reply' || event.event.type !== 'reply-failed') return false
  return isRecoverable(event.event.failure, host)
}
