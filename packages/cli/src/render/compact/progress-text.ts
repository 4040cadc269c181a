/** How far a compaction has come, in a few words. */
import type { TurnEvent } from '@tidemark/core'
import { whole } from '../figures.ts'

/** Null: nothing new, it only goes on. */
export function progressText(event: TurnEvent | null): string {
  if (event?.type === 'summary-progress')
    return `compacting: ${whole(event.characters)} characters of the summary`
  return event?.type === 'phase' && event.phase !== 'done' ? event.phase : 'compacting'
}
