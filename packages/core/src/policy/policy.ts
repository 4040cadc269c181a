/**
 * Every number, switch and choice of the engine in one object, by mechanism. Made by `createPolicy`, which
 * checks it; read through `scalePolicy` where a figure depends on the model's window.
 */

import { isObject } from '../log/json.ts'
import { TODO_TOOLS } from '../log/todo-list.ts'
import { READ_TOOLS, WRITE_TOOLS } from '../log/tool-calls.ts'
import {
  amount,
  count,
  either,
  type Fields,
  type FieldTree,
  field,
  flag,
  listOf,
  name,
  oneOf,
  orNull,
  pathsOf,
  percent,
  text,
} from './policy-fields.ts'

// The prompt cache: markers, lifetime, and what counts as a break.

export interface MarkersPolicy {
  /** Markers in a request; the provider's own limit binds as well. */
  readonly maximum: number
  /** Mark the block before the first result that tier 1 could still clear. */
  readonly edge: boolean
  /** Positions a turn may add before it would outrun the provider's look-back and gets a lagging marker. */
  readonly laggingAfterPositions: number
}

export interface BreaksPolicy {
  /** A break is a read more than this per cent below what was expected … */
  readonly percent: number
  /** … and more than this many tokens below it. */
  readonly tokens: number
  /** Query sources watched at once; the one unused longest is let go. */
  readonly sources: number
  /** Patterns of models whose reads say nothing; small ones cache differently. */
  readonly excludedModels: readonly string[]
  /** Write what changed to a file, for debugging. */
  readonly diffFiles: boolean
  /** Ask the provider for its own explanation, where it gives one. */
  readonly askProvider: boolean
}

export interface CachePolicy {
  /** `auto` decides by the gaps and prices seen, then holds to it for the epoch. */
  readonly ttl: '5m' | '1h' | 'auto'
  /** Patterns of query sources that an entitled account gives an hour. */
  readonly oneHourSources: readonly string[]
  /** Short-lived sources: always five minutes, whatever else says. */
  readonly fiveMinuteSources: readonly string[]
  /** A changed section is appended as a `delta` till the next epoch, or rewritten `inline`, which breaks the cache. */
  readonly volatile: 'delta' | 'inline'
  readonly markers: MarkersPolicy
  readonly breaks: BreaksPolicy
}

const oneHourSources = ['repl_main_thread*', 'sdk', 'agent:*']
const fiveMinuteSources = ['session_memory', 'speculation', 'prompt_suggestion']

const cacheFields: Fields<CachePolicy> = {
  ttl: field('auto', oneOf('5m', '1h', 'auto')),
  oneHourSources: field<readonly string[]>(oneHourSources, listOf(name())),
  fiveMinuteSources: field<readonly string[]>(fiveMinuteSources, listOf(name())),
  volatile: field('delta', oneOf('delta', 'inline')),
  markers: {
    maximum: field(4, count(1, 4)),
    edge: field(true, flag()),
    laggingAfterPositions: field(18, count(1)),
  },
  breaks: {
    percent: field(5, percent(0, 100)),
    tokens: field(2_000, count()),
    sources: field(10, count(1)),
    excludedModels: field<readonly string[]>(['*haiku*'], listOf(name())),
    diffFiles: field(true, flag()),
    askProvider: field(true, flag()),
  },
}

// Tier 1: clearing old tool results with no model call.

type ClearingWay = 'idle' | 'budget' | 'cached' | 'native'

/** The cache has expired, so that rewriting is free. */
interface IdlePolicy {
  /** Minutes since the last answer; `ttl` takes the lifetime in force. */
  readonly afterMinutes: number | 'ttl'
  /** Newest results kept. */
  readonly keep: number
  /** Tokens below which a clearing is not worth a rewrite. */
  readonly minimumFreedTokens: number
}

/** Usage is above the warning line. */
interface BudgetPolicy {
  /** Newest results kept, whatever their size. */
  readonly keep: number
  /** Tokens of clearable results to leave: the low-water mark. */
  readonly targetTokens: number
  /** Tokens. Nothing is cleared unless this much is freed. */
  readonly minimumFreedTokens: number
}

/** The provider deletes from its cached prefix; the messages stay as they are. */
interface CachedPolicy {
  /** Results not yet deleted at which it fires. */
  readonly fireAt: number
  /** Newest results kept. */
  readonly keep: number
}

/** The provider clears by itself, as the request tells it to. */
interface NativePolicy {
  /** Input tokens, or the warning line where that is lower. */
  readonly triggerTokens: number
  /** Tokens that the newest results kept must fit in … */
  readonly keepTokens: number
  /** … but never fewer results than this. */
  readonly keepAtLeast: number
  /** Tokens: a clearing that frees less is not done. */
  readonly clearAtLeastTokens: number
  /** Minutes idle after which only the newest thinking is kept. */
  readonly thinkingAfterMinutes: number
  /** Thinking turns kept then. */
  readonly thinkingTurns: number
}

export interface ClearPolicy {
  /** Tools whose results can be had again. Nothing else is ever cleared. */
  readonly tools: readonly string[]
  /** Tools that write files whatever their input looks like. Their large inputs may be cleared, if `tools` names them. */
  readonly writeTools: readonly string[]
  /** MCP tools: clearable where their annotations say read-only, or never. */
  readonly mcp: 'read-only' | 'never'
  /** The ways in use. Which of them acts is decided by what the provider can do and the cache's state. */
  readonly ways: readonly ClearingWay[]
  /** Clear only where the saving pays for writing the cache again; need overrides it. */
  readonly priceGate: boolean
  /** Calls expected before a 5-minute cache goes cold, until the session's own gaps tell. */
  readonly expectedCallsFiveMinutes: number
  /** The same for a 1-hour cache. */
  readonly expectedCallsOneHour: number
  /** Results that a later call made worthless go before merely old ones. */
  readonly supersededFirst: boolean
  /** Clear large inputs of calls that write files. */
  readonly inputs: boolean
  /** Tokens from which an input is large. */
  readonly largeInputTokens: number
  /** Thinking bound to a prefix that is rewritten: remove it here, oldest first, or let the provider drop it. */
  readonly boundThinking: 'remove' | 'provider'
  readonly idle: IdlePolicy
  readonly budget: BudgetPolicy
  readonly cached: CachedPolicy
  readonly native: NativePolicy
}

const tools = ['Read', 'Bash', 'Grep', 'Glob', 'WebFetch', 'WebSearch', 'Edit', 'Write']
const ways: readonly ClearingWay[] = ['idle', 'budget', 'cached', 'native']

const clearFields: Fields<ClearPolicy> = {
  tools: field<readonly string[]>(tools, listOf(name())),
  writeTools: field(WRITE_TOOLS, listOf(name())),
  mcp: field('read-only', oneOf('read-only', 'never')),
  ways: field(ways, listOf(oneOf('idle', 'budget', 'cached', 'native'))),
  priceGate: field(true, flag()),
  expectedCallsFiveMinutes: field(27, count(1)),
  expectedCallsOneHour: field(200, count(1)),
  supersededFirst: field(true, flag()),
  inputs: field(true, flag()),
  largeInputTokens: field(1_000, count(1)),
  boundThinking: field('remove', oneOf('remove', 'provider')),
  idle: {
    afterMinutes: field<number | 'ttl'>(60, either(count(5), oneOf('ttl'))),
    keep: field(5, count()),
    minimumFreedTokens: field(5_000, count()),
  },
  budget: {
    keep: field(3, count()),
    targetTokens: field(40_000, count()),
    minimumFreedTokens: field(20_000, count(1)),
  },
  cached: { fireAt: field(12, count(1)), keep: field(5, count()) },
  native: {
    triggerTokens: field(180_000, count(1)),
    keepTokens: field(40_000, count()),
    keepAtLeast: field(3, count()),
    clearAtLeastTokens: field(20_000, count()),
    thinkingAfterMinutes: field(60, count(1)),
    thinkingTurns: field(1, count(1)),
  },
}

// Tier 2: the summary that replaces a conversation.

export type Sheddable = 'skills' | 'files' | 'agents' | 'deltas'

export interface TargetPolicy {
  /** Per cent of the auto-compact line that a compacted view may fill. */
  readonly percentOfAutoCompact: number
  /** What goes first when a view is above its target. Nothing else is ever shed. */
  readonly shed: readonly Sheddable[]
  /** Newest skills that shedding leaves. */
  readonly keptSkills: number
}

/** Which rungs may be tried, from the one that keeps most to the one that cannot fail. */
interface ChainPolicy {
  /** The provider's own summary block, where kept messages carry bound thinking. */
  readonly block: boolean
  /** A fork that reads the parent's cache; skipped while the cache is cold. */
  readonly fork: boolean
  /** The summary made without a model: as the `last` rung, as the `only` one, or `never`. */
  readonly local: 'last' | 'only' | 'never'
}

interface DirectPolicy {
  /** Another model, usually a cheaper one; null takes the conversation's own. */
  readonly model: string | null
  /** Tokens the summary may take. */
  readonly outputTokens: number
  /** Further attempts after the first. */
  readonly retries: number
}

/** When the summariser says that the prompt is too long. */
export interface HeadDropPolicy {
  readonly retries: number
  /** Per cent of the rounds to drop where the provider does not say how many tokens are too many … */
  readonly percentOfRounds: number
  /** … but at least this many. */
  readonly minimumRounds: number
}

/** While a summary is under way. */
interface WaitingPolicy {
  /** Seconds between two signs of life. */
  readonly keepAliveSeconds: number
  /** Seconds without anything arriving after which an attempt has failed. */
  readonly stallSeconds: number
  /** Seconds that one attempt may take in all. */
  readonly attemptSeconds: number
}

export interface CompactPolicy {
  readonly target: TargetPolicy
  readonly chain: ChainPolicy
  readonly direct: DirectPolicy
  readonly headDrop: HeadDropPolicy
  readonly waiting: WaitingPolicy
  /** Added to the instructions of every compaction, automatic ones too; blank adds none. */
  readonly instructions: string
  /** Characters of custom instructions, the hooks' included; a provider's own block takes 16,384 for all. */
  readonly instructionCharacters: number
  /** A summary is accepted only below this per cent of the size of what it replaces. */
  readonly maximumPercentOfReplaced: number
  /** Tokens that pinned records may take in all; those beyond, oldest first, are summarised, and it is told. */
  readonly pinTokens: number
  /** Prepare a summary in the background from the warning line on, and swap it in at a safe point. */
  readonly background: boolean
  /** Where nothing forces a compaction, let price choose between now and later. */
  readonly priceDecides: boolean
  /** Put what did not change in front of the summary, where it stays cached. */
  readonly carriersFirst: boolean
}

const shed: readonly Sheddable[] = ['skills', 'files', 'agents', 'deltas']

const compactFields: Fields<CompactPolicy> = {
  target: {
    percentOfAutoCompact: field(50, percent(1, 95)),
    shed: field(shed, listOf(oneOf('skills', 'files', 'agents', 'deltas'))),
    keptSkills: field(1, count()),
  },
  chain: {
    block: field(true, flag()),
    fork: field(true, flag()),
    local: field('last', oneOf('last', 'only', 'never')),
  },
  direct: {
    model: field(null, orNull(name())),
    outputTokens: field(20_000, count(500)),
    retries: field(2, count(0, 20)),
  },
  headDrop: {
    retries: field(3, count(0, 20)),
    percentOfRounds: field(20, percent(1, 100)),
    minimumRounds: field(1, count(1)),
  },
  waiting: {
    keepAliveSeconds: field(30, count(1)),
    stallSeconds: field(120, count(1)),
    attemptSeconds: field(600, count(1)),
  },
  instructions: field('', text()),
  instructionCharacters: field(8_000, count()),
  maximumPercentOfReplaced: field(100, percent(1, 100)),
  pinTokens: field(20_000, count()),
  background: field(true, flag()),
  priceDecides: field(true, flag()),
  carriersFirst: field(false, flag()),
}

// The window, the lines drawn in it, and the share of it that each kind of content may take.

interface WindowPolicy {
  /** Tokens. The person's own figure for a model whose window nobody states; null leaves it unknown. */
  readonly givenTokens: number | null
  /** Tokens. The same for the longest answer of a model. */
  readonly givenOutputTokens: number | null
  /** Tokens. Use no more of the window than this, however large it is; null uses all of it. */
  readonly capTokens: number | null
}

/** A distance in tokens that shrinks on small windows to `maximumPercent` of the window. */
export interface OffsetPolicy {
  readonly tokens: number
  readonly maximumPercent: number
}

interface ReservePolicy extends OffsetPolicy {
  /**
   * Room for the answer: the `smaller` of the model's longest answer and `tokens`, the `larger` of the two,
   * or `none` (lines are then counted from the whole window).
   */
  readonly rule: 'smaller' | 'larger' | 'none'
}

interface AutoCompactLinePolicy extends OffsetPolicy {
  /** Draw the line at this per cent of effective instead, never above the usual place; null draws the usual one. */
  readonly percentOfEffective: number | null
}

export interface LadderPolicy {
  /** Below the window: what is left is `effective`. */
  readonly reserve: ReservePolicy
  /** Below effective: compaction starts by itself. */
  readonly autoCompact: AutoCompactLinePolicy
  /** Below the limit: shown yellow; clearing by budget and background summaries begin. */
  readonly warning: OffsetPolicy
  /** Below the limit: shown red. */
  readonly error: OffsetPolicy
  /** Below effective: a new message is refused where nothing can compact by itself. */
  readonly blocking: OffsetPolicy
  /**
   * Tokens of effective below which a model is refused. Half of the auto-compact line must hold the frame of
   * a summary with its headings (some 300), the message not yet answered, and a few hundred tokens of matter.
   */
  readonly minimumUsableTokens: number
}

/** Per cent of effective that a kind of content may take; larger figures elsewhere shrink to it. */
export interface SharePolicy {
  readonly files: number
  readonly skills: number
  readonly notes: number
  /** Messages kept verbatim behind notes, and the conversation's size at which notes begin. */
  readonly keptMessages: number
  /** Results that clearing leaves, and the least that a clearing frees. */
  readonly clearableResults: number
  /** The reminder in front of the conversation. */
  readonly ambient: number
  /** User messages put back into a summary. */
  readonly userMessages: number
  /** Files and names put back into a summary. */
  readonly ledger: number
  /** What one hook adds. */
  readonly hookOutput: number
  /** What one carrier of the host's own brings back. */
  readonly host: number
  /** A text of a tool result, before it is put aside, and a page of history. */
  readonly spill: number
}

const offset = (tokens: number, maximumPercent: number, least = 0): Fields<OffsetPolicy> => ({
  tokens: field(tokens, count(least)),
  maximumPercent: field(maximumPercent, percent()),
})

const windowFields: Fields<WindowPolicy> = {
  givenTokens: field(null, orNull(count(1))),
  givenOutputTokens: field(null, orNull(count(1))),
  capTokens: field(null, orNull(count(1))),
}

const ladderFields: Fields<LadderPolicy> = {
  reserve: { rule: field('smaller', oneOf('smaller', 'larger', 'none')), ...offset(20_000, 25, 1) },
  autoCompact: { ...offset(13_000, 6.5, 1), percentOfEffective: field(null, orNull(percent(0.1, 100))) },
  warning: offset(20_000, 10),
  error: offset(20_000, 10),
  blocking: offset(3_000, 1.5, 1),
  minimumUsableTokens: field(2_000, count(100, 1_000_000)),
}

const shareFields: Fields<SharePolicy> = {
  files: field(25, percent()),
  skills: field(12, percent()),
  notes: field(12, percent()),
  keptMessages: field(20, percent()),
  clearableResults: field(20, percent(0.1, 50)),
  ambient: field(25, percent()),
  userMessages: field(17, percent()),
  ledger: field(5, percent()),
  hookOutput: field(10, percent()),
  host: field(6, percent()),
  spill: field(10, percent()),
}

// What comes back after a compaction, and what the engine itself puts into a summary.

export interface RehydratePolicy {
  readonly files: {
    /** Most recently read files, read again from disk. */
    readonly count: number
    /** Tokens of one; more is cut with a marker. */
    readonly eachTokens: number
    /** Tokens of all; one that does not fit is skipped and the next tried. */
    readonly totalTokens: number
    /** Tools that read a file whatever their input looks like; other calls are known by their input. */
    readonly readTools: readonly string[]
    /** Tools that change a file whatever their input looks like. */
    readonly writeTools: readonly string[]
  }
  /** Skills in use, newest first. */
  readonly skills: {
    /** Tokens of one; more is cut with a note that the full text can be read again. */
    readonly eachTokens: number
    /** Tokens of all. */
    readonly totalTokens: number
  }
  /** What carriers of the host's own may bring. */
  readonly host: {
    /** Tokens of one thing; more is cut with a note where its carrier allows that, else it is left out. */
    readonly eachTokens: number
    /** Tokens of all that one carrier brings. */
    readonly totalTokens: number
  }
  readonly todos: boolean
  /** Tools whose input is the whole todo list whatever it looks like, where the host does not give it. */
  readonly todoTools: readonly string[]
  /** The plan file, in full. */
  readonly plan: boolean
  /** The reminder that plan mode is on. */
  readonly planMode: boolean
  /** Background agents that run, or have finished and were not collected. */
  readonly agents: boolean
  /** Tools, agents and MCP instructions that the kept messages no longer show. */
  readonly deltas: boolean
}

/** What is not left to the summariser: checked, and added where it is missing. */
interface LedgerPolicy {
  /** Tokens of all user messages put back; unanswered ones are outside it and never cut. */
  readonly userMessagesTokens: number
  /** Tokens of one; a longer one is cut in the middle, with a pointer to the transcript. */
  readonly userMessageTokens: number
  /** Tokens of the list of files touched. */
  readonly filesTokens: number
  /** Tokens of the list of names the work turned on, newest heaviest. */
  readonly namesTokens: number
  /** Newest errors named with what followed them. */
  readonly errors: number
}

const rehydrateFields: Fields<RehydratePolicy> = {
  files: {
    count: field(5, count()),
    eachTokens: field(5_000, count(1)),
    totalTokens: field(50_000, count()),
    readTools: field(READ_TOOLS, listOf(name())),
    writeTools: field(WRITE_TOOLS, listOf(name())),
  },
  skills: { eachTokens: field(5_000, count(1)), totalTokens: field(25_000, count()) },
  host: { eachTokens: field(5_000, count(1)), totalTokens: field(10_000, count()) },
  todos: field(true, flag()),
  todoTools: field(TODO_TOOLS, listOf(name())),
  plan: field(true, flag()),
  planMode: field(true, flag()),
  agents: field(true, flag()),
  deltas: field(true, flag()),
}

const ledgerFields: Fields<LedgerPolicy> = {
  userMessagesTokens: field(30_000, count()),
  userMessageTokens: field(2_000, count(1)),
  filesTokens: field(2_000, count()),
  namesTokens: field(1_500, count()),
  errors: field(10, count()),
}

// One turn: compacting by itself, recovering from refusals, retrying the network, running hooks. Last, the switches.

export interface AutoPolicy {
  /** Failures in a row after which the session stops trying. */
  readonly breakerFailures: number
  /** Turns between two compactions below which the chain is reported. */
  readonly closeTurns: number
}

/** The provider refused a request as too long all the same. */
interface ReactivePolicy {
  readonly enabled: boolean
  /** Compact and try again, this often. */
  readonly retries: number
  /** Strip media and try again, this often. */
  readonly mediaRetries: number
}

interface NetworkPolicy {
  /** Further attempts after a network fault, 429, 529 or 5xx. */
  readonly retries: number
  /** Milliseconds before the first retry; doubled each time … */
  readonly firstDelayMs: number
  /** … up to this. */
  readonly maximumDelayMs: number
  /** Per cent of a delay that chance may take off. */
  readonly jitterPercent: number
  /** Seconds: a longer `retry-after` is told to the person and not waited for. */
  readonly longestRetryAfterSeconds: number
}

interface HooksPolicy {
  /** Seconds, where a hook names no time of its own. */
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

/** The settings' side of the off switches; an environment variable that switches off wins. */
export interface SwitchPolicy {
  /** Every tier, the manual, reactive and provider's own ways included. */
  readonly compactEnabled: boolean
  /** Compaction that starts by itself; the manual one still works. */
  readonly autoCompactEnabled: boolean
  /** Tier 1. */
  readonly microcompactEnabled: boolean
  readonly promptCachingEnabled: boolean
}

const turnFields: Fields<TurnPolicy> = {
  auto: { breakerFailures: field(3, count(1)), closeTurns: field(3, count()) },
  reactive: {
    enabled: field(true, flag()),
    retries: field(1, count(0, 10)),
    mediaRetries: field(1, count(0, 10)),
  },
  network: {
    retries: field(8, count(0, 100)),
    firstDelayMs: field(500, count(1)),
    maximumDelayMs: field(8_000, count(1)),
    jitterPercent: field(25, percent(0, 100)),
    longestRetryAfterSeconds: field(300, count()),
  },
  hooks: { timeoutSeconds: field(600, count(1)), outputCharacters: field(10_000, count()) },
}

const switchFields: Fields<SwitchPolicy> = {
  compactEnabled: field(true, flag()),
  autoCompactEnabled: field(true, flag()),
  microcompactEnabled: field(true, flag()),
  promptCachingEnabled: field(true, flag()),
}

// How large a thing is before a provider has said so, and how large a request may be in bytes and images.

export interface EstimatePolicy {
  /** Characters of text to a token, before anything was learnt and where the catalogue has no figure. */
  readonly charactersPerToken: number
  /** Tokens, flat, where the dimensions are not known. */
  readonly imageTokens: number
  /** Tokens, flat. */
  readonly documentTokens: number
  /** Decisions use the expected figure times this, rounded up: better to overshoot than to overflow. */
  readonly highFactor: number
  /** Learn from the usage that each response reports, and narrow `highFactor` as the errors shrink. */
  readonly calibrate: boolean
  /** The narrowest that a learnt factor may become. */
  readonly narrowestHighFactor: number
  /** Thinking whose text is hidden: tokens to a character of its signature … */
  readonly signatureTokensPerCharacter: number
  /** … less this many tokens. */
  readonly signatureLessTokens: number
}

export interface RequestPolicy {
  /** Bytes of the largest body sent. Over it the oldest images become placeholders. */
  readonly bodyBytes: number
  /** Images and documents in a request. */
  readonly images: number
  /** The same for a window of at most `smallWindowTokens`, and for an unknown one. */
  readonly imagesInSmallWindow: number
  /** Tokens. */
  readonly smallWindowTokens: number
}

const estimateFields: Fields<EstimatePolicy> = {
  charactersPerToken: field(4, amount(0.5, 20)),
  imageTokens: field(2_000, count()),
  documentTokens: field(2_000, count()),
  highFactor: field(4 / 3, amount(1, 10)),
  calibrate: field(true, flag()),
  narrowestHighFactor: field(1.05, amount(1, 10)),
  signatureTokensPerCharacter: field(0.205, amount(0, 10)),
  signatureLessTokens: field(38, count()),
}

const requestFields: Fields<RequestPolicy> = {
  bodyBytes: field(32_000_000, count(1_000)),
  images: field(600, count()),
  imagesInSmallWindow: field(100, count()),
  smallWindowTokens: field(200_000, count()),
}

// What is put aside on arrival, and how it and all that left the view is looked up again.

/** Large results of tools go to the blobs; the conversation shows their head and tail. */
export interface SpillPolicy {
  readonly enabled: boolean
  /** Tokens of one text of a result above which it is put aside. */
  readonly thresholdTokens: number
  /** Tokens of its beginning that are shown … */
  readonly headTokens: number
  /** … and of its end: what a command prints last is often the point. */
  readonly tailTokens: number
  /** Bytes of an image, as it would be sent, above which it is put aside. */
  readonly imageBytes: number
  /** Tools whose results are never put aside. */
  readonly exceptTools: readonly string[]
}

/** The tool that reads the conversation's own past. */
export interface HistoryPolicy {
  /** Tokens of one answer; a cursor leads on. */
  readonly pageTokens: number
  /** Matches of one search before its cursor. */
  readonly matches: number
  /** Characters times words that one search may compare before its cursor. */
  readonly searchSteps: number
}

const spillFields: Fields<SpillPolicy> = {
  enabled: field(true, flag()),
  thresholdTokens: field(10_000, count(100)),
  headTokens: field(1_500, count(1)),
  tailTokens: field(1_500, count(1)),
  imageBytes: field(4_000_000, count(1_000)),
  exceptTools: field<readonly string[]>([], listOf(name())),
}

const historyFields: Fields<HistoryPolicy> = {
  pageTokens: field(4_000, count(200)),
  matches: field(20, count(1, 1_000)),
  searchSteps: field(20_000_000, count(100_000)),
}

// Tier 3: running notes, and the memory files that load by folder.

/** What stays verbatim behind the notes. */
interface KeptMessagesPolicy {
  /** Tokens kept at least … */
  readonly minimumTokens: number
  /** … and messages with text, at least; both must be met. */
  readonly minimumMessages: number
  /** Tokens at which growing backwards stops. What no note covers is kept whatever its size. */
  readonly maximumTokens: number
}

interface NotesPolicy {
  readonly enabled: boolean
  /** `auto` asks the model where the host gives one, else extracts locally. */
  readonly extractor: 'auto' | 'model' | 'local'
  /** Words of the session's title, at least. */
  readonly titleMinimumWords: number
  /** Words of the session's title, at most. */
  readonly titleMaximumWords: number
  /** Tokens of a section. Over it the next extraction condenses it; a compaction cuts it. */
  readonly sectionTokens: number
  /** Tokens of the whole file. Over it the next extraction is told to shorten it. */
  readonly totalTokens: number
  /** Tokens of conversation before the first extraction. */
  readonly startTokens: number
  /** Tokens grown since the last extraction. */
  readonly growthTokens: number
  /** Tool calls since the last extraction, unless the last turn made none. */
  readonly toolCalls: number
  /** Seconds a compaction waits for an extraction under way. */
  readonly waitSeconds: number
  /** Seconds after which an extraction counts as dead. */
  readonly deadAfterSeconds: number
  readonly kept: KeptMessagesPolicy
}

interface MemoryFilesPolicy {
  /** Files looked for in each folder. */
  readonly names: readonly string[]
  /** Files with path globs, looked for in each folder. */
  readonly rules: readonly string[]
  /** Hops an `@path` import may take. */
  readonly importHops: number
  /** Tokens of the reminder in front of the conversation. */
  readonly reminderTokens: number
}

const memoryNames = ['CLAUDE.md', '.claude/CLAUDE.md', 'CLAUDE.local.md', 'AGENTS.md']

const notesFields: Fields<NotesPolicy> = {
  enabled: field(true, flag()),
  extractor: field('auto', oneOf('auto', 'model', 'local')),
  titleMinimumWords: field(5, count(1)),
  titleMaximumWords: field(10, count(1)),
  sectionTokens: field(2_000, count(50)),
  totalTokens: field(12_000, count(500)),
  startTokens: field(10_000, count()),
  growthTokens: field(5_000, count(1)),
  toolCalls: field(3, count()),
  waitSeconds: field(15, count()),
  deadAfterSeconds: field(60, count(1)),
  kept: {
    minimumTokens: field(10_000, count()),
    minimumMessages: field(5, count()),
    maximumTokens: field(40_000, count()),
  },
}

const memoryFilesFields: Fields<MemoryFilesPolicy> = {
  names: field<readonly string[]>(memoryNames, listOf(name())),
  rules: field<readonly string[]>(['.claude/rules/*.md'], listOf(name())),
  importHops: field(4, count(0, 20)),
  reminderTokens: field(40_000, count()),
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

const fields: Fields<Policy> = {
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

/** The tables of all groups: each field's default and what it may hold. */
export const policyFields: FieldTree = fields

/** The path of every field, as in `clear.idle.keep`. */
export const policyPaths: readonly string[] = pathsOf(policyFields)

/** What `policy` holds at `path`; undefined where there is no such field. */
export function policyValue(policy: Policy, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => fieldOf(value, key), policy)
}

function fieldOf(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}
