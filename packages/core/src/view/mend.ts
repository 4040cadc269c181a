/** What no provider takes, mended in a draft: blank text, and a response at the end that says nothing. */
import { isBlankText, isBlock, isServerToolResult, isText, isToolResult } from '../conversation/block.ts'
import { type Draft, isEmpty, isSilent, joined, type Part, withParts } from './draft.ts'
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
  return { drafts: kept.filter((draft) => !isEmpty(draft)), repairs }
}

function isBlank(item: unknown): boolean {
  return isBlock(item) && isBlankText(item)
}

/** Blank text is refused wherever it stands, inside a tool result too. */
function withoutBlank(part: Part): readonly Part[] {
  const { block, origin } = part
  if (isBlankText(block)) return []
  if (!isToolResult(block) || !Array.isArray(block.content) || !block.content.some(isBlank)) return [part]
  return [{ block: { ...block, content: block.content.filter((item) => !isBlank(item)) }, origin }]
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

/** A system message waits for the model's turn: what the person adds meanwhile goes in front of it. */
export function withWaitingSystem(drafts: readonly Draft[]): readonly Draft[] {
  const placed: Draft[] = []
  for (const draft of drafts) {
    const waiting = placed.findLastIndex((earlier) => earlier.role !== 'system') + 1
    if (draft.role === 'user' && waiting < placed.length) insertBefore(placed, waiting, draft)
    else placed.push(draft)
  }
  return placed
}

/** It stands behind a user message. Where there is none, it becomes a reminder in one. */
export function withHomedSystem(drafts: readonly Draft[]): readonly Draft[] {
  return drafts.map((draft, index) =>
    draft.role === 'system' && !hasHome(drafts, index) ? asReminder(draft) : draft,
  )
}

/** In front of the system messages that wait, joining the user message before them. */
function insertBefore(placed: Draft[], waiting: number, draft: Draft): void {
  const before = placed[waiting - 1]
  if (before?.role === 'user') placed[waiting - 1] = joined(before, draft)
  else placed.splice(waiting, 0, draft)
}

function hasHome(drafts: readonly Draft[], index: number): boolean {
  const before = drafts.slice(0, index).findLast((draft) => draft.role !== 'system')
  if (before?.role === 'user') return true
  return before?.role === 'assistant' && isServerToolResult(before.parts.last?.block ?? { type: '' })
}

function asReminder(draft: Draft): Draft {
  const parts = [...draft.parts].map(({ block, origin }) =>
    isText(block)
      ? { block: { type: 'text', text: `<system-reminder>\n${block.text}\n</system-reminder>` }, origin }
      : { block, origin },
  )
  return { ...withParts(draft, parts), role: 'user', whole: null }
}
