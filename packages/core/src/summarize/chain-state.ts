/** The chain of asking between two answers. */
import type { Entry } from '../view/entry.ts'
import type { Ask, ChainContext, ChainStep, Done, FallbackReason } from './ask.ts'

export interface PartsState {
  readonly parts: readonly (readonly Entry[])[]
  /** Parts that have been asked about. */
  readonly asked: number
  readonly summaries: readonly string[]
  readonly outputTokens: number
}

export type Stage = 'block' | 'fork' | 'direct' | 'parts' | 'join' | 'together' | 'local' | 'failed'

export interface Chain {
  readonly context: ChainContext
  readonly stage: Stage
  readonly next: Ask | Done
  /** What a call of its own shows, stripped; shorter with each drop. */
  readonly material: readonly Entry[]
  /** Summarised entries that no model will have been shown. */
  readonly covered: readonly Entry[]
  /** Window of the summariser, in tokens, as stated or as an overflow told. */
  readonly window: number | null
  /** Calls of its own made so far that were no answer to an overflow. */
  readonly attempts: number
  readonly drops: number
  readonly parts: PartsState | null
  readonly asText: boolean
  /** The conversation's own model in place of the one that was set. */
  readonly usesOwn: boolean
  /** What was wrong with the last answer, for the next prompt. */
  readonly remark: string | null
  readonly calls: number
  readonly asked: readonly string[]
  readonly trace: readonly ChainStep[]
  readonly fallbackReason: FallbackReason | null
}

/** Entries of `entries` that the summary is to stand for: others are shown for context and stay in the view. */
export function summarisedOf(chain: Pick<Chain, 'context'>, entries: readonly Entry[]): readonly Entry[] {
  const gone = new Set(entries.map((entry) => entry.record.uuid))
  return chain.context.span.summarised.filter((entry) => gone.has(entry.record.uuid))
}

export function tokensIn(chain: Pick<Chain, 'context'>, entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => sum + chain.context.tokensOf(entry), 0)
}

export function stepped(chain: Chain, step: ChainStep): Chain {
  return { ...chain, trace: [...chain.trace, step] }
}

export function summariserOf({ context, usesOwn }: Chain): ChainContext['direct'] {
  return usesOwn ? context.own : context.direct
}
