/**
 * Implements `session.rewind`, `clear`, `fork` and `ask`: going back in the conversation, beginning a new one, copying
 * it to another session, and asking beside it.
 */
import { toApiMessages } from '@tidemark/core/context/flatten-context'
import type { TurnFailure } from '@tidemark/core/engine/events'
import type { NewRecord } from '@tidemark/core/engine/ports'
import { TidemarkError } from '@tidemark/core/errors'
import type { SessionRecord } from '@tidemark/core/log/record'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import { askSideQuestion, type UnansweredQuestion } from '@tidemark/core/turn/side-question'
import { beginNewConversation, rewindBefore, type SwitchResult } from '@tidemark/core/turn/switch-branch'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import { type OpenSession, refreshFromLog, reserveSession, runOperation, trackWork } from './open-session.ts'
import { type BusyOutcome, REWRITE_OPTION_NAMES, type RewriteOptions, runRewrite } from './rewrite.ts'
import { describeTurnFailure } from './run.ts'
import { stopNotesUpdate } from './session-notes.ts'
import { createTurnContext } from './turn-host.ts'

export type RewindOutcome = SwitchResult | BusyOutcome

/**
 * Goes back to before the record `uuid`. `keepsRewrites`: true to keep later compactions and clearings in effect where
 * they have left everything from that record on in the context. Throws `bad-option` for wrong arguments.
 */
export async function rewindSession(
  session: OpenSession,
  uuid: string,
  options: RewriteOptions = {},
  keepsRewrites = false,
): Promise<RewindOutcome> {
  checkOptionNames('rewind', options, REWRITE_OPTION_NAMES)
  if (typeof uuid !== 'string' || uuid === '')
    throw badOptionError(
      'uuid',
      `rewind: ${formatErrorValue(uuid)} is not the uuid of a record, as append returns it.`,
    )
  stopNotesUpdate(session)
  return runRewrite(session, 'rewind', options, (run) => rewindBefore(run, uuid, { keepsRewrites }))
}

/** Begins an empty conversation in the session. The SessionStart hooks run again before its first prompt. */
export async function startNewConversation(
  session: OpenSession,
  options: RewriteOptions = {},
): Promise<RewindOutcome> {
  checkOptionNames('clear', options, REWRITE_OPTION_NAMES)
  stopNotesUpdate(session)
  const outcome = await runRewrite(session, 'clear', options, (run) => beginNewConversation(run))
  if (outcome.ok) session.startSource = 'clear'
  return outcome
}

/**
 * Copies the log and the notes of a session to a new session. Throws `busy` if a session with this id exists, or if
 * another operation runs.
 */
export async function copySession(session: OpenSession, id: string): Promise<void> {
  const release = reserveSession(session, 'fork')
  try {
    const run = createTurnContext(session)
    await refreshFromLog(session, run)
    const { journal } = session.settings
    if ((await journal.list()).includes(id))
      throw new TidemarkError('busy', `fork: the session ${id} exists already. Choose another id.`)
    const records = session.state.session.records.toArray()
    let after = 0
    const appends = groupByBatch(records).map((batch) => {
      const copies = batch.map((record) => copyRecord(record, session.id, id))
      const appended = journal.append(id, after, copies)
      after += copies.length
      return appended
    })
    const failed = (await Promise.all(appends)).find(({ ok }) => !ok)
    if (failed !== undefined)
      throw new TidemarkError('busy', `fork: another process wrote to the session ${id} at the same time.`)
    await copyNotes(session, id)
  } finally {
    release()
  }
}

/** Copies the notes, which cover records that both sessions have. If that fails, the new session creates its own notes. */
async function copyNotes({ id: from, settings: { notes } }: OpenSession, to: string): Promise<void> {
  const stored = await notes.read(from).catch(() => null)
  if (stored !== null) await notes.write(to, stored).catch(() => {})
}

/** Splits the records into the batches in which they were appended; a rewrite must stay one batch. */
function groupByBatch(records: readonly SessionRecord[]): readonly (readonly SessionRecord[])[] {
  const batches: SessionRecord[][] = []
  for (const record of records) {
    const last = batches.at(-1)
    const batch = last?.[0]?.batch?.id
    if (last !== undefined && batch !== undefined && record.batch?.id === batch) last.push(record)
    else batches.push([record])
  }
  return batches
}

function copyRecord(record: SessionRecord, from: string, sessionId: string): NewRecord {
  const { seq: _, batch: __, ...rest } = record
  const forkedFrom = { sessionId: from, messageUuid: record.uuid ?? null }
  return { forkedFrom, ...rest, sessionId } as NewRecord
}

export type AskOutcome =
  | { readonly ok: true; readonly text: string }
  | UnansweredQuestion
  | (TurnFailure & { readonly message: string })

export interface AskOptions {
  readonly signal?: AbortSignal
}

/** Asks the model without reserving the session, so that a turn can continue meanwhile. */
export async function askSession(
  session: OpenSession,
  question: string,
  options: AskOptions = {},
): Promise<AskOutcome> {
  checkOptionNames('ask', options, ['signal'])
  const { signal } = options
  if (typeof question !== 'string' || question.trim() === '')
    throw badOptionError('question', `ask: the question is ${formatErrorValue(question)}; expected text.`)
  return trackWork(session, async () => {
    const run = createTurnContext(session, { signals: [signal], waitsForReply: true })
    await refreshFromLog(session, run)
    const answer = await runOperation(session, askSideQuestion(run, question))
    if (answer.ok || answer.reason === 'no-answer' || answer.reason === 'nothing-sent')
      return answer as Exclude<AskOutcome, TurnFailure>
    const failure = answer as TurnFailure
    return { ...failure, message: describeTurnFailure(failure, toApiMessages(session.state.flat)) }
  })
}
