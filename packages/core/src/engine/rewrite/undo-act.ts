/** Takes the newest standing act back: the view is exactly what it was, with what has come since behind it. */
import { chooseUndo } from '../../view/undo.ts'
import type { TurnEvent } from '../turn-event.ts'
import { append, linked, type TurnRun, type Unlinked } from '../turn-run.ts'
import { runCleanups } from './cleanups.ts'
import { measureNow } from './plan-now.ts'
import { type RewriteRefused, refused } from './refused.ts'
import type { Room } from './room.ts'
import { trial } from './trial.ts'

export interface UndoAsked {
  /** Of the act's boundary; the newest act unless given. */
  readonly id?: string
  /** Also where what comes back is over the blocking line. */
  readonly force?: boolean
}

export type Undone =
  | { readonly ok: true; readonly of: string; readonly kind: 'compact' | 'clear'; readonly tokens: number }
  | RewriteRefused

export async function* undoAct(
  run: TurnRun,
  room: Room,
  { id, force = false }: UndoAsked,
): AsyncGenerator<TurnEvent, Undone> {
  const choice = chooseUndo(run.state.view, id)
  if (!choice.ok)
    return refused(
      choice.reason,
      choice.message,
      choice.reason === 'not-newest' ? { newest: choice.newest } : {},
    )
  const { act, subtype } = choice
  const body: Unlinked = { type: 'system', subtype, isMeta: true, of: act.uuid }
  const tokens = measureNow(trial(run.state, linked(run, [body])), run.host, room).expected
  const line = room.scaled.known ? room.scaled.lines.blocking : null
  if (line !== null && tokens >= line && !force)
    return refused(
      'too-large',
      `What would come back has ${tokens} tokens and the blocking line is ${line}. Force it, or switch to a model with a larger window first.`,
    )
  const halt = yield* append(run, [body])
  if (halt !== null)
    return refused(
      halt.reason === 'locked' ? 'locked' : 'superseded',
      'The log has moved on; nothing was undone.',
    )
  yield { type: 'undone', of: act.uuid, kind: act.kind }
  const rewritten = { kind: 'undo' as const, source: run.host.source, toolUseIds: [], filePaths: [] }
  yield { type: 'rewritten', rewritten, faults: runCleanups(room.cleanups ?? [], rewritten) }
  return { ok: true, of: act.uuid, kind: act.kind, tokens }
}
