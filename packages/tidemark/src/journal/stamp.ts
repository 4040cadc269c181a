/** From new records to the lines of a log: checked, stamped with their positions, one line each. */
import { type NewRecord, type SessionRecord, TidemarkError } from '@tidemark/core'
import { show } from '../home/show.ts'
import { readNewRecord } from './new-record.ts'

/** Records as they will be written, but for their positions. Taken when they are handed in: they may change later. */
export interface Draft {
  readonly record: SessionRecord
  readonly json: string
}

/** Refuses what would not come back from the log as it is. */
export function draftsOf(records: readonly NewRecord[]): readonly Draft[] {
  if (!Array.isArray(records)) throw notAList(records)
  return Array.from(records, (given: unknown, index) => {
    const read = readNewRecord(given)
    if (!read.ok) throw badRecord(index, read.why)
    return { record: read.record, json: JSON.stringify(read.record) }
  })
}

/** The lines' text and the records as they read back, from `position` on. A lone record needs no batch. */
export function stamp(
  drafts: readonly Draft[],
  position: number,
): { readonly text: string; readonly records: readonly SessionRecord[] } {
  const id = drafts.find(({ record }) => record.uuid !== undefined)?.record.uuid ?? `batch-${position + 1}`
  let text = ''
  const records = drafts.map(({ record, json }, index) => {
    const seq = position + index + 1
    const place = drafts.length === 1 ? { seq } : { seq, batch: { id, index, of: drafts.length } }
    text += `${JSON.stringify(place).slice(0, -1)},${json.slice(1)}\n`
    return { ...record, ...place }
  })
  return { text, records }
}

function notAList(given: unknown): TidemarkError {
  const message = `Records are appended as a list, and ${show(given)} is none. Nothing was written.`
  return new TidemarkError('bad-record', message)
}

function badRecord(index: number, why: string): TidemarkError {
  return new TidemarkError('bad-record', `Record ${index} cannot be appended: ${why}. Nothing was written.`, {
    details: { index, why },
  })
}
