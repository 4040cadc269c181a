/** What a compaction would cost now, told by what it would really send: the span, the cache as it is, its lifetime. */
import { scaleOf } from '../../measure/calibration.ts'
import { growthPerCall } from '../../plan/meter.ts'
import {
  type CompactionOutlook,
  type OptimalTrigger,
  optimalTrigger,
  usualOutlook,
} from '../../plan/optimal-trigger.ts'
import type { Span } from '../../summarize/span.ts'
import type { Entry } from '../../view/entry.ts'
import type { SessionState } from '../session-state.ts'
import type { TurnHost } from '../turn-host.ts'
import { contextNow, type Known } from './plan-now.ts'
import type { Room } from './room.ts'

export interface PriceQuestion {
  readonly host: TurnHost
  readonly room: Room
  /** It is made without a model. */
  readonly isLocal: boolean
  readonly span: Span
  /** Of the context now. */
  readonly tokens: number
}

/** Null where nobody can tell. */
export function compactionPrice(state: SessionState, question: PriceQuestion): OptimalTrigger | null {
  const { host, room, tokens } = question
  const known = contextNow(state, host, room, 'call')
  const { rates, cache, write, meter } = known.context
  const growth = growthPerCall(meter)
  if (rates === null || growth === null) return null
  return optimalTrigger({
    context: tokens,
    outlook: outlookOf(known, question),
    growthPerCall: growth,
    rates,
    write,
    isWarm: cache.isWarm && state.sent !== null && host.policy.compact.chain.fork,
    isAsked: isAsked(question),
  })
}

/** A model is paid for the summary: not where the host writes it, nor where it is made without one. */
function isAsked({ isLocal, host, room }: PriceQuestion): boolean {
  return room.writeSummary === undefined && !isLocal && host.policy.compact.chain.local !== 'only'
}

/** A summary has some 15% of what it stands for, and no more than the last one; hardly ever more than so many tokens. */
const SUMMARY = { part: 0.15, most: 3_000 }

/** What is kept in front of a summary stays cached where it is; what is kept behind it is written again. */
function outlookOf({ context, state }: Known, { room, span }: PriceQuestion): CompactionOutlook {
  const sizeOf = (entries: readonly Entry[]): number =>
    scaleOf(context.calibration) * entries.reduce((sum, entry) => sum + room.estimator.entry(entry), 0)
  const most = state.room?.outlook?.summary ?? SUMMARY.most
  const summary = Math.min(most, SUMMARY.part * sizeOf(span.summarised))
  const [kept, others] = [sizeOf(span.kept), sizeOf([...span.pinned, ...span.unanswered])]
  const back = others + (span.form === 'from' ? 0 : kept) + carriersSize({ context, state }, room)
  const front = span.form === 'from' ? kept : 0
  return {
    after: Math.round(context.prefixTokens + front + summary + back),
    summary: Math.round(summary),
    carried: Math.round(back),
  }
}

/** As much as the last time. */
function carriersSize({ context, state }: Known, { carriers = [], scaled }: Room): number {
  if (carriers.length === 0) return 0
  const usual = usualOutlook(context.prefixTokens, scaled.known ? scaled.lines.target : null)
  return (state.room?.outlook ?? usual).carried
}
