/** The figures of a response, in the provider's fields. */
import type { JsonObject } from '../api.ts'
import type { CacheSplit } from '../cache/split.ts'
import { BETA } from '../validation/betas.ts'

export interface UsageInput {
  readonly split: CacheSplit
  readonly outputTokens: number
  readonly thinkingTokens: number
  readonly model: string
  readonly betas: ReadonlySet<string>
  readonly speed: string | null
  /** Tokens deleted from the cached prefix; null where the extension is off. */
  readonly deleted: number | null
  /** Summaries made on the way to the answer. */
  readonly compactions: readonly Iteration[]
}

export interface Iteration {
  readonly split: CacheSplit
  readonly outputTokens: number
}

export const NO_TOKENS: CacheSplit = { read: 0, write5m: 0, write1h: 0, input: 0 }

export function usageOf(input: UsageInput): JsonObject {
  const { split, outputTokens, betas } = input
  const counted = { split, outputTokens }
  const listed = betas.has(BETA.thresholdCompaction) || betas.has(BETA.onDemandCompaction)
  const iterations = [
    ...input.compactions.map((each) => ({ type: 'compaction', ...figures(each) })),
    { type: 'message', model: input.model, ...figures(counted) },
  ]
  return {
    ...figures(counted),
    output_tokens_details: { thinking_tokens: input.thinkingTokens },
    server_tool_use: null,
    service_tier: 'standard',
    inference_geo: 'global',
    speed: input.speed,
    ...(input.deleted === null ? {} : { cache_deleted_input_tokens: input.deleted }),
    ...(listed ? { iterations } : {}),
  }
}

/** Only a summary was made: the totals exclude it. */
export function compactionUsage(input: Omit<UsageInput, 'split' | 'outputTokens' | 'deleted'>): JsonObject {
  const none = usageOf({ ...input, split: NO_TOKENS, outputTokens: 0, deleted: null })
  const iterations = input.compactions.map((each) => ({ type: 'compaction', ...figures(each) }))
  return { ...none, output_tokens_details: { thinking_tokens: 0 }, iterations }
}

function figures({ split, outputTokens }: Iteration): JsonObject {
  return {
    input_tokens: split.input,
    cache_creation_input_tokens: split.write5m + split.write1h,
    cache_read_input_tokens: split.read,
    cache_creation: {
      ephemeral_5m_input_tokens: split.write5m,
      ephemeral_1h_input_tokens: split.write1h,
    },
    output_tokens: outputTokens,
  }
}
