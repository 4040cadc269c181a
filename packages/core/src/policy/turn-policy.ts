/**
 * Settings of a turn, the switches, stored tool results, the history tool, and clients with their own list: types, defaults,
 * checks.
 */

import type { NotesCompactionPolicy } from './compact-policy.ts'
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

export interface TurnPolicy {
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

export const turnFields: FieldSpecs<TurnPolicy> = {
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

export const switchFields: FieldSpecs<SwitchPolicy> = {
  compactEnabled: fieldSpec(true, booleanCheck()),
  autoCompactEnabled: fieldSpec(true, booleanCheck()),
  microcompactEnabled: fieldSpec(true, booleanCheck()),
  promptCachingEnabled: fieldSpec(true, booleanCheck()),
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

export const spillFields: FieldSpecs<SpillPolicy> = {
  enabled: fieldSpec(true, booleanCheck()),
  thresholdTokens: fieldSpec(10_000, wholeNumberCheck(100)),
  headTokens: fieldSpec(1_500, wholeNumberCheck(1)),
  tailTokens: fieldSpec(1_500, wholeNumberCheck(1)),
  imageBytes: fieldSpec(4_000_000, wholeNumberCheck(1_000)),
  exceptTools: fieldSpec<readonly string[]>([], uniqueListCheck(nonBlankCheck())),
}

export const historyFields: FieldSpecs<HistoryPolicy> = {
  pageTokens: fieldSpec(4_000, wholeNumberCheck(200)),
  matches: fieldSpec(20, wholeNumberCheck(1, 1_000)),
  searchSteps: fieldSpec(20_000_000, wholeNumberCheck(100_000)),
}

// Settings for clients with a message list of their own.

/** Settings for clients that send their whole conversation with every request (`session.take`, `tidemark.fetch`). */
export interface DropInPolicy {
  /**
   * When old content may be cleared or summarized. `when-full`: only if the client's own request would no longer fit the
   * context window, because it is not known whether the client goes on long enough for an earlier rewrite to pay for itself.
   * `early`: at the thresholds of `ladder`, as in other sessions.
   */
  readonly rewrite: 'when-full' | 'early'
  /**
   * With `when-full`: once a request did not fit and the context was rewritten, the client's own list no longer fits either. A
   * compaction with the notes is then due from the size of `compact.notesLine` on, with these settings in place of its own.
   */
  readonly notesLine: Pick<NotesCompactionPolicy, 'enabled' | 'conversationTokens' | 'growthTokens'>
  /**
   * With `when-full`: from the auto-compact threshold on, a compaction with the notes is made although the request fits, if
   * the next request costs no more with it than without it. However soon the client then ends, it has paid at most half a
   * percent more.
   */
  readonly freeRewrites: boolean
  /**
   * Files are attached after a compaction only if the model is expected to use at least this percentage of them before the
   * next compaction without reading them again. Otherwise they would be written and read for nothing.
   */
  readonly leastUsePercent: number
  /**
   * With `when-full`: maximum tokens of the notes, which are written again with each compaction. The budgets of their parts
   * shrink in proportion. What the user said is kept beyond it.
   */
  readonly notesTokens: number
  /**
   * What happens to the cache markers of the client's request. `add`: they stay where they are, and the
   * engine adds others where they cost nothing, or where its savings pay for them. `keep`: only the client's are set.
   * `replace`: only the engine's are set, with the lifetime that the client's ask for.
   */
  readonly cacheMarkers: 'add' | 'keep' | 'replace'
  /**
   * Maximum tokens of the texts that are pinned after a client's own compaction: what the client repeats beside its
   * summary, without its system messages.
   */
  readonly pinTokens: number
}

export const dropInFields: FieldSpecs<DropInPolicy> = {
  rewrite: fieldSpec('when-full', choiceCheck('when-full', 'early')),
  notesLine: {
    enabled: fieldSpec(true, booleanCheck()),
    conversationTokens: fieldSpec(40_000, wholeNumberCheck()),
    growthTokens: fieldSpec(25_000, wholeNumberCheck()),
  },
  freeRewrites: fieldSpec(false, booleanCheck()),
  leastUsePercent: fieldSpec(50, wholeNumberCheck(0, 100)),
  notesTokens: fieldSpec(5_000, wholeNumberCheck(500)),
  cacheMarkers: fieldSpec('add', choiceCheck('add', 'keep', 'replace')),
  pinTokens: fieldSpec(20_000, wholeNumberCheck()),
}
