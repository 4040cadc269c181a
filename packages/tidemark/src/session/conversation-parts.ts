/**
 * The blocks that identify a conversation, of a caller's message list and of the log, so that the two can be compared.
 * Calls are the same if they have the same id: hosts rewrite the inputs in their own history, and drop thinking.
 */
import {
  type Block,
  isBlankText,
  isKnownRecord,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  type SessionRecord,
  toBlocks,
} from '@tidemark/core'
import type { HostMessage, MessageInput } from './messages.ts'

/** One block of a conversation, without thinking and blank text, which callers often remove. */
export interface Part {
  readonly role: HostMessage['role']
  readonly block: Block
  /** Id of the response; null for other messages, and for a response that was given without its id. */
  readonly id: string | null
  /** Number of the message, from 0. Consecutive user messages count as one, because callers join tool results. */
  readonly message: number
  /** Where the block comes from: the index of the given message or of the record, and its own index in there. */
  readonly from: { readonly index: number; readonly block: number }
}

/** The type of the block that stands for a whole system message within the conversation. */
const SYSTEM_MESSAGE = 'system_message'

/** Compares two blocks by what identifies them: calls by id, results by their call, texts by their text. */
export function isSamePart(one: Part | undefined, other: Part | undefined): boolean {
  if (one === undefined || other === undefined || one.role !== other.role) return false
  const [a, b] = [one.block, other.block]
  // Some clients cut the white space at the end of an answer.
  if (isTextBlock(a) && isTextBlock(b)) return a.text === b.text || a.text.trim() === b.text.trim()
  if (isToolUse(a) && isToolUse(b)) return a.id === b.id && a.name === b.name
  if (isToolResult(a) && isToolResult(b)) return a.tool_use_id === b.tool_use_id
  return a.type === b.type && formatWithoutMarker(a) === formatWithoutMarker(b)
}

function formatWithoutMarker({ cache_control: _, ...block }: Block): string {
  return JSON.stringify(block)
}

export function listGivenParts(inputs: readonly (MessageInput | HostMessage)[]): readonly Part[] {
  const parts: Part[] = []
  for (const [index, input] of inputs.entries()) {
    if (input.role === 'attachment') continue
    const { role } = input
    const id = role === 'assistant' && typeof input.id === 'string' ? input.id : null
    addParts(parts, { role, id, index }, readBlocks(input), role === 'assistant')
  }
  return parts
}

/** Lists the blocks of the conversation in these records, without those that the engine added. */
export function listLoggedParts(records: Iterable<SessionRecord>): readonly Part[] {
  const parts: Part[] = []
  let index = -1
  for (const record of records) {
    index += 1
    if (!isKnownRecord(record) || (record.type !== 'user' && record.type !== 'assistant')) continue
    if (record.isMeta === true || record.isCompactSummary === true) continue
    const { message } = record
    const id = record.type === 'assistant' ? record.message.id : null
    addParts(
      parts,
      { role: message.role, id, index },
      readBlocks(message as HostMessage),
      parts.at(-1)?.id !== id,
    )
  }
  return parts
}

function readBlocks(message: HostMessage): readonly Block[] {
  const { role, content, ...fields } = message
  if (role !== 'system') return toBlocks(content)
  return [{ ...fields, type: SYSTEM_MESSAGE, content: [...toBlocks(content)] } as unknown as Block]
}

function addParts(
  parts: Part[],
  { role, id, index }: Pick<Part, 'role' | 'id'> & { readonly index: number },
  blocks: readonly Block[],
  isNew: boolean,
): void {
  const last = parts.at(-1)
  const before = last?.message ?? -1
  const message = isNew || last?.role !== role ? before + 1 : before
  for (const [block, each] of blocks.entries())
    if (!isThinkingBlock(each) && !isBlankText(each))
      parts.push({ role, block: each, id, message, from: { index, block } })
}
