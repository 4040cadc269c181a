/** Takes the newest standing act back: the view is exactly what it was, with what has come since behind it. */
import { type Act, chooseUndo, type UndoChoice } from '../context/context-view.ts'
import { type RewriteRefused, refused, type TurnEvent } from '../engine/events.ts'
import { type Room, runCleanups } from '../engine/host.ts'
import { measureNow } from '../engine/measure-context.ts'
import type { NewRecord } from '../engine/ports.ts'
import { type SessionState, thinkersIn } from '../engine/session-state.ts'
import {
  appendRecords,
  linked,
  refresh,
  type TurnRun,
  trial,
  type Unlinked,
} from '../engine/session-writer.ts'
import { isAct } from '../log/record.ts'
import { recordAt } from '../log/session.ts'

export interface UndoAsked {
  /** Of the act's boundary; the newest act unless given. */
  readonly id?: string
  /** Also where what comes back is over the blocking line. */
  readonly force?: boolean
}

export type Undone =
  | { readonly ok: true; readonly of: string; readonly kind: 'compact' | 'clear'; readonly tokens: number }
  | RewriteRefused

/** Others may write too: as often as that is tried again before it is given up. */
const MOST_TRIES = 8

export async function* undoAct(
  run: TurnRun,
  room: Room,
  asked: UndoAsked,
): AsyncGenerator<TurnEvent, Undone> {
  for (let tried = 0; tried < MOST_TRIES; tried += 1) {
    const ready = readyUndo(run, room, asked)
    if ('ok' in ready) return ready
    const halt = yield* appendRecords(run, ready.records)
    if (halt === null) return yield* done(run, room, ready)
    if (halt.reason === 'locked')
      return refused('locked', 'Another writer holds the session; nothing was undone.')
    await refresh(run)
  }
  return refused('superseded', 'Others kept writing to the session; nothing was undone. Try again.')
}

interface Ready {
  readonly act: Act
  readonly records: readonly NewRecord[]
  /** Tokens of the next request, as estimated. */
  readonly tokens: number
}

function readyUndo(run: TurnRun, room: Room, { id, force = false }: UndoAsked): Ready | RewriteRefused {
  const choice = chooseUndo(run.state.view, id)
  if (!choice.ok) return notUndone(choice)
  const { act, subtype } = choice
  const records = linked(run, [undoing(run, act, { type: 'system', subtype, isMeta: true, of: act.uuid })])
  const back = trial(run.state, records)
  const later = back.view.entries.toArray(act.before.length)
  const added = later.reduce((sum, entry) => sum + room.estimator.entry(entry), 0)
  const tokens = sizeBack(run.state, act, added) ?? measureNow(back, run.host, room).expected
  const line = room.scaled.known ? room.scaled.lines.blocking : null
  if (line === null || tokens < line || force) return { act, records, tokens }
  return refused(
    'too-large',
    `What would come back has ${tokens} tokens and the blocking line is ${line}. Force it, or switch to a model with a larger window first.`,
  )
}

function notUndone(choice: Extract<UndoChoice, { readonly ok: false }>): RewriteRefused {
  const { reason, message } = choice
  return refused(reason, message, reason === 'not-newest' ? { newest: choice.newest } : {})
}

type UndoBody = Extract<Unlinked, { readonly type: 'system' }>

/** What came behind the act may hold thinking that was bound to what the act had left. */
function undoing(run: TurnRun, { before }: Act, body: UndoBody): UndoBody {
  if (run.host.profile.thinking.binding !== 'prefix') return body
  const { view } = trial(run.state, linked(run, [body]))
  const lost = thinkersIn(view.entries.toArray(before.length))
  return lost.length === 0 ? body : { ...body, clearedThinking: lost }
}

async function* done(run: TurnRun, room: Room, { act, tokens }: Ready): AsyncGenerator<TurnEvent, Undone> {
  const { uuid: of, kind } = act
  yield { type: 'undone', of, kind }
  const rewritten = { kind: 'undo' as const, source: run.host.source, toolUseIds: [], filePaths: [] }
  yield { type: 'rewritten', rewritten, faults: runCleanups(room.cleanups ?? [], rewritten) }
  return { ok: true, of, kind, tokens }
}

// How large a view is that an undoing brings back: it was measured when the act took it away.

/**
 * Tokens that the act replaced, as its boundary tells, and `later`, what has come since. Null where the boundary
 * does not say.
 */
function sizeBack({ session, view }: SessionState, act: Act, later: number): number | null {
  const record = recordAt(session, view.branch.at(act.position) ?? 0)
  if (!isAct(record)) return null
  const metadata = 'compactMetadata' in record ? record.compactMetadata : record.microcompactMetadata
  const tokens = metadata?.preTokens
  return typeof tokens === 'number' && tokens > 0 ? tokens + later : null
}
