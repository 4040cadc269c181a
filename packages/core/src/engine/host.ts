/** What a host supplies: ports, policy, system prompt and tools; hooks, cleanups and services for compaction. */
import type { CacheBreak } from '../cache/cache-break.ts'
import type { RedactText } from '../cache/request-diff.ts'
import type { RetrievalPaths } from '../clearing/select-results.ts'
import type { IndexRules } from '../clearing/tool-result-index.ts'
import type { PriceList } from '../cost/session-cost.ts'
import type { Block, ToolUseBlock } from '../log/block.ts'
import type { CompactMetadata, CompactTrigger } from '../log/record.ts'
import type { ScaledPolicy } from '../policy/limits.ts'
import type { Policy } from '../policy/policy.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type { Switches } from '../policy/switches.ts'
import type { TtlEntitlement } from '../request/cache-ttl.ts'
import type { DesiredPrefix } from '../request/prefix.ts'
import type { PlacedSection } from '../request/system-prompt.ts'
import type { ContextSource } from '../sources/context-source.ts'
import type { AttemptStep } from '../summary/attempt.ts'
import type { Receipt } from '../summary/receipt.ts'
import type { CompactionSpan } from '../summary/select-span.ts'
import type { SummaryModel } from '../summary/summary-input.ts'
import type { Estimator } from '../tokens/estimator.ts'
import type { BlobStore, Clock, Deadlines, IdGenerator, Journal, Model, Signal } from './ports.ts'
import type { SessionState } from './session-state.ts'

export interface TurnHost {
  readonly journal: Journal
  readonly model: Model
  readonly clock: Clock
  readonly ids: IdGenerator
  readonly policy: Policy
  /** Of the model that `offered` returns. */
  readonly profile: ProviderProfile
  readonly switches?: Switches
  /** The query source: `repl_main_thread`, `sdk`, `agent:review` … */
  readonly source: string
  /** A user can answer questions. */
  readonly isInteractive: boolean
  readonly entitlement?: TtlEntitlement
  readonly isBedrock?: boolean
  /** Prices of the model in use, and of those that the log names. */
  readonly pricesOf: PriceList
  readonly sections: readonly PlacedSection[]
  /** Tools, model and parameters as they should be now. Called before every request. */
  readonly modelSettings: () => ModelSettings
  /** New tools, if the provider cannot add any later: announced in a message, or defined, which breaks the cache. */
  readonly lateTools?: 'announce' | 'define'
  /** The tool call whose result would be cleared first. */
  readonly firstClearable?: (state: SessionState) => string | null
  readonly runTool: RunTool
  /** What clearing and compaction need; without it the context only grows. */
  readonly compaction?: CompactionHost
  /** Model calls after which a turn ends with `call-limit`; default 1,000. */
  readonly maxCalls?: number
  /** Facts that are not sent but may explain a cache break: overage, mode, strategy. */
  readonly circumstances?: () => Readonly<Record<string, string>>
  /** Removes secrets from the description of a cache break; default: the engine's rules. */
  readonly redact?: RedactText
  /** Stores the diff of a cache break, as readable text; only called if policy wants it. */
  readonly keepDiff?: SaveDiff
}

/** A host that can clear and compact. */
export interface CompactingHost extends TurnHost {
  readonly compaction: CompactionHost
}

type SaveDiff = (diff: string, event: CacheBreak) => void | Promise<void>

export type ModelSettings = Pick<DesiredPrefix, 'tools' | 'model' | 'parameters' | 'isUserTool'>

/** The content of a tool result; `is_error` tells the model that the tool failed. */
export interface ToolResultContent {
  readonly content: string | readonly Block[]
  readonly is_error?: boolean
}

/**
 * Runs one tool call. Those of a response run in parallel, and the turn waits for all of them: a slow tool must watch
 * the signal. What it throws becomes the error result of the call.
 */
export type RunTool = (call: ToolUseBlock, signal?: Signal) => ToolResultContent | Promise<ToolResultContent>

/** What clearing and compaction need of the host, beyond what a turn does. */
export interface CompactionHost {
  /** For the model in use. Keep the object: with another one everything is counted again. */
  readonly estimator: Estimator
  /** Thresholds and budgets of the policy for the model's window. */
  readonly scaled: ScaledPolicy
  readonly rules: IndexRules
  readonly deadlines: Deadlines
  /** Where the model finds text that left the context. */
  readonly retrieval: RetrievalPaths
  /** Where large tool results are spilled to; without it they stay whole. */
  readonly blobs?: BlobStore
  readonly sources?: readonly ContextSource[]
  readonly hooks?: CompactHooks
  readonly cleanups?: readonly Cleanup[]
  /** No user is watching; continue without asking. */
  readonly isAutonomous?: boolean
  /** Another model for summaries that are written in a call of their own. */
  readonly summaryModel?: SeparateSummaryModel
  /** Writes the summaries instead of the engine's attempts. */
  readonly writeSummary?: WriteSummary
}

export interface SeparateSummaryModel {
  readonly model: Model
  readonly summariser: SummaryModel
}

// Hooks of a compaction. One that hangs is abandoned at its timeout, one that fails is reported and fails nothing else,
// and what they add is bounded.

interface PreCompactInput {
  readonly trigger: CompactTrigger
  readonly customInstructions: string
  readonly sessionId: string
}

interface PreCompactOutput {
  /** Added after the user's instructions. */
  readonly newCustomInstructions?: string
  /** Shown to the user. */
  readonly userDisplayMessage?: string
  /** Reason not to compact now. Not obeyed if the session could not continue. */
  readonly block?: string
}

interface SessionStartInput {
  readonly source: 'startup' | 'resume' | 'clear' | 'compact' | 'fork'
  readonly sessionId: string
}

interface PostCompactInput {
  readonly trigger: CompactTrigger
  readonly sessionId: string
  readonly summary: string
  readonly receipt: Receipt
}

/** Context that a hook adds for the model; blank text adds nothing. */
export interface HookContextOutput {
  readonly additionalContext?: string
  readonly userDisplayMessage?: string
}

export interface CompactHooks {
  readonly preCompact?: readonly Hook<PreCompactInput, PreCompactOutput>[]
  readonly sessionStart?: readonly Hook<SessionStartInput, HookContextOutput>[]
  readonly postCompact?: readonly Hook<PostCompactInput, HookContextOutput>[]
}

export interface Hook<Input, Output> {
  readonly name: string
  /** Default: the policy's. */
  readonly timeoutSeconds?: number
  readonly run: (input: Input, signal?: Signal) => Output | undefined | Promise<Output | undefined>
}

interface HookLimits {
  readonly deadlines: Deadlines
  readonly timeoutSeconds: number
  readonly signal: Signal | undefined
}

export type HookResult<Output> =
  | { readonly name: string; readonly ok: true; readonly output: Output | undefined }
  | {
      readonly name: string
      readonly ok: false
      readonly why: 'timeout' | 'aborted' | 'threw'
      readonly message: string
    }

/** Runs the hooks one after the other: a later one may depend on side effects of an earlier one. */
export async function* runHooks<Input, Output>(
  hooks: readonly Hook<Input, Output>[],
  input: Input,
  rules: HookLimits,
): AsyncGenerator<HookResult<Output>, void> {
  for (const hook of hooks) {
    if (rules.signal?.aborted === true) return
    yield await runHook(hook, input, rules)
  }
}

async function runHook<Input, Output>(
  hook: Hook<Input, Output>,
  input: Input,
  { deadlines, signal, timeoutSeconds }: HookLimits,
): Promise<HookResult<Output>> {
  const { name } = hook
  const seconds = hook.timeoutSeconds ?? timeoutSeconds
  try {
    const end = await deadlines.within(seconds * 1000, async (bound) => hook.run(input, bound), signal)
    if (end.ok) return { name, ok: true, output: end.value }
    const message =
      end.why === 'timeout' ? `took longer than ${seconds} seconds and was left` : 'was called off'
    return { name, ok: false, why: end.why, message: `The hook ${name} ${message}.` }
  } catch (thrown) {
    return {
      name,
      ok: false,
      why: 'threw',
      message: thrown instanceof Error ? thrown.message : String(thrown),
    }
  }
}

/** A committed rewrite, as cleanups receive it. */
export interface CommittedRewrite {
  readonly kind: 'compact' | 'clear' | 'undo'
  readonly source: string
  /** Tool calls whose results left the context: they no longer count as read. */
  readonly toolUseIds: readonly string[]
  /** Files whose content left the context with them. */
  readonly filePaths: readonly string[]
}

/** Releases state of the host that a rewrite makes stale; each part of a host registers its own. */
export interface Cleanup {
  readonly name: string
  /** `main`, or the source that owns it (`agent:review`): a rewrite never touches the state of other sources. */
  readonly scope: string
  readonly forget: (rewritten: CommittedRewrite) => void
}

export interface CleanupFailure {
  readonly name: string
  readonly message: string
}

const MAIN_SCOPE = 'main'

/** The main thread is `sdk`, no source, or one that begins with `repl_main_thread`. */
function isMainThread(source: string): boolean {
  return source === '' || source === 'sdk' || source.startsWith('repl_main_thread')
}

/** Runs the cleanups of the rewritten source. One that throws is reported and does not stop the others. */
export function runCleanups(
  cleanups: readonly Cleanup[],
  rewritten: CommittedRewrite,
): readonly CleanupFailure[] {
  const scope = isMainThread(rewritten.source) ? MAIN_SCOPE : rewritten.source
  return cleanups
    .filter((cleanup) => cleanup.scope === scope)
    .flatMap((cleanup) => {
      try {
        cleanup.forget(rewritten)
        return []
      } catch (thrown) {
        return [{ name: cleanup.name, message: thrown instanceof Error ? thrown.message : String(thrown) }]
      }
    })
}

/** A summary as written by a model, the host or locally, before it is checked. */
export interface RawSummary {
  readonly ok: true
  /** Begins with `Summary:`. */
  readonly text: string
  readonly summarizer: NonNullable<CompactMetadata['summarizer']>
  /** The provider's own summary block, to be sent back byte for byte. */
  readonly block: Block | null
  readonly recordsCoveredLocally: number
  readonly fallbackReason: string | null
  readonly steps: readonly AttemptStep[]
}

/** A summary after the check. */
export interface CheckedSummary extends RawSummary {
  /** What check and ledger add next to a provider's own block, which may not be changed. */
  readonly besideBlock: string
  /** Names that the work is using, one per line. */
  readonly ledger: readonly string[]
  /** Missing facts that did not fit in. */
  readonly missingFacts: readonly string[]
}

export interface HostSummaryInput {
  readonly sessionId: string
  /** What the summary replaces, and the input for it. */
  readonly span: CompactionSpan
  /** Instructions of user, policy and hooks, within their limit; null if there are none. */
  readonly instructions: string | null
}

/** Null, or an exception: there is no summary, and the compaction is refused. */
export type WriteSummary = (input: HostSummaryInput, signal?: Signal) => Promise<string | null>
