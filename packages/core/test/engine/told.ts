/** A log as lines that can be compared at a glance. */
import { blocksOf, isKnown, type SessionRecord, type SessionState } from '../../src/index.ts'

/** A line for each record: what it is and what it says. */
export function told({ session }: SessionState): readonly string[] {
  return [...session.records].map(lineOf)
}

export function lineOf(record: SessionRecord): string {
  if (!isKnown(record)) return record.type
  if (record.type === 'system') return `system ${record.subtype}`
  if (record.type !== 'user' && record.type !== 'assistant') return record.type
  const said = blocksOf(record.message.content).map((block) => block.text ?? block.content ?? block.id)
  return `${record.type}: ${said.join(' | ')}`
}
