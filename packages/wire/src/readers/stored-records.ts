/**
 * What a provider reported, in the log: records keep the provider's own fields, and the neutral form only if reading
 * those fields would not give it. So a log of the Messages API has the same bytes as one of Claude Code.
 */
import { completeRecord } from '@tidemark/core/log/decode-log'
import { isObject } from '@tidemark/core/log/json'
import { isKnownRecord, type SessionRecord, type SystemRecord } from '@tidemark/core/log/record'
import { readAnthropicReport, readAnthropicUsage, withAnthropicOutput } from '../providers/message-usage.ts'

/** Returns a record of a log, complete with the neutral form of what the provider reported. */
export function fromStoredRecord(record: SessionRecord): SessionRecord {
  return completeRecord(record, readAnthropicReport).record
}

/** Returns a record as the log keeps it. */
export function toStoredRecord(record: SessionRecord): SessionRecord {
  if (!isKnownRecord(record)) return record
  if (record.type === 'system') return toStoredCall(record)
  if (record.type !== 'assistant') return record
  const { usage, stop, billed, ...stored } = record
  const read = fromStoredRecord(stored) as typeof record
  return {
    ...stored,
    ...(isEqual(usage, read.usage) ? {} : { usage }),
    ...(stop === read.stop ? {} : { stop }),
    ...(isEqual(billed, read.billed) ? {} : { billed }),
  } as SessionRecord
}

function toStoredCall(record: SystemRecord): SystemRecord {
  const { modelCall } = record
  if (modelCall?.tokens === undefined) return record
  const { tokens, ...call } = modelCall
  const usages = [call.usage, withAnthropicOutput(call.usage, tokens.output)]
  const usage = usages.find((each) => isEqual(readAnthropicUsage(each), tokens))
  return { ...record, modelCall: usage === undefined ? modelCall : { ...call, usage } }
}

function isEqual(one: unknown, other: unknown): boolean {
  return one === other || formatSorted(one) === formatSorted(other)
}

function formatSorted(value: unknown): string | undefined {
  return JSON.stringify(value, (_, field: unknown) =>
    isObject(field) && !Array.isArray(field) ? Object.fromEntries(Object.entries(field).sort()) : field,
  )
}
