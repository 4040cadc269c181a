/**
 * Reads the losses of cached tokens that the engine recorded in the log right after the call in which they happened.
 * These records are more reliable than an analysis of the log.
 */
import { readLoggedCall } from '@tidemark/core/cost/session-cost'
import { isObject } from '@tidemark/core/log/json'
import { type CacheLoss, isKnownRecord, type SessionRecord } from '@tidemark/core/log/record'
import { redact } from '@tidemark/core/text/redact'
import type { LogRecord } from '@tidemark/wire/readers/log-reader'
import { toBreakCause } from './break-causes.ts'
import { type LoggedCall, toResponseKey } from './logged-calls.ts'
import type { ClearingActor, ClearingCost, LoggedCacheBreak } from './report.ts'
import { roundDollars } from './spending.ts'

interface RecordedLoss {
  readonly loss: CacheLoss
  /** The line in the log of the call that lost its cached prefix. */
  readonly line: number
}

/** Returns the losses of cached tokens that the engine recorded, keyed by the call in which they happened. */
export function readLosses(records: readonly LogRecord[]): ReadonlyMap<string, RecordedLoss> {
  const losses = new Map<string, RecordedLoss>()
  let call = { key: '', line: 0 }
  for (const { record, line } of records) {
    const beside = readLoggedCall(record)
    const key = beside === null ? toResponseKey(record) : `${beside.id}\n`
    if (key !== null && key !== call.key) call = { key, line }
    const loss = readLoss(record)
    if (loss !== null) losses.set(call.key, { loss, line: call.line })
  }
  return losses
}

function readLoss(record: SessionRecord): CacheLoss | null {
  const value: unknown = isKnownRecord(record) && record.type === 'system' ? record.cacheLoss : undefined
  if (!isObject(value) || typeof value.tokens !== 'number') return null
  const { kind, source, reason, tokens, usd, sentence } = value
  if ((kind !== 'break' && kind !== 'act') || typeof reason !== 'string' || typeof sentence !== 'string')
    return null
  const price = typeof usd === 'number' ? usd : null
  return { kind, source: String(source), reason, tokens, usd: price, sentence }
}

/**
 * Converts a cache break that the engine recorded in the log. `costUsd`: its cost as calculated from the log, used if
 * the record has no price.
 */
export function toRecordedBreak(
  call: LoggedCall,
  { loss, line }: RecordedLoss,
  costUsd: number | null,
): LoggedCacheBreak {
  return {
    at: call.at,
    tokensRewritten: loss.tokens,
    costUsd: roundDollars(loss.usd) ?? costUsd,
    cause: toBreakCause(loss.reason),
    evidence: redact(`told when it happened: ${loss.sentence}`),
    line,
    model: call.model,
    ...(call.agent === null ? {} : { agent: call.agent }),
    ...(call.source === null ? {} : { source: call.source }),
  }
}

/**
 * Converts a clearing that the engine recorded in the log. `found`: cost of the same clearing as calculated from the
 * log; null if the calculation did not find it.
 */
export function toRecordedClearing(
  call: LoggedCall,
  { loss }: RecordedLoss,
  by: ClearingActor,
  found: ClearingCost | null,
): ClearingCost {
  return {
    at: call.at,
    tokensRewritten: loss.tokens,
    costUsd: roundDollars(loss.usd) ?? found?.costUsd ?? null,
    breakEvenCalls: found?.breakEvenCalls ?? null,
    by,
    model: call.model,
  }
}
