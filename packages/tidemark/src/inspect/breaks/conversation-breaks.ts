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
import { isForkPoint, isOneTime } from './copied-history.ts'
import { isStreamed, isWhole } from './delivery.ts'
import { type Lifetime, lifetimeOf } from './lifetime.ts'
import { logCause } from './log-cause.ts'
import { loggedUsage, rulesFor } from './logged-call.ts'
import { hourSaves, hourSavesInAll } from './longer-life.ts'
import { type Moment, momentsOf } from './moments.ts'
import { sentFromLog, sourceOf } from './sent-from-log.ts'
import { breakTold, clearingTold, lossesIn, type ToldLoss } from './told-loss.ts'

export interface Conversation {
  readonly records: readonly ReadRecord[]
  /** Of this conversation, those with usage or without. */
  readonly calls: readonly Call[]
  readonly catalogue: Catalogue
  /** It was forked off another session, whose history it may begin with. */
  readonly isForked?: boolean
}

/** A call that has been told, and how long what it wrote lives. */
interface Told {
  readonly moment: Moment
  readonly lifetime: Lifetime
  /** Its time is that of the writing. */
  readonly isUntimed: boolean
}

export function breaksIn({ records, calls, catalogue, isForked = false }: Conversation): CacheReport {
  const cacheBreaks: CacheBreak[] = []
  const clearingCosts: ClearingCost[] = []
  const saved: (number | null | undefined)[] = []
  const isUsuallyStreamed = isStreamed(records)
  const losses = lossesIn(records)
  let watch = emptyCacheWatch()
  let before: Told | null = null
  for (const now of momentsOf(records, calls)) {
    const rules = rulesFor(catalogue, now.call)
    const cache = rules.isDescribed ? rules.profile.cache : null
    const last: Moment | null = before?.moment ?? null
    const lives = lifetimeOf(now.call, cache, before?.lifetime ?? null)
    const told: Told = { moment: now, lifetime: lives, isUntimed: isOneTime(last, now) }
    if (isForked && last !== null && isForkPoint(records[0]?.record, last, now))
      watch = announceAct(watch, sourceOf(now.call), { kind: 'restart' })
    const { outcome, watch: next } = answered(announced(watch, now, before), told, rules)
    watch = next
    const cost = clearingCost(now, outcome)
    const loss = now.call.isCopy ? undefined : losses.get(now.call.key)
    if (loss?.loss.kind === 'act') clearingCosts.push(clearingTold(now.call, loss, cost))
    else if (loss !== undefined) cacheBreaks.push(breakTold(now.call, loss, priceIn(outcome)))
    else if (cost !== null) clearingCosts.push(cost)
    else if (outcome.kind === 'broke' && before !== null && !now.call.isCopy) {
      const { moment, ...known } = before
      const isUnstreamed = isUsuallyStreamed && isWhole(now.record)
      const cause = logCause({ event: outcome.event, now, before: moment, ...known, isUnstreamed })
      cacheBreaks.push(breakAt(now, outcome.event, cause))
    }
    saved.push(
      hourSaves({ now, before: last, lifetime: lives, cache: rules.profile.cache, prices: rules.prices }),
    )
    before = told
  }
  return {
    cacheBreaks: [...cacheBreaks, ...breaksBeside(calls, losses)],
    clearingCosts,
    hourWouldSave: hourSavesInAll(saved),
  }
}

/** Of calls that are no part of the conversation nothing but what was told then is known. */
function breaksBeside(calls: readonly Call[], losses: ReadonlyMap<string, ToldLoss>): readonly CacheBreak[] {
  return calls.flatMap((call) => {
    const loss = losses.get(call.key)
    const isBreak = call.source !== null && !call.isCopy && loss?.loss.kind === 'break'
    return isBreak && loss !== undefined ? [breakTold(call, loss, null)] : []
  })
}

function priceIn(outcome: CacheOutcome): number | null {
  return outcome.kind === 'broke' ? dollars(outcome.event.moneyLost) : null
}

/** A log does not say all that a clearing did: whatever had to be processed again behind one is laid to it. */
function clearingCost({ call, since }: Moment, outcome: CacheOutcome): ClearingCost | null {
  const isBehind = since.some(({ record }) => isMicrocompactBoundary(record))
  if (!isBehind || call.isCopy) return null
  if (outcome.kind === 'ours') {
    const { tokensRewritten, moneySpent, breakEvenTurns } = outcome.act
    const costUsd = dollars(moneySpent)
    return { at: call.at, tokensRewritten, costUsd, breakEvenCalls: breakEvenTurns, model: call.model }
  }
  if (outcome.kind !== 'broke') return null
  const { tokensLost, moneyLost, ours } = outcome.event
  const breakEvenCalls = ours?.breakEvenTurns ?? null
  const costUsd = dollars(moneyLost)
  return { at: call.at, tokensRewritten: tokensLost, costUsd, breakEvenCalls, model: call.model }
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
