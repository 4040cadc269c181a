/** A clearing as it is proposed: what it would take away, what that costs, and what the host must forget. */
import type { ClearWay, MicrocompactMetadata } from '../conversation/metadata.ts'
import type { FirstChange } from './temperature.ts'

export interface ClearProposal {
  readonly way: ClearWay
  readonly metadata: MicrocompactMetadata
  /** Tokens that later requests no longer carry. */
  readonly freedTokens: number
  /** Tokens behind it that are written to the cache again. */
  readonly rewrittenTokens: number
  /** Dollars above the price of reading them; 0 where the cache is cold, null where prices are not known. */
  readonly cost: number | null
  /** Calls after which it has paid for itself; null: never. */
  readonly breakEvenCalls: number | null
  /** In words that a person can act on. */
  readonly why: string
  readonly firstChange: FirstChange
  readonly released: Released
}

/** What left the view: whatever the host holds to be "already in the context" must be let go. */
export interface Released {
  readonly toolUseIds: readonly string[]
  /** Files of which no complete text is shown any more, and memory files taken out. */
  readonly filePaths: readonly string[]
}
