/** A draft whose summary the person has written anew: their words stand as they are, without what is secret in them. */
import { redact } from '../../summarize/redact.ts'
import type { CompactionDraft } from './draft.ts'

/**
 * The same draft where nobody has touched it. A provider's own block cannot be edited: the text takes its place.
 * What the gate found and had no room for says nothing of a text that it has not seen.
 */
export function asEdited(draft: CompactionDraft): CompactionDraft {
  const { summary, prepared } = draft
  if (summary.text === prepared) return draft
  return { ...draft, summary: { ...summary, text: redact(summary.text), block: null, unfit: [] } }
}
