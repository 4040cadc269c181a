/** Where the carriers end that a compaction put in front of its summary: what is unchanged there stays cached. */
import type { Session } from '../conversation/session.ts'
import { recordAt } from '../conversation/tree.ts'
import type { View } from '../view/view.ts'

/** The last of them; null where no compaction stands or it left none in front. Read off the log, so never outdated. */
export function carriersEndOf(view: View, session: Session): string | null {
  const act = view.acts.findLast(({ kind }) => kind === 'compact')
  let end: string | null = null
  for (
    let position = (act?.position ?? Number.POSITIVE_INFINITY) + 1;
    position < view.branch.length;
    position += 1
  ) {
    const record = recordAt(session, view.branch.at(position) ?? 0)
    if (record.uuid === act?.summary) break
    if (record.type === 'attachment') end = record.uuid ?? null
  }
  return end
}
