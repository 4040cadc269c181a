/** Lines that say again what stood before under the same uuid. A uuid alone proves nothing: it may be used twice. */
import type { SessionRecord } from '@tidemark/core'

export interface RepeatedLines {
  /** True for a copy of a line that was asked about before. What has no uuid is never one. */
  isRepeated(record: SessionRecord): boolean
}

export function createRepeatedLines(): RepeatedLines {
  const seen = new Map<string, SessionRecord[]>()
  return {
    isRepeated(record) {
      const { uuid } = record
      if (typeof uuid !== 'string') return false
      const before = seen.get(uuid)
      if (before === undefined) {
        seen.set(uuid, [record])
        return false
      }
      const said = saidBy(record)
      if (before.some((one) => saidBy(one) === said)) return true
      before.push(record)
      return false
    },
  }
}

/** Usage is left out: the lines of one response bear it as it stood when each was written. */
function saidBy(record: SessionRecord): string {
  const { type, message, attachment, subtype, content } = record as SessionRecord & {
    readonly [field: string]: unknown
  }
  return JSON.stringify([type, withoutUsage(message), attachment, subtype, content])
}

function withoutUsage(message: unknown): unknown {
  if (typeof message !== 'object' || message === null) return message
  const { usage, stop_reason, stop_sequence, ...said } = message as { readonly [field: string]: unknown }
  return said
}
