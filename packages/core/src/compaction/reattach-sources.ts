/**
 * Context of the host that a compaction brings up to date: todos, plan, files and other context sources are read again
 * and attached, and pending changes of system prompt and tools are absorbed.
 */

import { readHostPrefix, withTtl } from '../engine/announce-updates.ts'
import { limitSourceTime } from '../engine/attach-sources.ts'
import type { TurnEvent } from '../engine/events.ts'
import type { CompactionServices } from '../engine/host.ts'
import { isTurnAborted, pauseTurn, type TurnContext } from '../engine/session-writer.ts'
import type { PrefixSnapshot } from '../log/record.ts'
import { replacePrefixSnapshot } from '../request/prefix-snapshot.ts'
import {
  arrangeAttachments,
  collectSources,
  findPreviousAttachments,
  isReminder,
} from '../sources/collect-sources.ts'
import type { CollectedSources, SkippedAttachment, SourceAttachment } from '../sources/context-source.ts'
import { findAddedEntries, findLostThinking, type KeptContext, type UnmeasuredDraft } from './draft.ts'
import { type CompactionPlan, withRoomBudgets } from './plan-compaction.ts'

export interface ReattachedSources {
  readonly carried: readonly SourceAttachment[]
  readonly superseded: readonly string[]
  readonly skipped: readonly SkippedAttachment[]
  /** Sources that failed or took too long, with the reason. */
  readonly failed: CollectedSources['failed']
}

/** Reads the context sources (todos, plan, files) again. Returns their attachments; null if the turn was aborted. */
export async function* reattachSources(
  turn: TurnContext,
  compaction: CompactionServices,
  plan: CompactionPlan,
): AsyncGenerator<TurnEvent, ReattachedSources | null> {
  const { span } = plan
  const added = findAddedEntries(plan, turn.state.view) ?? []
  if (compaction.sources === undefined || compaction.sources.length === 0)
    return { carried: [], superseded: [], skipped: [], failed: [] }
  yield { type: 'phase', phase: 'bringing back context' }
  const question = {
    session: turn.state.session,
    kept: [...span.kept, ...span.pinned, ...span.unanswered, ...added],
    policy: turn.host.policy,
    budgets: withRoomBudgets(turn.state, turn.host, compaction).scaled.budgets,
    measure: compaction.estimator.text,
    isClientLed: turn.host.client !== undefined,
  }
  const sources = await collectSources(limitSourceTime(turn, compaction), question, () => pauseTurn(turn))
  if (isTurnAborted(turn)) return null
  for (const { carrier, why } of sources.failed) yield { type: 'restore-failed', carrier, why }
  return sources
}

export function* emitRestored(
  { carried, skipped }: ReattachedSources,
  draft: UnmeasuredDraft,
): Generator<TurnEvent, void> {
  if (carried.length + skipped.length === 0) return
  const keys = [...draft.sourcesBefore, ...draft.sourcesAfter].map(({ key }) => key)
  const dropped = carried.map(({ key }) => key).filter((key) => !keys.includes(key))
  yield { type: 'context-restored', keys, skipped, shed: dropped }
}

/** Places attachments before and after the summary of a draft. */
export async function placeSources(
  turn: TurnContext,
  { plan, summary }: Pick<UnmeasuredDraft, 'plan' | 'summary'>,
  { carried, superseded, failed }: ReattachedSources,
): Promise<Omit<UnmeasuredDraft, 'plan' | 'summary' | 'hookContext' | 'durationMs'>> {
  const isBlock = summary.block !== null
  // A compaction block must be the first message. Before another summary, unchanged attachments stay cached.
  const isFirst = !isBlock && turn.host.policy.compact.carriersFirst
  const { front, behind } = isFirst
    ? arrangeAttachments(carried, findPreviousAttachments(turn.state.view))
    : {
        front: isBlock ? [] : carried.filter(isReminder),
        behind: carried.filter((one) => isBlock || !isReminder(one)),
      }
  return {
    sourcesBefore: front,
    sourcesAfter: behind,
    allSources: carried,
    outdated: superseded,
    failedSources: failed,
    snapshot: await absorbPrefixChanges(turn, { span: plan.span, outdated: superseded, isBlock, added: [] }),
  }
}

/**
 * Returns a new prefix snapshot with pending changes of system prompt and tools, and with the cache lifetime chosen again
 * from the pauses in the log, since a compaction loses the cache anyway. Null if nothing changed, if kept thinking
 * requires the old prefix, or if the host supplies no prefix.
 */
async function absorbPrefixChanges(turn: TurnContext, keeping: KeptContext): Promise<PrefixSnapshot | null> {
  const { span } = keeping
  const { profile } = turn.host
  const { current } = turn.state.prefix
  if (current === null || span.form === 'from') return null
  const lost = new Set(findLostThinking(keeping, profile))
  const records = [...span.kept, ...span.pinned]
    .map(({ record }) => record)
    .filter((record) => record.type !== 'assistant' || !lost.has(record.message.id))
  const present = await readHostPrefix({ ...turn, state: { ...turn.state, sectionTexts: new Map() } })
  if ('ok' in present) return null
  const next = replacePrefixSnapshot(current.epoch, withTtl(turn, present), { records, profile })
  return next.isReplaced ? next.epoch : null
}
