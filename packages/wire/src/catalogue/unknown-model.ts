/** A model of which nothing is known: where a user's own figures start. */
import type { ModelEntry } from './model-entry.ts'

export const UNKNOWN_MODEL: ModelEntry = {
  id: 'unknown',
  vendor: 'unknown',
  aliases: [],
  window: null,
  maxInput: null,
  maxOutput: null,
  prices: { input: null, cacheRead: null, write5m: null, write1h: null, output: null },
  cache: { minimum: null, markers: null, lookBack: null, ttls: null },
  thinking: {
    modes: null,
    isOnByDefault: null,
    efforts: null,
    keepsPrior: null,
    binding: null,
    isAccountBound: null,
  },
  capabilities: {
    images: null,
    forcedToolChoice: null,
    prefill: null,
    sampling: null,
    systemMessages: null,
    toolChanges: null,
    messageEffort: null,
    contextEditing: null,
    thresholdCompaction: null,
    onDemandCompaction: null,
    endsAtWindow: null,
  },
  limits: { bodyBytes: null, images: null },
  tokenizer: null,
  source: 'nothing is known',
  asOf: null,
  doubts: [],
}
