/** Undoes the newest rewrite: the context is exactly what it was before, followed by what was appended since. */
import { type Act, chooseUndo } from '../context/context-view.ts'
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
  /** Boundary of the rewrite; default: the newest. */
  readonly id?: string
  /** Undo even if the restored context is over the blocking threshold. */
  readonly force?: boolean
}

export type Undone =
  | { readonly ok: true; readonly of: string; readonly kind: 'compact' | 'clear'; readonly tokens: number }
  | RewriteRefused

/** Attempts before giving up, if other writers keep appending. */
const MAX_TRIES = 8

export async function* undoAct(
  turn: TurnRun,
  compaction: Room,
  options: UndoAsked,
): AsyncGenerator<TurnEvent, Undone> {
  for (let tried = 0; tried < MAX_TRIES; tried += 1) {
    const undo = prepareUndo(turn, compaction, options)
    if ('ok' in undo) return undo
    const failure = yield* appendRecords(turn, undo.records)
    if (failure === null) {
      const { uuid: of, kind } = undo.act
      yield { type: 'undone', of, kind }
      const rewritten = { kind: 'undo' as const, source: turn.host.source, toolUseIds: [], filePaths: [] }
      yield { type: 'rewritten', rewritten, faults: runCleanups(compaction.cleanups ?? [], rewritten) }
      return { ok: true, of, kind, tokens: undo.tokens }
    }
    if (failure.reason === 'locked')
      return refused('locked', 'Another writer holds the session; nothing was undone.')
    await refresh(turn)
  }
  return refused('superseded', 'Others kept writing to the session; nothing was undone. Try again.')
}

interface PreparedUndo {
  readonly act: Act
  readonly records: readonly NewRecord[]
  /** Estimated tokens of the next request. */
  readonly tokens: number
}

function prepareUndo(
  turn: TurnRun,
  compaction: Room,
  { id, force = false }: UndoAsked,
): PreparedUndo | RewriteRefused {
  const { state, host } = turn
  const choice = chooseUndo(state.view, id)
  if (!choice.ok) {
    const { reason, message } = choice
    return refused(reason, message, reason === 'not-newest' ? { newest: choice.newest } : {})
  }
  const { act, subtype } = choice
  const body = withLostThinking(turn, act, { type: 'system', subtype, isMeta: true, of: act.uuid })
  const records = linked(turn, [body])
  const next = trial(state, records)
  const later = next.view.entries.toArray(act.before.length)
  const added = later.reduce((sum, entry) => sum + compaction.estimator.entry(entry), 0)
  const restored = sizeBefore(state, act)
  const tokens = restored === null ? measureNow(next, host, compaction).expected : restored + added
  const line = compaction.scaled.known ? compaction.scaled.lines.blocking : null
  if (line === null || tokens < line || force) return { act, records, tokens }
  return refused(
    'too-large',
    `What would come back has ${tokens} tokens and the blocking line is ${line}. Force it, or switch to a model with a larger window first.`,
  )
}

type UndoBody = Extract<Unlinked, { readonly type: 'system' }>

/** Where thinking is bound to the messages before it, responses after the rewrite lose theirs with the undo. */
function withLostThinking(turn: TurnRun, { before }: Act, body: UndoBody): UndoBody {
  if (turn.host.profile.thinking.binding !== 'prefix') return body
  const { view } = trial(turn.state, linked(turn, [body]))
  const lost = thinkersIn(view.entries.toArray(before.length))
  return lost.length === 0 ? body : { ...body, clearedThinking: lost }
}

/** Tokens of the context that the rewrite replaced, as its boundary recorded them; null if it does not. */
function sizeBefore({ session, view }: SessionState, act: Act): number | null {
  const record = recordAt(session, view.branch.at(act.position) ?? 0)
  if (!isAct(record)) return null
  const metadata = 'compactMetadata' in record ? record.compactMetadata : record.microcompactMetadata
  const tokens = metadata?.preTokens
  return typeof tokens === 'number' && tokens > 0 ? tokens : null
}
