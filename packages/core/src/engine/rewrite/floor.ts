/** What is left when all that may go has gone, and still does not fit. */
import type { ContextTokens } from '../../measure/usage.ts'
import { isShown } from '../../view/parts.ts'
import type { SessionState } from '../session-state.ts'
import type { Drafted } from './draft.ts'
import { type FloorItem, type RewriteRefused, refused } from './refused.ts'
import type { Room } from './room.ts'

export interface FloorQuestion {
  readonly drafted: Drafted
  readonly after: ContextTokens
  /** The session as it would be. */
  readonly state: SessionState
  readonly room: Room
  readonly limit: number
}

const MOST_ITEMS = 5

export function floorOf({ after, state, room, limit, drafted }: FloorQuestion): RewriteRefused {
  const entries = state.view.entries.toArray().filter(isShown)
  const unanswered = new Set(drafted.plan.span.unanswered.map(({ record }) => record.uuid))
  const items = entries.map((entry): FloorItem => {
    const { record } = entry
    const what =
      record.isCompactSummary === true
        ? 'the summary'
        : record.type === 'attachment'
          ? `attachment ${record.attachment.type ?? 'unknown'}`
          : unanswered.has(record.uuid)
            ? `message not yet answered ${record.uuid}`
            : `kept message ${record.uuid}`
    return { what, tokens: room.estimator.entry(entry) }
  })
  const messages = items.reduce((sum, { tokens }) => sum + tokens, 0)
  const prefix: FloorItem = {
    what: 'system prompt and tools',
    tokens: Math.max(0, after.expected - messages),
  }
  const floor = [...items, prefix].toSorted((a, b) => b.tokens - a.tokens).slice(0, MOST_ITEMS)
  const told = floor.map(({ what, tokens }) => `${what} (${tokens})`).join(', ')
  return refused(
    'floor',
    `What cannot be left out still has ${after.expected} tokens, and the line is ${limit}: ${told}. Shorten or rewind what fills it, or use a model with a larger window.`,
    { floor },
  )
}
