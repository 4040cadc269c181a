/** Pins a record, or lets it go: a word in the log, which every rewrite asks. */

import { type RewriteRefused, refused, type TurnEvent } from '../engine/events.ts'
import { append, type TurnRun } from '../engine/session-writer.ts'
import { placeOf } from '../log/session.ts'

/** `note`: a sentence for the person, where the pin keeps nothing as things are. */
type Pinning = { readonly ok: true; readonly note?: string } | RewriteRefused

const OUT_OF_VIEW =
  'The record is no longer among those the model is shown, so there is nothing to keep: the pin counts once it is shown again. Undo the act that took it away.'

export async function* pinRecord(
  run: TurnRun,
  target: string,
  pinned: boolean,
): AsyncGenerator<TurnEvent, Pinning> {
  if (placeOf(run.state.session, target) === undefined)
    return refused(
      'unknown-record',
      `There is no record ${target} in this session; give the uuid of one of its records.`,
    )
  const end =
    pinned && !isInView(run, target) ? { ok: true as const, note: OUT_OF_VIEW } : { ok: true as const }
  if (run.state.pins.has(target) === pinned) return end
  const halt = yield* append(run, [{ type: 'system', subtype: 'pin', isMeta: true, pin: { target, pinned } }])
  if (halt === null) return end
  return refused(
    halt.reason === 'locked' ? 'locked' : 'superseded',
    'The log has moved on; nothing was pinned.',
  )
}

function isInView({ state }: TurnRun, target: string): boolean {
  return [...state.view.entries].some(({ record }) => record.uuid === target)
}
