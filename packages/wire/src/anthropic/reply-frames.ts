/** Encodes the events of a reply as SSE frames of the Messages API. */
import type { BlockDelta, Reply, ReplyEvent, ReplyUpdated } from '@tidemark/core/engine/reply'
import { type JsonObject, omitUndefined } from '@tidemark/core/log/json'
import type { SseFrame } from '../http/sse.ts'
import { replyToEvents, type TextSplitter } from '../providers/reply-events.ts'
import { toAnthropicErrorObject } from './anthropic-errors.ts'

/** Returns the SSE frames that stream `reply`. `split` cuts texts and tool inputs into deltas; default: one delta each. */
export function encodeReplyFrames(reply: Reply, split: TextSplitter = (text) => [text]): readonly SseFrame[] {
  return replyToEvents(reply, split).flatMap(encodeReplyEvent)
}

/** Fields that `message_delta` has inside its `delta` object. All other fields are outside it. */
const FIELDS_IN_DELTA = new Set(['stop_reason', 'stop_sequence', 'stop_details', 'container'])

export function encodeReplyEvent(event: ReplyEvent): readonly SseFrame[] {
  switch (event.type) {
    case 'reply-started':
      return [
        createFrame('message_start', `"message":${JSON.stringify({ type: 'message', ...event.message })}`),
      ]
    case 'block-started':
      return [
        createFrame(
          'content_block_start',
          `"index":${event.index},"content_block":${event.raw ?? JSON.stringify(event.block)}`,
        ),
      ]
    case 'block-grew':
      return [
        createFrame('content_block_delta', `"index":${event.index},"delta":${encodeDelta(event.delta)}`),
      ]
    case 'block-ended':
      return [createFrame('content_block_stop', `"index":${event.index}`)]
    case 'reply-updated':
      return [createFrame('message_delta', encodeUpdate(event))]
    case 'reply-lost':
      return []
    case 'reply-alive':
      return [createFrame('ping')]
    case 'reply-other':
      return [{ ...(event.name === '' ? {} : { event: event.name }), data: event.text }]
    case 'reply-ended':
      return [createFrame('message_stop')]
    case 'reply-failed':
      return [createFrame('error', `"error":${JSON.stringify(toAnthropicErrorObject(event.failure))}`)]
  }
}

function createFrame(event: string, members = ''): SseFrame {
  return { event, data: `{"type":"${event}"${members === '' ? '' : `,${members}`}}` }
}

function encodeDelta(delta: BlockDelta): string {
  if (delta.kind === 'citation')
    return `{"type":"citations_delta","citation":${delta.raw ?? JSON.stringify(delta.citation)}}`
  return JSON.stringify(toDeltaObject(delta))
}

function toDeltaObject(delta: Exclude<BlockDelta, { kind: 'citation' }>): JsonObject {
  switch (delta.kind) {
    case 'text':
      return { type: 'text_delta', text: delta.text }
    case 'thinking':
      return {
        type: 'thinking_delta',
        thinking: delta.text,
        ...omitUndefined({ estimated_tokens: delta.estimatedTokens }),
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

function encodeUpdate({ fields, usage }: ReplyUpdated): string {
  const all = Object.entries(fields)
  const inside = all.filter(([key]) => FIELDS_IN_DELTA.has(key))
  const beside = all.filter(([key]) => !FIELDS_IN_DELTA.has(key))
  const members = { delta: Object.fromEntries(inside), ...omitUndefined({ usage }) }
  return JSON.stringify({ ...members, ...Object.fromEntries(beside) }).slice(1, -1)
}
