/** Repairs what every provider refuses: blank text, and a last response without content. */
import { isBlankText, isBlock, isToolResult } from '../log/block.ts'
import type { MessagePart } from './context-entry.ts'
import {
  isBlankResponse,
  isEmptyDraft,
  type MessageDraft,
  type MessageRepair,
  withDraftParts,
} from './tool-pairing.ts'

interface RepairedDrafts {
  readonly drafts: readonly MessageDraft[]
  readonly repairs: readonly MessageRepair[]
}

export function withoutBlankText(drafts: readonly MessageDraft[]): RepairedDrafts {
  const repairs: MessageRepair[] = []
  const kept = drafts.map((draft) => {
    const parts = draft.parts.toArray()
    if (!parts.some(hasBlankText)) return draft
    return withDraftParts(
      draft,
      parts.flatMap((part) => {
        if (!hasBlankText(part)) return [part]
        repairs.push({ kind: 'blank-text', origin: part.origin })
        return withoutBlankPart(part)
      }),
    )
  })
  return { drafts: kept.filter((draft) => !isEmptyDraft(draft)), repairs }
}

function isBlankItem(item: unknown): boolean {
  return isBlock(item) && isBlankText(item)
}

/** True for a blank text block and for a tool result with one inside. */
function hasBlankText({ block }: MessagePart): boolean {
  if (!isToolResult(block)) return isBlankText(block)
  return Array.isArray(block.content) && block.content.some(isBlankItem)
}

/** Removes blank text blocks, also those inside a tool result, because the provider refuses blank text. */
function withoutBlankPart({ block, origin }: MessagePart): readonly MessagePart[] {
  if (!isToolResult(block) || !Array.isArray(block.content)) return []
  return [{ block: { ...block, content: block.content.filter((item) => !isBlankItem(item)) }, origin }]
}

/**
 * Drops a last response that contains only thinking, because the provider refuses a request that ends with such a
 * response. System messages may follow it: they belong to the next response, and need the user message before it. The
 * response stays dropped in later requests, because the next response was generated without it.
 */
export function withoutSilentTail(drafts: readonly MessageDraft[]): RepairedDrafts {
  const end = drafts.findLastIndex(({ role }) => role !== 'system') + 1
  const start = drafts.slice(0, end).findLastIndex((draft) => !isBlankResponse(draft)) + 1
  const dropped = drafts.slice(start, end).flatMap((draft) => draft.parts.toArray().slice(0, 1))
  return {
    drafts: dropped.length === 0 ? drafts : [...drafts.slice(0, start), ...drafts.slice(end)],
    repairs: dropped.map((part) => ({ kind: 'silent-tail', origin: part.origin })),
  }
}
