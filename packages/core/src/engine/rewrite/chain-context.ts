/** What the chain of asking is told of the session. */
import { sizeOf } from '../../measure/calibration.ts'
import type { CompactPolicy } from '../../policy/groups/compact-policy.ts'
import { cacheExpiry, NO_LINEAGE } from '../../prompt/lineage.ts'
import type { ChainContext } from '../../summarize/ask.ts'
import type { Summariser } from '../../summarize/summariser.ts'
import type { SessionState } from '../session-state.ts'
import type { TurnHost } from '../turn-host.ts'
import type { TurnRun } from '../turn-run.ts'
import type { CompactionPlan } from './compaction-plan.ts'
import { withRoom } from './plan-now.ts'
import type { Room } from './room.ts'

export interface SummaryAsked {
  readonly plan: CompactionPlan
  /** Composed and bounded; null where nobody wants anything. */
  readonly instructions: string | null
}

export function chainContext({ state, host }: TurnRun, room: Room, asked: SummaryAsked): ChainContext {
  const { estimator } = room
  const { meter, register } = withRoom(state, room).room
  const { calibration } = meter
  const calibrated = (tokens: number): number => sizeOf(calibration, tokens, host.policy.estimate).expected
  const own = ownSummariser(host, room)
  const { before, span } = asked.plan
  return {
    span,
    policy: policyFor(host.policy.compact, asked.plan),
    instructions: asked.instructions,
    own,
    direct: room.summariser?.summariser ?? own,
    parent: state.sent === null ? null : { tokens: before.expected },
    isWarm: isWarm(state, host),
    // What the provider measured lacks what it cleared by itself; an estimate of the view does not.
    unclearedTokens: before.expected + (meter.anchor === null ? 0 : (register.native?.tokens ?? 0)),
    tools: host.offered().tools,
    tokensOf: (entry) => calibrated(estimator.entry(entry)),
    tokensOfText: (text) => calibrated(estimator.text(text)),
  }
}

function policyFor(policy: CompactPolicy, { asked }: CompactionPlan): CompactPolicy {
  return asked.summarizer === 'local' ? { ...policy, chain: { ...policy.chain, local: 'only' } } : policy
}

export function ownSummariser({ profile, offered, policy }: TurnHost, { scaled }: Room): Summariser {
  return {
    model: offered().model,
    profile,
    window: profile.window,
    outputTokens: scaled.known ? scaled.summaryOutput : policy.compact.direct.outputTokens,
  }
}

/** What was sent last can still be read from the provider's cache. */
export function isWarm({ lineage }: SessionState, { clock }: TurnHost): boolean {
  const expiry = cacheExpiry(lineage ?? NO_LINEAGE)
  return expiry !== null && clock.now() < expiry
}
