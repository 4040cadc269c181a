/** From new records to the lines of a log: checked, stamped with their positions, one line each. */
import { decodeRecord, firstNonJson, type NewRecord, type SessionRecord, TidemarkError } from '@tidemark/core'

/** Records as they will be written, but for their positions. Taken when they are handed in: they may change later. */
export interface Draft {
  readonly record: SessionRecord
  readonly json: string
}

/** Refuses what would not come back from the log as it is. */
export function draftsOf(records: readonly NewRecord[]): readonly Draft[] {
  return records.map((given, index) => {
    const { seq: _seq, batch: _batch, ...record }: SessionRecord = given
    const why = problemOf(record)
    if (why !== null) throw badRecord(index, why)
    return { record, json: JSON.stringify(record) }
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

function problemOf(record: object): string | null {
  if ('type' in record && record.type === 'tidemark') return 'the type tidemark is for headers'
  const decoded = decodeRecord(record)
  if (!decoded.ok) return decoded.why
  const path = firstNonJson(record)
  return path === null ? null : `${path} is not a JSON value`
}

function badRecord(index: number, why: string): TidemarkError {
  return new TidemarkError('bad-record', `Record ${index} cannot be appended: ${why}. Nothing was written.`, {
    details: { index, why },
  })
}
