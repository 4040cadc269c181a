/**
 * What the host supplies: ports, policy, system prompt and tools for a turn; services for compaction, such as a summary of
 * its own, and cleanups that run after a rewrite.
 */
import type { CacheBreak } from '../cache/cache-break-types.ts'
import { isMainSource } from '../cache/cache-monitor.ts'
import type { RetrievalMethods } from '../clearing/clear-candidates.ts'
import type { ToolResultRules } from '../clearing/tool-result-index.ts'
import type { CallLimits } from '../cost/limits.ts'
import { findTierRates, type TokenRates } from '../cost/prices.ts'
import type { FindModelPrices } from '../cost/session-cost.ts'
import { describeThrown } from '../errors.ts'
import type { FactsOptions } from '../facts/session-facts.ts'
import type { Block, ToolUseBlock } from '../log/block.ts'
import type { CompactMetadata, RecordedUserInput } from '../log/record.ts'
import type { BranchNotesKeeper } from '../notes/render-notes.ts'
import type { Policy } from '../policy/policy.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type { ScaledLimits } from '../policy/scale-policy.ts'
import type { Switches } from '../policy/switches.ts'
import type { ClientMarker } from '../request/cache-markers.ts'
import type { TtlEntitlement } from '../request/cache-ttl.ts'
import type { DesiredPrefix } from '../request/prefix-snapshot.ts'
import type { PlacedSection } from '../request/system-prompt.ts'
import type { ContextSource } from '../sources/context-source.ts'
import type { SummaryAttemptStep } from '../summary/attempt-types.ts'
import type { SummaryModel } from '../summary/direct-summary-request.ts'
import type { SummaryAuthor } from '../summary/repair-summary.ts'
import type { CompactionSpan } from '../summary/select-span.ts'
import type { Estimator } from '../tokens/estimator.ts'
import type { SessionHooks, SessionStartSource, ToolPermissionDecision } from './hooks.ts'
import type {
  BlobStore,
  Clock,
  Deadlines,
  IdGenerator,
  Journal,
  Model,
  NotesStore,
  Signal,
  StoredNotes,
} from './ports.ts'
import type { TokenExcess } from './reply.ts'
import type { SessionState } from './session-state.ts'

export interface TurnHost {
  readonly journal: Journal
  readonly model: Model
  readonly clock: Clock
  readonly ids: IdGenerator
  readonly policy: Policy
  /** Rules and limits of the model that `readOfferedPrefix` names. */
  readonly profile: ProviderProfile
  readonly switches?: Switches
  /** Label of the turn's caller (query source), such as `repl_main_thread`, `sdk` or `agent:review`. */
  readonly source: string
  /** True if a user can answer questions. */
  readonly isInteractive: boolean
  readonly entitlement?: TtlEntitlement
  readonly isBedrock?: boolean
  /**
   * The client that sends whole requests (`tide.fetch`, `watch`, `session.take`), if any. The provider judges its
   * parameters, tools and system prompt. The model can call only the tools that the client offers; a prompt that is too
   * long stays in the client's list.
   */
  readonly client?: DropInClient
  /** Returns the prices of a model. Called for the model in use and for models named in the log. */
  readonly pricesOf: FindModelPrices
  readonly sections: readonly PlacedSection[]
  /** Returns the current tools, model and parameters. Called before every request. */
  readonly readOfferedPrefix: () => OfferedPrefix
  /**
   * If the provider cannot add tools later: announce new tools in a message, or define them, which breaks the cache.
   * Default: define, because the model cannot call a tool that is only announced.
   */
  readonly lateTools?: 'announce' | 'define'
  /** Returns the id of the tool call whose result would be cleared first. If omitted, the engine determines it. */
  readonly firstClearable?: (state: SessionState) => string | null
  readonly runTool: ToolRunner
  /** Returns true if calls of the tool may run at the same time as others. Default: all tools. */
  readonly isParallelTool?: (name: string) => boolean
  /**
   * Returns true if the tool exists; waits for a tool that is still being loaded. Calls of unknown tools are answered
   * without hooks and permissions. Default: all tools exist.
   */
  readonly hasTool?: (name: string) => boolean | Promise<boolean>
  /** Decides which tool calls may run. Default: all. */
  readonly canUseTool?: PermissionCheck
  /** Returns how the session began; null once `noteStarted` was called. A turn then runs the SessionStart hooks first. */
  readonly startSource?: () => SessionStartSource | null
  /** Called when the context of the SessionStart hooks is in the log. Until then, each further turn runs the hooks again. */
  readonly noteStarted?: () => void
  /**
   * Called after every response of the model (`response`), and after the answer that ends a turn (`turn-end`), to start
   * work in the background. Must return at once.
   */
  readonly startBackgroundWork?: (state: SessionState, moment: 'response' | 'turn-end') => void
  /** Lets other waiting work of the program run, between the slices of long work. If omitted, long work runs in one piece. */
  readonly pause?: () => Promise<void>
  /** Services for clearing and compaction. */
  readonly compaction: CompactionServices
  /** Returns a random number in [0, 1) that shortens the delay before a retry. Default: no random part. */
  readonly chance?: () => number
  /** The working directory of the agent. Records carry it, so that the log tells which project the session is about. */
  readonly cwd?: string
  /** Limit of model calls in one turn, after which the turn ends with `call-limit`. Default: 1,000. */
  readonly maxCalls?: number
  /** Limits of what the run and the session may use. Default: none. */
  readonly limits?: CallLimits
  /**
   * Called if the server has dropped the beginning of a prompt, which shows a window of about `tokens`. Returns the
   * rules and limits for that window; null if it is too small for the policy.
   */
  readonly learnWindow?: (tokens: number) => Pick<TurnHost, 'profile' | 'compaction'> | null
  /** Stores the diff of a cache break as readable text. Called only if policy turns diff files on. */
  readonly keepDiff?: SaveDiff
}

/** What is known of a client whose whole requests the engine rewrites. */
export interface DropInClient {
  /** The cache markers of the client's last request. */
  readonly markers: readonly ClientMarker[]
  /** The cache lifetime that its last marker asks for; undefined if the request has none. */
  readonly ttl: string | undefined
  /** Milliseconds between the client's newest requests, newest last, as far as they are known. */
  readonly pauses: readonly number[]
  /**
   * uuid of the last record that the client's next request is expected to repeat; null for none, undefined for all.
   * Cache entries that end after it would be paid for and never read: some clients change earlier messages each time.
   */
  readonly repeatedUntil: string | null | undefined
  /**
   * True if nothing is cleared or compacted while the next request still fits the context window. Without the engine,
   * the client would send such a request unchanged, and it may end before a rewrite has paid for itself.
   */
  readonly waitsUntilFull: boolean
  /** The sizes that the provider reported when it refused the client's request as too long. Undefined if it did not refuse it. */
  readonly refusedAsTooLong: TokenExcess | undefined
}

type SaveDiff = (diff: string, event: CacheBreak) => void | Promise<void>

/** What the host wants in the prefix of the next request: tools, model and parameters. */
export type OfferedPrefix = Pick<
  DesiredPrefix,
  'tools' | 'model' | 'parameters' | 'isUserTool' | 'keepsToolOrder' | 'keepsBetas'
>

/** Content of a tool result. `is_error` tells the model that the tool failed. */
export interface ToolResultContent {
  readonly content: string | readonly Block[]
  readonly is_error?: boolean
  /** The parts of the result that the user typed: answers, or the words of a refusal. Nothing else counts as the user's words. */
  readonly userInputs?: readonly Omit<RecordedUserInput, 'toolUseId'>[]
}

/**
 * Runs one tool call. The turn waits for it, so a slow tool must check the signal. `report` passes news of a tool that
 * is still running to the host. An exception becomes an error result.
 */
export type ToolRunner = (
  call: ToolUseBlock,
  signal?: Signal,
  report?: (news: string) => void,
) => ToolResultContent | Promise<ToolResultContent>

/** Decides whether a tool call may run. Called after the PreToolUse hooks. */
export type PermissionCheck = (
  call: ToolUseBlock,
  signal?: Signal,
) => ToolPermissionDecision | Promise<ToolPermissionDecision>

/** Services that the host supplies for clearing and compaction. */
export interface CompactionServices {
  /** Token estimator for the model in use. If this object changes, the engine counts the whole context again. */
  readonly estimator: Estimator
  /** Thresholds and budgets of the policy, scaled to the model's context window. */
  readonly scaled: ScaledLimits
  readonly rules: ToolResultRules
  readonly deadlines: Deadlines
  /** Where the model can read text that is no longer in the context. */
  readonly retrieval: RetrievalMethods
  /** Stores large tool results. Without it, or if the model has no history tool, tool results are never shortened. */
  readonly blobs?: BlobStore
  /** State to attach again after a compaction. */
  readonly sources?: readonly ContextSource[]
  readonly hooks?: SessionHooks
  /** Called after every rewrite, so that the host forgets what the model no longer sees. */
  readonly cleanups?: readonly RewriteCleanup[]
  /** True if no user is watching, so that the model continues without asking. */
  readonly isAutonomous?: boolean
  /** A separate model for summary calls that do not read the conversation's cached prefix. */
  readonly summaryModel?: SeparateSummaryModel
  /** Writes summaries instead of the engine. */
  readonly writeSummary?: HostSummaryWriter
  /** The notes of the session. Without them, every compaction writes a summary. */
  readonly notes?: NotesServices
}

/** What the engine needs to keep notes of a session and to compact with them. */
export interface NotesServices {
  readonly store: NotesStore
  /** The notes that are kept from the log without a model; null if the conversation's model writes the notes. */
  readonly local: BranchNotesKeeper | null
  /** Notes from the log for a compaction that cannot use those of the model. Not used if `local` is set. */
  readonly fallback?: BranchNotesKeeper
  /** Returns the model's notes as last read or stored. Not called if the notes are kept without a model. */
  readonly readStored?: () => Pick<StoredNotes, 'coveredUuid'> | null
}

/** Returns today's rates of the session's model for a prompt of this size; null if its prices are not known. */
export function findCurrentRates(host: TurnHost, promptTokens: number): TokenRates | null {
  const prices = host.pricesOf(host.readOfferedPrefix().model, new Date(host.clock.now()).toISOString())
  return prices === null ? null : findTierRates(prices, promptTokens)
}

/** Another model than the session's, for summaries. `summariser`: its profile, window and limits. */
export interface SeparateSummaryModel {
  readonly model: Model
  readonly summariser: SummaryModel
}

/**
 * A compaction, clearing, undo or move to another branch that was appended to the log, as passed to cleanup callbacks.
 * After an undo or a move, any tool result or file may be missing from the context.
 */
export interface CommittedRewrite {
  readonly kind: 'compact' | 'clear' | 'undo' | 'rewind'
  readonly source: string
  /** Tool calls whose results are no longer in the context. */
  readonly toolUseIds: readonly string[]
  /** Files whose content is no longer in the context. */
  readonly filePaths: readonly string[]
}

/** A callback that drops host state which a rewrite makes stale, such as a cache of files read. */
export interface RewriteCleanup {
  readonly name: string
  /**
   * `main`, or the query source (label of an agent, such as `agent:review`) that owns the host state. The callback runs
   * only when the context of that source is rewritten.
   */
  readonly scope: string
  readonly forget: (rewritten: CommittedRewrite) => void
}

export interface CleanupFailure {
  readonly name: string
  readonly message: string
}

const MAIN_SCOPE = 'main'

/** Runs the cleanup callbacks of the conversation or agent whose context was rewritten. Exceptions are returned, not thrown. */
export function runCleanups(
  cleanups: readonly RewriteCleanup[],
  rewritten: CommittedRewrite,
): readonly CleanupFailure[] {
  const scope = isMainSource(rewritten.source) ? MAIN_SCOPE : rewritten.source
  return cleanups
    .filter((cleanup) => cleanup.scope === scope)
    .flatMap((cleanup) => {
      try {
        cleanup.forget(rewritten)
        return []
      } catch (thrown) {
        return [{ name: cleanup.name, message: describeThrown(thrown) }]
      }
    })
}

/** A summary before it is checked, written by a model, the host or the engine itself. */
export interface UncheckedSummary {
  readonly ok: true
  /** Text of the summary, which begins with `Summary:`. */
  readonly text: string
  /** Who wrote the text. Notes of the session are by a model or from the log (`notes`). */
  readonly author: SummaryAuthor
  readonly summarizer: NonNullable<CompactMetadata['summarizer']>
  /** Text from the log about records that the summarizing model was not shown; empty if there are none. */
  readonly cover: string
  /** Compaction block that the provider wrote, to be sent back byte for byte; null for other summaries. */
  readonly block: Block | null
  /** Number of records that `cover` is about. */
  readonly recordsCoveredLocally: number
  /** Why the first attempt was not used, as a code, a colon and a sentence; null if it was used. */
  readonly fallbackReason: string | null
  /** All attempts in order, made or skipped; empty for a text that the engine did not ask for. */
  readonly steps: readonly SummaryAttemptStep[]
}

/** A summary that was checked against the user messages, files, errors and todos of the log. */
export interface CompleteSummary extends UncheckedSummary {
  /** Missing facts and names of files that are sent next to the provider's compaction block, since the block must not change. */
  readonly besideBlock: string
  /** Tokens of the user's messages in the summary. They are not cut to make the summary smaller. */
  readonly userTokens: number
  /** Lines with the files in use and their code identifiers. */
  readonly ledger: readonly string[]
  /** Facts that are missing from the summary and were too large to be added. */
  readonly missingFacts: readonly string[]
}

export interface HostSummaryInput {
  readonly sessionId: string
  /** The records that the summary replaces, the records kept, and the entries to send to the summarizer. */
  readonly span: CompactionSpan
  /** Instructions of user, policy and hooks, cut to their limit; null if there are none. */
  readonly instructions: string | null
}

/**
 * A function of the host that writes the text of a summary, in place of the engine. If it returns null or blank text,
 * throws, or takes too long, the compaction is refused.
 */
export type HostSummaryWriter = (input: HostSummaryInput, signal?: Signal) => Promise<string | null>

/** Returns the names of tools for files and for the todo list that the policy has. */
export function readPolicyToolNames({ rehydrate }: Policy): NonNullable<FactsOptions['tools']> {
  const { readTools, writeTools } = rehydrate.files
  return { readTools, writeTools, todoTools: rehydrate.todoTools }
}
