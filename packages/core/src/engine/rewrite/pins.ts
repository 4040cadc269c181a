/** Records that must survive every rewrite verbatim: the newest word on each counts. */
import type { SessionRecord, SystemRecord } from '../../conversation/record.ts'
import type { Span } from '../../summarize/span.ts'

/** uuids, in the order in which they were pinned. */
export type PinnedUuids = ReadonlySet<string>

export const NONE_PINNED: PinnedUuids = new Set()

export function withPins(pins: PinnedUuids, records: readonly SessionRecord[]): PinnedUuids {
  const words = records.filter(isPinRecord)
  if (words.length === 0) return pins
  const next = new Set(pins)
  for (const { pin } of words) {
    next.delete(pin.target)
    if (pin.pinned) next.add(pin.target)
  }
  return next
}

export interface PinsSeen {
  readonly pins: PinnedUuids
  readonly span: Pick<Span, 'summarised'>
}

/** Records that were pinned after `seen` was planned, which takes them out of the view. */
export function pinnedMeanwhile({ pins: seen, span }: PinsSeen, pins: PinnedUuids): readonly string[] {
  const fresh = new Set([...pins].filter((uuid) => !seen.has(uuid)))
  if (fresh.size === 0) return []
  return span.summarised.map(({ record }) => record.uuid).filter((uuid) => fresh.has(uuid))
}

type PinRecord = SystemRecord & { readonly pin: NonNullable<SystemRecord['pin']> }

function isPinRecord(record: SessionRecord): record is PinRecord {
  const { pin, subtype } = record as SystemRecord
  return (
    record.type === 'system' &&
    subtype === 'pin' &&
    typeof pin?.target === 'string' &&
    record.isSidechain !== true
  )
}
