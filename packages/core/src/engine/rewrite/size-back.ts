/** How large a view is that an undoing brings back: it was measured when the act took it away. */
import { isAct } from '../../conversation/boundary.ts'
import { recordAt } from '../../conversation/tree.ts'
import type { Act } from '../../view/view.ts'
import type { SessionState } from '../session-state.ts'

/**
 * Tokens that the act replaced, as its boundary tells, and `later`, what has come since. Null where the boundary
 * does not say.
 */
export function sizeBack({ session, view }: SessionState, act: Act, later: number): number | null {
  const record = recordAt(session, view.branch.at(act.position) ?? 0)
  if (!isAct(record)) return null
  const metadata = 'compactMetadata' in record ? record.compactMetadata : record.microcompactMetadata
  const tokens = metadata?.preTokens
  return typeof tokens === 'number' && tokens > 0 ? tokens + later : null
}
