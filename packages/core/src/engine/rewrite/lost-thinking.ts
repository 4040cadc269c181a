/**
 * Thinking that a rewrite makes invalid: where it is bound to every byte before it, whatever stands behind the first
 * change loses it whole. The log keeps it, so that undoing the rewrite brings it back.
 */
import { isThinking } from '../../conversation/block.ts'
import type { Profile } from '../../policy/profile.ts'
import type { Span } from '../../summarize/span.ts'
import type { Entry } from '../../view/entry.ts'
import { partsOf } from '../../view/parts.ts'

export interface Keeping {
  readonly span: Span
  /** uuids of kept attachments that are left out after all. */
  readonly superseded: readonly string[]
  /** The provider wrote the summary itself: what directly follows its block stays valid. */
  readonly isBlock: boolean
  /** What has come while the summary was made. */
  readonly late: readonly Entry[]
}

/** Responses (`message.id`) that a compaction keeps without their thinking, in order. */
export function thinkingLost(
  { span, superseded, isBlock, late }: Keeping,
  profile: Profile,
): readonly string[] {
  if (profile.thinking.binding !== 'prefix') return []
  const isIntact = isBlock || span.form === 'from'
  const intact = isIntact ? untilChanged(span.kept, new Set(superseded)) : 0
  return thinkersIn([...span.kept.slice(intact), ...span.pinned, ...late])
}

/** How many of the first entries have nothing changed in front of them. */
function untilChanged(kept: readonly Entry[], gone: ReadonlySet<string>): number {
  const first = kept.findIndex(({ record }) => gone.has(record.uuid))
  return first === -1 ? kept.length : first
}

/** Responses that show thinking among `entries`. */
export function thinkersIn(entries: readonly Entry[]): readonly string[] {
  const ids = entries.flatMap((entry) => {
    const { record } = entry
    return record.type === 'assistant' && partsOf(entry).some(({ block }) => isThinking(block))
      ? [record.message.id]
      : []
  })
  return [...new Set(ids)]
}
