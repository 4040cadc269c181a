/** Settings of the prompt cache: types, defaults and checks. */
import {
  booleanCheck,
  choiceCheck,
  type FieldSpecs,
  fieldSpec,
  nonBlankCheck,
  percentageCheck,
  uniqueListCheck,
  wholeNumberCheck,
} from './policy-fields.ts'

export interface CacheMarkersPolicy {
  /** Maximum number of cache markers in an API request. If the provider allows fewer, the provider's limit applies. */
  readonly maximum: number
  /** Put a cache marker on the block before the first tool result that clearing could still change. */
  readonly edge: boolean
  /**
   * Number of blocks that a turn may add before it gets an extra cache marker. The provider looks for a cache entry
   * only a limited number of blocks before a marker.
   */
  readonly laggingAfterPositions: number
}

export interface CacheBreaksPolicy {
  /**
   * A cache break is reported if the tokens read from the cache are fewer than expected by more than this percentage
   * and by more than `tokens`.
   */
  readonly percent: number
  /**
   * A cache break is reported if the tokens read from the cache are fewer than expected by more than this number and by
   * more than `percent`.
   */
  readonly tokens: number
  /**
   * Maximum number of sources of model calls (the conversation, each subagent …) that are monitored for cache breaks.
   * Above it, the least recently used source is dropped.
   */
  readonly sources: number
  /** Patterns of model names that are not monitored for cache breaks, because small models cache differently. */
  readonly excludedModels: readonly string[]
  /** Write the difference between the API requests before and after a cache break to a file, for debugging. */
  readonly diffFiles: boolean
  /** Ask the provider to explain a cache break, if the provider supports that. */
  readonly askProvider: boolean
}

export interface CachePolicy {
  /**
   * Cache lifetime. `short`: the provider's default one (also `5m`). `long`: its longest (also `1h`). `auto` chooses by
   * prices and by the time between model calls, and keeps the choice until system prompt and tools are next replaced.
   */
  readonly ttl: 'short' | 'long' | 'auto' | '5m' | '1h'
  /**
   * Cache lifetime of the newest messages, which every call writes, where `ttl` or its choice is one hour. `auto`: five
   * minutes, unless the pauses so far make one hour cheaper. `same`: one hour. System prompt, tools and what a compaction
   * wrote have one hour in both cases.
   */
  readonly tailTtl: 'auto' | 'same'
  /** Patterns of sources of model calls that get a one-hour cache if the account is entitled to it. */
  readonly oneHourSources: readonly string[]
  /**
   * Patterns of sources of short-lived model calls (such as writing session notes), which always get a five-minute
   * cache.
   */
  readonly fiveMinuteSources: readonly string[]
  /**
   * How a changed section of the system prompt is sent. `delta` appends the change to the conversation and leaves the
   * system prompt unchanged until the next prefix snapshot. `inline` rewrites the system prompt, which breaks the
   * cache.
   */
  readonly volatile: 'delta' | 'inline'
  /**
   * What is done just before the cache of an idle session expires. `keep-alive`: a small request reads the cache, which
   * renews it, while that costs less than writing it again. `auto`: the same, as often as the pauses of this session have
   * shown to pay. Both prepare a summary instead if one is due.
   */
  readonly idle: 'off' | 'keep-alive' | 'auto'
  /** Maximum number of requests after one response that keep the cache of an idle session alive. */
  readonly idleRequests: number
  readonly markers: CacheMarkersPolicy
  readonly breaks: CacheBreaksPolicy
}

const oneHourSources = ['repl_main_thread*', 'sdk', 'agent:*']
const fiveMinuteSources = ['session_memory', 'speculation', 'prompt_suggestion']

export const cacheFields: FieldSpecs<CachePolicy> = {
  ttl: fieldSpec('auto', choiceCheck('auto', 'short', 'long', '5m', '1h')),
  tailTtl: fieldSpec('auto', choiceCheck('auto', 'same')),
  oneHourSources: fieldSpec<readonly string[]>(oneHourSources, uniqueListCheck(nonBlankCheck())),
  fiveMinuteSources: fieldSpec<readonly string[]>(fiveMinuteSources, uniqueListCheck(nonBlankCheck())),
  volatile: fieldSpec('delta', choiceCheck('delta', 'inline')),
  idle: fieldSpec('off', choiceCheck('off', 'keep-alive', 'auto')),
  idleRequests: fieldSpec(11, wholeNumberCheck(1, 100)),
  markers: {
    maximum: fieldSpec(4, wholeNumberCheck(1, 4)),
    edge: fieldSpec(true, booleanCheck()),
    laggingAfterPositions: fieldSpec(18, wholeNumberCheck(1)),
  },
  breaks: {
    percent: fieldSpec(5, percentageCheck(0, 100)),
    tokens: fieldSpec(2_000, wholeNumberCheck()),
    sources: fieldSpec(10, wholeNumberCheck(1)),
    excludedModels: fieldSpec<readonly string[]>(['*haiku*'], uniqueListCheck(nonBlankCheck())),
    diffFiles: fieldSpec(true, booleanCheck()),
    askProvider: fieldSpec(true, booleanCheck()),
  },
}
