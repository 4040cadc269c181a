/**
 * Losses as the engine judged and told them when they happened. Our own logs keep them right behind the call they
 * belong to, and what was seen then says more than can be read off a log later.
 */
import { type CacheLoss, isKnown, isObject, loggedCall, redact, type SessionRecord } from '@tidemark/core'
import type { ReadRecord } from '@tidemark/wire'
import { type Call, keyOf } from '../calls.ts'
import { dollars } from '../spending.ts'
import type { CacheBreak, ClearingCost } from './cache-report.ts'
import { causeNamed } from './reason-cause.ts'

export interface ToldLoss {
  readonly loss: CacheLoss
  /** Of the call. */
  readonly line: number
}

/** By the key of the call. */
export function lossesIn(records: readonly ReadRecord[]): ReadonlyMap<string, ToldLoss> {
  const losses = new Map<string, ToldLoss>()
  let call = { key: '', line: 0 }
  for (const { record, line } of records) {
    const key = callKey(record)
    if (key !== null && key !== call.key) call = { key, line }
    const loss = lossOf(record)
    if (loss !== null) losses.set(call.key, { loss, line: call.line })
  }
  return losses
}

function callKey(record: SessionRecord): string | null {
  const beside = loggedCall(record)
  return beside === null ? keyOf(record) : `${beside.id}\n`
}

function lossOf(record: SessionRecord): CacheLoss | null {
  const told: unknown = isKnown(record) && record.type === 'system' ? record.cacheLoss : undefined
  if (!isObject(told) || typeof told.tokens !== 'number') return null
  const { kind, source, reason, tokens, usd, sentence } = told
  if ((kind !== 'break' && kind !== 'act') || typeof reason !== 'string' || typeof sentence !== 'string')
    return null
  const price = typeof usd === 'number' ? usd : null
  return { kind, source: String(source), reason, tokens, usd: price, sentence }
}

/** `costUsd`: what it came to by the prices of today, where none were known then. */
export function breakTold(call: Call, { loss, line }: ToldLoss, costUsd: number | null): CacheBreak {
  return {
    at: call.at,
    tokensRewritten: loss.tokens,
    costUsd: dollars(loss.usd) ?? costUsd,
    cause: causeNamed(loss.reason),
    evidence: redact(`told when it happened: ${loss.sentence}`),
    line,
    model: call.model,
    ...(call.agent === null ? {} : { agent: call.agent }),
    ...(call.source === null ? {} : { source: call.source }),
  }
}

/** `found`: what the log told again says of it. */
export function clearingTold(call: Call, { loss }: ToldLoss, found: ClearingCost | null): ClearingCost {
  return {
    at: call.at,
    tokensRewritten: loss.tokens,
    costUsd: dollars(loss.usd) ?? found?.costUsd ?? null,
    breakEvenCalls: found?.breakEvenCalls ?? null,
    model: call.model,
  }
}
