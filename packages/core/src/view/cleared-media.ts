/**
 * Images and documents that are no longer shown. Which one is meant is told by the record, the result it stands in
 * and its number there; what stands in its place is counted like it, so that numbers hold however many have gone.
 */
import { type Block, isBlock, isMedia, isText, isToolResult } from '../conversation/block.ts'

/** One of a record's images and documents. */
export interface HiddenMedia {
  /** The call whose result it stands in; null for one that stands by itself. */
  readonly toolUseId: string | null
  /** From 0, among those there. */
  readonly nth: number
}

/** What stands where one was. */
export function mediaPlaceholder(kind: string): Block {
  return { type: 'text', text: `[${kind}: no longer shown, to keep the request within its size]` }
}

const PLACEHOLDERS: ReadonlySet<string> = new Set(
  ['image', 'document'].map((kind) => String(mediaPlaceholder(kind).text)),
)

/** An image or a document, or what stands in the place of one. */
export function isMediaPlace(block: Block): boolean {
  return isMedia(block) || (isText(block) && PLACEHOLDERS.has(block.text))
}

/** The blocks of a record without what is hidden. Blocks it does not touch stay the same objects. */
export function withoutMedia(
  blocks: readonly Block[],
  hidden: readonly HiddenMedia[] = [],
): readonly Block[] {
  if (hidden.length === 0) return blocks
  const at = (id: string | null): ReadonlySet<number> =>
    new Set(hidden.filter(({ toolUseId }) => toolUseId === id).map(({ nth }) => nth))
  return replaced(blocks, at(null)).map((block) => {
    if (!isToolResult(block) || !Array.isArray(block.content)) return block
    const gone = at(block.tool_use_id)
    return gone.size === 0 ? block : { ...block, content: replaced(block.content, gone) }
  })
}

function replaced(blocks: readonly Block[], gone: ReadonlySet<number>): readonly Block[] {
  let nth = -1
  return blocks.map((block: unknown) => {
    if (!isBlock(block) || !isMediaPlace(block)) return block as Block
    nth += 1
    return gone.has(nth) && isMedia(block) ? mediaPlaceholder(block.type) : block
  })
}
