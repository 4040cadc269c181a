/** Answers that the output limit, the context window or an abort has cut: how the last one ended, and how it goes on. */
import { listUnansweredCalls } from '../context/flatten.ts'
import type { TurnEvent, TurnFailure } from '../engine/events.ts'
import type { TurnHost } from '../engine/host.ts'
import type { SessionState } from '../engine/session-state.ts'
import { appendUnlinkedRecords, type TurnContext, type UnlinkedRecord } from '../engine/session-writer.ts'
import { type AssistantMessage, isKnownRecord } from '../log/record.ts'
import { readRecordAt } from '../log/session-log.ts'
import { findMechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { countContextTokens, countOutputTokens } from '../tokens/usage.ts'

export const CUT_SHORT_MESSAGE = 'The window was full before the answer was.'

/** Returns true if the context window ended the response, according to its stop reason or its usage. */
export function hasOverflowed({ stop_reason, usage }: AssistantMessage, { profile }: TurnHost): boolean {
  if (stop_reason === 'model_context_window_exceeded') return true
  if (stop_reason !== 'max_tokens' || profile.window === null) return false
  return countContextTokens(usage) + countOutputTokens(usage) >= profile.window
}

const CONTINUE_TEXT =
  'Your answer above was cut off. Continue it exactly where it stopped, without repeating anything.'

/** Creates the body of a record that asks the model to continue its last answer. */
export function createContinuation(): UnlinkedRecord {
  return { type: 'user', isMeta: true, message: { role: 'user', content: CONTINUE_TEXT } }
}

const INTERRUPTED_TEXT = 'The user interrupted your answer above; it ends where they stopped you.'

/** Creates the body of a record that tells the model, before the next prompt, that its last answer was interrupted. */
export function createInterruptionNotice(): UnlinkedRecord {
  return { type: 'user', isMeta: true, message: { role: 'user', content: INTERRUPTED_TEXT } }
}

/** Asks the model to continue its last answer. `part`: how often this answer was continued, with this time. */
export async function* continueAnswer(
  turn: TurnContext,
  part: number,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  yield { type: 'answer-continued', part }
  return yield* appendUnlinkedRecords(turn, [createContinuation()])
}

/** Asks the model to continue its last answer, unless a compaction has summarized that answer. */
export async function* continueCutAnswer(turn: TurnContext): AsyncGenerator<TurnEvent, TurnFailure | null> {
  return findLastAnswer(turn.state) === null ? null : yield* continueAnswer(turn, 1)
}

/** Returns how often an answer that the output limit ended is continued. */
export function countAllowedContinuations({ policy, switches = NO_SWITCHES }: TurnHost): number {
  return findMechanismStates(policy, switches).reactive.on ? policy.turn.reactive.continuations : 0
}

interface LastAnswer {
  /** True if the model ended the answer by itself. */
  readonly isFinished: boolean
  /** True if the answer was cut off. False as well for a paused turn, which continues if it is sent back unchanged. */
  readonly isCut: boolean
  readonly isInterrupted: boolean
}

/** The failure of a request whose last message is a finished answer. It would be paid for, and answer nothing. */
export const NOTHING_TO_ANSWER: TurnFailure = {
  ok: false,
  reason: 'invalid',
  findings: [
    { code: 'prefill-refused', path: 'messages', message: 'Expected the last message to be from the user.' },
  ],
}

const FINISHED_STOPS: ReadonlySet<unknown> = new Set(['end_turn', 'stop_sequence', 'refusal'])
const CUT_STOPS: ReadonlySet<unknown> = new Set(['max_tokens', 'model_context_window_exceeded', null])

/**
 * Returns how the answer at the end of the conversation ended; null if the last message is not an answer. An answer that
 * a compaction has summarized since counts only if it was finished, because it can no longer be continued.
 */
export function findLastAnswer(state: SessionState): LastAnswer | null {
  const { flat, view } = state
  if (listUnansweredCalls(flat).length > 0) return null
  if (isAnsweredBeforeCompaction(state)) return { isFinished: true, isCut: false, isInterrupted: false }
  const last = flat.tail.at(-1) ?? flat.frozen.last
  if (last?.message.role !== 'assistant') return null
  const uuid = last.origins.at(-1)
  const record = view.entries.findLast((entry) => entry.record.uuid === uuid)?.record
  if (record?.isCompactSummary === true) return null
  const answer = record?.type === 'assistant' ? record : null
  const stop = answer?.message.stop_reason ?? null
  const isInterrupted = answer?.isInterrupted === true
  return { isFinished: FINISHED_STOPS.has(stop), isCut: CUT_STOPS.has(stop), isInterrupted }
}

/** Returns true if nothing was said since the newest compaction, and the last message before it is a finished answer. */
function isAnsweredBeforeCompaction({ session, view }: SessionState): boolean {
  const newest = view.rewrites.at(-1)
  if (newest?.kind !== 'compact') return false
  for (let position = view.branch.length - 1; position >= 0; position -= 1) {
    const record = readRecordAt(session, view.branch.at(position) ?? 0)
    if (!isKnownRecord(record) || record.type === 'system') continue
    if (position > newest.position && record.batch?.id === newest.batchId) continue
    if (position > newest.position || record.type === 'user') return false
    if (record.type === 'assistant') return FINISHED_STOPS.has(record.message.stop_reason)
  }
  return false
}
