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
    const parts = [...draft.parts].flatMap((part) => {
      const plain = withoutBlankPart(part)
      if (plain[0] !== part) repairs.push({ kind: 'blank-text', origin: part.origin })
      return plain
    })
    return withDraftParts(draft, parts)
  })
  return { drafts: kept.filter((draft) => !isEmptyDraft(draft)), repairs }
}

function isBlankItem(item: unknown): boolean {
  return isBlock(item) && isBlankText(item)
}

/** Removes blank text blocks, also those inside a tool result, because the provider refuses blank text. */
function withoutBlankPart(part: MessagePart): readonly MessagePart[] {
  const { block, origin } = part
  if (isBlankText(block)) return []
  if (!isToolResult(block) || !Array.isArray(block.content) || !block.content.some(isBlankItem)) return [part]
  return [{ block: { ...block, content: block.content.filter((item) => !isBlankItem(item)) }, origin }]
}

/**
 * Drops a last response that contains only thinking, because the provider refuses a request that ends with such a
 * response. The response stays dropped in later requests, because the next response was generated without it.
 */
export function withoutSilentTail(drafts: readonly MessageDraft[]): RepairedDrafts {
  let length = drafts.length
  while (length > 0 && isBlankResponse(drafts[length - 1] as MessageDraft)) length -= 1
  const dropped = drafts.slice(length).flatMap((draft) => [...draft.parts].slice(0, 1))
  return {
    drafts: drafts.slice(0, length),
    repairs: dropped.map((part) => ({ kind: 'silent-tail', origin: part.origin })),
  }
}
