/**
 * Converts records between the log and memory. The log keeps the provider's own fields; the neutral form of usage and
 * stop reason is stored only if it cannot be derived from them. So a response of the Messages API is stored with the
 * fields that Claude Code's logs have.
 */
import { withReplyReport } from '@tidemark/core/log/decode-record'
import {
  type AssistantRecord,
  isKnownRecord,
  type SessionRecord,
  type SystemRecord,
} from '@tidemark/core/log/record'
import { readAnthropicReport, readAnthropicUsage, withEstimatedOutput } from '../providers/message-usage.ts'

/** Returns a record from the log with usage and stop reason in the neutral form added. */
export function fromStoredRecord(record: SessionRecord): SessionRecord {
  return withReplyReport(record, readAnthropicReport).record
}

/** Returns a record as the log keeps it: without what `fromStoredRecord` can derive again. */
export function toStoredRecord(record: SessionRecord): SessionRecord {
  return toStoredForms(record).stored
}

/** Returns a record in the form in which the log stores it, and in the form in which it is read back. */
export function toStoredForms(record: SessionRecord): {
  readonly stored: SessionRecord
  readonly read: SessionRecord
} {
  if (!isKnownRecord(record)) return { stored: record, read: record }
  if (record.type === 'assistant') return storeResponse(record)
  if (record.type !== 'system') return { stored: record, read: record }
  const stored = toStoredCall(record)
  return { stored, read: fromStoredRecord(stored) }
}

function storeResponse(record: AssistantRecord): ReturnType<typeof toStoredForms> {
  const { usage, stop, billed, ...fields } = record
  const { record: known, note } = withReplyReport(fields, readAnthropicReport)
  const derived = known as AssistantRecord
  const own = {
    ...(usage === undefined || isEqual(usage, derived.usage) ? {} : { usage }),
    ...(stop === undefined || stop === derived.stop ? {} : { stop }),
    ...(billed === undefined || isEqual(billed, derived.billed) ? {} : { billed }),
  }
  const stored = { ...fields, ...own } as AssistantRecord
  return { stored, read: note === undefined ? { ...derived, ...own } : fromStoredRecord(stored) }
}

function toStoredCall(record: SystemRecord): SystemRecord {
  const { modelCall } = record
  if (modelCall?.tokens === undefined) return record
  const { tokens, ...call } = modelCall
  const usages = [call.usage, withEstimatedOutput(call.usage, tokens.output)]
  const usage = usages.find((each) => isEqual(readAnthropicUsage(each), tokens))
  return { ...record, modelCall: usage === undefined ? modelCall : { ...call, usage } }
}

/** Returns true if two JSON values are equal, ignoring the order of fields. */
function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const [fields, others] = [one, other] as Readonly<Record<string, unknown>>[]
  return Object.keys({ ...fields, ...others }).every((name) => isEqual(fields?.[name], others?.[name]))
}
