/** A log as it was when one of its records had just come: cut where a conversation may be cut. */
import { cutAtOrBefore, isKnown, type KnownRecord, type SessionRecord, sessionOf } from '@tidemark/core'

export interface LogAsOf {
  readonly ok: true
  readonly records: readonly SessionRecord[]
  /** The last record of the conversation that is in it. */
  readonly at: string
  /** The record that was asked for, where the cut had to be moved back from it. */
  readonly movedFrom: string | null
  /** Records that come later. */
  readonly leftOut: number
}

export type AsOf = LogAsOf | { readonly ok: false; readonly why: string }

/** `uuid`: of a record; its newest one unless given. */
export function asOf(records: readonly SessionRecord[], uuid: string | null): AsOf {
  const asked = uuid === null ? records.length - 1 : records.findIndex((record) => record.uuid === uuid)
  if (asked < 0) return { ok: false, why: uuid === null ? NOTHING : `no record has the id ${uuid}` }
  const branch = branchWith(records, asked)
  const position = branch.filter(({ index }) => index <= asked).length
  const cut = legalCut(branch, position)
  const last = branch[cut - 1]
  if (last === undefined) return { ok: false, why: NOTHING }
  const isMoved = branch.slice(cut, position).some(({ record }) => says(record))
  const end = uuid === null && !isMoved ? records.length : last.index + 1
  return {
    ok: true,
    records: records.slice(0, end),
    at: last.record.uuid,
    movedFrom: isMoved ? (records[asked]?.uuid ?? last.record.uuid) : null,
    leftOut: records.length - end,
  }
}

const NOTHING = 'nothing that was said stands before the place to compact at'

/**
 * With what comes later in sight, so that no response is parted from the rest of itself; then without: a call that
 * nobody ever answered waits again where nothing follows it.
 */
function legalCut(branch: readonly Placed[], position: number): number {
  const records = branch.map(({ record }) => record)
  const cut = cutAtOrBefore(records, position)
  return cutAtOrBefore(records.slice(0, cut), cut)
}

interface Placed {
  readonly record: KnownRecord
  readonly index: number
}

/** The branch that counts, or, where a later rewind left the record behind, the one that counted then. */
function branchWith(records: readonly SessionRecord[], asked: number): readonly Placed[] {
  const whole = branchOf(records)
  const isOn = whole.some(({ index }) => index === asked) || !isConversation(records[asked])
  return isOn ? whole : branchOf(records.slice(0, asked + 1))
}

function branchOf(records: readonly SessionRecord[]): readonly Placed[] {
  return [...sessionOf(records).branch].flatMap((index) => {
    const record = records[index]
    return record !== undefined && isKnown(record) ? [{ record, index }] : []
  })
}

function isConversation(record: SessionRecord | undefined): boolean {
  return record !== undefined && isKnown(record) && record.isSidechain !== true
}

function says({ type }: KnownRecord): boolean {
  return type === 'user' || type === 'assistant'
}
