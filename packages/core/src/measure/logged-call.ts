/** A call that a log tells of beside the conversation: a fork, a summary, a reply that said nothing. */
import { isObject } from '../conversation/json.ts'
import { isKnown, type SessionRecord, type Usage } from '../conversation/record.ts'
import type { BilledCall } from './call-price.ts'

/** Null for a record that tells of none. A log may hold anything under that name. */
export function loggedCall(record: SessionRecord): (BilledCall & { readonly source: string }) | null {
  if (!isKnown(record) || record.type !== 'system') return null
  const told: unknown = record.modelCall
  if (!isObject(told)) return null
  const { id, source, model, usage } = told
  if (typeof id !== 'string' || typeof source !== 'string' || typeof model !== 'string') return null
  return { id, source, model, at: record.timestamp, usage: isUsage(usage) ? usage : null }
}

function isUsage(usage: unknown): usage is Usage {
  return isObject(usage) && typeof usage.input_tokens === 'number' && typeof usage.output_tokens === 'number'
}
