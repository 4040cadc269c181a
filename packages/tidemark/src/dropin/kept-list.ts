/** Which parts of a client's list are sent as the client wrote them, and which as the engine records them. */
import { isMissingPrompt } from '@tidemark/core/context/flatten'
import type { PendingModelCall } from '@tidemark/core/engine/call-model'
import { isBlankText, isThinkingBlock, toBlocks } from '@tidemark/core/log/block'
import type { ClientList, ClientMessage, ClientRequest } from '@tidemark/wire/providers/client-request'
import { isSameJsonValue } from '../session/conversation-parts.ts'
import type { OpenSession } from '../session/open-session.ts'

/**
 * Returns the parts of the client's list that equal what the engine would send. They are sent as the client wrote them, with fields that
 * the engine does not record. After a rewrite, only the system prompt can be equal.
 */
export function keepClientList(
  { state }: OpenSession,
  { list, system, messages }: ClientRequest,
  { request: { front, messages: sent } }: PendingModelCall,
): { readonly list?: ClientList } {
  if (list === undefined || system === null) return {}
  const texts = front.system.map(({ block }) => block.text)
  const hasSystem = isSameJsonValue(
    texts,
    system.filter((text) => text.trim() !== ''),
  )
  const traced = [...sent.frozen, ...sent.tail].map(({ message }) => message)
  const isWhole = state.view.rewrites.length === 0 && isSameJsonValue(listShape(traced), listShape(messages))
  const items = isWhole && (hasSystem || typeof list.items !== 'string') ? list.items : null
  return { list: { system: hasSystem ? list.system : null, items } }
}

/**
 * Types of blocks, without the engine's placeholder. The client decides which thinking goes back, and in which order its own messages
 * stand between two answers: not every provider wants results first, or system messages behind a prompt. Some clients join messages of
 * one side, and some do not.
 */
function listShape(messages: readonly Pick<ClientMessage, 'role' | 'content'>[]): readonly string[] {
  const shape: string[] = []
  let asked: string[] = []
  for (const { role, content } of messages) {
    const side = role === 'assistant' ? 'answered' : 'asked'
    const types = toBlocks(content).flatMap((block) =>
      isBlankText(block) || isMissingPrompt(block) || isThinkingBlock(block) ? [] : [`${side} ${block.type}`],
    )
    if (side === 'asked') asked.push(...types)
    else if (types.length > 0) {
      shape.push(...asked.sort(), ...types)
      asked = []
    }
  }
  return [...shape, ...asked.sort()]
}
