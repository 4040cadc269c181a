/** What the person typed in the main conversation. */
import type { SessionRecord } from '@tidemark/core'
import { typedText } from '@tidemark/wire'
import { redact } from './redact.ts'

const FIRST_WORDS = 300

export function promptsIn(records: Iterable<SessionRecord>): {
  readonly userMessages: number
  readonly firstPrompt: string | null
} {
  const lines = new Set<string>()
  let firstPrompt: string | null = null
  for (const record of records) {
    if (record.uuid === undefined) continue
    const text = typedText(record)
    if (text === null) continue
    lines.add(record.uuid)
    firstPrompt ??= redact(text.slice(0, 10 * FIRST_WORDS)).slice(0, FIRST_WORDS)
  }
  return { userMessages: lines.size, firstPrompt }
}
