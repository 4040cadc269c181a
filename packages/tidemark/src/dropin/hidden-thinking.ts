/**
 * Removes thinking from responses before a client gets them. Some models accept thinking only after exactly the messages it was
 * generated from. After a rewrite the client's list differs from those, so a client that leaves the session would be refused.
 */
import type { SessionState } from '@tidemark/core/engine/session-state'
import { isThinkingBlock, isToolUse, toBlocks } from '@tidemark/core/log/block'
import { isObject } from '@tidemark/core/log/json'
import { isCompactBoundary, isKnownRecord, isMicrocompactBoundary } from '@tidemark/core/log/record'
import { listBranchRecords, type SessionLog } from '@tidemark/core/log/session-log'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import { type ConversationPart, readLoggedResponse } from '../session/conversation-parts.ts'

/** The state and the model of an open session. */
export interface SessionStateAndModel {
  readonly state: SessionState
  readonly model: { readonly choice: { readonly profile: ProviderProfile } }
}

/** True if thinking must be removed from the next response: the provider would refuse it after the client's own messages. */
export function mustHideThinking({ state, model }: SessionStateAndModel): boolean {
  return findInvalidThinkingStart(state, model.choice.profile) !== Number.POSITIVE_INFINITY
}

/** Returns the ids of the responses whose thinking the client was not given. */
export function listHiddenThinkingIds(
  state: Pick<SessionState, 'session'>,
  profile: ProviderProfile,
): ReadonlySet<string> {
  const start = findInvalidThinkingStart(state, profile)
  const later = start === Number.POSITIVE_INFINITY ? [] : listBranchRecords(state.session).slice(start)
  return new Set(later.flatMap((record) => (record.type === 'assistant' ? [record.message.id] : [])))
}

/**
 * Returns the first position on the branch where the model is shown something other than the client's messages: a
 * summary, a placeholder, an announcement, or a system prompt or tools that changed after a response. Infinity if there
 * is none, or if the model accepts thinking anywhere. Read from the log, so a restart does not change it.
 */
export function findInvalidThinkingStart(
  { session }: Pick<SessionState, 'session'>,
  { thinking }: ProviderProfile,
): number {
  if (thinking.binding !== 'prefix') return Number.POSITIVE_INFINITY
  let answered: string | null = null
  // Null for responses that came with the client's list, before the engine sent anything.
  let prefix: string | null = null
  for (const [index, record] of listBranchRecords(session).entries()) {
    if (isCompactBoundary(record) || isMicrocompactBoundary(record)) return index
    if (record.type === 'assistant') answered ??= prefix
    if (record.type !== 'system') continue
    if (record.subtype === 'delta' && (isObject(record.delta?.sections) || isObject(record.delta?.tools)))
      return index
    if (record.subtype !== 'epoch') continue
    prefix = JSON.stringify([record.epoch?.sections.map(({ text }) => text), record.epoch?.tools])
    if (answered !== null && answered !== prefix) return index
  }
  return Number.POSITIVE_INFINITY
}

/**
 * True if this client drops the thinking of every response. It would then also have dropped the thinking in `hidden`,
 * which it was never given. Decided by the newest response that the client was given with thinking.
 */
export function leavesOutThinking(
  session: SessionLog,
  given: readonly ConversationPart[],
  hidden: ReadonlySet<string>,
): boolean {
  const later = listBranchRecords(session).flatMap((record) =>
    record.type === 'assistant' && hidden.has(record.message.id) ? toBlocks(record.message.content) : [],
  )
  if (!later.some(isThinkingBlock)) return false
  const known = new Set(later.filter(isToolUse).map(({ id }) => id))
  for (const { block } of given.toReversed()) {
    const left = isToolUse(block) && !known.has(block.id) ? wasThinkingLeftOut(session, block.id) : null
    if (left !== null) return left
  }
  return false
}

/**
 * True if the client sent the response with this call back without its thinking, so that the log has a second version
 * of it. Null if the response had no thinking. The first record of the call is the version that the client was given.
 */
function wasThinkingLeftOut(session: SessionLog, call: string): boolean | null {
  const { records } = session
  const start = session.callRecords.get(call) ?? records.length
  const first = records.at(start)
  if (first === undefined || !isKnownRecord(first) || first.type !== 'assistant') return null
  const given = readLoggedResponse(session, first.message.id)
  if (given?.message.content.some(isThinkingBlock) !== true) return null
  for (let index = start + 1; index < records.length; index += 1) {
    const next = records.at(index)
    if (next === undefined || !isKnownRecord(next)) continue
    if (next.type === 'user') return false
    if (next.type !== 'assistant' || next.message.id === first.message.id) continue
    const blocks = readLoggedResponse(session, next.message.id)?.message.content ?? []
    return blocks.some((block) => isToolUse(block) && block.id === call) && !blocks.some(isThinkingBlock)
  }
  return false
}
