/**
 * Every setting of the engine, grouped by mechanism: types, defaults and checks. Create a policy with `createPolicy`;
 * read figures that depend on the model's window through `scalePolicy`.
 */

import { isObject } from '../log/json.ts'
import type { ClearMode } from '../log/record.ts'
import { TODO_TOOLS } from '../log/todo-list.ts'
import { READ_TOOLS, WRITE_TOOLS } from '../log/tool-calls.ts'
import {
  anyString,
  choice,
  decimalNumber,
  either,
  type FieldSpecs,
  type FieldSpecTree,
  fieldSpec,
  listFieldPaths,
  nonBlankString,
  nullable,
  percentage,
  trueOrFalse,
  uniqueList,
  wholeNumber,
} from './policy-fields.ts'

// The prompt cache: markers, lifetime, and what counts as a cache break.

export interface MarkersPolicy {
  /** Cache markers in a request; the provider's own limit applies too. */
  readonly maximum: number
  /** Mark the block before the first tool result that clearing could still change. */
  readonly edge: boolean
  /** Blocks a turn may add before it exceeds the provider's look-back and gets an extra marker. */
  readonly laggingAfterPositions: number
}

export interface BreaksPolicy {
  /** A cache break is a cache read more than this percentage below the expected one … */
  readonly percent: number
  /** … and more than this many tokens below it. */
  readonly tokens: number
  /** Query sources monitored at once; the least recently used one is dropped. */
  readonly sources: number
  /** Patterns of models that are not monitored; small models cache differently. */
  readonly excludedModels: readonly string[]
  /** Write the difference between the requests to a file, for debugging. */
  readonly diffFiles: boolean
  /** Ask the provider for its explanation, if it offers one. */
  readonly askProvider: boolean
}

export interface CachePolicy {
  /** `auto` decides by the observed gaps and prices, and keeps the decision until the next prefix snapshot. */
  readonly ttl: '5m' | '1h' | 'auto'
  /** Patterns of query sources that get one hour if the account is entitled to it. */
  readonly oneHourSources: readonly string[]
  /** Short-lived sources: always five minutes. */
  readonly fiveMinuteSources: readonly string[]
  /** A changed section is announced as a `delta` until the next prefix snapshot, or rewritten `inline`, which breaks the cache. */
  readonly volatile: 'delta' | 'inline'
  readonly markers: MarkersPolicy
  readonly breaks: BreaksPolicy
}

const oneHourSources = ['repl_main_thread*', 'sdk', 'agent:*']
const fiveMinuteSources = ['session_memory', 'speculation', 'prompt_suggestion']

const cacheFields: FieldSpecs<CachePolicy> = {
  ttl: fieldSpec('auto', choice('5m', '1h', 'auto')),
  oneHourSources: fieldSpec<readonly string[]>(oneHourSources, uniqueList(nonBlankString())),
  fiveMinuteSources: fieldSpec<readonly string[]>(fiveMinuteSources, uniqueList(nonBlankString())),
  volatile: fieldSpec('delta', choice('delta', 'inline')),
  markers: {
    maximum: fieldSpec(4, wholeNumber(1, 4)),
    edge: fieldSpec(true, trueOrFalse()),
    laggingAfterPositions: fieldSpec(18, wholeNumber(1)),
  },
  breaks: {
    percent: fieldSpec(5, percentage(0, 100)),
    tokens: fieldSpec(2_000, wholeNumber()),
    sources: fieldSpec(10, wholeNumber(1)),
    excludedModels: fieldSpec<readonly string[]>(['*haiku*'], uniqueList(nonBlankString())),
    diffFiles: fieldSpec(true, trueOrFalse()),
    askProvider: fieldSpec(true, trueOrFalse()),
  },
}

// Tier 1: clearing old tool results without a model call.

/** The cache has expired, so a rewrite costs nothing extra. */
interface IdlePolicy {
  /** Minutes since the last response; `ttl` uses the current cache lifetime. */
  readonly afterMinutes: number | 'ttl'
  /** Newest results kept. */
  readonly keep: number
  /** Tokens a clearing must free to be worth a rewrite. */
  readonly minimumFreedTokens: number
}

/** The context is above the warning threshold. */
interface BudgetPolicy {
  /** Newest results kept, whatever their size. */
  readonly keep: number
  /** Tokens of clearable results to keep. */
  readonly targetTokens: number
  /** Tokens a clearing must free. */
  readonly minimumFreedTokens: number
}

/** The provider deletes from its cached prefix; the messages stay unchanged. */
interface CachedPolicy {
  /** Number of undeleted results that triggers it. */
  readonly fireAt: number
  /** Newest results kept. */
  readonly keep: number
}

/** The provider clears by itself, as configured in the request (`context_management`). */
interface NativePolicy {
  /** Input tokens, or the warning threshold if that is lower. */
  readonly triggerTokens: number
  /** Token limit for the newest results that are kept … */
  readonly keepTokens: number
  /** … but never fewer results than this. */
  readonly keepAtLeast: number
  /** Tokens a clearing must free. */
  readonly clearAtLeastTokens: number
  /** Minutes idle after which only the newest thinking is kept. */
  readonly thinkingAfterMinutes: number
  /** Number of newest turns whose thinking is then kept. */
  readonly thinkingTurns: number
}

export interface ClearPolicy {
  /** Tools whose results can be produced again. Nothing else is ever cleared. */
  readonly tools: readonly string[]
  /** Tools that write files whatever their input looks like. Their large inputs may be cleared, if `tools` names them. */
  readonly writeTools: readonly string[]
  /** MCP tools: clearable if annotated as read-only, or never. */
  readonly mcp: 'read-only' | 'never'
  /** Enabled modes. The provider's features and the state of the cache decide which one is used. */
  readonly ways: readonly ClearMode[]
  /** Clear only if the saving pays for writing the cache again, unless space is needed. */
  readonly priceGate: boolean
  /** Calls expected before a 5-minute cache expires, until the session's own gaps are known. */
  readonly expectedCallsFiveMinutes: number
  /** The same for a 1-hour cache. */
  readonly expectedCallsOneHour: number
  /** Clear results that a later call superseded before merely old ones. */
  readonly supersededFirst: boolean
  /** Clear large inputs of calls that write files. */
  readonly inputs: boolean
  /** Tokens that make an input large. */
  readonly largeInputTokens: number
  /** Thinking signed for a prefix that is rewritten: remove it here, oldest first, or let the provider drop it. */
  readonly boundThinking: 'remove' | 'provider'
  readonly idle: IdlePolicy
  readonly budget: BudgetPolicy
  readonly cached: CachedPolicy
  readonly native: NativePolicy
}

const clearableTools = ['Read', 'Bash', 'Grep', 'Glob', 'WebFetch', 'WebSearch', 'Edit', 'Write']
const clearModes: readonly ClearMode[] = ['idle', 'budget', 'cached', 'native']

const clearFields: FieldSpecs<ClearPolicy> = {
  tools: fieldSpec<readonly string[]>(clearableTools, uniqueList(nonBlankString())),
  writeTools: fieldSpec(WRITE_TOOLS, uniqueList(nonBlankString())),
  mcp: fieldSpec('read-only', choice('read-only', 'never')),
  ways: fieldSpec(clearModes, uniqueList(choice('idle', 'budget', 'cached', 'native'))),
  priceGate: fieldSpec(true, trueOrFalse()),
  expectedCallsFiveMinutes: fieldSpec(27, wholeNumber(1)),
  expectedCallsOneHour: fieldSpec(200, wholeNumber(1)),
  supersededFirst: fieldSpec(true, trueOrFalse()),
  inputs: fieldSpec(true, trueOrFalse()),
  largeInputTokens: fieldSpec(1_000, wholeNumber(1)),
  boundThinking: fieldSpec('remove', choice('remove', 'provider')),
  idle: {
    afterMinutes: fieldSpec<number | 'ttl'>(60, either(wholeNumber(5), choice('ttl'))),
    keep: fieldSpec(5, wholeNumber()),
    minimumFreedTokens: fieldSpec(5_000, wholeNumber()),
  },
  budget: {
    keep: fieldSpec(3, wholeNumber()),
    targetTokens: fieldSpec(40_000, wholeNumber()),
    minimumFreedTokens: fieldSpec(20_000, wholeNumber(1)),
  },
  cached: { fireAt: fieldSpec(12, wholeNumber(1)), keep: fieldSpec(5, wholeNumber()) },
  native: {
    triggerTokens: fieldSpec(180_000, wholeNumber(1)),
    keepTokens: fieldSpec(40_000, wholeNumber()),
    keepAtLeast: fieldSpec(3, wholeNumber()),
    clearAtLeastTokens: fieldSpec(20_000, wholeNumber()),
    thinkingAfterMinutes: fieldSpec(60, wholeNumber(1)),
    thinkingTurns: fieldSpec(1, wholeNumber(1)),
  },
}

// Tier 2: the summary that replaces a conversation.

export type DroppableSource = 'skills' | 'files' | 'agents' | 'deltas'

export interface TargetPolicy {
  /** Size of a compacted context, as a percentage of the auto-compact threshold. */
  readonly percentOfAutoCompact: number
  /** What is dropped, in this order, if the context is above its target. Nothing else is ever dropped. */
  readonly shed: readonly DroppableSource[]
  /** Newest skills that are never dropped. */
  readonly keptSkills: number
}

/** Which ways to summarize may be tried, from the best to the one that cannot fail. */
interface ChainPolicy {
  /** The provider's compaction block, if kept messages have signed thinking. */
  readonly block: boolean
  /** A fork that reads the conversation's cache; skipped while the cache is cold. */
  readonly fork: boolean
  /** The summary without a model: as the `last` resort, as the `only` way, or `never`. */
  readonly local: 'last' | 'only' | 'never'
}

interface DirectPolicy {
  /** Another model, usually a cheaper one; null uses the conversation's model. */
  readonly model: string | null
  /** Maximum tokens of the summary. */
  readonly outputTokens: number
  /** Further attempts after the first. */
  readonly retries: number
}

/** When the provider refuses the summary request as too long. */
export interface HeadDropPolicy {
  readonly retries: number
  /** Percentage of the rounds to drop if the provider does not report the excess tokens … */
  readonly percentOfRounds: number
  /** … but at least this many. */
  readonly minimumRounds: number
}

/** Timeouts while a summary is being written. */
interface WaitingPolicy {
  /** Seconds between two keep-alive events. */
  readonly keepAliveSeconds: number
  /** Seconds without data after which an attempt fails. */
  readonly stallSeconds: number
  /** Seconds for one attempt in total. */
  readonly attemptSeconds: number
}

export interface CompactPolicy {
  readonly target: TargetPolicy
  readonly chain: ChainPolicy
  readonly direct: DirectPolicy
  readonly headDrop: HeadDropPolicy
  readonly waiting: WaitingPolicy
  /** Added to the instructions of every compaction, automatic ones too. */
  readonly instructions: string
  /** Characters of custom instructions, including those from hooks; a compaction block allows 16,384 in total. */
  readonly instructionCharacters: number
  /** A summary is accepted only below this percentage of the size of what it replaces. */
  readonly maximumPercentOfReplaced: number
  /** Tokens of all pinned records; beyond it the oldest are summarized, and an event says so. */
  readonly pinTokens: number
  /** Prepare a summary in the background from the warning threshold on, and apply it at a safe point. */
  readonly background: boolean
  /** If nothing forces a compaction, let its price decide between now and later. */
  readonly priceDecides: boolean
  /** Put unchanged context sources before the summary, where they stay cached. */
  readonly carriersFirst: boolean
}

const dropOrder: readonly DroppableSource[] = ['skills', 'files', 'agents', 'deltas']

const compactFields: FieldSpecs<CompactPolicy> = {
  target: {
    percentOfAutoCompact: fieldSpec(50, percentage(1, 95)),
    shed: fieldSpec(dropOrder, uniqueList(choice('skills', 'files', 'agents', 'deltas'))),
    keptSkills: fieldSpec(1, wholeNumber()),
  },
  chain: {
    block: fieldSpec(true, trueOrFalse()),
    fork: fieldSpec(true, trueOrFalse()),
    local: fieldSpec('last', choice('last', 'only', 'never')),
  },
  direct: {
    model: fieldSpec(null, nullable(nonBlankString())),
    outputTokens: fieldSpec(20_000, wholeNumber(500)),
    retries: fieldSpec(2, wholeNumber(0, 20)),
  },
  headDrop: {
    retries: fieldSpec(3, wholeNumber(0, 20)),
    percentOfRounds: fieldSpec(20, percentage(1, 100)),
    minimumRounds: fieldSpec(1, wholeNumber(1)),
  },
  waiting: {
    keepAliveSeconds: fieldSpec(30, wholeNumber(1)),
    stallSeconds: fieldSpec(120, wholeNumber(1)),
    attemptSeconds: fieldSpec(600, wholeNumber(1)),
  },
  instructions: fieldSpec('', anyString()),
  instructionCharacters: fieldSpec(8_000, wholeNumber()),
  maximumPercentOfReplaced: fieldSpec(100, percentage(1, 100)),
  pinTokens: fieldSpec(20_000, wholeNumber()),
  background: fieldSpec(true, trueOrFalse()),
  priceDecides: fieldSpec(true, trueOrFalse()),
  carriersFirst: fieldSpec(false, trueOrFalse()),
}

// The context window, its thresholds, and the share that each kind of content may take.

interface WindowPolicy {
  /** Tokens, for a model whose window is not in the catalogue; null leaves it unknown. */
  readonly givenTokens: number | null
  /** The same for the maximum output of a model. */
  readonly givenOutputTokens: number | null
  /** Tokens. Use no more of the window than this; null uses all of it. */
  readonly capTokens: number | null
}

/** A distance in tokens, limited to `maximumPercent` of the window. */
export interface OffsetPolicy {
  readonly tokens: number
  readonly maximumPercent: number
}

interface ReservePolicy extends OffsetPolicy {
  /**
   * Reserved for the output: the `smaller` of the model's maximum output and `tokens`, the `larger` of the two, or
   * `none` (thresholds then count from the whole window).
   */
  readonly rule: 'smaller' | 'larger' | 'none'
}

interface AutoCompactLinePolicy extends OffsetPolicy {
  /** Threshold as a percentage of effective instead, never above the default; null uses the default. */
  readonly percentOfEffective: number | null
}

export interface LadderPolicy {
  /** Below the window; the rest is `effective`. */
  readonly reserve: ReservePolicy
  /** Below effective: automatic compaction starts. */
  readonly autoCompact: AutoCompactLinePolicy
  /** Below the limit: shown yellow; clearing by budget and background summaries begin. */
  readonly warning: OffsetPolicy
  /** Below the limit: shown red. */
  readonly error: OffsetPolicy
  /** Below effective: a new prompt is refused if automatic compaction is not available. */
  readonly blocking: OffsetPolicy
  /**
   * A model with fewer effective tokens is refused. Half of the auto-compact threshold must hold the headings of a
   * summary (some 300 tokens), the unanswered message, and a few hundred tokens of content.
   */
  readonly minimumUsableTokens: number
}

/** Percentage of effective that a kind of content may take; larger figures elsewhere are limited to it. */
export interface SharePolicy {
  readonly files: number
  readonly skills: number
  readonly notes: number
  /** Messages kept verbatim after notes, and the conversation size at which notes begin. */
  readonly keptMessages: number
  /** Results that clearing keeps, and the least that a clearing frees. */
  readonly clearableResults: number
  /** The reminder at the start of the conversation. */
  readonly ambient: number
  /** User messages put back into a summary. */
  readonly userMessages: number
  /** Files and names put back into a summary. */
  readonly ledger: number
  /** What one hook adds. */
  readonly hookOutput: number
  /** What one context source of the host re-attaches. */
  readonly host: number
  /** The size above which a text of a tool result is spilled, and a page of history. */
  readonly spill: number
}

const offsetFields = (tokens: number, maximumPercent: number, least = 0): FieldSpecs<OffsetPolicy> => ({
  tokens: fieldSpec(tokens, wholeNumber(least)),
  maximumPercent: fieldSpec(maximumPercent, percentage()),
})

const windowFields: FieldSpecs<WindowPolicy> = {
  givenTokens: fieldSpec(null, nullable(wholeNumber(1))),
  givenOutputTokens: fieldSpec(null, nullable(wholeNumber(1))),
  capTokens: fieldSpec(null, nullable(wholeNumber(1))),
}

const ladderFields: FieldSpecs<LadderPolicy> = {
  reserve: {
    rule: fieldSpec('smaller', choice('smaller', 'larger', 'none')),
    ...offsetFields(20_000, 25, 1),
  },
  autoCompact: {
    ...offsetFields(13_000, 6.5, 1),
    percentOfEffective: fieldSpec(null, nullable(percentage(0.1, 100))),
  },
  warning: offsetFields(20_000, 10),
  error: offsetFields(20_000, 10),
  blocking: offsetFields(3_000, 1.5, 1),
  minimumUsableTokens: fieldSpec(2_000, wholeNumber(100, 1_000_000)),
}

const shareFields: FieldSpecs<SharePolicy> = {
  files: fieldSpec(25, percentage()),
  skills: fieldSpec(12, percentage()),
  notes: fieldSpec(12, percentage()),
  keptMessages: fieldSpec(20, percentage()),
  clearableResults: fieldSpec(20, percentage(0.1, 50)),
  ambient: fieldSpec(25, percentage()),
  userMessages: fieldSpec(17, percentage()),
  ledger: fieldSpec(5, percentage()),
  hookOutput: fieldSpec(10, percentage()),
  host: fieldSpec(6, percentage()),
  spill: fieldSpec(10, percentage()),
}

// What is re-attached after a compaction, and what the engine itself adds to a summary.

interface RehydratePolicy {
  readonly files: {
    /** Number of most recently read files to read again from disk. */
    readonly count: number
    /** Tokens of one file; the rest is cut off and marked. */
    readonly eachTokens: number
    /** Tokens of all files; one that does not fit is skipped. */
    readonly totalTokens: number
    /** Tools that read a file whatever their input looks like; other calls are recognized by their input. */
    readonly readTools: readonly string[]
    /** Tools that change a file whatever their input looks like. */
    readonly writeTools: readonly string[]
  }
  /** Skills in use, newest first. */
  readonly skills: {
    /** Tokens of one skill; the rest is cut off with a note that the full text can be read again. */
    readonly eachTokens: number
    /** Tokens of all skills. */
    readonly totalTokens: number
  }
  /** What context sources of the host may re-attach. */
  readonly host: {
    /** Tokens of one item; a longer one is cut off with a note if its source allows that, otherwise left out. */
    readonly eachTokens: number
    /** Tokens of all items of one source. */
    readonly totalTokens: number
  }
  readonly todos: boolean
  /** Tools whose input is the whole todo list, if the host does not provide it. */
  readonly todoTools: readonly string[]
  /** The plan file, in full. */
  readonly plan: boolean
  /** The reminder that plan mode is on. */
  readonly planMode: boolean
  /** Background agents that are running, or have finished without their result being collected. */
  readonly agents: boolean
  /** Tools, agents and MCP instructions that the kept messages no longer show. */
  readonly deltas: boolean
}

/** Facts that a summary is checked for; missing ones are added. */
interface LedgerPolicy {
  /** Tokens of all user messages that are added; unanswered ones do not count and are never cut. */
  readonly userMessagesTokens: number
  /** Tokens of one message; a longer one is cut in the middle, with a pointer to the transcript. */
  readonly userMessageTokens: number
  /** Tokens of the list of files touched. */
  readonly filesTokens: number
  /** Tokens of the list of identifiers in use, the newest ranked highest. */
  readonly namesTokens: number
  /** Newest errors to list, with what followed them. */
  readonly errors: number
}

const rehydrateFields: FieldSpecs<RehydratePolicy> = {
  files: {
    count: fieldSpec(5, wholeNumber()),
    eachTokens: fieldSpec(5_000, wholeNumber(1)),
    totalTokens: fieldSpec(50_000, wholeNumber()),
    readTools: fieldSpec(READ_TOOLS, uniqueList(nonBlankString())),
    writeTools: fieldSpec(WRITE_TOOLS, uniqueList(nonBlankString())),
  },
  skills: { eachTokens: fieldSpec(5_000, wholeNumber(1)), totalTokens: fieldSpec(25_000, wholeNumber()) },
  host: { eachTokens: fieldSpec(5_000, wholeNumber(1)), totalTokens: fieldSpec(10_000, wholeNumber()) },
  todos: fieldSpec(true, trueOrFalse()),
  todoTools: fieldSpec(TODO_TOOLS, uniqueList(nonBlankString())),
  plan: fieldSpec(true, trueOrFalse()),
  planMode: fieldSpec(true, trueOrFalse()),
  agents: fieldSpec(true, trueOrFalse()),
  deltas: fieldSpec(true, trueOrFalse()),
}

const ledgerFields: FieldSpecs<LedgerPolicy> = {
  userMessagesTokens: fieldSpec(30_000, wholeNumber()),
  userMessageTokens: fieldSpec(2_000, wholeNumber(1)),
  filesTokens: fieldSpec(2_000, wholeNumber()),
  namesTokens: fieldSpec(1_500, wholeNumber()),
  errors: fieldSpec(10, wholeNumber()),
}

// One turn: automatic compaction, recovery from refusals, network retries, hooks. Last, the switches.

export interface AutoPolicy {
  /** Consecutive failures after which the session stops trying. */
  readonly breakerFailures: number
  /** Compactions fewer turns apart than this are reported. */
  readonly closeTurns: number
}

/** When the provider refuses a request as too long. */
interface ReactivePolicy {
  readonly enabled: boolean
  /** How often to compact and retry. */
  readonly retries: number
  /** How often to strip media and retry. */
  readonly mediaRetries: number
}

interface NetworkPolicy {
  /** Retries after a network fault, 429, 529 or 5xx. */
  readonly retries: number
  /** Milliseconds before the first retry; doubled each time … */
  readonly firstDelayMs: number
  /** … up to this. */
  readonly maximumDelayMs: number
  /** Random reduction of a delay, as a percentage. */
  readonly jitterPercent: number
  /** Seconds; a longer `retry-after` is reported to the user instead of waited for. */
  readonly longestRetryAfterSeconds: number
}

interface HooksPolicy {
  /** Seconds, for a hook without its own timeout. */
  readonly timeoutSeconds: number
  /** Characters that one hook may add. */
  readonly outputCharacters: number
}

interface TurnPolicy {
  readonly auto: AutoPolicy
  readonly reactive: ReactivePolicy
  readonly network: NetworkPolicy
  readonly hooks: HooksPolicy
}

/** Switches as settings; an environment variable that switches off takes precedence. */
export interface SwitchPolicy {
  /** All tiers, including manual, reactive and provider-side ones. */
  readonly compactEnabled: boolean
  /** Automatic compaction; manual compaction still works. */
  readonly autoCompactEnabled: boolean
  /** Tier 1. */
  readonly microcompactEnabled: boolean
  readonly promptCachingEnabled: boolean
}

const turnFields: FieldSpecs<TurnPolicy> = {
  auto: { breakerFailures: fieldSpec(3, wholeNumber(1)), closeTurns: fieldSpec(3, wholeNumber()) },
  reactive: {
    enabled: fieldSpec(true, trueOrFalse()),
    retries: fieldSpec(1, wholeNumber(0, 10)),
    mediaRetries: fieldSpec(1, wholeNumber(0, 10)),
  },
  network: {
    retries: fieldSpec(8, wholeNumber(0, 100)),
    firstDelayMs: fieldSpec(500, wholeNumber(1)),
    maximumDelayMs: fieldSpec(8_000, wholeNumber(1)),
    jitterPercent: fieldSpec(25, percentage(0, 100)),
    longestRetryAfterSeconds: fieldSpec(300, wholeNumber()),
  },
  hooks: {
    timeoutSeconds: fieldSpec(600, wholeNumber(1)),
    outputCharacters: fieldSpec(10_000, wholeNumber()),
  },
}

const switchFields: FieldSpecs<SwitchPolicy> = {
  compactEnabled: fieldSpec(true, trueOrFalse()),
  autoCompactEnabled: fieldSpec(true, trueOrFalse()),
  microcompactEnabled: fieldSpec(true, trueOrFalse()),
  promptCachingEnabled: fieldSpec(true, trueOrFalse()),
}

// Token estimates, and the size of a request in bytes and images.

export interface EstimatePolicy {
  /** Characters per token, until calibrated, for a model without weights in the catalogue. */
  readonly charactersPerToken: number
  /** Tokens of an image with unknown dimensions. */
  readonly imageTokens: number
  /** Tokens of a document. */
  readonly documentTokens: number
  /** Decisions use the expected figure times this, rounded up: overestimating is better than overflowing. */
  readonly highFactor: number
  /** Learn from the usage of each response, and narrow `highFactor` as the errors shrink. */
  readonly calibrate: boolean
  /** Lower bound of the learned factor. */
  readonly narrowestHighFactor: number
  /** Thinking with hidden text: tokens per character of its signature … */
  readonly signatureTokensPerCharacter: number
  /** … minus this many tokens. */
  readonly signatureLessTokens: number
}

export interface RequestPolicy {
  /** Maximum bytes of a body. Above it the oldest images become placeholders. */
  readonly bodyBytes: number
  /** Images and documents in a request. */
  readonly images: number
  /** The same for a window of at most `smallWindowTokens` or of unknown size. */
  readonly imagesInSmallWindow: number
  /** Tokens. */
  readonly smallWindowTokens: number
}

const estimateFields: FieldSpecs<EstimatePolicy> = {
  charactersPerToken: fieldSpec(4, decimalNumber(0.5, 20)),
  imageTokens: fieldSpec(2_000, wholeNumber()),
  documentTokens: fieldSpec(2_000, wholeNumber()),
  highFactor: fieldSpec(4 / 3, decimalNumber(1, 10)),
  calibrate: fieldSpec(true, trueOrFalse()),
  narrowestHighFactor: fieldSpec(1.05, decimalNumber(1, 10)),
  signatureTokensPerCharacter: fieldSpec(0.205, decimalNumber(0, 10)),
  signatureLessTokens: fieldSpec(38, wholeNumber()),
}

const requestFields: FieldSpecs<RequestPolicy> = {
  bodyBytes: fieldSpec(32_000_000, wholeNumber(1_000)),
  images: fieldSpec(600, wholeNumber()),
  imagesInSmallWindow: fieldSpec(100, wholeNumber()),
  smallWindowTokens: fieldSpec(200_000, wholeNumber()),
}

// Spilled results, and looking up what left the context.

/** Large tool results are stored as blobs; the conversation shows their head and tail. */
export interface SpillPolicy {
  readonly enabled: boolean
  /** Tokens of one text of a result above which it is spilled. */
  readonly thresholdTokens: number
  /** Tokens of its beginning that are shown … */
  readonly headTokens: number
  /** … and of its end: the last output of a command often matters most. */
  readonly tailTokens: number
  /** Bytes of an image, as sent, above which it is spilled. */
  readonly imageBytes: number
  /** Tools whose results are never spilled. */
  readonly exceptTools: readonly string[]
}

/** The tool that reads the conversation's history. */
export interface HistoryPolicy {
  /** Tokens of one page; a cursor leads to the next. */
  readonly pageTokens: number
  /** Matches on one page of a search. */
  readonly matches: number
  /** Characters × search words that one page of a search may compare. */
  readonly searchSteps: number
}

const spillFields: FieldSpecs<SpillPolicy> = {
  enabled: fieldSpec(true, trueOrFalse()),
  thresholdTokens: fieldSpec(10_000, wholeNumber(100)),
  headTokens: fieldSpec(1_500, wholeNumber(1)),
  tailTokens: fieldSpec(1_500, wholeNumber(1)),
  imageBytes: fieldSpec(4_000_000, wholeNumber(1_000)),
  exceptTools: fieldSpec<readonly string[]>([], uniqueList(nonBlankString())),
}

const historyFields: FieldSpecs<HistoryPolicy> = {
  pageTokens: fieldSpec(4_000, wholeNumber(200)),
  matches: fieldSpec(20, wholeNumber(1, 1_000)),
  searchSteps: fieldSpec(20_000_000, wholeNumber(100_000)),
}

// Tier 3: session notes, and memory files by folder.

/** What stays verbatim after the notes. */
interface KeptMessagesPolicy {
  /** Minimum tokens kept … */
  readonly minimumTokens: number
  /** … and minimum messages with text; both must be met. */
  readonly minimumMessages: number
  /** Tokens at which keeping older messages stops. What no note covers is kept whatever its size. */
  readonly maximumTokens: number
}

interface NotesPolicy {
  readonly enabled: boolean
  /** `auto` uses the model if the host provides one, otherwise extracts locally. */
  readonly extractor: 'auto' | 'model' | 'local'
  /** Minimum words of the session title. */
  readonly titleMinimumWords: number
  /** Maximum words of the session title. */
  readonly titleMaximumWords: number
  /** Tokens of a section. Above it the next extraction condenses it; a compaction cuts it. */
  readonly sectionTokens: number
  /** Tokens of the whole file. Above it the next extraction is instructed to shorten it. */
  readonly totalTokens: number
  /** Tokens of conversation before the first extraction. */
  readonly startTokens: number
  /** Tokens of growth since the last extraction. */
  readonly growthTokens: number
  /** Tool calls since the last extraction, unless the last turn made none. */
  readonly toolCalls: number
  /** Seconds a compaction waits for a running extraction. */
  readonly waitSeconds: number
  /** Seconds after which an extraction counts as failed. */
  readonly deadAfterSeconds: number
  readonly kept: KeptMessagesPolicy
}

interface MemoryFilesPolicy {
  /** Files looked for in each folder. */
  readonly names: readonly string[]
  /** Files with path globs, looked for in each folder. */
  readonly rules: readonly string[]
  /** Maximum depth of `@path` imports. */
  readonly importHops: number
  /** Tokens of the reminder at the start of the conversation. */
  readonly reminderTokens: number
}

const memoryNames = ['CLAUDE.md', '.claude/CLAUDE.md', 'CLAUDE.local.md', 'AGENTS.md']

const notesFields: FieldSpecs<NotesPolicy> = {
  enabled: fieldSpec(true, trueOrFalse()),
  extractor: fieldSpec('auto', choice('auto', 'model', 'local')),
  titleMinimumWords: fieldSpec(5, wholeNumber(1)),
  titleMaximumWords: fieldSpec(10, wholeNumber(1)),
  sectionTokens: fieldSpec(2_000, wholeNumber(50)),
  totalTokens: fieldSpec(12_000, wholeNumber(500)),
  startTokens: fieldSpec(10_000, wholeNumber()),
  growthTokens: fieldSpec(5_000, wholeNumber(1)),
  toolCalls: fieldSpec(3, wholeNumber()),
  waitSeconds: fieldSpec(15, wholeNumber()),
  deadAfterSeconds: fieldSpec(60, wholeNumber(1)),
  kept: {
    minimumTokens: fieldSpec(10_000, wholeNumber()),
    minimumMessages: fieldSpec(5, wholeNumber()),
    maximumTokens: fieldSpec(40_000, wholeNumber()),
  },
}

const memoryFilesFields: FieldSpecs<MemoryFilesPolicy> = {
  names: fieldSpec<readonly string[]>(memoryNames, uniqueList(nonBlankString())),
  rules: fieldSpec<readonly string[]>(['.claude/rules/*.md'], uniqueList(nonBlankString())),
  importHops: fieldSpec(4, wholeNumber(0, 20)),
  reminderTokens: fieldSpec(40_000, wholeNumber()),
}

export interface Policy {
  readonly switches: SwitchPolicy
  readonly window: WindowPolicy
  readonly ladder: LadderPolicy
  readonly shares: SharePolicy
  readonly estimate: EstimatePolicy
  readonly request: RequestPolicy
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

/** The default and the check of every field. */
export const policyFields: FieldSpecTree = allFields

/** The path of every field, as in `clear.idle.keep`. */
export const policyPaths: readonly string[] = listFieldPaths(policyFields)

/** The value at `path`; undefined if there is no such field. */
export function readPolicyValue(policy: Policy, path: string): unknown {
  const step = (value: unknown, key: string): unknown =>
    isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return path.split('.').reduce<unknown>(step, policy)
}
