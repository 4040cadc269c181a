/**
 * Whether an hour's cache would have paid where five minutes' was in force: by the gaps between the requests, the
 * same arithmetic by which a live session chooses.
 */
import {
  contextOf,
  isCompactBoundary,
  longLifeSaves,
  NO_GAPS,
  type Prices,
  type Profile,
  tallyGap,
} from '@tidemark/core'
import { dollars, plus } from '../spending.ts'
import type { Lifetime } from './lifetime.ts'
import type { Moment } from './moments.ts'

export interface LifeQuestion {
  readonly now: Moment
  readonly before: Moment | null
  /** In force at this call. */
  readonly lifetime: Lifetime
  readonly cache: Profile['cache']
  readonly prices: Prices | null
}

/** What one call says to it, in dollars; undefined where five minutes were not what was asked for. */
export function hourSaves({ now, before, lifetime, cache, prices }: LifeQuestion): number | null | undefined {
  const isShort = lifetime.ttl === '5m' && cache.ttls.some(({ name }) => name === '1h')
  if (!isShort || now.call.isCopy) return undefined
  if (prices === null) return null
  const prompt = contextOf(now.call.usage)
  const isAnew = before === null || now.since.some(({ record }) => isCompactBoundary(record))
  const prefix = isAnew ? 0 : Math.min(prompt, contextOf(before.call.usage))
  const gapMs = before === null || before.at === 0 ? null : now.at - before.at
  const saved = longLifeSaves(tallyGap(NO_GAPS, { gapMs, prefix, added: prompt - prefix }, cache), prices)
  return saved === null ? null : saved / 1_000_000
}

/** Null where no call says anything, or one cannot be priced. */
export function hourSavesInAll(each: readonly (number | null | undefined)[]): number | null {
  const told = each.filter((saved) => saved !== undefined)
  return told.length === 0 ? null : dollars(told.reduce<number | null>(plus, 0))
}
