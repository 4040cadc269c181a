/** Takes a compaction or a clearing of a log's session back: in its own file, or in memory for a copy of it. */
import { type ApiMessage, chooseUndo, measureNow, messagesOf } from '@tidemark/core'
import type { ReadLog } from '../reading/read-log.ts'
import type { CompactLogOptions, CompactLogRefusal, WrittenLog } from './compact-options.ts'
import { createLogJournal } from './log-journal.ts'
import { modelOfLog } from './log-model.ts'
import { namedRecord } from './named-record.ts'
import { sessionOn } from './session-of-log.ts'
import { restamped, wholeLog } from './whole-log.ts'

export interface UndoLogOptions
  extends Pick<
    CompactLogOptions,
    'model' | 'window' | 'journal' | 'transcript' | 'onEvent' | 'signal' | 'clock' | 'ids'
  > {
  /** Also where what comes back is over the line from which on nothing more is sent. */
  readonly force?: boolean
  readonly confirm?: (undoing: UndoPreview) => Promise<boolean>
}

export interface UndoPreview {
  readonly file: string
  /** Of the act's boundary. */
  readonly id: string
  readonly kind: 'compact' | 'clear'
  readonly tokensBefore: number
}

export interface UndoReport extends UndoPreview {
  readonly tokensAfter: number
  /** The messages of the next request. */
  readonly messages: readonly ApiMessage[]
}

export type UndoneLog =
  | { readonly ok: true; readonly report: UndoReport; readonly written: WrittenLog }
  | CompactLogRefusal

export async function undoLog(log: ReadLog, given: string, options: UndoLogOptions = {}): Promise<UndoneLog> {
  const { force = false, confirm, ...rest } = options
  const all = wholeLog(log)
  const named = namedRecord(all, given)
  if (!named.ok) return { ok: false, reason: 'bad-record', message: `${named.why}.` }
  const records = options.journal === undefined ? restamped(all) : all
  const own = createLogJournal(records)
  const model = modelOfLog(log, all, options)
  const journal = options.journal ?? own
  const session = await sessionOn(log, rest, { model, journal, note: () => {} })
  const before = measureNow(session.state, session.host, session.room).expected
  const choice = chooseUndo(session.state.view, named.uuid)
  if (!choice.ok) return { ok: false, reason: choice.reason, message: choice.message }
  const preview = { file: log.path, id: named.uuid, kind: choice.act.kind, tokensBefore: before }
  if (confirm !== undefined && !(await confirm(preview)))
    return { ok: false, reason: 'declined', message: 'Nothing was changed.' }
  const undone = await session.undo({ id: named.uuid, force })
  if (!undone.ok) return undone
  const messages = messagesOf(session.state.flat)
  const written = { sessionId: session.state.id, records, added: own.added }
  return { ok: true, report: { ...preview, tokensAfter: undone.tokens, messages }, written }
}
