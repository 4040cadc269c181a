/**
 * Text that a host sends now and then and does not write to its log: a reminder after so many steps in which
 * some tools were not used. Only for reading the logs of such a host; our own log holds all that was sent.
 */
import { isThinking, isToolUse } from '../log/block.ts'
import type { ApiCall } from './estimator-calls.ts'

export interface ReminderRule {
  /** Tools whose use puts the reminder off. */
  readonly tools: readonly string[]
  /** Blocks of responses, thinking aside, from one to the next. */
  readonly every: number
  readonly tokens: number
}

/** For each call, the tokens of the reminder sent with it: 0 for most. */
export function reminderTokens(calls: readonly ApiCall[], rule: ReminderRule): readonly number[] {
  let sinceUse = 0
  let sinceReminder = 0
  return calls.map(({ said, broken }) => {
    for (const block of said) {
      if (isThinking(block)) continue
      sinceUse = isToolUse(block) && rule.tools.includes(block.name) ? 0 : sinceUse + 1
      sinceReminder += 1
    }
    if (broken !== null) sinceUse = sinceReminder = 0
    if (Math.min(sinceUse, sinceReminder) < rule.every) return 0
    sinceReminder = 0
    return rule.tokens
  })
}
