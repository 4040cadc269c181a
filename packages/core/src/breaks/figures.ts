/** What a call's usage says about the cache: what it read at first, what it left behind, what it paid for anew. */
import { isObject } from '../conversation/json.ts'
import type { Usage } from '../conversation/record.ts'
import { billedParts, type TokensByClass } from '../measure/billed.ts'

export interface CacheFigures {
  /** Of the run that met the request as it was sent. */
  readonly first: TokensByClass
  /** Tokens up to the last marker: what the next request can read. */
  readonly cached: number
  /** Running total of what the provider has deleted from the cached prefix; null where it does not say. */
  readonly deleted: number | null
  /** The provider summarised the conversation by itself, and what follows has another prefix. */
  readonly isCompacted: boolean
}

type Fields = { readonly [field: string]: unknown }

export function figuresOf(usage: Usage): CacheFigures {
  const listed: readonly unknown[] = Array.isArray(usage.iterations) ? usage.iterations : []
  const runs = listed.filter(isObject)
  const messages = runs.filter(({ type }) => type === 'message')
  const first = tokensOf(messages[0] ?? usage)
  const last = tokensOf(messages.at(-1) ?? usage)
  return {
    first,
    cached: last.cacheRead + last.write5m + last.write1h,
    deleted: typeof usage.cache_deleted_input_tokens === 'number' ? usage.cache_deleted_input_tokens : null,
    isCompacted: runs.some(({ type }) => type === 'compaction'),
  }
}

const NOTHING: TokensByClass = { input: 0, cacheRead: 0, write5m: 0, write1h: 0, output: 0 }

/** One run, without the list it stands in. */
function tokensOf(run: Fields): TokensByClass {
  const { iterations: _, ...alone } = run
  return billedParts(alone as Usage)[0]?.tokens ?? NOTHING
}

/** What was paid for and not read. */
export function paidAnew({ input, write5m, write1h }: TokensByClass): number {
  return input + write5m + write1h
}
