/** Pins or unpins a record. Clearings never change pinned records; a compaction keeps the newest, up to `compact.pinTokens`. */

import { type RefusedRewrite, refuseRewrite, type TurnEvent } from '../engine/events.ts'
import { appendUnlinkedRecords, refuseFailedAppend, type TurnContext } from '../engine/session-writer.ts'
import { findRecordIndex } from '../log/session-log.ts'

/** Result of pinning. `note`: a sentence for the user if the record is not in the context, so that the pin has no effect yet. */
type PinResult = { readonly ok: true; readonly note?: string } | RefusedRewrite

const NOT_IN_CONTEXT =
  'The record is no longer among those the model is shown, so there is nothing to keep: the pin counts once it is shown again. Undo the act that took it away.'

/** Appends a record that pins or unpins the record with uuid `target`. Appends nothing if it is pinned or unpinned already. */
export async function* setRecordPin(
  turn: TurnContext,
  target: string,
  pinned: boolean,
): AsyncGenerator<TurnEvent, PinResult> {
  const { session, view, pins } = turn.state
  if (findRecordIndex(session, target) === undefined)
    return refuseRewrite(
      'unknown-record',
      `There is no record ${target} in this session; give the uuid of one of its records.`,
    )
  const isShown = [...view.entries].some(({ record }) => record.uuid === target)
  const result: PinResult = pinned && !isShown ? { ok: true, note: NOT_IN_CONTEXT } : { ok: true }
  if (pins.has(target) === pinned) return result
  const failure = yield* appendUnlinkedRecords(turn, [
    { type: 'system', subtype: 'pin', isMeta: true, pin: { target, pinned } },
  ])
  if (failure === null) return result
  return refuseFailedAppend(failure, 'The log has moved on; nothing was pinned.')
}
