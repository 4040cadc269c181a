/** However a rewrite ends, those who show its phases are told that it is over. */
import type { TurnEvent } from '../turn-event.ts'

/** Who stops listening is told nothing more. */
export async function* untilDone<End>(
  events: AsyncGenerator<TurnEvent, End>,
): AsyncGenerator<TurnEvent, End> {
  let end: End
  try {
    end = yield* events
  } catch (thrown) {
    yield { type: 'phase', phase: 'done' }
    throw thrown
  }
  yield { type: 'phase', phase: 'done' }
  return end
}
