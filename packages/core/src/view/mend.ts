/** What no provider takes, mended in a draft: blank text, and a response at the end that says nothing. */
import { isBlankText, isToolResult } from '../conversation/block.ts'
import { type Draft, isSilent, type Part, withParts } from './draft.ts'
import type { Repair } from './repair.ts'

export interface Mended {
  readonly drafts: readonly Draft[]
  readonly repairs: readonly Repair[]
}

export function withoutBlanks(drafts: readonly Draft[]): Mended {
  const repairs: Repair[] = []
  const kept = drafts.map((draft) => {
    const parts = [...draft.parts].flatMap((part) => {
      const plain = withoutBlank(part)
      if (plain[0] !== part) repairs.push({ kind: 'blank-text', origin: part.origin })
      return plain
    })
    return withParts(draft, parts)
  })
  return {
    drafts: kept.filter((draft) => draft.parts.length > 0 || draft.whole?.output_config !== undefined),
    repairs,
  }
}

/** Blank text is refused wherever it stands, inside a tool result too. */
function withoutBlank(part: Part): readonly Part[] {
  const { block, origin } = part
  if (isBlankText(block)) return []
  if (!isToolResult(block) || !Array.isArray(block.content) || !block.content.some(isBlankText)) return [part]
  return [{ block: { ...block, content: block.content.filter((item) => !isBlankText(item)) }, origin }]
}

/**
 * Thinking alone does not end a request. It is dropped for good when the next response begins, since that one
 * was given without it.
 */
export function withoutSilentTail(drafts: readonly Draft[]): Mended {
  let length = drafts.length
  while (length > 0 && isSilent(drafts[length - 1] as Draft)) length -= 1
  const dropped = drafts.slice(length).flatMap((draft) => [...draft.parts].slice(0, 1))
  return {
    drafts: drafts.slice(0, length),
    repairs: dropped.map((part) => ({ kind: 'silent-tail', origin: part.origin })),
  }
}
