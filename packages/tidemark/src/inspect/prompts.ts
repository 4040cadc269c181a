/** What the person typed in the main conversation. */
import { redact, type SessionRecord, typedText } from '@tidemark/core'
import { createRepeatedLines } from './repeated-lines.ts'

const FIRST_WORDS = 300

export function promptsIn(records: Iterable<SessionRecord>): {
  readonly userMessages: number
  readonly firstPrompt: string | null
} {
  const lines = createRepeatedLines()
  let userMessages = 0
  let firstPrompt: string | null = null
  for (const record of records) {
    if (record.uuid === undefined) continue
    const text = typedText(record)
    if (text === null || lines.isRepeated(record)) continue
    userMessages += 1
    firstPrompt ??= redact(text.slice(0, 10 * FIRST_WORDS)).slice(0, FIRST_WORDS)
  }
  return { userMessages, firstPrompt }
}
