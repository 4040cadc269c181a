/**
 * Hooks: functions of the host that run at certain points of a session. A hook that hangs is abandoned at its timeout, a
 * hook that fails is reported and changes nothing, and the text that hooks add to the context is limited.
 */
import { describeThrown } from '../errors.ts'
import type { MessageContent, ToolResultBlock, ToolUseBlock } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type { CompactTrigger } from '../log/record.ts'
import type { ReplyStop } from '../log/reply-report.ts'
import type { Policy } from '../policy/policy.ts'
import { formatErrorValue } from '../policy/policy-fields.ts'
import type { ScaledLimits } from '../policy/scale-policy.ts'
import type { Receipt } from '../summary/receipt.ts'
import { truncateEnd } from '../text/truncate-text.ts'
import type { Deadlines, Signal } from './ports.ts'

interface PreCompactInput {
  readonly trigger: CompactTrigger
  readonly customInstructions: string
  readonly sessionId: string
}

interface PreCompactOutput {
  /** Instructions for the summary, added after those of the user. */
  readonly newCustomInstructions?: string
  /** Message shown to the user. */
  readonly userDisplayMessage?: string
  /** Reason to block the compaction. Ignored if the session cannot continue without the compaction. */
  readonly block?: string
}

/** How a session began, or began anew. */
export type SessionStartSource = 'startup' | 'resume' | 'clear' | 'compact' | 'fork'

interface SessionStartInput {
  readonly source: SessionStartSource
  readonly sessionId: string
}

interface PostCompactInput {
  readonly trigger: CompactTrigger
  readonly sessionId: string
  readonly summary: string
  readonly receipt: Receipt
}

/** Text that a hook adds to the model's context. Blank text is ignored. */
export interface HookContextOutput {
  readonly additionalContext?: string
  readonly userDisplayMessage?: string
}

interface UserPromptInput {
  readonly prompt: MessageContent
  readonly sessionId: string
}

interface UserPromptOutput extends HookContextOutput {
  /** Reason not to send the prompt. The prompt is then not appended to the session. */
  readonly block?: string
}

interface ToolCallInput {
  readonly call: ToolUseBlock
  readonly sessionId: string
}

/** Whether a tool call may run. `ask`: the PermissionRequest hooks decide; without an answer, the call is refused. */
export interface ToolPermissionDecision {
  readonly decision: 'allow' | 'ask' | 'deny'
  /** Why, as a sentence for the model and the user. */
  readonly reason?: string
  /**
   * What the user typed when denying the call, or an empty text; missing if no user denied it. It is recorded as the
   * user's own words. `reason`, which the model reads, must contain it as well.
   */
  readonly userReason?: string
}

/** A hook can end the turn. A call that has not run is then refused, and the results so far stay in the session. */
interface EndTurnOutput {
  /** Reason to end the turn, shown to the user. */
  readonly endTurn?: string
}

interface PreToolUseOutput extends HookContextOutput, EndTurnOutput, Partial<ToolPermissionDecision> {
  /** Another input for the tool. */
  readonly input?: JsonObject
}

interface PermissionRequestInput extends ToolCallInput {
  /** Why permission is needed. */
  readonly reason: string
}

interface PermissionOutput
  extends Pick<HookContextOutput, 'userDisplayMessage'>,
    EndTurnOutput,
    Pick<ToolPermissionDecision, 'reason' | 'userReason'> {
  readonly decision?: 'allow' | 'deny'
  readonly input?: JsonObject
}

interface PostToolUseInput extends ToolCallInput {
  readonly result: ToolResultBlock
}

interface PostToolUseOutput extends HookContextOutput, EndTurnOutput {
  /** What the model must consider about the tool's result, such as a failed check. This text is added to the result. */
  readonly block?: string
}

interface StopInput {
  readonly sessionId: string
  readonly stop: ReplyStop | null
  /** The stop reason in the provider's own words. */
  readonly stopReason: string | null
  /** True if a Stop hook has already made this turn go on. */
  readonly isContinued: boolean
}

interface StopOutput extends Pick<HookContextOutput, 'userDisplayMessage'>, EndTurnOutput {
  /** What is left to do. The model gets it as a message, and the turn goes on, unless a hook ends it. */
  readonly block?: string
}

interface StopHook extends Hook<StopInput, StopOutput> {
  /**
   * True if the hook waits for work that belongs to the turn, such as agents in the background. Such a hook runs first;
   * the other hooks run only if it has nothing to tell the model. Default: false.
   */
  readonly waitsForWork?: boolean
}

interface SessionEndInput {
  readonly sessionId: string
  readonly reason: 'close' | 'clear'
}

type MessageOutput = Pick<HookContextOutput, 'userDisplayMessage'>

/** A memory file that was read into the context. */
interface InstructionsLoadedInput {
  readonly sessionId: string
  readonly filePath: string
  readonly memoryType: 'Managed' | 'User' | 'Project' | 'Local'
  readonly loadReason: 'session_start' | 'nested_traversal' | 'path_glob_match' | 'include' | 'compact'
  /** The path patterns of a rule. */
  readonly globs?: readonly string[]
  /** The file whose use loaded this one. */
  readonly triggerFilePath?: string
  /** The file that imports this one. */
  readonly parentFilePath?: string
}

interface SubagentStartInput {
  /** Id of the parent session. */
  readonly sessionId: string
  readonly agentId: string
  readonly agentType: string
}

interface SubagentStopInput extends SubagentStartInput {
  readonly transcriptPath?: string
  /** Text of the subagent's last message. */
  readonly lastMessage?: string
  /** True if a hook has already made the subagent go on. */
  readonly isContinued: boolean
}

/** Functions that run at certain points of a session. Those of one point run in order, except parallel ones. */
export interface SessionHooks {
  readonly userPromptSubmit?: readonly Hook<UserPromptInput, UserPromptOutput>[]
  readonly preToolUse?: readonly Hook<ToolCallInput, PreToolUseOutput>[]
  readonly permissionRequest?: readonly Hook<PermissionRequestInput, PermissionOutput>[]
  readonly postToolUse?: readonly Hook<PostToolUseInput, PostToolUseOutput>[]
  readonly stop?: readonly StopHook[]
  readonly preCompact?: readonly Hook<PreCompactInput, PreCompactOutput>[]
  readonly sessionStart?: readonly Hook<SessionStartInput, HookContextOutput>[]
  readonly postCompact?: readonly Hook<PostCompactInput, HookContextOutput>[]
  readonly sessionEnd?: readonly Hook<SessionEndInput, MessageOutput>[]
  readonly instructionsLoaded?: readonly Hook<InstructionsLoadedInput, MessageOutput>[]
  readonly subagentStart?: readonly Hook<SubagentStartInput, HookContextOutput>[]
  readonly subagentStop?: readonly Hook<SubagentStopInput, StopOutput>[]
}

/** The names of all hook points. */
export const HOOK_POINTS: readonly (keyof SessionHooks)[] = [
  'userPromptSubmit',
  'preToolUse',
  'permissionRequest',
  'postToolUse',
  'stop',
  'preCompact',
  'sessionStart',
  'postCompact',
  'sessionEnd',
  'instructionsLoaded',
  'subagentStart',
  'subagentStop',
]

/** A function that the host gives for one hook point. Returning nothing lets everything go on as it is. */
export interface Hook<Input, Output> {
  readonly name: string
  /** Timeout of this hook. Default: the timeout of the policy. */
  readonly timeoutSeconds?: number
  /** True if the hook runs at the same time as the parallel hooks directly before and after it. Default: false. */
  readonly isParallel?: boolean
  readonly run: (input: Input, signal?: Signal) => Output | undefined | Promise<Output | undefined>
}

interface HookLimits {
  readonly deadlines: Deadlines
  readonly timeoutSeconds: number
  /** Maximum characters of each message and reason of a hook. `toHookAttachments` limits `additionalContext`. */
  readonly outputCharacters: number
  readonly signal: Signal | undefined
}

/** Returns the limits of hooks, as policy has them. */
export function createHookLimits(
  { host, signal }: { readonly host: { readonly policy: Policy }; readonly signal?: Signal | undefined },
  { deadlines, scaled }: { readonly deadlines: Deadlines; readonly scaled: ScaledLimits },
): HookLimits {
  const { timeoutSeconds } = host.policy.turn.hooks
  return { deadlines, timeoutSeconds, outputCharacters: scaled.budgets.hookOutputCharacters, signal }
}

/** How one hook ended. A hook that failed has no output, and changes nothing. */
export type HookResult<Output> =
  | { readonly name: string; readonly ok: true; readonly output: Output | undefined }
  | {
      readonly name: string
      readonly ok: false
      readonly why: 'timeout' | 'aborted' | 'threw'
      readonly message: string
    }

/**
 * Runs the hooks one after another, because a later hook may depend on side effects of an earlier one. Parallel hooks
 * next to each other run at the same time. Results come in the order of the hooks. `isSettled`: called before each
 * step; true if the remaining hooks must not run.
 */
export async function* runHooks<Input, Output>(
  hooks: readonly Hook<Input, Output>[],
  input: Input,
  rules: HookLimits,
  isSettled: () => boolean = () => false,
): AsyncGenerator<HookResult<Output>, void> {
  for (const group of groupParallelHooks(hooks)) {
    if (rules.signal?.aborted === true || isSettled()) return
    const running = group.map((hook) => runHook(hook, input, rules))
    for (const result of running) yield await result
  }
}

/** Splits the hooks of a point into groups that run one after another. The hooks of a group run at the same time. */
export function groupParallelHooks<Each extends { readonly isParallel?: boolean }>(
  hooks: readonly Each[],
): readonly (readonly Each[])[] {
  const groups: Each[][] = []
  for (const hook of hooks) {
    const last = groups.at(-1)
    if (hook.isParallel === true && last?.at(-1)?.isParallel === true) last.push(hook)
    else groups.push([hook])
  }
  return groups
}

async function runHook<Input, Output>(
  hook: Hook<Input, Output>,
  input: Input,
  { deadlines, signal, timeoutSeconds, outputCharacters }: HookLimits,
): Promise<HookResult<Output>> {
  const { name } = hook
  const seconds = hook.timeoutSeconds ?? timeoutSeconds
  try {
    const end = await deadlines.within(seconds * 1000, async (bound) => hook.run(input, bound), signal)
    if (end.ok) return checkOutput(name, end.value, outputCharacters)
    const message = end.why === 'timeout' ? `took longer than ${seconds} seconds and was left` : 'was aborted'
    return { name, ok: false, why: end.why, message: `The hook ${name} ${message}.` }
  } catch (thrown) {
    const message = describeThrown(thrown)
    return { name, ok: false, why: 'threw', message: truncateEnd(message, outputCharacters) }
  }
}

/** Fields of an output that must be texts. */
const TEXT_FIELDS: readonly string[] = [
  'additionalContext',
  'userDisplayMessage',
  'block',
  'reason',
  'endTurn',
  'newCustomInstructions',
]
/** Texts that are cut here. Context and instructions are cut later, when they are attached. */
const CUT_FIELDS: readonly string[] = ['userDisplayMessage', 'block', 'reason', 'endTurn']
const DECISIONS: ReadonlySet<unknown> = new Set(['allow', 'ask', 'deny'])

/**
 * Checks what a hook returned. Fields that are null count as missing. Another type than expected is a failure of the
 * hook, and a decision that is not known forbids the call. Messages and reasons are cut to `outputCharacters`.
 */
function checkOutput<Output>(
  name: string,
  output: Output | undefined,
  outputCharacters: number,
): HookResult<Output> {
  if (output === undefined || output === null) return { name, ok: true, output: undefined }
  if (Array.isArray(output)) return { name, ok: true, output }
  if (typeof output !== 'object') {
    const message = `The hook ${name} returned ${formatErrorValue(output)}; expected an object.`
    return { name, ok: false, why: 'threw', message }
  }
  const fields = Object.entries(output).filter(([, value]) => value !== null && value !== undefined)
  const wrong = fields.find(([field, value]) => TEXT_FIELDS.includes(field) && typeof value !== 'string')
  if (wrong !== undefined) {
    const message = `The hook ${name} returned ${formatErrorValue(wrong[1])} as ${wrong[0]}; expected text.`
    return { name, ok: false, why: 'threw', message }
  }
  const checked = Object.fromEntries(
    fields.map(([field, value]) => [
      field,
      CUT_FIELDS.includes(field) ? truncateEnd(String(value), outputCharacters) : value,
    ]),
  )
  if ('decision' in checked && !DECISIONS.has(checked.decision)) {
    checked.reason = `The hook ${name} returned the unknown decision ${formatErrorValue(checked.decision)}.`
    checked.decision = 'deny'
  }
  return { name, ok: true, output: checked as Output }
}
