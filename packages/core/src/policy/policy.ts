/**
 * All settings of the engine, grouped by feature: types, defaults and checks. `createPolicy` creates a policy;
 * `scalePolicy` computes the numbers that depend on the model's context window.
 */

import { TODO_TOOLS } from '../facts/todo-list.ts'
import { READ_TOOLS, WRITE_TOOLS } from '../facts/tool-calls.ts'
import { isObject } from '../log/json.ts'
import type { ClearMode } from '../log/record.ts'
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
   * Cache lifetime. `auto` chooses by prices and by the time between model calls, and keeps the choice until the system
   * prompt and tools are next replaced.
   */
  readonly ttl: '5m' | '1h' | 'auto'
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

const cacheFields: FieldSpecs<CachePolicy> = {
  ttl: fieldSpec('auto', choiceCheck('5m', '1h', 'auto')),
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

// Settings of tier 1: clearing old tool results without a model call.

/**
 * Idle clearing: clears tool results after a pause. The cache has expired by then, so changing the context breaks no
 * cache.
 */
interface IdlePolicy {
  /** Minutes since the last response after which idle clearing may run; `ttl` means the current cache lifetime. */
  readonly afterMinutes: number | 'ttl'
  /** Number of newest tool results that idle clearing keeps. */
  readonly keep: number
  /** Minimum number of tokens that idle clearing must free; otherwise it does not run. */
  readonly minimumFreedTokens: number
}

/** Budget clearing: clears tool results while the context is above the warning threshold. */
interface BudgetPolicy {
  /** Number of newest tool results that budget clearing always keeps, whatever their size. */
  readonly keep: number
  /** Maximum tokens of clearable tool results that remain after budget clearing. */
  readonly targetTokens: number
  /** Minimum number of tokens that budget clearing must free; otherwise it does not run. */
  readonly minimumFreedTokens: number
}

/** Cached clearing: the provider deletes tool results from its cached prefix, while the messages sent stay unchanged. */
interface CachedPolicy {
  /** Cached clearing runs when this many tool results have not been deleted yet. */
  readonly fireAt: number
  /** Number of newest tool results that cached clearing keeps. */
  readonly keep: number
}

/** Native clearing: the provider clears tool results by itself, as configured by `context_management` in the API request. */
interface NativePolicy {
  /** Number of input tokens at which the provider clears. The warning threshold is used instead if it is lower. */
  readonly triggerTokens: number
  /**
   * Maximum tokens of the newest tool results that native clearing keeps. At least `keepAtLeast` results are kept even
   * if they are larger.
   */
  readonly keepTokens: number
  /** Minimum number of newest tool results that native clearing keeps, whatever their size. */
  readonly keepAtLeast: number
  /** Minimum number of tokens that native clearing must free; otherwise the provider does not clear. */
  readonly clearAtLeastTokens: number
  /** Minutes of idle time after which native clearing keeps only the thinking of the newest turns. */
  readonly thinkingAfterMinutes: number
  /** Number of newest turns whose thinking is kept after `thinkingAfterMinutes` of idle time. */
  readonly thinkingTurns: number
}

export interface ClearPolicy {
  /** Tools whose results may be cleared. Results of other tools are cleared only if `mcp` or the host allows it. */
  readonly tools: readonly string[]
  /**
   * Names of tools that always count as writing a file, whatever their input. Their large inputs may be cleared if
   * `tools` names them too.
   */
  readonly writeTools: readonly string[]
  /** Whether results of MCP tools may be cleared: only if the tool is annotated as read-only, or never. */
  readonly mcp: 'read-only' | 'never'
  /** Enabled kinds of clearing. The one that runs depends on the provider's features and on whether the cache is warm. */
  readonly ways: readonly ClearMode[]
  /** Clear only if the tokens saved cost more than writing the cache again, unless the context is running out of space. */
  readonly priceGate: boolean
  /**
   * Number of model calls to expect before a 5-minute cache expires. Used until the session has shown its own rate of
   * calls.
   */
  readonly expectedCallsFiveMinutes: number
  /**
   * Number of model calls to expect before a 1-hour cache expires. Used until the session has shown its own rate of
   * calls.
   */
  readonly expectedCallsOneHour: number
  /**
   * Clear first the tool results that a later tool call made outdated (such as an earlier read of the same file), then
   * old ones.
   */
  readonly supersededFirst: boolean
  /** Number of files used last whose newest read and newest change are not cleared, since edits need their lines. */
  readonly keptFiles: number
  /** Also clear large inputs of tool calls that write files. */
  readonly inputs: boolean
  /** Number of tokens from which a tool input counts as large. */
  readonly largeInputTokens: number
  /**
   * What to do with thinking whose signature becomes invalid because the context before it is rewritten: remove it,
   * oldest first, or let the provider drop it.
   */
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
  keptFiles: fieldSpec(10, wholeNumberCheck()),
  inputs: fieldSpec(true, booleanCheck()),
  largeInputTokens: fieldSpec(1_000, wholeNumberCheck(1)),
  boundThinking: fieldSpec('remove', choiceCheck('remove', 'provider')),
  idle: {
    afterMinutes: fieldSpec<number | 'ttl'>('ttl', eitherCheck(wholeNumberCheck(5), choiceCheck('ttl'))),
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

// Settings of tier 2: compaction, in which a summary replaces the conversation.

export type DroppableSource = 'skills' | 'files' | 'agents' | 'deltas'

/**
 * When a compaction with the notes of the session is due. It needs no model call and delays no turn, so that its
 * line is a matter of money and fidelity: the largest of three sizes, at most the auto-compact threshold. Tokens are for a
 * context window of 200,000 and are scaled with the window.
 */
interface NotesLinePolicy {
  /** False: notes are used at the auto-compact threshold only. */
  readonly enabled: boolean
  /** Tokens of conversation, system prompt and tools apart, below which no compaction is due. */
  readonly conversationTokens: number
  /** Tokens that must have been added since the last compaction. */
  readonly growthTokens: number
  /**
   * Factor of the growth at which the cost per call is least: the square root of 2 · growth per call · (write − read price) ·
   * what a compaction writes again / read price.
   */
  readonly rootFactor: number
  /** If the cache has expired, a compaction is due once this many tokens were added since the last one. */
  readonly coldTokens: number
  /**
   * A compaction waits while the model reads before it edits: while files that it read in its last `readingResponses`
   * responses (if it has edited nothing since, in all) and has not edited since have more tokens than this.
   */
  readonly readingTokens: number
  readonly readingResponses: number
}

export interface CompactTargetPolicy {
  /** Size that the context should have after a compaction, as a percentage of the auto-compact threshold. */
  readonly percentOfAutoCompact: number
  /**
   * False: system prompt and tools do not count against the target of a compaction with notes. Notes, kept messages and
   * files then have budgets of their own, and none of them is dropped because the system prompt is long.
   */
  readonly countsPrefix: boolean
  /**
   * Kinds of re-attached content to drop, in this order, if the context is above its target size after a compaction.
   * Other content is never dropped.
   */
  readonly shed: readonly DroppableSource[]
  /** Number of newest skills that are never dropped from the context after a compaction. */
  readonly keptSkills: number
}

/** The enabled ways to write a summary, from the best one to the local extractor, which cannot fail. */
interface ChainPolicy {
  /** Let the provider write a compaction block if messages to be kept contain signed thinking. */
  readonly block: boolean
  /**
   * Try a summary request that repeats the conversation's prefix and so reads its cache. Skipped if the cache has
   * expired.
   */
  readonly fork: boolean
  /**
   * Use of the local extractor, which writes a summary without a model: as the `last` resort, as the `only` way, or
   * `never`.
   */
  readonly local: 'last' | 'only' | 'never'
}

interface DirectPolicy {
  /** Model for direct summary requests, of the same provider; null uses the conversation's model. */
  readonly model: string | null
  /** Maximum output tokens of the summary. */
  readonly outputTokens: number
  /** Number of retries after a failed summary request. */
  readonly retries: number
}

/**
 * Retries after the provider refuses a summary request as too long. Each retry drops the oldest rounds of the
 * conversation.
 */
export interface DropOldestPolicy {
  readonly retries: number
  /** Percentage of the rounds to drop if the provider does not report how many tokens are too many. */
  readonly percentOfRounds: number
  /** Minimum number of rounds that each retry drops. */
  readonly minimumRounds: number
}

/** Timeouts while a summary is being written. */
interface WaitingPolicy {
  /** Seconds between two keep-alive events while a summary is being written. */
  readonly keepAliveSeconds: number
  /** Seconds without data from the provider after which an attempt to write a summary fails. */
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
  /** Text added to the instructions of every compaction, manual or automatic. */
  readonly instructions: string
  /**
   * Maximum characters of custom summary instructions, including those from hooks. The provider's compaction allows
   * 16,384 characters.
   */
  readonly instructionCharacters: number
  /**
   * A summary is rejected unless its size is below this percentage of the content that it replaces, and a compaction
   * unless its whole result saves the rest, except where the session cannot continue without it.
   */
  readonly maximumPercentOfReplaced: number
  /**
   * Maximum tokens of all pinned records, at most half of the auto-compact threshold. If there are more, the oldest pinned
   * records are summarized and an event reports it.
   */
  readonly pinTokens: number
  /**
   * Prepare a summary beside the turn from the warning threshold on, so that the turn need not wait for it at the
   * auto-compact threshold.
   */
  readonly background: boolean
  /**
   * Compact below the auto-compact threshold if that saves money, and only with a prepared summary. Off by default,
   * because context is worth more than money: the engine then only advises. Needs `background`.
   */
  readonly economy: boolean
  /** With `economy`: percentage of the auto-compact threshold below which price alone compacts nothing. */
  readonly economyFloorPercent: number
  /** Place unchanged context sources before the summary, so that they can still be read from the cache. */
  readonly carriersFirst: boolean
  readonly notesLine: NotesLinePolicy
}

const dropOrder: readonly DroppableSource[] = ['skills', 'files', 'agents', 'deltas']

const compactFields: FieldSpecs<CompactPolicy> = {
  target: {
    percentOfAutoCompact: fieldSpec(50, percentageCheck(1, 95)),
    countsPrefix: fieldSpec(false, booleanCheck()),
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
  maximumPercentOfReplaced: fieldSpec(95, percentageCheck(1, 100)),
  pinTokens: fieldSpec(20_000, wholeNumberCheck()),
  background: fieldSpec(true, booleanCheck()),
  economy: fieldSpec(false, booleanCheck()),
  economyFloorPercent: fieldSpec(50, percentageCheck(1, 100)),
  carriersFirst: fieldSpec(false, booleanCheck()),
  notesLine: {
    enabled: fieldSpec(true, booleanCheck()),
    conversationTokens: fieldSpec(65_000, wholeNumberCheck()),
    growthTokens: fieldSpec(35_000, wholeNumberCheck()),
    rootFactor: fieldSpec(1, decimalNumberCheck(0, 100)),
    coldTokens: fieldSpec(20_000, wholeNumberCheck()),
    readingTokens: fieldSpec(15_000, wholeNumberCheck()),
    readingResponses: fieldSpec(50, wholeNumberCheck()),
  },
}

// Settings of the context window: its size, its thresholds, and the share that each kind of content may take.

interface WindowPolicy {
  /** Context window, in tokens, for a model that is not in the catalogue; null if it is unknown. */
  readonly givenTokens: number | null
  /** Maximum output tokens for a model that is not in the catalogue; null if unknown. */
  readonly givenOutputTokens: number | null
  /** Maximum tokens of the context window to use; null uses the whole window. */
  readonly capTokens: number | null
}

/** A number of tokens that is never more than `maximumPercent` of the context window. */
export interface ThresholdOffsetPolicy {
  readonly tokens: number
  readonly maximumPercent: number
}

interface ReservePolicy extends ThresholdOffsetPolicy {
  /**
   * Tokens to reserve for the output: the `smaller` or the `larger` of the model's maximum output and `tokens`. `none`
   * reserves nothing.
   */
  readonly rule: 'smaller' | 'larger' | 'none'
}

interface AutoCompactLinePolicy extends ThresholdOffsetPolicy {
  /**
   * Auto-compact threshold as a percentage of the effective window. Null uses the default threshold, and a percentage
   * can only lower it.
   */
  readonly percentOfEffective: number | null
}

export interface ThresholdPolicy {
  /** Tokens reserved for output. The context window minus this reserve is the effective window. */
  readonly reserve: ReservePolicy
  /** Automatic compaction starts when the context is within this many tokens of the effective window. */
  readonly autoCompact: AutoCompactLinePolicy
  /**
   * The warning threshold is this many tokens below the limit of the context meter. There the meter turns yellow, and
   * budget clearing and background summaries begin.
   */
  readonly warning: ThresholdOffsetPolicy
  /** The error threshold is this many tokens below the limit of the context meter. There the meter turns red. */
  readonly error: ThresholdOffsetPolicy
  /**
   * Without automatic compaction, a new prompt is refused when the context is within this many tokens of the effective
   * window.
   */
  readonly blocking: ThresholdOffsetPolicy
  /**
   * Minimum effective window in tokens. A model with a smaller one is refused, because a compacted context would not
   * fit: the headings of a summary (about 300 tokens), the unanswered message, and a few hundred tokens of content.
   */
  readonly minimumUsableTokens: number
}

/**
 * Maximum share of the effective window for each kind of content, as a percentage. A token budget elsewhere in the
 * policy is reduced to this share if it is larger.
 */
export interface ContentSharePolicy {
  readonly files: number
  readonly skills: number
  readonly notes: number
  /** Share for messages kept unchanged after session notes. Also limits the conversation size at which notes begin. */
  readonly keptMessages: number
  /** Share for the tool results that clearing keeps. Also limits the minimum number of tokens that a clearing must free. */
  readonly clearableResults: number
  /** Share for the reminder with memory files at the start of the conversation. */
  readonly ambient: number
  /** Share for the lists of files and identifiers that are added to a summary. */
  readonly ledger: number
  /** Share for the output of one hook. */
  readonly hookOutput: number
  /** Share for the content that one context source of the host re-attaches after a compaction. */
  readonly host: number
  /** Share for one text of a tool result; a longer text is stored as a blob. Also the share for one page of history. */
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
  files: fieldSpec(28, percentageCheck()),
  skills: fieldSpec(14, percentageCheck()),
  notes: fieldSpec(12, percentageCheck()),
  keptMessages: fieldSpec(23, percentageCheck()),
  clearableResults: fieldSpec(23, percentageCheck(0.1, 50)),
  ambient: fieldSpec(25, percentageCheck()),
  ledger: fieldSpec(5, percentageCheck()),
  hookOutput: fieldSpec(10, percentageCheck()),
  host: fieldSpec(6, percentageCheck()),
  spill: fieldSpec(10, percentageCheck()),
}

// Settings of the content that is re-attached after a compaction, and of the facts that the engine adds to a summary.

interface RehydratePolicy {
  readonly files: {
    /** Number of files that are attached again after a compaction: those edited last, then those read last. */
    readonly count: number
    /** Maximum tokens of one re-attached file. Of a longer file the regions round its last edits and reads are shown. */
    readonly eachTokens: number
    /** Rank, counted from 1, from which on a file has at most `middleTokens`. */
    readonly middleRank: number
    readonly middleTokens: number
    /** Rank from which on a file has at most `lastTokens`. */
    readonly lastRank: number
    readonly lastTokens: number
    /** Maximum tokens of all re-attached files together. A file that does not fit is left out. */
    readonly totalTokens: number
    /** Names of tools that always count as reading a file. Calls of other tools are recognized by their input. */
    readonly readTools: readonly string[]
    /** Names of tools that always count as changing a file, whatever their input. */
    readonly writeTools: readonly string[]
  }
  /** Skills in use that are re-attached after a compaction, newest first. */
  readonly skills: {
    /**
     * Maximum tokens of one re-attached skill. A longer one is cut off, with a note that the full text can be read
     * again.
     */
    readonly eachTokens: number
    /** Maximum tokens of all re-attached skills together. */
    readonly totalTokens: number
  }
  /** Token budgets for the content that the host's context sources re-attach after a compaction. */
  readonly host: {
    /**
     * Maximum tokens of one item of a context source. A longer item is cut off with a note if the source allows that,
     * otherwise left out.
     */
    readonly eachTokens: number
    /** Maximum tokens of all items of one context source. */
    readonly totalTokens: number
  }
  readonly todos: boolean
  /** Names of tools whose input is the whole todo list. Used if the host does not provide the todo list itself. */
  readonly todoTools: readonly string[]
  /** Re-attach the full text of the plan file after a compaction. */
  readonly plan: boolean
  /** Re-attach, after a compaction, the reminder that plan mode is on. */
  readonly planMode: boolean
  /** Re-attach, after a compaction, the list of background agents that are running or whose result was not collected. */
  readonly agents: boolean
  /**
   * Re-attach, after a compaction, notices of added tools, agents and MCP instructions that are no longer in the
   * context.
   */
  readonly deltas: boolean
  /**
   * Time limit, in seconds, for reading one context source. What it has not supplied by then is left out, and the receipt
   * says so.
   */
  readonly timeoutSeconds: number
}

/** Facts that every summary must contain. The engine adds the ones that the summary lacks. */
interface LedgerPolicy {
  /**
   * Maximum share of a compaction's target for all user messages in a summary, as a percentage. Only if they exceed it,
   * the longest are cut in the middle, with a reference to the transcript; the receipt lists every cut. Unanswered
   * messages do not count and are never cut.
   */
  readonly userMessagesPercent: number
  /** Maximum tokens of all user messages in a summary; null for no maximum besides the share. */
  readonly userMessagesTokens: number | null
  /** Maximum tokens of one user message in a summary; null for no maximum. */
  readonly userMessageTokens: number | null
  /** Maximum tokens of the list of files that the conversation read or changed. */
  readonly filesTokens: number
  /** Maximum tokens of the list of identifiers in use. The newest identifiers are listed first. */
  readonly namesTokens: number
  /** Number of newest errors to list in a summary, each with what followed it. */
  readonly errors: number
}

const rehydrateFields: FieldSpecs<RehydratePolicy> = {
  files: {
    count: fieldSpec(20, wholeNumberCheck()),
    eachTokens: fieldSpec(7_000, wholeNumberCheck(1)),
    middleRank: fieldSpec(5, wholeNumberCheck(1)),
    middleTokens: fieldSpec(3_000, wholeNumberCheck(1)),
    lastRank: fieldSpec(11, wholeNumberCheck(1)),
    lastTokens: fieldSpec(1_200, wholeNumberCheck(1)),
    totalTokens: fieldSpec(30_000, wholeNumberCheck()),
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
  timeoutSeconds: fieldSpec(10, wholeNumberCheck(1)),
}

const ledgerFields: FieldSpecs<LedgerPolicy> = {
  userMessagesPercent: fieldSpec(33, percentageCheck()),
  userMessagesTokens: fieldSpec(null, nullableCheck(wholeNumberCheck())),
  userMessageTokens: fieldSpec(null, nullableCheck(wholeNumberCheck(1))),
  filesTokens: fieldSpec(2_000, wholeNumberCheck()),
  namesTokens: fieldSpec(1_500, wholeNumberCheck()),
  errors: fieldSpec(10, wholeNumberCheck()),
}

// Settings of one turn: automatic compaction, recovery from refusals, network retries and hooks; then the switches.

export interface AutoCompactPolicy {
  /** Number of consecutive failed compactions after which a session stops compacting automatically. */
  readonly breakerFailures: number
  /** If two compactions are at most this many turns apart, an event reports that they are too close. */
  readonly closeTurns: number
}

/** Recovery when the provider refuses an API request as too long. */
interface ReactivePolicy {
  readonly enabled: boolean
  /** Maximum number of attempts to compact the context and send the API request again. */
  readonly retries: number
  /** Maximum number of attempts to remove images and documents and send the API request again. */
  readonly mediaRetries: number
  /** Maximum number of times to continue an answer that the output limit ended. */
  readonly continuations: number
}

interface NetworkPolicy {
  /** Maximum number of retries after a network fault or an HTTP status 429, 529 or 5xx. */
  readonly retries: number
  /** Milliseconds before the first retry. The delay doubles with each further retry, up to `maximumDelayMs`. */
  readonly firstDelayMs: number
  /** Maximum milliseconds before a retry. */
  readonly maximumDelayMs: number
  /** Each retry delay is shortened at random by up to this percentage. */
  readonly jitterPercent: number
  /**
   * Longest `retry-after`, in seconds, that is waited for. If the provider asks for more, the error is reported to the
   * user.
   */
  readonly longestRetryAfterSeconds: number
}

interface HooksPolicy {
  /** Timeout, in seconds, of a hook that does not set its own timeout. */
  readonly timeoutSeconds: number
  /** Maximum characters of output that one hook may add to the context. */
  readonly outputCharacters: number
}

interface TurnPolicy {
  readonly auto: AutoCompactPolicy
  readonly reactive: ReactivePolicy
  readonly network: NetworkPolicy
  readonly hooks: HooksPolicy
}

/** Settings that turn features on or off. An environment variable that turns a feature off overrides the setting. */
export interface SwitchPolicy {
  /** Turns all clearing and compaction on or off, including manual, reactive and provider-side compaction. */
  readonly compactEnabled: boolean
  /** Turns automatic compaction on or off. Manual compaction is always available. */
  readonly autoCompactEnabled: boolean
  /** Turns the clearing of old tool results (tier 1) on or off. */
  readonly microcompactEnabled: boolean
  readonly promptCachingEnabled: boolean
}

const turnFields: FieldSpecs<TurnPolicy> = {
  auto: { breakerFailures: fieldSpec(3, wholeNumberCheck(1)), closeTurns: fieldSpec(3, wholeNumberCheck()) },
  reactive: {
    enabled: fieldSpec(true, booleanCheck()),
    retries: fieldSpec(1, wholeNumberCheck(0, 10)),
    mediaRetries: fieldSpec(1, wholeNumberCheck(0, 10)),
    continuations: fieldSpec(3, wholeNumberCheck(0, 100)),
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
  /**
   * Characters per token for a model without tokenizer weights in the catalogue. Used until calibration has measured
   * the ratio.
   */
  readonly charactersPerToken: number
  /** Estimated tokens of an image with unknown dimensions. */
  readonly imageTokens: number
  /** Minimum estimated tokens of a document. */
  readonly documentTokens: number
  /**
   * Safety factor: decisions use the expected tokens times this factor, rounded up, so that the context window is not
   * exceeded.
   */
  readonly highFactor: number
  /**
   * Calibrate estimates with the usage that responses report, and lower `highFactor` as the estimates become more
   * accurate.
   */
  readonly calibrate: boolean
  /** Smallest value to which calibration may lower `highFactor`. */
  readonly narrowestHighFactor: number
  /** For thinking whose text is hidden: estimated tokens per character of its signature. */
  readonly signatureTokensPerCharacter: number
  /** For thinking whose text is hidden: tokens to subtract from the estimate that is based on the signature length. */
  readonly signatureLessTokens: number
}

export interface RequestLimitsPolicy {
  /** Maximum bytes of an API request body. If it is larger, the oldest images are replaced by placeholders. */
  readonly bodyBytes: number
  /** Maximum number of images and documents in an API request. */
  readonly images: number
  /**
   * Maximum number of images and documents in an API request if the context window has at most `smallWindowTokens`, or
   * an unknown size.
   */
  readonly imagesInSmallWindow: number
  /** A context window of at most this many tokens counts as small. */
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

// Settings of spilling (storing large tool results outside the conversation), and of the tool that reads the history.

/** Spilling: large tool results are stored as blobs, and the conversation shows only their head and tail. */
export interface SpillPolicy {
  readonly enabled: boolean
  /** Tokens of one text of a tool result above which the text is spilled. */
  readonly thresholdTokens: number
  /** Tokens shown from the beginning of a spilled text. */
  readonly headTokens: number
  /** Tokens shown from the end of a spilled text. The end of a command's output often matters most. */
  readonly tailTokens: number
  /** An image with more than this many bytes (as sent, in base64) is spilled. */
  readonly imageBytes: number
  /** Names of tools whose results are never spilled. */
  readonly exceptTools: readonly string[]
}

/** Settings of the tool with which the model reads content that is no longer in the context. */
export interface HistoryPolicy {
  /** Maximum tokens of one page of history. A cursor is returned for the next page. */
  readonly pageTokens: number
  /** Maximum number of matches on one page of a history search. */
  readonly matches: number
  /** Maximum work for one page of a history search, measured as characters compared times number of search words. */
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

// Settings for hosts with a message list of their own.

/** Settings for hosts that send their whole conversation with every request (`session.take`, `tidemark.fetch`). */
interface DropInPolicy {
  /**
   * When old content may be cleared or summarized. `when-full`: only if the host's own request would no longer fit the
   * context window, because nobody knows whether the host goes on long enough for an earlier rewrite to pay for itself.
   * `early`: at the thresholds of `ladder`, as in other sessions.
   */
  readonly rewrite: 'when-full' | 'early'
  /**
   * With `when-full`: once a request did not fit and the context was rewritten, the host cannot go on by itself, and a
   * compaction with the notes is due from the line of `compact.notesLine` on, with these settings in place of its own.
   */
  readonly notesLine: Pick<NotesLinePolicy, 'enabled' | 'conversationTokens' | 'growthTokens'>
  /**
   * Files are attached after a compaction only if the model is expected to use at least this percentage of them: to come
   * back to them before the next compaction, without reading them again. What is attached is written and read for nothing
   * otherwise.
   */
  readonly leastUsePercent: number
  /**
   * With `when-full`: maximum tokens of the notes, which are written again with each compaction. The budgets of their parts
   * shrink in proportion. What the user said is kept beyond it.
   */
  readonly notesTokens: number
  /**
   * What happens to the cache markers (`cache_control`) of the host's request. `add`: they stay where they are, and the
   * engine adds others where they cost nothing, or where its savings pay for them. `keep`: only the host's are set.
   * `replace`: only the engine's are set, with the lifetime that the host's ask for.
   */
  readonly cacheMarkers: 'add' | 'keep' | 'replace'
  /**
   * Maximum tokens of the texts that are pinned after a host's own compaction, beside its system messages: what the host
   * says again next to its summary.
   */
  readonly pinTokens: number
}

const dropInFields: FieldSpecs<DropInPolicy> = {
  rewrite: fieldSpec('when-full', choiceCheck('when-full', 'early')),
  notesLine: {
    enabled: fieldSpec(true, booleanCheck()),
    conversationTokens: fieldSpec(40_000, wholeNumberCheck()),
    growthTokens: fieldSpec(25_000, wholeNumberCheck()),
  },
  leastUsePercent: fieldSpec(50, wholeNumberCheck(0, 100)),
  notesTokens: fieldSpec(5_000, wholeNumberCheck(500)),
  cacheMarkers: fieldSpec('add', choiceCheck('add', 'keep', 'replace')),
  pinTokens: fieldSpec(20_000, wholeNumberCheck()),
}

// Settings of tier 3: session notes, and memory files in folders.

/** Newest messages that are kept unchanged when session notes replace the earlier conversation. */
interface KeptMessagesPolicy {
  /** Minimum tokens of the kept messages. Older messages are kept until both this and `minimumMessages` are reached. */
  readonly minimumTokens: number
  /** Minimum number of kept messages with text. Older messages are kept until both this and `minimumTokens` are reached. */
  readonly minimumMessages: number
  /**
   * No older messages are added once the kept messages have this many tokens. Messages that the notes do not cover are
   * always kept.
   */
  readonly maximumTokens: number
}

interface NotesPolicy {
  readonly enabled: boolean
  /** What writes the session notes. `auto` uses the model if the host provides one, otherwise the local extractor. */
  readonly extractor: 'auto' | 'model' | 'local'
  /** Minimum words of the session title. */
  readonly titleMinimumWords: number
  /** Maximum words of the session title. */
  readonly titleMaximumWords: number
  /**
   * Maximum tokens of one section of the notes. The next update of the notes shortens a longer section; a compaction
   * cuts it off.
   */
  readonly sectionTokens: number
  /**
   * Tokens of the section about the task, beside its own, that notes kept from the log reserve for decisions and findings
   * in the words of the model. Each segment of the session, between two compactions, has an equal share of them.
   */
  readonly decisionTokens: number
  /** Maximum tokens of the notes file. If it is larger, the next update is instructed to shorten the file. */
  readonly totalTokens: number
  /** Conversation size, in tokens, at which notes are written for the first time. */
  readonly startTokens: number
  /** Number of tokens by which the conversation must grow before the notes are updated again. */
  readonly growthTokens: number
  /** Number of tool calls required since the last update of the notes. Not required if the last turn made no tool calls. */
  readonly toolCalls: number
  /** Seconds that a compaction waits for a running update of the notes. */
  readonly waitSeconds: number
  /** Seconds after which a running update of the notes counts as failed. */
  readonly deadAfterSeconds: number
  readonly kept: KeptMessagesPolicy
}

interface MemoryFilesPolicy {
  /** Names of memory files that are looked for in each folder. */
  readonly names: readonly string[]
  /** Patterns of rule files to look for in each folder. A rule file lists globs of the paths that it applies to. */
  readonly rules: readonly string[]
  /** Maximum depth of `@path` imports in memory files. */
  readonly importHops: number
  /** Maximum tokens of the reminder with memory files at the start of the conversation. */
  readonly reminderTokens: number
}

const memoryNames = ['CLAUDE.md', '.claude/CLAUDE.md', 'CLAUDE.local.md', 'AGENTS.md']

const notesFields: FieldSpecs<NotesPolicy> = {
  enabled: fieldSpec(true, booleanCheck()),
  extractor: fieldSpec('auto', choiceCheck('auto', 'model', 'local')),
  titleMinimumWords: fieldSpec(5, wholeNumberCheck(1)),
  titleMaximumWords: fieldSpec(10, wholeNumberCheck(1)),
  sectionTokens: fieldSpec(2_000, wholeNumberCheck(50)),
  decisionTokens: fieldSpec(7_000, wholeNumberCheck()),
  totalTokens: fieldSpec(15_500, wholeNumberCheck(500)),
  startTokens: fieldSpec(10_000, wholeNumberCheck()),
  growthTokens: fieldSpec(5_000, wholeNumberCheck(1)),
  toolCalls: fieldSpec(3, wholeNumberCheck()),
  waitSeconds: fieldSpec(15, wholeNumberCheck()),
  deadAfterSeconds: fieldSpec(60, wholeNumberCheck(1)),
  kept: {
    minimumTokens: fieldSpec(1_500, wholeNumberCheck()),
    minimumMessages: fieldSpec(5, wholeNumberCheck()),
    maximumTokens: fieldSpec(3_000, wholeNumberCheck()),
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
  readonly dropIn: DropInPolicy
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
  dropIn: dropInFields,
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
