/** Settings of compactions, of what is attached again after one, and of the facts in a summary: types, defaults, checks. */
import { TODO_TOOLS } from '../facts/todo-list.ts'
import { READ_TOOLS, WRITE_TOOLS } from '../facts/tool-calls.ts'
import {
  booleanCheck,
  choiceCheck,
  decimalNumberCheck,
  type FieldSpecs,
  fieldSpec,
  nonBlankCheck,
  nullableCheck,
  percentageCheck,
  stringCheck,
  uniqueListCheck,
  wholeNumberCheck,
} from './policy-fields.ts'

// Settings of tier 2: compaction, in which a summary replaces the conversation.

/** Kinds of re-attached content that may be dropped to make a compaction smaller. */
export type DroppableSource = 'skills' | 'files' | 'agents'

/**
 * When a compaction with the notes of the session is due. It needs no model call and delays no turn, so this only
 * weighs cost against what is lost: it is due at the largest of three sizes, at most the auto-compact threshold. Tokens
 * are for a context window of 200,000 and are scaled with the window.
 */
export interface NotesCompactionPolicy {
  /** False: notes are used at the auto-compact threshold only. */
  readonly enabled: boolean
  /** Tokens of conversation, system prompt and tools apart, below which no compaction is due. */
  readonly conversationTokens: number
  /** Tokens that must have been added since the last compaction. */
  readonly growthTokens: number
  /**
   * Multiplies the growth at which the average cost per call is least: √(2 · growth per call · tokens that a compaction
   * writes again · (write − read price) / read price). 0: cost does not count.
   */
  readonly rootFactor: number
  /** If the cache has expired, a compaction is due once this many tokens were added since the last one. */
  readonly coldTokens: number
  /**
   * A compaction waits while the model reads before it edits: while the files that it read in its last `readingResponses`
   * responses and has not edited since have more tokens than this. Files read since its last edit count in any case.
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
   * A summary must be smaller than this percentage of the content that it replaces, or it is rejected. With 95, the
   * compaction as a whole must also save 5 %, unless the session cannot continue without it.
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
  readonly notesLine: NotesCompactionPolicy
}

const dropOrder: readonly DroppableSource[] = ['skills', 'files', 'agents']

export const compactFields: FieldSpecs<CompactPolicy> = {
  target: {
    percentOfAutoCompact: fieldSpec(50, percentageCheck(1, 95)),
    countsPrefix: fieldSpec(false, booleanCheck()),
    shed: fieldSpec(dropOrder, uniqueListCheck(choiceCheck('skills', 'files', 'agents'))),
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
    coldTokens: fieldSpec(10_000, wholeNumberCheck()),
    readingTokens: fieldSpec(15_000, wholeNumberCheck()),
    readingResponses: fieldSpec(50, wholeNumberCheck()),
  },
}

// Settings of the content that is re-attached after a compaction, and of the facts that the engine adds to a summary.

export interface RehydratePolicy {
  readonly files: {
    /** Number of files that are attached again after a compaction: those edited last, then those read last. */
    readonly count: number
    /** Maximum tokens of one re-attached file. Of a longer file the regions round its last edits and reads are shown. */
    readonly eachTokens: number
    /**
     * Rank, counted from 1, from which on a file has at most `middleTokens`. It has more, up to `eachTokens`, if the
     * files after it leave some of `totalTokens`.
     */
    readonly middleRank: number
    readonly middleTokens: number
    /** Rank from which on a file has at most `lastTokens`; it has more as described above. */
    readonly lastRank: number
    readonly lastTokens: number
    /** Maximum tokens of all re-attached files together. A file that does not fit is left out. */
    readonly totalTokens: number
    /** Names of tools that read a file, unless their input has a command. Calls of other tools are recognized by their input. */
    readonly readTools: readonly string[]
    /** Names of tools that change a file, unless their input has a command. */
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
   * Time limit, in seconds, for reading one context source. What it has not supplied by then is left out, and the receipt
   * says so.
   */
  readonly timeoutSeconds: number
}

/** Facts that every summary must contain. The engine adds the ones that the summary lacks. */
export interface SummaryFactsPolicy {
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

export const rehydrateFields: FieldSpecs<RehydratePolicy> = {
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
  timeoutSeconds: fieldSpec(10, wholeNumberCheck(1)),
}

export const summaryFactsFields: FieldSpecs<SummaryFactsPolicy> = {
  userMessagesPercent: fieldSpec(33, percentageCheck()),
  userMessagesTokens: fieldSpec(null, nullableCheck(wholeNumberCheck())),
  userMessageTokens: fieldSpec(null, nullableCheck(wholeNumberCheck(1))),
  filesTokens: fieldSpec(2_000, wholeNumberCheck()),
  namesTokens: fieldSpec(1_500, wholeNumberCheck()),
  errors: fieldSpec(10, wholeNumberCheck()),
}
