/** The figures of a response's usage that tell how full the window was. */
import { isObject } from '../conversation/json.ts'
import type { Usage } from '../conversation/record.ts'

type Fields = { readonly [field: string]: unknown }

/** Tokens of the context that was sent, cached ones included: they fill the window too. 0 where nothing was measured. */
export function contextOf(usage: Usage | null | undefined): number {
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens } = lastMessage(usage)
  return count(input_tokens) + count(cache_creation_input_tokens) + count(cache_read_input_tokens)
}

export function outputOf(usage: Usage | null | undefined): number {
  return count(lastMessage(usage).output_tokens)
}

/**
 * A call that the provider answered in several runs lists them; the last one that is a message saw the
 * context as it now stands. A list without any measured no context of ours.
 */
function lastMessage(usage: Usage | null | undefined): Fields {
  const listed: unknown = usage?.iterations
  if (!Array.isArray(listed) || listed.length === 0) return usage ?? {}
  return listed.findLast((item: unknown): item is Fields => isObject(item) && item.type === 'message') ?? {}
}

function count(value: unknown): number {
  return typeof value === 'number' && value > 0 ? value : 0
}
