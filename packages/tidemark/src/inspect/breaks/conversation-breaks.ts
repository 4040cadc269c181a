/** One conversation of a log, told again to the detector that watches live ones. */
import {
  announceAct,
  type BreakEvent,
  type BreakRules,
  type CacheOutcome,
  type CacheWatch,
  type Compared,
  compareAnswer,
  emptyCacheWatch,
  isCompactBoundary,
  isMicrocompactBoundary,
  redact,
  takeSnapshot,
} from '@tidemark/core'
import type { Catalogue, ReadRecord } from '@tidemark/wire'
import type { Call } from '../calls.ts'
import { dollars } from '../spending.ts'
import type { CacheBreak, CacheReport, ClearingCost } from './cache-report.ts'
import { isStreamed, isWhole } from './delivery.ts'
import { type Lifetime, lifetimeOf } from './lifetime.ts'
import { logCause } from './log-cause.ts'
import { loggedUsage, rulesFor } from './logged-call.ts'
import { type Moment, momentsOf } from './moments.ts'
import { sentFromLog, sourceOf } from './sent-from-log.ts'

export interface Conversation {
  readonly records: readonly ReadRecord[]
  /** Of this conversation, those with usage or without. */
  readonly calls: readonly Call[]
  readonly catalogue: Catalogue
}

/** A call that has been told, and how long what it wrote lives. */
interface Told {
  readonly moment: Moment
  readonly lifetime: Lifetime
}

export function breaksIn({ records, calls, catalogue }: Conversation): CacheReport {
  const cacheBreaks: CacheBreak[] = []
  const clearingCosts: ClearingCost[] = []
  const isUsuallyStreamed = isStreamed(records)
  let watch = emptyCacheWatch()
  let before: Told | null = null
  for (const now of momentsOf(records, calls)) {
    const rules = rulesFor(catalogue, now.call)
    const cache = rules.isDescribed ? rules.profile.cache : null
    const told: Told = { moment: now, lifetime: lifetimeOf(now.call, cache, before?.lifetime ?? null) }
    const { outcome, watch: next } = answered(announced(watch, now, before), told, rules)
    watch = next
    const cost = clearingCost(now, outcome)
    if (cost !== null) clearingCosts.push(cost)
    else if (outcome.kind === 'broke' && before !== null && !now.call.isCopy) {
      const { moment, lifetime } = before
      const isUnstreamed = isUsuallyStreamed && isWhole(now.record)
      const cause = logCause({ event: outcome.event, now, before: moment, lifetime, isUnstreamed })
      cacheBreaks.push(breakAt(now, outcome.event, cause))
    }
    before = told
  }
  return { cacheBreaks, clearingCosts }
}

/** A log does not say all that a clearing did: whatever had to be processed again behind one is laid to it. */
function clearingCost({ call, since }: Moment, outcome: CacheOutcome): ClearingCost | null {
  const isBehind = since.some(({ record }) => isMicrocompactBoundary(record))
  if (!isBehind || call.isCopy) return null
  if (outcome.kind === 'ours') {
    const { tokensRewritten, moneySpent, breakEvenTurns } = outcome.act
    return { at: call.at, tokensRewritten, costUsd: dollars(moneySpent), breakEvenCalls: breakEvenTurns }
  }
  if (outcome.kind !== 'broke') return null
  const { tokensLost, moneyLost, ours } = outcome.event
  const breakEvenCalls = ours?.breakEvenTurns ?? null
  return { at: call.at, tokensRewritten: tokensLost, costUsd: dollars(moneyLost), breakEvenCalls }
}

function answered(watch: CacheWatch, { moment, lifetime }: Told, rules: BreakRules): Compared {
  const sent = sentFromLog({ ...moment, lifetime })
  const answer = { source: sent.source, usage: loggedUsage(moment.call) }
  return compareAnswer(takeSnapshot(watch, sent, rules.policy), answer, rules)
}

/** What the log says was done to the conversation since the call before. */
function announced(watch: CacheWatch, now: Moment, before: Told | null): CacheWatch {
  const source = sourceOf(now.call)
  const acts = now.since.map(({ record }) => record)
  if (acts.some(isCompactBoundary)) return announceAct(watch, source, { kind: 'compaction' })
  const clearing = acts.find(isMicrocompactBoundary)
  if (clearing !== undefined) {
    const { tokensSaved, compactedToolIds } = clearing.microcompactMetadata ?? {}
    const act = `cleared ${compactedToolIds?.length ?? 0} results`
    return announceAct(watch, source, { kind: 'clearing', act, freedTokens: tokensSaved ?? 0 })
  }
  const isTakenBack = before !== null && before.moment.act !== now.act
  return isTakenBack ? announceAct(watch, source, { kind: 'undo' }) : watch
}

function breakAt(
  { call, line }: Moment,
  event: BreakEvent,
  { cause, evidence }: ReturnType<typeof logCause>,
): CacheBreak {
  return {
    at: call.at,
    tokensRewritten: event.tokensLost,
    costUsd: dollars(event.moneyLost),
    cause,
    evidence: redact(evidence),
    line,
    model: call.model,
    ...(call.agent === null ? {} : { agent: call.agent }),
  }
}
