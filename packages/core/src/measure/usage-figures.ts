/** The figures of a response's usage that tell how full the window was. */
import type { Usage } from '../conversation/record.ts'
import { iterationsOf } from './billed.ts'
import { countOf } from './figure.ts'

type Fields = { readonly [field: string]: unknown }

/** Tokens of the context that was sent, cached ones included: they fill the window too. 0 where nothing was measured. */
export function contextOf(usage: Usage | null | undefined): number {
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens } = lastMessage(usage)
  return countOf(input_tokens) + countOf(cache_creation_input_tokens) + countOf(cache_read_input_tokens)
}

export function outputOf(usage: Usage | null | undefined): number {
  return countOf(lastMessage(usage).output_tokens)
}

/**
 * A call that the provider answered in several runs lists them; the last one that is a message saw the
 * context as it now stands. A list without any measured no context of ours.
 */
function lastMessage(usage: Usage | null | undefined): Fields {
  const listed = usage ? iterationsOf(usage) : []
  return listed.length === 0 ? (usage ?? {}) : (listed.findLast(({ type }) => type === 'message') ?? {})
}
