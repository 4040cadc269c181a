/** Pins a record, or lets it go: a word in the log, which every rewrite asks. */
import { placeOf } from '../../conversation/tree.ts'
import type { TurnEvent } from '../turn-event.ts'
import { append, type TurnRun } from '../turn-run.ts'
import { type RewriteRefused, refused } from './refused.ts'

export async function* pinRecord(
  run: TurnRun,
  target: string,
  pinned: boolean,
): AsyncGenerator<TurnEvent, { readonly ok: true } | RewriteRefused> {
  if (placeOf(run.state.session, target) === undefined)
    return refused(
      'unknown-record',
      `There is no record ${target} in this session; give the uuid of one of its records.`,
    )
  if (run.state.pins.has(target) === pinned) return { ok: true }
  const halt = yield* append(run, [{ type: 'system', subtype: 'pin', isMeta: true, pin: { target, pinned } }])
  if (halt === null) return { ok: true }
  return refused(
    halt.reason === 'locked' ? 'locked' : 'superseded',
    'The log has moved on; nothing was pinned.',
  )
}
