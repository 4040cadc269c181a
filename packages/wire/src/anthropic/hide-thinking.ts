/** Removes thinking from responses of the Messages API, for clients that could not send it back to the provider. */
import { isBlock, isThinkingBlock } from '@tidemark/core/log/block'
import { isObject, parseJson } from '@tidemark/core/log/json'
import { decodeSseBytes, encodeSseFrame, initialSseState, type SseFrame, type SseState } from '../http/sse.ts'
import type { StreamFilter } from '../providers/provider-codec.ts'

/** Returns the JSON text of a response without its thinking; unchanged if it is not a message. Throws if it is not JSON. */
export function removeThinking(text: string): string {
  const message: unknown = JSON.parse(text)
  if (!isObject(message) || !Array.isArray(message.content)) return text
  return JSON.stringify({ ...message, content: message.content.filter((block) => !isThinkingBlock(block)) })
}

interface FilterState {
  readonly sse: SseState
  /** Indexes of the thinking blocks so far. */
  readonly hidden: ReadonlySet<number>
}

/** Removes thinking blocks from the chunks of a stream. The indexes of later blocks are lowered to close the gap. */
export const thinkingFilter: StreamFilter<FilterState> = {
  initial: { sse: initialSseState, hidden: new Set() },
  step(state, chunk) {
    const [sse, frames] = decodeSseBytes(state.sse, chunk)
    const hidden = new Set([...state.hidden, ...frames.flatMap(findThinkingIndex)])
    const kept = frames.flatMap((frame) => filterFrame(frame, hidden))
    return [{ sse, hidden }, new TextEncoder().encode(kept.map(encodeSseFrame).join(''))]
  },
}

function findThinkingIndex({ data }: SseFrame): readonly number[] {
  const value = parseJson(data)
  const { index, content_block: block } = isObject(value) ? value : {}
  return typeof index === 'number' && isBlock(block) && isThinkingBlock(block) ? [index] : []
}

function filterFrame(frame: SseFrame, hidden: ReadonlySet<number>): readonly SseFrame[] {
  const data = parseJson(frame.data)
  if (!isObject(data) || typeof data.index !== 'number') return [frame]
  const { index } = data
  if (hidden.has(index)) return []
  const moved = index - [...hidden].filter((each) => each < index).length
  return [{ ...frame, data: JSON.stringify({ ...data, index: moved }) }]
}
