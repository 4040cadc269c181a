/** Turns a reply of the model into records of the log: whole blocks, and the text that an aborted reply had reached. */

import { isBlankText, isTextBlock } from '../log/block.ts'
import { type AssistantMessage, type AssistantRecord, REPLY_DROPPED_SUBTYPE } from '../log/record.ts'
import {
  type BlockEnded,
  type Reply,
  type ReplyAssembly,
  type ReplyEnded,
  type ReplyFailed,
  toReply,
} from './reply.ts'
import type { UnlinkedRecord } from './session-writer.ts'

/**
 * Takes a broken reply out of the context, so that the same request can be sent again and nothing is shown twice. An
 * aborted reply stays: the user may refer to what arrived of it.
 */
export function createDropRecord(response: string): UnlinkedRecord {
  return { type: 'system', subtype: REPLY_DROPPED_SUBTYPE, isMeta: true, response }
}

/**
 * Returns the records to append when a reply ends: the last block and, if the reply was aborted, the text that it was in
 * the middle of. For a complete reply without blocks, it is an empty record with the usage.
 */
export function finalRecords(
  event: ReplyEnded | ReplyFailed,
  { message, unfinished }: Reply,
  held: BlockEnded | null,
): readonly UnlinkedRecord[] {
  const ended = held === null ? [] : [toRecord(message, held)]
  if (event.type === 'reply-ended')
    return held === null ? [{ type: 'assistant', message: { ...message, content: [] } }] : ended
  if (event.failure.kind !== 'aborted') return ended
  const cut = unfinished
    .map(({ block }) => block)
    .filter((block) => isTextBlock(block) && !isBlankText(block))
  const said = [...ended, ...cut.map((block): AssistantBody => toRecord(message, { block }))]
  return said.map((record, index) => (index < said.length - 1 ? record : { ...record, isInterrupted: true }))
}

export function partialRecords(assembly: ReplyAssembly, block: BlockEnded): readonly UnlinkedRecord[] {
  const message = toReply(assembly)?.message
  return message === undefined ? [] : [toRecord(message, block)]
}

type AssistantBody = Pick<AssistantRecord, 'type' | 'message' | 'rawBlocks' | 'isInterrupted'>

function toRecord(
  message: AssistantMessage,
  { block, raw }: Pick<BlockEnded, 'block' | 'raw'>,
): AssistantBody {
  const said = { type: 'assistant' as const, message: { ...message, content: [block] } }
  return raw === undefined ? said : { ...said, rawBlocks: [{ index: 0, text: raw }] }
}
