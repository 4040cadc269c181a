/** When words about a change must wait. */
import { isThinking, isToolResult } from '../conversation/block.ts'
import type { Profile } from '../policy/profile.ts'
import { blocksIn, type MessageList, messageAt, messageCount } from './count.ts'

/**
 * Behind a turn of the model's that is to go on, words would end it. And where a model loses the thinking of
 * finished turns, words beside the results of a turn that has thought would finish it, and lose the cache with
 * it: they wait for the next prompt.
 */
export function mustHold(messages: MessageList, profile: Profile): boolean {
  const last = messageCount(messages) - 1
  const message = messageAt(messages, last)
  if (message === undefined) return false
  if (message.message.role === 'assistant') return true
  if (!profile.thinking.stripsFinishedTurns || !blocksIn(message).every(isToolResult)) return false
  return thinksSincePrompt(messages, last)
}

function thinksSincePrompt(messages: MessageList, from: number): boolean {
  for (let index = from; index >= 0; index -= 1) {
    const message = messageAt(messages, index)
    if (message === undefined) continue
    if (message.message.role === 'assistant' && blocksIn(message).some(isThinking)) return true
    if (message.message.role === 'user' && !blocksIn(message).every(isToolResult)) return false
  }
  return false
}
