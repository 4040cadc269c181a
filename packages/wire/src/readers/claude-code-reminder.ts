/** Whether a log of Claude Code holds the reminders that the program sends, or leaves them to be guessed. */
import type { ReminderRule, SessionRecord } from '@tidemark/core'
import { CLAUDE_CODE_REMINDER } from '../catalogue/estimator-weights.ts'

/** Later versions log whatever they add, as attachments; a log with any of those needs no rule. */
export function claudeCodeReminder(records: Iterable<SessionRecord>): ReminderRule | undefined {
  for (const record of records) if (record.type === 'attachment') return undefined
  return CLAUDE_CODE_REMINDER
}
