/** What a turn needs of its host: the ports, the rules in force, the prefix it would have, and its tools. */
import type { BreakEvent } from '../cache/cache-break.ts'
import type { Redact } from '../cache/request-diff.ts'
import type { Retrieval } from '../clearing/placeholder.ts'
import type { RegisterRules } from '../clearing/tool-result-index.ts'
import type { PriceList } from '../cost/session-cost.ts'
import type { Block, ToolUseBlock } from '../log/block.ts'
import type { CompactMetadata, CompactTrigger } from '../log/record.ts'
import type { ScaledPolicy } from '../policy/limits.ts'
import type { Policy } from '../policy/policy.ts'
import type { Profile } from '../policy/provider-profile.ts'
import type { Switches } from '../policy/switches.ts'
import type { Entitlement } from '../request/cache-ttl.ts'
import type { Present } from '../request/prefix.ts'
import type { PlacedSection } from '../request/system-prompt.ts'
import type { Carrier } from '../sources/context-source.ts'
import type { ChainStep } from '../summary/attempt.ts'
import type { Receipt } from '../summary/receipt.ts'
import type { Span } from '../summary/select-span.ts'
import type { Summariser } from '../summary/summary-input.ts'
import type { Estimator } from '../tokens/estimator.ts'
import type { BlobStore, Clock, Deadlines, Ids, Journal, Model, Signal } from './ports.ts'
import type { SessionState } from './session-state.ts'

export interface TurnHost {
  readonly journal: Journal
  readonly model: Model
  readonly clock: Clock
  readonly ids: Ids
  readonly policy: Policy
  /** Of the model that `offered` names. */
  readonly profile: Profile
  readonly switches?: Switches
  /** Who asks: `repl_main_thread`, `sdk`, `agent:review` … */
  readonly source: string
  /** A person answers. */
  readonly isInteractive: boolean
  readonly entitlement?: Entitlement
  readonly isBedrock?: boolean
  /** What models cost: the one that is asked, and those that the log names. */
  readonly pricesOf: PriceList
  readonly sections: readonly PlacedSection[]
  /** Tools, model and parameters as they should be now. Asked before every request. */
  readonly offered: () => Offered
  /** Tools that come late where the provider cannot add any: announced unless `define`, which breaks the cache. */
  readonly lateTools?: 'announce' | 'define'
  /** The call whose result would be cleared first, as things are now. */
  readonly firstClearable?: (state: SessionState) => string | null
  readonly runTool: RunTool
  /** What making room takes; without it a session only grows. */
  readonly room?: Room
  /** Calls to the model after which a turn halts, to be taken up again or not; 1,000 unless told. */
  readonly maxCalls?: number
  /** Facts that are not sent and may tell why a cache is lost: overage, mode, strategy. */
  readonly circumstances?: () => Readonly<Record<string, string>>
  /** Takes secrets out of what is told of a break; the engine's own rules unless given. */
  readonly redact?: Redact
  /** Keeps what changed where the cache broke, as text for people; asked only where policy wants it. */
  readonly keepDiff?: KeepDiff
}

type KeepDiff = (diff: string, event: BreakEvent) => void | Promise<void>

export type Offered = Pick<Present, 'tools' | 'model' | 'parameters' | 'isUserTool'>

/** What a tool gave back; `is_error` tells the model that it failed. */
export interface ToolAnswer {
  readonly content: string | readonly Block[]
  readonly is_error?: boolean
}

/**
 * Runs one call. Those of a response run side by side, and the turn waits for all of them: one that can take long
 * watches the signal. What it throws is told to the model as the failure of that call.
 */
export type RunTool = (call: ToolUseBlock, signal?: Signal) => ToolAnswer | Promise<ToolAnswer>

// What making room needs of the host, beyond what a turn does. Without it a session only grows.

export interface Room {
  /** Of the model that is asked. Made once: another object means that all is counted anew. */
  readonly estimator: Estimator
  /** The policy seen through the model's window. */
  readonly scaled: ScaledPolicy
  readonly rules: RegisterRules
  readonly deadlines: Deadlines
  /** Where texts that left the view can be found by the model. */
  readonly retrieval: Retrieval
  /** Where large results go on arrival, and where their text is read again; without it they stay whole. */
  readonly blobs?: BlobStore
  readonly carriers?: readonly Carrier[]
  readonly hooks?: CompactHooks
  readonly cleanups?: readonly Cleanup[]
  /** Nobody is watching: work goes on by itself. */
  readonly isAutonomous?: boolean
  /** The model for summaries on a call of their own, where it is another than the conversation's. */
  readonly summariser?: OtherSummariser
  /** Writes summaries in another way than by the chain of asking. */
  readonly writeSummary?: WriteSummary
}

export interface OtherSummariser {
  readonly port: Model
  readonly summariser: Summariser
}

// Hooks around a compaction, in order: before it, when the session starts anew behind it, after it. One that hangs
// is left at its time, one that fails is told and takes nothing down, and what they add is bounded.

interface PreCompactInput {
  readonly trigger: CompactTrigger
  readonly customInstructions: string
  readonly sessionId: string
}

interface PreCompactOutput {
  /** Added behind the person's. */
  readonly newCustomInstructions?: string
  /** For the person's eyes. */
  readonly userDisplayMessage?: string
  /** Do not compact, and why. Not obeyed where the session could not go on. */
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

/** What a hook has for the model; blank says nothing. */
export interface HookContext {
  readonly additionalContext?: string
  readonly userDisplayMessage?: string
}

export interface CompactHooks {
  readonly preCompact?: readonly Hook<PreCompactInput, PreCompactOutput>[]
  readonly sessionStart?: readonly Hook<SessionStartInput, HookContext>[]
  readonly postCompact?: readonly Hook<PostCompactInput, HookContext>[]
}

export interface Hook<Input, Output> {
  readonly name: string
  /** Seconds; the policy's where it names none. */
  readonly timeoutSeconds?: number
  readonly run: (input: Input, signal?: Signal) => Output | undefined | Promise<Output | undefined>
}

interface HookRules {
  readonly deadlines: Deadlines
  readonly timeoutSeconds: number
  readonly signal: Signal | undefined
}

export type HookEnd<Output> =
  | { readonly name: string; readonly ok: true; readonly output: Output | undefined }
  | {
      readonly name: string
      readonly ok: false
      readonly why: 'timeout' | 'aborted' | 'threw'
      readonly message: string
    }

/** One after the other, in the order given: a later one may build on what an earlier one did to the world. */
export async function* runHooks<Input, Output>(
  hooks: readonly Hook<Input, Output>[],
  input: Input,
  rules: HookRules,
): AsyncGenerator<HookEnd<Output>, void> {
  for (const hook of hooks) {
    if (rules.signal?.aborted === true) return
    yield await runHook(hook, input, rules)
  }
}

async function runHook<Input, Output>(
  hook: Hook<Input, Output>,
  input: Input,
  { deadlines, signal, timeoutSeconds }: HookRules,
): Promise<HookEnd<Output>> {
  const { name } = hook
  const seconds = hook.timeoutSeconds ?? timeoutSeconds
  try {
    const end = await deadlines.within(seconds * 1000, async (bound) => hook.run(input, bound), signal)
    if (end.ok) return { name, ok: true, output: end.value }
    const message =
      end.why === 'timeout' ? `took longer than ${seconds} seconds and was left` : 'was called off'
    return { name, ok: false, why: end.why, message: `The hook ${name} ${message}.` }
  } catch (thrown) {
    return { name, ok: false, why: 'threw', message: wordsOf(thrown) }
  }
}

function wordsOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

// What has to be forgotten when a conversation is rewritten: each part of a host registers its own. One belongs to
// the main thread or to an agent, and a rewrite of an agent's conversation never touches what is not its own.

export interface Rewritten {
  readonly kind: 'compact' | 'clear' | 'undo'
  readonly source: string
  /** Tool calls whose results left the view: what was "already read" no longer is. */
  readonly toolUseIds: readonly string[]
  /** Files whose content left the view with them. */
  readonly filePaths: readonly string[]
}

export interface Cleanup {
  readonly name: string
  /** `main`, or the source that owns it (`agent:review`). */
  readonly scope: string
  readonly forget: (rewritten: Rewritten) => void
}

export interface CleanupFault {
  readonly name: string
  readonly message: string
}

const MAIN = 'main'

/** The main thread is a source that begins with `repl_main_thread`, or `sdk`, or none. */
function isMainThread(source: string): boolean {
  return source === '' || source === 'sdk' || source.startsWith('repl_main_thread')
}

/** Runs those that the rewrite concerns, all of them: one that throws is told and stops none. */
export function runCleanups(cleanups: readonly Cleanup[], rewritten: Rewritten): readonly CleanupFault[] {
  const scope = isMainThread(rewritten.source) ? MAIN : rewritten.source
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

// A summary as it was written, by whomever; and how a host writes one itself.

/** As whoever writes it gives it: gate and ledger come after. */
export interface RawSummary {
  readonly ok: true
  /** Headed `Summary:`. */
  readonly text: string
  readonly summarizer: NonNullable<CompactMetadata['summarizer']>
  /** The provider's own, to be sent back as it is. */
  readonly block: Block | null
  readonly recordsCoveredLocally: number
  readonly fallbackReason: string | null
  readonly steps: readonly ChainStep[]
}

export interface WrittenSummary extends RawSummary {
  /** What the gate and the ledger add, where the summary itself may not be touched: a provider's own block. */
  readonly beside: string
  /** The names the work is using, as lines. */
  readonly ledger: readonly string[]
  /** What it lacked and found no room to be put back. */
  readonly unfit: readonly string[]
}

export interface SummaryQuestion {
  readonly sessionId: string
  /** What the summary stands for, and what it is shown. */
  readonly span: Span
  /** Composed and bounded; null where nobody wants anything. */
  readonly instructions: string | null
}

/** Null: it could not be written, and the compaction is not made. What is thrown counts as that. */
export type WriteSummary = (question: SummaryQuestion, signal?: Signal) => Promise<string | null>
