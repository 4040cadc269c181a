/**
 * Hooks: functions of the host that run at certain points of a session. A hook that hangs is abandoned at its timeout, a
 * hook that fails is reported and changes nothing, and the text that hooks add to the context is limited.
 */

import type { MessageContent, ToolResultBlock, ToolUseBlock } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type { CompactTrigger } from '../log/record.ts'
import { formatErrorValue } from '../policy/policy-fields.ts'
import type { Receipt } from '../summary/receipt.ts'
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
export interface ToolDecision {
  readonly decision: 'allow' | 'ask' | 'deny'
  /** Why, as a sentence for the model and the user. */
  readonly reason?: string
}

interface PreToolUseOutput extends HookContextOutput, Partial<ToolDecision> {
  /** Another input for the tool. */
  readonly input?: JsonObject
}

interface PermissionRequestInput extends ToolCallInput {
  /** Why permission is needed. */
  readonly reason: string
}

interface PermissionOutput extends Pick<HookContextOutput, 'userDisplayMessage'> {
  readonly decision?: 'allow' | 'deny'
  readonly reason?: string
  readonly input?: JsonObject
}

interface PostToolUseInput extends ToolCallInput {
  readonly result: ToolResultBlock
}

interface PostToolUseOutput extends HookContextOutput {
  /** What the model must consider about the result, such as a failed check. It is added to the result. */
  readonly block?: string
}

interface StopInput {
  readonly sessionId: string
  readonly stopReason: string | null
  /** True if a Stop hook has already made this turn go on. */
  readonly isContinued: boolean
}

interface StopOutput extends Pick<HookContextOutput, 'userDisplayMessage'> {
  /** What is left to do. The model is told, and the turn goes on. */
  readonly block?: string
}

interface SessionEndInput {
  readonly sessionId: string
  readonly reason: 'close' | 'clear'
}

type SessionEndOutput = Pick<HookContextOutput, 'userDisplayMessage'>

/** Functions that run at certain points of a session. Those of one point run in order. */
export interface SessionHooks {
  readonly userPromptSubmit?: readonly Hook<UserPromptInput, UserPromptOutput>[]
  readonly preToolUse?: readonly Hook<ToolCallInput, PreToolUseOutput>[]
  readonly permissionRequest?: readonly Hook<PermissionRequestInput, PermissionOutput>[]
  readonly postToolUse?: readonly Hook<PostToolUseInput, PostToolUseOutput>[]
  readonly stop?: readonly Hook<StopInput, StopOutput>[]
  readonly preCompact?: readonly Hook<PreCompactInput, PreCompactOutput>[]
  readonly sessionStart?: readonly Hook<SessionStartInput, HookContextOutput>[]
  readonly postCompact?: readonly Hook<PostCompactInput, HookContextOutput>[]
  readonly sessionEnd?: readonly Hook<SessionEndInput, SessionEndOutput>[]
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
]

export interface Hook<Input, Output> {
  readonly name: string
  /** Timeout of this hook. Default: the timeout of the policy. */
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

/** Runs the hooks one after another, because a later hook may depend on side effects of an earlier one. */
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
    if (end.ok) return checkOutput(name, end.value)
    const message = end.why === 'timeout' ? `took longer than ${seconds} seconds and was left` : 'was aborted'
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

/** Fields of an output that must be texts. */
const TEXT_FIELDS: readonly string[] = [
  'additionalContext',
  'userDisplayMessage',
  'block',
  'reason',
  'newCustomInstructions',
]
const DECISIONS: ReadonlySet<unknown> = new Set(['allow', 'ask', 'deny'])

/**
 * Checks what a hook returned. Fields that are null count as missing. Another type than expected is a failure of the
 * hook, and a decision that is not known forbids the call.
 */
function checkOutput<Output>(name: string, output: Output | undefined): HookResult<Output> {
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
  const checked = Object.fromEntries(fields)
  if ('decision' in checked && !DECISIONS.has(checked.decision)) {
    checked.reason = `The hook ${name} returned the unknown decision ${formatErrorValue(checked.decision)}.`
    checked.decision = 'deny'
  }
  return { name, ok: true, output: checked as Output }
}
