/** What one entry of the view brings to a message: its blocks, less what was cleared. */
import { type Block, blocksOf, isThinking, isToolResult, isToolUse } from '../conversation/block.ts'
import { CLEARED_TEXT } from '../conversation/boundary.ts'
import { isObject } from '../conversation/json.ts'
import { isSyntheticError, type KnownRecord } from '../conversation/record.ts'
import { endsTurn } from '../conversation/turn-end.ts'
import { attachmentText } from './attachment-text.ts'
import { withoutMedia } from './cleared-media.ts'
import type { Part } from './draft.ts'
import type { Cleared, Entry } from './entry.ts'

/** What stands where a large input of a tool call was. */
export const CLEARED_INPUT_TEXT = '[Old tool input cleared]'

/** Does anything of this entry reach a model? */
export function isShown(entry: Entry): boolean {
  const { record } = entry
  if (record.type === 'progress' || record.type === 'system' || isSyntheticError(record)) return false
  if (entry.cleared?.whole === true) return false
  return record.type !== 'attachment' || record.isScreenOnly !== true
}

/** Does what it brings end the turn before it? An attachment is words to the model. */
export function entryEndsTurn(entry: Entry): boolean {
  const { record } = entry
  if (record.type === 'attachment') return isShown(entry)
  return record.type === 'user' && endsTurn(record.message)
}

export function partsOf(entry: Entry): readonly Part[] {
  const { record } = entry
  if (record.type === 'attachment')
    return [{ block: { type: 'text', text: attachmentText(record) }, origin: record.uuid }]
  if (record.type !== 'user' && record.type !== 'assistant') return []
  const blocks = blocksOf(record.message.content)
  const parts = withoutMedia(blocks, entry.cleared?.media).map((block, index) =>
    block === blocks[index] ? partOf(block, index, record) : { block, origin: record.uuid },
  )
  return entry.cleared === undefined
    ? parts
    : parts.flatMap((part) => clearPart(part, entry.cleared as Cleared))
}

function partOf(block: Block, index: number, record: KnownRecord): Part {
  const raw = Array.isArray(record.rawBlocks)
    ? record.rawBlocks.find((item) => item?.index === index)
    : undefined
  return typeof raw?.text !== 'string'
    ? { block, origin: record.uuid }
    : { block, origin: record.uuid, raw: raw.text }
}

function clearPart(part: Part, cleared: Cleared): readonly Part[] {
  const { block, origin } = part
  if (cleared.thinking && isThinking(block)) return []
  if (isToolResult(block)) {
    const result = cleared.results.find((item) => item.id === block.tool_use_id)
    return [result === undefined ? part : { block: { ...block, content: stub(result.note) }, origin }]
  }
  const fields = cleared.inputs.filter((input) => isToolUse(block) && input.toolUseId === block.id)
  if (fields.length === 0 || !isObject(block.input)) return [part]
  const input = Object.entries(block.input).map(([name, value]) => [
    name,
    fields.some((field) => field.field === name) ? CLEARED_INPUT_TEXT : value,
  ])
  return [{ block: { ...block, input: Object.fromEntries(input) }, origin }]
}

function stub(note: string | null): string {
  return note === null ? CLEARED_TEXT : `${CLEARED_TEXT}\n${note}`
}
