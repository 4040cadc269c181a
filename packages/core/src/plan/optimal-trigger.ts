/**
 * When a compaction pays best where nothing forces it: the size at which the saving of smaller requests has paid
 * for it, C′ + √(2·d·F/r), with C′ the size after, d the growth per call, F the cost of one compaction and r the
 * price of reading.
 */
import type { Rates } from '../measure/prices.ts'

export interface CompactionOutlook {
  /** Tokens of a request right after: prefix, summary and what comes back. */
  readonly after: number
  /** Tokens of the summary. */
  readonly summary: number
  /** Tokens of what is brought back or kept behind it. */
  readonly carried: number
}

/** What real compactions come to, until a session has one of its own to go by. */
const USUAL = { summary: 3_000, carried: 20_000 }

/** `most`: tokens that a compaction aims at; null where the window is not known. */
export function usualOutlook(prefixTokens: number, most: number | null = null): CompactionOutlook {
  const room = most === null ? Number.POSITIVE_INFINITY : Math.max(0, most - prefixTokens)
  const summary = Math.min(USUAL.summary, room)
  const carried = Math.min(USUAL.carried, room - summary)
  return { after: prefixTokens + summary + carried, summary, carried }
}

export interface TriggerQuestion {
  /** Tokens now. */
  readonly context: number
  readonly outlook: CompactionOutlook
  readonly growthPerCall: number
  readonly rates: Rates
  readonly write: 'write5m' | 'write1h'
  /** The summary is asked for on a prefix that is still cached. */
  readonly isWarm: boolean
  /** A model is paid for the summary; it is unless told otherwise. */
  readonly isAsked?: boolean
}

export interface OptimalTrigger {
  /** Tokens from which a compaction costs less than going on. */
  readonly tokens: number
  /** Dollars of one compaction now. */
  readonly cost: number
  /** Calls after which it has paid for itself; null: never. */
  readonly breakEvenCalls: number | null
}

/** Null where a price is not known, or nothing grows. */
export function optimalTrigger(question: TriggerQuestion): OptimalTrigger | null {
  const { outlook, growthPerCall, rates, context } = question
  const { cacheRead: read, output, input } = rates
  const write = rates[question.write]
  if (read === null || output === null || write === null || input === null) return null
  if (read <= 0 || growthPerCall <= 0) return null
  const { isWarm, isAsked = true } = question
  const asked = isAsked ? (isWarm ? read : input) : 0
  const spoken = isAsked ? output * outlook.summary : 0
  const written = spoken + write * (outlook.summary + outlook.carried)
  const fixed = Math.max(0, written + read * outlook.after + (asked - read) * context)
  const cost = (written + asked * context) / 1_000_000
  return {
    tokens: Math.round(outlook.after + Math.sqrt((2 * growthPerCall * fixed) / read)),
    cost,
    breakEvenCalls: breakEven(cost, (read * (context - outlook.after)) / 1_000_000),
  }
}

function breakEven(cost: number, savedPerCall: number): number | null {
  return savedPerCall <= 0 ? null : cost / savedPerCall
}
