/** A message in the making: the pieces that one or more records bring to it. */
import { type Block, isBlankText, isThinking, isToolResult } from '../conversation/block.ts'
import { List } from '../conversation/list.ts'
import type { ApiMessage, Role } from './payload.ts'

export interface Part {
  readonly block: Block
  /** uuid of the record it comes from. */
  readonly origin: string
  /** The exact text to send, where the block does not survive parse and stringify. */
  readonly raw?: string
}

export interface Draft {
  readonly role: Role
  /** The `message.id` of a response. */
  readonly response: string | null
  readonly parts: List<Part>
  /** The message as given, where it is one record's and nothing about it was changed. */
  readonly whole: ApiMessage | null
  /** Nothing but tool results and attachments: the rest of a response may still come behind it. */
  readonly crossable: boolean
}

/** A finished message of a request, with where each block comes from. */
export interface FlatMessage {
  readonly message: ApiMessage
  readonly origins: readonly string[]
  /** Exact texts by index of block. */
  readonly raw?: ReadonlyMap<number, string>
}

export function withParts(draft: Draft, parts: readonly Part[]): Draft {
  return sameParts(draft.parts, parts) ? draft : { ...draft, parts: List.of(parts), whole: null }
}

function sameParts(parts: List<Part>, others: readonly Part[]): boolean {
  return parts.length === others.length && others.every((part, index) => parts.at(index) === part)
}

export function resultsOf(draft: Draft): readonly Part[] {
  return [...draft.parts].filter((part) => isToolResult(part.block))
}

/** One message of two. */
export function joined(one: Draft, other: Draft): Draft {
  let { parts } = one
  for (const part of other.parts) parts = parts.push(part)
  return { ...one, parts, whole: null, crossable: one.crossable && other.crossable }
}

/** Nothing to send. A system message may say nothing but how hard to think. */
export function isEmpty(draft: Draft): boolean {
  return draft.parts.length === 0 && draft.whole?.output_config === undefined
}

/** A response that says nothing: it may not end a request. */
export function isSilent(draft: Draft): boolean {
  if (draft.role !== 'assistant') return false
  return [...draft.parts].every((part) => isThinking(part.block) || isBlankText(part.block))
}

export function flatMessageOf(draft: Draft): FlatMessage {
  const parts = draft.parts.toArray()
  const raw = new Map(
    parts.flatMap((part, index) => (part.raw === undefined ? [] : [[index, part.raw] as const])),
  )
  const message = draft.whole ?? { role: draft.role, content: parts.map((part) => part.block) }
  return { message, origins: parts.map((part) => part.origin), ...(raw.size > 0 ? { raw } : {}) }
}
