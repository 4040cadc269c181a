/** Has anything come since the last compaction? Another one would do nothing before it has. */
import type { SessionState } from '../session-state.ts'

/** The newest act is a compaction, and nothing has been said behind what it wrote. */
export function isJustCompacted({ view, answered }: SessionState): boolean {
  const act = view.acts.at(-1)
  return act?.kind === 'compact' && answered <= view.rewrittenAt && !hasNewWords(view)
}

function hasNewWords({ entries, rewrittenAt, acts }: SessionState['view']): boolean {
  const batch = acts.at(-1)?.batch ?? null
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= rewrittenAt) return false
    const { record } = entry
    const isOwn = batch !== null && record.batch?.id === batch
    if (!isOwn && (record.type === 'user' || record.type === 'assistant')) return true
  }
  return false
}
