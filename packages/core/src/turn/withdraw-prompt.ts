/**
 * Takes prompts that no request can carry out of the conversation again, so that the session goes on. They are given
 * back to the caller; the log keeps them on the branch that is left.
 */
import type { ContextEntry } from '../context/context-entry.ts'
import type { TurnEvent, TurnFailure } from '../engine/events.ts'
import type { SessionState } from '../engine/session-state.ts'
import type { TurnContext } from '../engine/session-writer.ts'
import type { MessageContent } from '../log/block.ts'
import { isPrompt, isSyntheticError, type UserRecord } from '../log/record.ts'
import { rewindTo } from './switch-branch.ts'

/**
 * Withdraws the prompts that the model has not answered if a request failed because it is too long, and nothing could
 * make it shorter. Returns the failure with the prompts. Nothing is withdrawn from a list that the caller keeps itself.
 */
export async function* withdrawTooLongPrompts(
  turn: TurnContext,
  failure: TurnFailure,
): AsyncGenerator<TurnEvent, TurnFailure> {
  const { compaction, client } = turn.host
  if (compaction === undefined || client !== undefined || !isTooLong(failure)) return failure
  const prompts = listUnansweredPrompts(turn.state)
  const [first] = prompts
  if (first === undefined) return failure
  const end = yield* rewindTo(turn, compaction, first.uuid, { keepsRewrites: true, isWithdrawal: true })
  if (!end.ok) return failure
  const withdrawn = prompts.map(({ message }) => message.content as MessageContent)
  return { ...failure, withdrawn }
}

function isTooLong(failure: TurnFailure): failure is TooLongFailure {
  if (failure.reason === 'full') return failure.isPromptTooLong === true
  return failure.reason === 'failed' && failure.failure.kind === 'overflow'
}

type TooLongFailure = Extract<TurnFailure, { readonly reason: 'full' | 'failed' }>

/** Lists the prompts after the last response, oldest first. */
function listUnansweredPrompts({ view }: SessionState): readonly UserRecord[] {
  const entries = view.entries.toArray()
  const later = entries.slice(entries.findLastIndex(isResponse) + 1).map(({ record }) => record)
  return later.filter(isPrompt)
}

function isResponse({ record }: ContextEntry): boolean {
  return record.type === 'assistant' && !isSyntheticError(record)
}
