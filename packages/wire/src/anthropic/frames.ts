/** Neutral events back to the frames of the Messages API: what a gateway or a simulator sends. */
import type { BlockDelta, JsonObject, ReplyEvent, ReplyUpdated } from '@tidemark/core'
import { given } from '../given.ts'
import type { Frame } from '../sse.ts'
import { errorObject } from './failure.ts'

/** Fields that `message_delta` carries inside its `delta`; the others stand beside it. */
const IN_DELTA = new Set(['stop_reason', 'stop_sequence', 'stop_details', 'container'])

export function toFrames(event: ReplyEvent): readonly Frame[] {
  switch (event.type) {
    case 'reply-started':
      return [frame('message_start', `"message":${JSON.stringify({ type: 'message', ...event.message })}`)]
    case 'block-started':
      return [
        frame(
          'content_block_start',
          `"index":${event.index},"content_block":${event.raw ?? JSON.stringify(event.block)}`,
        ),
      ]
    case 'block-grew':
      return [frame('content_block_delta', `"index":${event.index},"delta":${deltaText(event.delta)}`)]
    case 'block-ended':
      return [frame('content_block_stop', `"index":${event.index}`)]
    case 'reply-updated':
      return [frame('message_delta', updateText(event))]
    case 'reply-alive':
      return [frame('ping')]
    case 'reply-other':
      return [{ ...(event.name === '' ? {} : { event: event.name }), data: event.text }]
    case 'reply-ended':
      return [frame('message_stop')]
    case 'reply-failed':
      return [frame('error', `"error":${JSON.stringify(errorObject(event.failure))}`)]
  }
}

function frame(event: string, members = ''): Frame {
  return { event, data: `{"type":"${event}"${members === '' ? '' : `,${members}`}}` }
}

function deltaText(delta: BlockDelta): string {
  if (delta.kind === 'citation')
    return `{"type":"citations_delta","citation":${delta.raw ?? JSON.stringify(delta.citation)}}`
  return JSON.stringify(deltaObject(delta))
}

function deltaObject(delta: Exclude<BlockDelta, { kind: 'citation' }>): JsonObject {
  switch (delta.kind) {
    case 'text':
      return { type: 'text_delta', text: delta.text }
    case 'thinking':
      return {
        type: 'thinking_delta',
        thinking: delta.text,
        ...given({ estimated_tokens: delta.estimatedTokens }),
      }
    case 'signature':
      return { type: 'signature_delta', signature: delta.signature }
    case 'input':
      return { type: 'input_json_delta', partial_json: delta.json }
    case 'fields':
      return { type: 'compaction_delta', ...delta.fields }
    case 'other':
      return delta.value
  }
}

function updateText({ fields, usage }: ReplyUpdated): string {
  const all = Object.entries(fields)
  const inside = all.filter(([key]) => IN_DELTA.has(key))
  const beside = all.filter(([key]) => !IN_DELTA.has(key))
  const members = { delta: Object.fromEntries(inside), ...given({ usage }) }
  return JSON.stringify({ ...members, ...Object.fromEntries(beside) }).slice(1, -1)
}
