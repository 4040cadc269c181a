/**
 * Every setting of the engine, grouped by mechanism: types, defaults and checks. `createPolicy` creates a policy;
 * `scalePolicy` computes the figures that depend on the model's context window.
 */

import { isObject } from '../log/json.ts'
import type { ClearMode } from '../log/record.ts'
import { TODO_TOOLS } from '../log/todo-list.ts'
import { READ_TOOLS, WRITE_TOOLS } from '../log/tool-calls.ts'
import {
  booleanCheck,
  choiceCheck,
  decimalNumberCheck,
  eitherCheck,
  type FieldSpecs,
  type FieldSpecTree,
  fieldSpec,
  listFieldPaths,
  nonBlankCheck,
  nullableCheck,
  percentageCheck,
  stringCheck,
  uniqueListCheck,
  wholeNumberCheck,
} from './policy-fields.ts'

// Settings of the prompt cache: markers, lifetime, and what counts as a cache break.

export interface CacheMarkersPolicy {
  /** Maximum number of cache markers in an API request; the provider's own limit applies too. */
  readonly maximum: number
  /** Put a cache marker on the block before the first tool result that clearing could still change. */
  readonly edge: boolean
  /** Blocks that a turn may add before it gets an extra cache marker; more would exceed the provider's look-back. */
  readonly laggingAfterPositions: number
}

export interface CacheBreaksPolicy {
  /** A cache break is a cache read more than this percentage, and more than `tokens`, below the expected one. */
  readonly percent: number
  /** A cache break is a cache read more than this many tokens, and more than `percent`, below the expected one. */
  readonly tokens: number
  /** Maximum number of query sources monitored for cache breaks; the least recently used one is dropped. */
  readonly sources: number
  /** Patterns of models that are not monitored for cache breaks; small models cache differently. */
  readonly excludedModels: readonly string[]
  /** Write the difference between the API requests before and after a cache break to a file, for debugging. */
  readonly diffFiles: boolean
  /** Ask the provider to explain a cache break, if it offers that. */
  readonly askProvider: boolean
}

export interface CachePolicy {
  /** Cache lifetime. `auto` decides by observed gaps and prices, and keeps its decision until the next prefix snapshot. */
  readonly ttl: '5m' | '1h' | 'auto'
  /** Patterns of query sources that get a one-hour cache if the account is entitled to it. */
  readonly oneHourSources: readonly string[]
  /** Patterns of short-lived query sources, which always get a five-minute cache. */
  readonly fiveMinuteSources: readonly string[]
  /**
   * How a changed section of the system prompt is sent: announced as a `delta` until the next prefix snapshot, or
   * rewritten `inline`, which breaks the cache.
   */
  readonly volatile: 'delta' | 'inline'
  readonly markers: CacheMarkersPolicy
  readonly breaks: CacheBreaksPolicy
}

const oneHourSources = ['repl_main_thread*', 'sdk', 'agent:*']
const fiveMinuteSources = ['session_memory', 'speculation', 'prompt_suggestion']

const cacheFields: FieldSpecs<CachePolicy> = {
  ttl: fieldSpec('auto', choiceCheck('5m', '1h', 'auto')),
  oneHourSources: fieldSpec<readonly string[]>(oneHourSources, uniqueListCheck(nonBlankCheck())),
  fiveMinuteSources: fieldSpec<readonly string[]>(fiveMinuteSources, uniqueListCheck(nonBlankCheck())),
  volatile: fieldSpec('delta', choiceCheck('delta', 'inline')),
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

// Settings of tier 1: clearing old tool results without a model call.

/** Idle clearing: after a pause the cache has expired, so rewriting the context costs nothing extra. */
interface IdlePolicy {
  /** Minutes since the last response after which idle clearing may run; `ttl` uses the current cache lifetime. */
  readonly afterMinutes: number | 'ttl'
  /** Number of newest tool results that idle clearing keeps. */
  readonly keep: number
  /** Minimum tokens that idle clearing must free to be worth a rewrite of the context. */
  readonly minimumFreedTokens: number
}

/** Budget clearing: runs while the context is above the warning threshold. */
interface BudgetPolicy {
  /** Number of newest tool results that budget clearing keeps, whatever their size. */
  readonly keep: number
  /** Tokens of clearable tool results that budget clearing keeps. */
  readonly targetTokens: number
  /** Minimum tokens that budget clearing must free; otherwise it does not run. */
  readonly minimumFreedTokens: number
}

/** Cached clearing: the provider deletes tool results from its cached prefix; the messages stay unchanged. */
interface CachedPolicy {
  /** Number of undeleted tool results that triggers cached clearing. */
  readonly fireAt: number
  /** Number of newest tool results that cached clearing keeps. */
  readonly keep: number
}

/** Native clearing: the provider clears by itself, as configured in the API request (`context_management`). */
interface NativePolicy {
  /** Input tokens at which the provider clears, or the warning threshold if that is lower. */
  readonly triggerTokens: number
  /** Token limit of the newest tool results that native clearing keeps, but never fewer results than `keepAtLeast`. */
  readonly keepTokens: number
  /** Minimum number of newest tool results that native clearing keeps, whatever their size. */
  readonly keepAtLeast: number
  /** Minimum tokens that native clearing must free; otherwise the provider does not clear. */
  readonly clearAtLeastTokens: number
  /** Minutes of idle time after which native clearing keeps only the newest thinking. */
  readonly thinkingAfterMinutes: number
  /** Number of newest turns whose thinking is kept after `thinkingAfterMinutes` of idle time. */
  readonly thinkingTurns: number
}

export interface ClearPolicy {
  /** Tools whose results can be produced again. Results of other tools are cleared only if `mcp` or the host allows it. */
  readonly tools: readonly string[]
  /** Tools that write files whatever their input looks like. Their large inputs may be cleared if `tools` names them. */
  readonly writeTools: readonly string[]
  /** Whether results of MCP tools may be cleared: only if the tool is annotated as read-only, or never. */
  readonly mcp: 'read-only' | 'never'
  /** Enabled modes of clearing. The provider's features and the state of the cache decide which one is used. */
  readonly ways: readonly ClearMode[]
  /** Clear only if the saving pays for writing the cache again, unless space is needed. */
  readonly priceGate: boolean
  /** Model calls expected before a 5-minute cache expires, until the session's own gaps are known. */
  readonly expectedCallsFiveMinutes: number
  /** Model calls expected before a 1-hour cache expires, until the session's own gaps are known. */
  readonly expectedCallsOneHour: number
  /** Clear tool results that a later call superseded before results that are merely old. */
  readonly supersededFirst: boolean
  /** Also clear large inputs of tool calls that write files. */
  readonly inputs: boolean
  /** Number of tokens from which a tool input counts as large. */
  readonly largeInputTokens: number
  /** What happens to thinking signed for a prefix that is rewritten: remove it, oldest first, or let the provider drop it. */
  readonly boundThinking: 'remove' | 'provider'
  readonly idle: IdlePolicy
  readonly budget: BudgetPolicy
  readonly cached: CachedPolicy
  readonly native: NativePolicy
}

const clearableTools = ['Read', 'Bash', 'Grep', 'Glob', 'WebFetch', 'WebSearch', 'Edit', 'Write']
const clearModes: readonly ClearMode[] = ['idle', 'budget', 'cached', 'native']

const clearFields: FieldSpecs<ClearPolicy> = {
  tools: fieldSpec<readonly string[]>(clearableTools, uniqueListCheck(nonBlankCheck())),
  writeTools: fieldSpec(WRITE_TOOLS, uniqueListCheck(nonBlankCheck())),
  mcp: fieldSpec('read-only', choiceCheck('read-only', 'never')),
  ways: fieldSpec(clearModes, uniqueListCheck(choiceCheck('idle', 'budget', 'cached', 'native'))),
  priceGate: fieldSpec(true, booleanCheck()),
  expectedCallsFiveMinutes: fieldSpec(27, wholeNumberCheck(1)),
  expectedCallsOneHour: fieldSpec(200, wholeNumberCheck(1)),
  supersededFirst: fieldSpec(true, booleanCheck()),
  inputs: fieldSpec(true, booleanCheck()),
  largeInputTokens: fieldSpec(1_000, wholeNumberCheck(1)),
  boundThinking: fieldSpec('remove', choiceCheck('remove', 'provider')),
  idle: {
    afterMinutes: fieldSpec<number | 'ttl'>(60, eitherCheck(wholeNumberCheck(5), choiceCheck('ttl'))),
    keep: fieldSpec(5, wholeNumberCheck()),
    minimumFreedTokens: fieldSpec(5_000, wholeNumberCheck()),
  },
  budget: {
    keep: fieldSpec(3, wholeNumberCheck()),
    targetTokens: fieldSpec(40_000, wholeNumberCheck()),
    minimumFreedTokens: fieldSpec(20_000, wholeNumberCheck(1)),
  },
  cached: { fireAt: fieldSpec(12, wholeNumberCheck(1)), keep: fieldSpec(5, wholeNumberCheck()) },
  native: {
    triggerTokens: fieldSpec(180_000, wholeNumberCheck(1)),
    keepTokens: fieldSpec(40_000, wholeNumberCheck()),
    keepAtLeast: fieldSpec(3, wholeNumberCheck()),
    clearAtLeastTokens: fieldSpec(20_000, wholeNumberCheck()),
    thinkingAfterMinutes: fieldSpec(60, wholeNumberCheck(1)),
    thinkingTurns: fieldSpec(1, wholeNumberCheck(1)),
  },
}

// Settings of tier 2: the summary that replaces a conversation.

export type DroppableSource = 'skills' | 'files' | 'agents' | 'deltas'

export interface CompactTargetPolicy {
  /** Size that a compacted context should have, as a percentage of the auto-compact threshold. */
  readonly percentOfAutoCompact: number
  /** Sources to drop, in this order, if the compacted context is above its target size. Nothing else is ever dropped. */
  readonly shed: readonly DroppableSource[]
  /** Number of newest skills that are never dropped from a compacted context. */
  readonly keptSkills: number
}

/** Ways to write a summary that may be tried, from the best to the one that cannot fail. */
interface ChainPolicy {
  /** Try the provider's compaction block, if kept messages have signed thinking. */
  readonly block: boolean
  /** Try a cache-sharing fork call, which reads the conversation's cache; skipped while the cache is cold. */
  readonly fork: boolean
  /** Use of the local extractor, which needs no model: as the `last` resort, as the `only` way to summarize, or `never`. */
  readonly local: 'last' | 'only' | 'never'
}

interface DirectPolicy {
  /** Model for summary requests; null uses the conversation's model. Not read yet: see the option `summariser`. */
  readonly model: string | null
  /** Maximum output tokens of the summary. */
  readonly outputTokens: number
  /** Number of further attempts after a failed summary request. */
  readonly retries: number
}

/** Retries after the provider refuses the summary request as too long: each one drops the oldest rounds. */
export interface DropOldestPolicy {
  readonly retries: number
  /** Percentage of the rounds to drop if the provider does not report the excess tokens. */
  readonly percentOfRounds: number
  /** Minimum number of rounds that each retry drops. */
  readonly minimumRounds: number
}

/** Timeouts while a summary is being written. */
interface WaitingPolicy {
  /** Seconds between two keep-alive events while a summary is being written. */
  readonly keepAliveSeconds: number
  /** Seconds without data after which an attempt to write a summary fails. */
  readonly stallSeconds: number
  /** Maximum seconds for one attempt to write a summary. */
  readonly attemptSeconds: number
}

export interface CompactPolicy {
  readonly target: CompactTargetPolicy
  readonly chain: ChainPolicy
  readonly direct: DirectPolicy
  readonly headDrop: DropOldestPolicy
  readonly waiting: WaitingPolicy
  /** Text added to the instructions of every compaction, automatic ones too. */
  readonly instructions: string
  /** Maximum characters of custom instructions, including those from hooks; a compaction block allows 16,384 in total. */
  readonly instructionCharacters: number
  /** A summary is accepted only if it is smaller than this percentage of the content that it replaces. */
  readonly maximumPercentOfReplaced: number
  /** Maximum tokens of all pinned records. Beyond it the oldest ones are summarized, and an event reports that. */
  readonly pinTokens: number
  /** Prepare a summary in the background from the warning threshold on. Not implemented yet: plans only say when to begin. */
  readonly background: boolean
  /** If nothing forces a compaction, let the price decide between compacting now and later. */
  readonly priceDecides: boolean
  /** Put unchanged context sources before the summary, where they stay cached. */
  readonly carriersFirst: boolean
}

const dropOrder: readonly DroppableSource[] = ['skills', 'files', 'agents', 'deltas']

const compactFields: FieldSpecs<CompactPolicy> = {
  target: {
    percentOfAutoCompact: fieldSpec(50, percentageCheck(1, 95)),
    shed: fieldSpec(dropOrder, uniqueListCheck(choiceCheck('skills', 'files', 'agents', 'deltas'))),
    keptSkills: fieldSpec(1, wholeNumberCheck()),
  },
  chain: {
    block: fieldSpec(true, booleanCheck()),
    fork: fieldSpec(true, booleanCheck()),
    local: fieldSpec('last', choiceCheck('last', 'only', 'never')),
  },
  direct: {
    model: fieldSpec(null, nullableCheck(nonBlankCheck())),
    outputTokens: fieldSpec(20_000, wholeNumberCheck(500)),
    retries: fieldSpec(2, wholeNumberCheck(0, 20)),
  },
  headDrop: {
    retries: fieldSpec(3, wholeNumberCheck(0, 20)),
    percentOfRounds: fieldSpec(20, percentageCheck(1, 100)),
    minimumRounds: fieldSpec(1, wholeNumberCheck(1)),
  },
  waiting: {
    keepAliveSeconds: fieldSpec(30, wholeNumberCheck(1)),
    stallSeconds: fieldSpec(120, wholeNumberCheck(1)),
    attemptSeconds: fieldSpec(600, wholeNumberCheck(1)),
  },
  instructions: fieldSpec('', stringCheck()),
  instructionCharacters: fieldSpec(8_000, wholeNumberCheck()),
  maximumPercentOfReplaced: fieldSpec(100, percentageCheck(1, 100)),
  pinTokens: fieldSpec(20_000, wholeNumberCheck()),
  background: fieldSpec(true, booleanCheck()),
  priceDecides: fieldSpec(true, booleanCheck()),
  carriersFirst: fieldSpec(false, booleanCheck()),
}

// Settings of the context window: its size, its thresholds, and the share that each kind of content may take.

interface WindowPolicy {
  /** Context window in tokens of a model that is not in the catalogue; null leaves it unknown. */
  readonly givenTokens: number | null
  /** Maximum output tokens of a model that is not in the catalogue; null leaves them unknown. */
  readonly givenOutputTokens: number | null
  /** Maximum tokens of the context window to use; null uses the whole window. */
  readonly capTokens: number | null
}

/** A distance in tokens, limited to `maximumPercent` of the context window. */
export interface ThresholdOffsetPolicy {
  readonly tokens: number
  readonly maximumPercent: number
}

interface ReservePolicy extends ThresholdOffsetPolicy {
  /**
   * How many tokens are reserved for the output: the `smaller` of the model's maximum output and `tokens`, the
   * `larger` of the two, or `none` (thresholds then count from the whole window).
   */
  readonly rule: 'smaller' | 'larger' | 'none'
}

interface AutoCompactLinePolicy extends ThresholdOffsetPolicy {
  /** Auto-compact threshold as a percentage of the effective window, never above the default; null uses the default. */
  readonly percentOfEffective: number | null
}

export interface ThresholdPolicy {
  /** Tokens reserved for output. The context window minus this reserve is the effective window. */
  readonly reserve: ReservePolicy
  /** Distance below the effective window at which automatic compaction starts. */
  readonly autoCompact: AutoCompactLinePolicy
  /** Distance below the limit at which the meter turns yellow, and budget clearing and background summaries begin. */
  readonly warning: ThresholdOffsetPolicy
  /** Distance below the limit at which the meter turns red. */
  readonly error: ThresholdOffsetPolicy
  /** Distance below the effective window at which a new prompt is refused if automatic compaction is not available. */
  readonly blocking: ThresholdOffsetPolicy
  /**
   * Minimum effective window in tokens; a model with a smaller one is refused. Half of the auto-compact threshold must
   * hold the headings of a summary (some 300 tokens), the unanswered message, and a few hundred tokens of content.
   */
  readonly minimumUsableTokens: number
}

/**
 * Percentage of the effective window that a kind of content may take. Larger token figures in the policy are limited
 * to it.
 */
export interface ContentSharePolicy {
  readonly files: number
  readonly skills: number
  readonly notes: number
  /** Share of messages kept verbatim after session notes, and of the conversation size at which notes begin. */
  readonly keptMessages: number
  /** Share of tool results that clearing keeps, and of the minimum that a clearing frees. */
  readonly clearableResults: number
  /** Share of the memory reminder at the start of the conversation. */
  readonly ambient: number
  /** Share of the user messages that are added to a summary. */
  readonly userMessages: number
  /** Share of the lists of files and identifiers that are added to a summary. */
  readonly ledger: number
  /** Share of the output that one hook adds. */
  readonly hookOutput: number
  /** Share of what one context source of the host re-attaches. */
  readonly host: number
  /** Share of one text of a tool result, above which it is spilled, and of one page of history. */
  readonly spill: number
}

const offsetFields = (
  tokens: number,
  maximumPercent: number,
  least = 0,
): FieldSpecs<ThresholdOffsetPolicy> => ({
  tokens: fieldSpec(tokens, wholeNumberCheck(least)),
  maximumPercent: fieldSpec(maximumPercent, percentageCheck()),
})

const windowFields: FieldSpecs<WindowPolicy> = {
  givenTokens: fieldSpec(null, nullableCheck(wholeNumberCheck(1))),
  givenOutputTokens: fieldSpec(null, nullableCheck(wholeNumberCheck(1))),
  capTokens: fieldSpec(null, nullableCheck(wholeNumberCheck(1))),
}

const ladderFields: FieldSpecs<ThresholdPolicy> = {
  reserve: {
    rule: fieldSpec('smaller', choiceCheck('smaller', 'larger', 'none')),
    ...offsetFields(20_000, 25, 1),
  },
  autoCompact: {
    ...offsetFields(13_000, 6.5, 1),
    percentOfEffective: fieldSpec(null, nullableCheck(percentageCheck(0.1, 100))),
  },
  warning: offsetFields(20_000, 10),
  error: offsetFields(20_000, 10),
  blocking: offsetFields(3_000, 1.5, 1),
  minimumUsableTokens: fieldSpec(2_000, wholeNumberCheck(100, 1_000_000)),
}

const shareFields: FieldSpecs<ContentSharePolicy> = {
  files: fieldSpec(25, percentageCheck()),
  skills: fieldSpec(12, percentageCheck()),
  notes: fieldSpec(12, percentageCheck()),
  keptMessages: fieldSpec(20, percentageCheck()),
  clearableResults: fieldSpec(20, percentageCheck(0.1, 50)),
  ambient: fieldSpec(25, percentageCheck()),
  userMessages: fieldSpec(17, percentageCheck()),
  ledger: fieldSpec(5, percentageCheck()),
  hookOutput: fieldSpec(10, percentageCheck()),
  host: fieldSpec(6, percentageCheck()),
  spill: fieldSpec(10, percentageCheck()),
}

// Settings of what is re-attached after a compaction, and of what the engine itself adds to a summary.

interface RehydratePolicy {
  readonly files: {
    /** Number of most recently read files that are read again from disk after a compaction. */
    readonly count: number
    /** Maximum tokens of one re-attached file; the rest is cut off and marked. */
    readonly eachTokens: number
    /** Maximum tokens of all re-attached files; a file that does not fit is skipped. */
    readonly totalTokens: number
    /** Names of tools that read a file whatever their input looks like; other tool calls are recognized by their input. */
    readonly readTools: readonly string[]
    /** Names of tools that change a file whatever their input looks like. */
    readonly writeTools: readonly string[]
  }
  /** Skills in use that are re-attached after a compaction, newest first. */
  readonly skills: {
    /** Maximum tokens of one skill; the rest is cut off with a note that the full text can be read again. */
    readonly eachTokens: number
    /** Maximum tokens of all re-attached skills. */
    readonly totalTokens: number
  }
  /** Budgets of what context sources of the host may re-attach after a compaction. */
  readonly host: {
    /** Maximum tokens of one item; a longer item is cut off with a note if its source allows that, otherwise left out. */
    readonly eachTokens: number
    /** Maximum tokens of all items of one context source. */
    readonly totalTokens: number
  }
  readonly todos: boolean
  /** Names of tools whose input is the whole todo list, used if the host does not provide the list. */
  readonly todoTools: readonly string[]
  /** Re-attach the whole plan file after a compaction. */
  readonly plan: boolean
  /** Re-attach the reminder that plan mode is on. */
  readonly planMode: boolean
  /** Re-attach the list of background agents that are running, or finished without their result being collected. */
  readonly agents: boolean
  /** Re-attach announcements of tools, agents and MCP instructions that the kept messages no longer show. */
  readonly deltas: boolean
}

/** Facts that every summary is checked for; the engine adds those that are missing. */
interface LedgerPolicy {
  /** Maximum tokens of all user messages added to a summary; unanswered messages do not count and are never cut. */
  readonly userMessagesTokens: number
  /** Maximum tokens of one added user message; a longer one is cut in the middle, with a pointer to the transcript. */
  readonly userMessageTokens: number
  /** Maximum tokens of the list of touched files. */
  readonly filesTokens: number
  /** Maximum tokens of the list of identifiers in use, in which the newest rank highest. */
  readonly namesTokens: number
  /** Number of newest errors to list, each with what followed it. */
  readonly errors: number
}

const rehydrateFields: FieldSpecs<RehydratePolicy> = {
  files: {
    count: fieldSpec(5, wholeNumberCheck()),
    eachTokens: fieldSpec(5_000, wholeNumberCheck(1)),
    totalTokens: fieldSpec(50_000, wholeNumberCheck()),
    readTools: fieldSpec(READ_TOOLS, uniqueListCheck(nonBlankCheck())),
    writeTools: fieldSpec(WRITE_TOOLS, uniqueListCheck(nonBlankCheck())),
  },
  skills: {
    eachTokens: fieldSpec(5_000, wholeNumberCheck(1)),
    totalTokens: fieldSpec(25_000, wholeNumberCheck()),
  },
  host: {
    eachTokens: fieldSpec(5_000, wholeNumberCheck(1)),
    totalTokens: fieldSpec(10_000, wholeNumberCheck()),
  },
  todos: fieldSpec(true, booleanCheck()),
  todoTools: fieldSpec(TODO_TOOLS, uniqueListCheck(nonBlankCheck())),
  plan: fieldSpec(true, booleanCheck()),
  planMode: fieldSpec(true, booleanCheck()),
  agents: fieldSpec(true, booleanCheck()),
  deltas: fieldSpec(true, booleanCheck()),
}

const ledgerFields: FieldSpecs<LedgerPolicy> = {
  userMessagesTokens: fieldSpec(30_000, wholeNumberCheck()),
  userMessageTokens: fieldSpec(2_000, wholeNumberCheck(1)),
  filesTokens: fieldSpec(2_000, wholeNumberCheck()),
  namesTokens: fieldSpec(1_500, wholeNumberCheck()),
  errors: fieldSpec(10, wholeNumberCheck()),
}

// Settings of one turn: automatic compaction, recovery from refusals, network retries and hooks; then the switches.

export interface AutoCompactPolicy {
  /** Number of consecutive failures after which a session stops compacting automatically. */
  readonly breakerFailures: number
  /** Two compactions at most this many turns apart are reported as too close. */
  readonly closeTurns: number
}

/** Recovery when the provider refuses an API request as too long. */
interface ReactivePolicy {
  readonly enabled: boolean
  /** Maximum number of times to compact and retry. */
  readonly retries: number
  /** Maximum number of times to remove images and documents and retry. */
  readonly mediaRetries: number
}

interface NetworkPolicy {
  /** Maximum number of retries after a network fault or an HTTP status 429, 529 or 5xx. */
  readonly retries: number
  /** Milliseconds before the first retry; doubled for each further one, up to `maximumDelayMs`. */
  readonly firstDelayMs: number
  /** Maximum milliseconds before a retry. */
  readonly maximumDelayMs: number
  /** Maximum random reduction of a retry delay, as a percentage. */
  readonly jitterPercent: number
  /** Longest `retry-after` in seconds that is waited for; a longer one is reported to the user instead. */
  readonly longestRetryAfterSeconds: number
}

interface HooksPolicy {
  /** Timeout in seconds of a hook that does not set its own. */
  readonly timeoutSeconds: number
  /** Maximum characters that one hook may add. */
  readonly outputCharacters: number
}

interface TurnPolicy {
  readonly auto: AutoCompactPolicy
  readonly reactive: ReactivePolicy
  readonly network: NetworkPolicy
  readonly hooks: HooksPolicy
}

/** Switches as policy settings. An environment variable that switches a mechanism off takes precedence. */
export interface SwitchPolicy {
  /** Switches every tier on or off, including manual, reactive and provider-side compaction. */
  readonly compactEnabled: boolean
  /** Switches automatic compaction on or off; manual compaction works either way. */
  readonly autoCompactEnabled: boolean
  /** Switches tier 1, the clearing of old tool results, on or off. */
  readonly microcompactEnabled: boolean
  readonly promptCachingEnabled: boolean
}

const turnFields: FieldSpecs<TurnPolicy> = {
  auto: { breakerFailures: fieldSpec(3, wholeNumberCheck(1)), closeTurns: fieldSpec(3, wholeNumberCheck()) },
  reactive: {
    enabled: fieldSpec(true, booleanCheck()),
    retries: fieldSpec(1, wholeNumberCheck(0, 10)),
    mediaRetries: fieldSpec(1, wholeNumberCheck(0, 10)),
  },
  network: {
    retries: fieldSpec(8, wholeNumberCheck(0, 100)),
    firstDelayMs: fieldSpec(500, wholeNumberCheck(1)),
    maximumDelayMs: fieldSpec(8_000, wholeNumberCheck(1)),
    jitterPercent: fieldSpec(25, percentageCheck(0, 100)),
    longestRetryAfterSeconds: fieldSpec(300, wholeNumberCheck()),
  },
  hooks: {
    timeoutSeconds: fieldSpec(600, wholeNumberCheck(1)),
    outputCharacters: fieldSpec(10_000, wholeNumberCheck()),
  },
}

const switchFields: FieldSpecs<SwitchPolicy> = {
  compactEnabled: fieldSpec(true, booleanCheck()),
  autoCompactEnabled: fieldSpec(true, booleanCheck()),
  microcompactEnabled: fieldSpec(true, booleanCheck()),
  promptCachingEnabled: fieldSpec(true, booleanCheck()),
}

// Settings of token estimates, and limits of an API request in bytes and images.

export interface TokenEstimatePolicy {
  /** Characters per token of a model without weights in the catalogue, until calibration has measured them. */
  readonly charactersPerToken: number
  /** Estimated tokens of an image with unknown dimensions. */
  readonly imageTokens: number
  /** Estimated tokens of a document. */
  readonly documentTokens: number
  /** Factor by which decisions multiply the expected tokens, rounded up: overestimating is better than overflowing. */
  readonly highFactor: number
  /** Learn from the usage of each response, and lower `highFactor` as the errors of the estimate shrink. */
  readonly calibrate: boolean
  /** Lower bound of the learned `highFactor`. */
  readonly narrowestHighFactor: number
  /** Estimated tokens per character of the signature, for thinking whose text is hidden. */
  readonly signatureTokensPerCharacter: number
  /** Tokens subtracted from the estimate for thinking whose text is hidden. */
  readonly signatureLessTokens: number
}

export interface RequestLimitsPolicy {
  /** Maximum bytes of an API request body. Above it the oldest images become placeholders. */
  readonly bodyBytes: number
  /** Maximum number of images and documents in an API request. */
  readonly images: number
  /** Maximum number of images and documents for a window of at most `smallWindowTokens` or of unknown size. */
  readonly imagesInSmallWindow: number
  /** Largest context window in tokens that counts as small. */
  readonly smallWindowTokens: number
}

const estimateFields: FieldSpecs<TokenEstimatePolicy> = {
  charactersPerToken: fieldSpec(4, decimalNumberCheck(0.5, 20)),
  imageTokens: fieldSpec(2_000, wholeNumberCheck()),
  documentTokens: fieldSpec(2_000, wholeNumberCheck()),
  highFactor: fieldSpec(4 / 3, decimalNumberCheck(1, 10)),
  calibrate: fieldSpec(true, booleanCheck()),
  narrowestHighFactor: fieldSpec(1.05, decimalNumberCheck(1, 10)),
  signatureTokensPerCharacter: fieldSpec(0.205, decimalNumberCheck(0, 10)),
  signatureLessTokens: fieldSpec(38, wholeNumberCheck()),
}

const requestFields: FieldSpecs<RequestLimitsPolicy> = {
  bodyBytes: fieldSpec(32_000_000, wholeNumberCheck(1_000)),
  images: fieldSpec(600, wholeNumberCheck()),
  imagesInSmallWindow: fieldSpec(100, wholeNumberCheck()),
  smallWindowTokens: fieldSpec(200_000, wholeNumberCheck()),
}

// Settings of spilled tool results, and of the tool that looks up what left the context.

/** Spilling: large tool results are stored as blobs, and the conversation shows only their head and tail. */
export interface SpillPolicy {
  readonly enabled: boolean
  /** Tokens of one text of a tool result above which the text is spilled. */
  readonly thresholdTokens: number
  /** Tokens shown from the beginning of a spilled text. */
  readonly headTokens: number
  /** Tokens shown from the end of a spilled text; the last output of a command often matters most. */
  readonly tailTokens: number
  /** Bytes of an image, as sent, above which the image is spilled. */
  readonly imageBytes: number
  /** Names of tools whose results are never spilled. */
  readonly exceptTools: readonly string[]
}

/** Settings of the tool that reads the conversation's history. */
export interface HistoryPolicy {
  /** Maximum tokens of one page of history; a cursor leads to the next page. */
  readonly pageTokens: number
  /** Maximum number of matches on one page of a history search. */
  readonly matches: number
  /** Maximum work for one page of a history search: compared characters times search words. */
  readonly searchSteps: number
}

const spillFields: FieldSpecs<SpillPolicy> = {
  enabled: fieldSpec(true, booleanCheck()),
  thresholdTokens: fieldSpec(10_000, wholeNumberCheck(100)),
  headTokens: fieldSpec(1_500, wholeNumberCheck(1)),
  tailTokens: fieldSpec(1_500, wholeNumberCheck(1)),
  imageBytes: fieldSpec(4_000_000, wholeNumberCheck(1_000)),
  exceptTools: fieldSpec<readonly string[]>([], uniqueListCheck(nonBlankCheck())),
}

const historyFields: FieldSpecs<HistoryPolicy> = {
  pageTokens: fieldSpec(4_000, wholeNumberCheck(200)),
  matches: fieldSpec(20, wholeNumberCheck(1, 1_000)),
  searchSteps: fieldSpec(20_000_000, wholeNumberCheck(100_000)),
}

// Settings of tier 3: session notes, and memory files by folder.

/** Messages that are kept verbatim when session notes replace the conversation before them. */
interface KeptMessagesPolicy {
  /** Minimum tokens of kept messages; `minimumMessages` must be met too. */
  readonly minimumTokens: number
  /** Minimum number of kept messages with text; `minimumTokens` must be met too. */
  readonly minimumMessages: number
  /** Tokens at which keeping older messages stops. Messages that no note covers are kept whatever their size. */
  readonly maximumTokens: number
}

interface NotesPolicy {
  readonly enabled: boolean
  /** What extracts the notes. `auto` uses the model if the host provides one, otherwise the local extractor. */
  readonly extractor: 'auto' | 'model' | 'local'
  /** Minimum words of the session title. */
  readonly titleMinimumWords: number
  /** Maximum words of the session title. */
  readonly titleMaximumWords: number
  /** Maximum tokens of one section of the notes. The next extraction condenses a longer section; a compaction cuts it. */
  readonly sectionTokens: number
  /** Maximum tokens of the whole notes file. Above it the next extraction is instructed to shorten the file. */
  readonly totalTokens: number
  /** Tokens of conversation before notes are extracted for the first time. */
  readonly startTokens: number
  /** Tokens by which the conversation must grow before notes are extracted again. */
  readonly growthTokens: number
  /** Tool calls that must follow the last extraction of notes before the next, unless the last turn made none. */
  readonly toolCalls: number
  /** Seconds that a compaction waits for a running extraction of notes. */
  readonly waitSeconds: number
  /** Seconds after which a running extraction of notes counts as failed. */
  readonly deadAfterSeconds: number
  readonly kept: KeptMessagesPolicy
}

interface MemoryFilesPolicy {
  /** Names of memory files that are looked for in each folder. */
  readonly names: readonly string[]
  /** Patterns of rule files that are looked for in each folder; each rule file has globs of the paths it applies to. */
  readonly rules: readonly string[]
  /** Maximum depth of `@path` imports in memory files. */
  readonly importHops: number
  /** Maximum tokens of the memory reminder at the start of the conversation. */
  readonly reminderTokens: number
}

const memoryNames = ['CLAUDE.md', '.claude/CLAUDE.md', 'CLAUDE.local.md', 'AGENTS.md']

const notesFields: FieldSpecs<NotesPolicy> = {
  enabled: fieldSpec(true, booleanCheck()),
  extractor: fieldSpec('auto', choiceCheck('auto', 'model', 'local')),
  titleMinimumWords: fieldSpec(5, wholeNumberCheck(1)),
  titleMaximumWords: fieldSpec(10, wholeNumberCheck(1)),
  sectionTokens: fieldSpec(2_000, wholeNumberCheck(50)),
  totalTokens: fieldSpec(12_000, wholeNumberCheck(500)),
  startTokens: fieldSpec(10_000, wholeNumberCheck()),
  growthTokens: fieldSpec(5_000, wholeNumberCheck(1)),
  toolCalls: fieldSpec(3, wholeNumberCheck()),
  waitSeconds: fieldSpec(15, wholeNumberCheck()),
  deadAfterSeconds: fieldSpec(60, wholeNumberCheck(1)),
  kept: {
    minimumTokens: fieldSpec(10_000, wholeNumberCheck()),
    minimumMessages: fieldSpec(5, wholeNumberCheck()),
    maximumTokens: fieldSpec(40_000, wholeNumberCheck()),
  },
}

const memoryFilesFields: FieldSpecs<MemoryFilesPolicy> = {
  names: fieldSpec<readonly string[]>(memoryNames, uniqueListCheck(nonBlankCheck())),
  rules: fieldSpec<readonly string[]>(['.claude/rules/*.md'], uniqueListCheck(nonBlankCheck())),
  importHops: fieldSpec(4, wholeNumberCheck(0, 20)),
  reminderTokens: fieldSpec(40_000, wholeNumberCheck()),
}

export interface Policy {
  readonly switches: SwitchPolicy
  readonly window: WindowPolicy
  readonly ladder: ThresholdPolicy
  readonly shares: ContentSharePolicy
  readonly estimate: TokenEstimatePolicy
  readonly request: RequestLimitsPolicy
  readonly clear: ClearPolicy
  readonly compact: CompactPolicy
  readonly rehydrate: RehydratePolicy
  readonly ledger: LedgerPolicy
  readonly spill: SpillPolicy
  readonly history: HistoryPolicy
  readonly notes: NotesPolicy
  readonly memoryFiles: MemoryFilesPolicy
  readonly cache: CachePolicy
  readonly turn: TurnPolicy
}

const allFields: FieldSpecs<Policy> = {
  switches: switchFields,
  window: windowFields,
  ladder: ladderFields,
  shares: shareFields,
  estimate: estimateFields,
  request: requestFields,
  clear: clearFields,
  compact: compactFields,
  rehydrate: rehydrateFields,
  ledger: ledgerFields,
  spill: spillFields,
  history: historyFields,
  notes: notesFields,
  memoryFiles: memoryFilesFields,
  cache: cacheFields,
  turn: turnFields,
}

/** Table of every policy field with its default and its check. */
export const policyFields: FieldSpecTree = allFields

/** Dotted path of every policy field, as in `clear.idle.keep`. */
export const policyFieldPaths: readonly string[] = listFieldPaths(policyFields)

/** Returns the value of the policy field at `path`; undefined if there is no such field. */
export function readPolicyValue(policy: Policy, path: string): unknown {
  const step = (value: unknown, key: string): unknown =>
    isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return path.split('.').reduce<unknown>(step, policy)
}
