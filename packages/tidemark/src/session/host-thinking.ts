/**
 * Takes the thinking out of responses before a host gets them. Some models accept thinking only after exactly what came
 * before it. Once a session has rewritten its context, a host that left the session would be refused with its own list.
 */
import { isObject, isThinkingBlock, type JsonObject, type SessionState } from '@tidemark/core'
import { decodeSse, encodeSseFrame, initialSseState, type SseFrame } from '@tidemark/wire'
import type { OpenSession } from './open-session.ts'

/** True if the host could not send thinking of the next response back to the provider by itself. */
export function mustHideThinking({ state, model }: OpenSession): boolean {
  return model.choice.profile.thinking.binding === 'prefix' && isContextChanged(state)
}

/** True if the model is shown something else than the host sends: a summary, a placeholder, an announcement. */
function isContextChanged({ view, prefix }: SessionState): boolean {
  return view.rewrites.length > 0 || prefix.sections.size > 0 || prefix.tools.size > 0
}

/** Returns the JSON text of a response without its thinking. */
export function removeThinking(text: string): string {
  const message: unknown = JSON.parse(text)
  if (!isObject(message) || !Array.isArray(message.content)) return text
  return JSON.stringify({ ...message, content: message.content.filter((block) => !isThinkingBlock(block)) })
}

/** Returns a function that takes the thinking out of the chunks of a stream; the blocks after it move up. */
export function createThinkingFilter(): (chunk: Uint8Array) => Uint8Array {
  let state = initialSseState
  const hidden = new Set<number>()
  const encoder = new TextEncoder()
  return (chunk) => {
    const [next, frames] = decodeSse(state, chunk)
    state = next
    return encoder.encode(
      frames
        .flatMap((frame) => filterFrame(frame, hidden))
        .map(encodeSseFrame)
        .join(''),
    )
  }
}

function filterFrame(frame: SseFrame, hidden: Set<number>): readonly SseFrame[] {
  const data = parseObject(frame.data)
  const { index, content_block: block } = data ?? {}
  if (typeof index !== 'number') return [frame]
  if (isObject(block) && isThinkingBlock(block as never)) hidden.add(index)
  if (hidden.has(index)) return []
  const moved = index - [...hidden].filter((each) => each < index).length
  return [{ ...frame, data: JSON.stringify({ ...data, index: moved }) }]
}

function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? (value as JsonObject) : null
  } catch {
    return null
  }
}
