/** What was put aside, put back: a record as it was before. */
import { type Block, blocksOf, isBlock, isToolResult, type ToolResultBlock } from '../conversation/block.ts'
import type { Spilled, UserRecord } from '../conversation/record.ts'
import { decodeUtf8 } from './utf8-text.ts'

/** The half of a blob store that reads. */
export interface BlobReader {
  get(id: string): Promise<Uint8Array | null>
}

/** The record with its tool results whole. Where a blob is gone, head and tail stay: nothing is made up. */
export async function restoreRecord(record: UserRecord, blobs: BlobReader | null): Promise<UserRecord> {
  const spilled = spilledOf(record)
  if (spilled.length === 0 || blobs === null) return record
  const content = await Promise.all(
    blocksOf(record.message.content).map((block) =>
      isToolResult(block) ? restoreResult(block, spilled, blobs) : block,
    ),
  )
  const { spilled: _, ...whole } = record
  return { ...whole, message: { ...record.message, content } }
}

/** A log may hold anything in the field. */
export function spilledOf(record: { readonly spilled?: unknown }): readonly Spilled[] {
  const { spilled } = record
  return Array.isArray(spilled) ? spilled.filter((item) => typeof item?.blob === 'string') : []
}

export async function restoreResult(
  result: ToolResultBlock,
  spilled: readonly Spilled[],
  blobs: BlobReader,
): Promise<ToolResultBlock> {
  let { content } = result
  for (const item of spilled.filter(({ toolUseId }) => toolUseId === result.tool_use_id)) {
    const text = await textOfBlob(item.blob, blobs)
    if (text === null) continue
    if (item.part === null) content = text
    else if (Array.isArray(content)) content = content.with(item.part, partOf(content[item.part], item, text))
  }
  return content === undefined ? result : { ...result, content }
}

function partOf(shown: Block | undefined, { holds }: Spilled, text: string): Block {
  return holds === 'text'
    ? { ...(shown ?? { type: 'text' }), text }
    : (blockIn(text) ?? { type: 'text', text })
}

/** The block that a blob holds as JSON; null for anything else. */
export function blockIn(text: string): Block | null {
  try {
    const value: unknown = JSON.parse(text)
    return isBlock(value) ? value : null
  } catch {
    return null
  }
}

export async function textOfBlob(id: string, blobs: BlobReader): Promise<string | null> {
  const bytes = await blobs.get(id)
  return bytes === null ? null : decodeUtf8(bytes)
}
