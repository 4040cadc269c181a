/**
 * Takes the thinking out of responses before a client gets them. Some models accept thinking only after exactly what came
 * before it. Once a session has rewritten its context, a client that left the session would be refused with its own list.
 */
import type { SessionState } from '@tidemark/core/engine/session-state'
import { isThinkingBlock, isToolUse, toBlocks } from '@tidemark/core/log/block'
import { isObject } from '@tidemark/core/log/json'
import { isCompactBoundary, isKnownRecord, isMicrocompactBoundary } from '@tidemark/core/log/record'
import { listBranchRecords, type SessionLog } from '@tidemark/core/log/session-log'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import { type Part, readResponse } from '../session/conversation-parts.ts'

/** What is read of an open session. */
export interface ThinkingSession {
  readonly state: SessionState
  readonly model: { readonly choice: { readonly profile: ProviderProfile } }
}

/** True if the client could not send thinking of the next response back to the provider by itself. */
export function mustHideThinking({ state, model }: ThinkingSession): boolean {
  return findHidingStart(state, model.choice.profile) !== Number.POSITIVE_INFINITY
}

/** Returns the ids of the responses whose thinking the client was not given. */
export function listHiddenThinking(
  state: Pick<SessionState, 'session'>,
  profile: ProviderProfile,
): ReadonlySet<string> {
  const start = findHidingStart(state, profile)
  const later = start === Number.POSITIVE_INFINITY ? [] : listBranchRecords(state.session).slice(start)
  return new Set(later.flatMap((record) => (record.type === 'assistant' ? [record.message.id] : [])))
}

/**
 * Returns the position on the branch from which on the model is shown something else than the client sends: a summary, a
 * placeholder, an announcement, a system prompt or tools that changed after a response. Infinite if there is none, or if
 * the model accepts its thinking anywhere. It is read from the log, so that a restart changes nothing.
 */
export function findHidingStart(
  { session }: Pick<SessionState, 'session'>,
  { thinking }: ProviderProfile,
): number {
  if (thinking.binding !== 'prefix') return Number.POSITIVE_INFINITY
  let answered: string | null = null
  // Null for responses that came with the client's list: they were given before anything was sent from here.
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
 * True if a client leaves out the thinking of each response as soon as it has it: it would not send that of the responses in
 * `hidden` either, which it was not given. The newest response that it was given with thinking tells.
 */
export function leavesOutThinking(
  session: SessionLog,
  given: readonly Part[],
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
 * True if what follows the response with a call in the log is another version of it, without its thinking; null if the response
 * had none. Its first record is the one that the client was given.
 */
function wasThinkingLeftOut(session: SessionLog, call: string): boolean | null {
  const { records } = session
  const start = session.callRecords.get(call) ?? records.length
  const first = records.at(start)
  if (first === undefined || !isKnownRecord(first) || first.type !== 'assistant') return null
  const given = readResponse(session, first.message.id)
  if (given?.message.content.some(isThinkingBlock) !== true) return null
  for (let index = start + 1; index < records.length; index += 1) {
    const next = records.at(index)
    if (next === undefined || !isKnownRecord(next)) continue
    if (next.type === 'user') return false
    if (next.type !== 'assistant' || next.message.id === first.message.id) continue
    const blocks = readResponse(session, next.message.id)?.message.content ?? []
    return blocks.some((block) => isToolUse(block) && block.id === call) && !blocks.some(isThinkingBlock)
  }
  return false
}
