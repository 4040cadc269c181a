/**
 * Runs the hooks of a turn: before a prompt is sent, before and after a tool call, when the model wants to stop, and at
 * the start of a session. Hooks of a compaction run in `compaction/prepare-draft.ts`.
 */
import { type CompletedTurn, listHookEvents, type TurnEvent, type TurnFailure } from '../engine/events.ts'
import {
  createHookLimits,
  groupParallelHooks,
  type Hook,
  type HookContextOutput,
  runHooks,
  type SessionHooks,
  type SessionStartSource,
  type ToolPermissionDecision,
} from '../engine/hooks.ts'
import type { ToolResultContent } from '../engine/host.ts'
import type { TurnContext, UnlinkedRecord } from '../engine/session-writer.ts'
import { REFUSED_CALL_TEXT } from '../facts/host-texts.ts'
import {
  type Block,
  type MessageContent,
  type ToolResultBlock,
  type ToolUseBlock,
  toBlocks,
} from '../log/block.ts'
import { type HookOutput, toHookAttachments } from '../sources/builtin-sources.ts'

interface HookRun<Output> {
  /** Outputs of the hooks that returned one, in order. */
  readonly outputs: readonly Output[]
  /** Events about what hooks said and which failed. */
  readonly events: readonly TurnEvent[]
  readonly context: readonly HookOutput[]
}

const NOTHING_RUN: HookRun<never> = { outputs: [], events: [], context: [] }

/**
 * Runs the hooks of one point, in order, up to the first whose output satisfies `isLast`, and those parallel to it. Nothing
 * is emitted or appended: that is left to the caller.
 */
async function callHooks<Input, Output extends Partial<HookContextOutput>>(
  { host, signal }: TurnContext,
  hooks: readonly Hook<Input, Output>[] | undefined,
  input: Input,
  isLast: (output: Output) => boolean = () => false,
): Promise<HookRun<Output>> {
  const { compaction } = host
  if (hooks === undefined || hooks.length === 0) return NOTHING_RUN
  const outputs: Output[] = []
  const events: TurnEvent[] = []
  const context: HookOutput[] = []
  const limits = createHookLimits({ host, signal }, compaction)
  for await (const end of runHooks(hooks, input, limits, () => outputs.some(isLast))) {
    events.push(...listHookEvents(end))
    if (!end.ok || end.output === undefined || end.output === null) continue
    context.push({ hook: end.name, text: end.output.additionalContext ?? '' })
    outputs.push(end.output)
  }
  return { outputs, events, context }
}

function readHooks({ host }: TurnContext): SessionHooks {
  return host.compaction.hooks ?? {}
}

/** Creates the records with the text that hooks add to the context, cut to its limit. */
export function createHookRecords(
  { host }: TurnContext,
  outputs: readonly HookOutput[],
): readonly UnlinkedRecord[] {
  const compaction = host.compaction
  const { scaled, estimator } = compaction
  return toHookAttachments(outputs, { budgets: scaled.budgets, measure: estimator.text }).map(
    ({ attachment: { key: _, ...attachment } }) => ({ type: 'attachment' as const, attachment }),
  )
}

/** Runs the SessionStart hooks and returns the records with their context. */
export async function* runSessionStartHooks(
  turn: TurnContext,
  source: SessionStartSource,
): AsyncGenerator<TurnEvent, readonly UnlinkedRecord[]> {
  const { sessionStart } = readHooks(turn)
  if (sessionStart === undefined || sessionStart.length === 0) return []
  yield { type: 'phase', phase: 'running SessionStart hooks' }
  const run = await callHooks(turn, sessionStart, { source, sessionId: turn.state.id })
  yield* run.events
  yield { type: 'phase', phase: 'done' }
  return createHookRecords(turn, run.context)
}

/** Runs the UserPromptSubmit hooks. Returns the records to append after the prompt, or a failure if a hook blocks it. */
export async function* runPromptSubmitHooks(
  turn: TurnContext,
  prompt: MessageContent,
): AsyncGenerator<TurnEvent, readonly UnlinkedRecord[] | TurnFailure> {
  const input = { prompt, sessionId: turn.state.id }
  const run = await callHooks(
    turn,
    readHooks(turn).userPromptSubmit,
    input,
    ({ block }) => block !== undefined,
  )
  yield* run.events
  const block = joinTexts(run.outputs.map((output) => output.block))
  if (block === null) return createHookRecords(turn, run.context)
  return { ok: false, reason: 'blocked', message: `A hook did not let the prompt through: ${block}` }
}

/** Joins the texts that hooks returned; null if none did. */
function joinTexts(texts: readonly (string | undefined)[]): string | null {
  const given = texts.filter((text) => text !== undefined)
  return given.length === 0 ? null : given.join('\n')
}

/** Why a turn continues although the model wanted to end it. */
export interface StopObjection {
  /** Tells the model what is left to do. */
  readonly record: UnlinkedRecord
  /** False if only work was waited for, and no hook has looked at the end of the turn yet. */
  readonly isCheck: boolean
}

/**
 * Runs the Stop hooks: first those that wait for work (`waitsForWork`), then, if that has left nothing to do, the others,
 * so that these run once, at the real end. Returns null if the turn may end.
 */
export async function* runStopHooks(
  turn: TurnContext,
  { stop, stopReason }: CompletedTurn,
  isContinued: boolean,
): AsyncGenerator<TurnEvent, StopObjection | null> {
  const hooks = readHooks(turn).stop ?? []
  const input = { sessionId: turn.state.id, stop, stopReason, isContinued }
  for (const isCheck of [false, true]) {
    const run = await callHooks(
      turn,
      hooks.filter(({ waitsForWork = false }) => waitsForWork !== isCheck),
      input,
      ({ block, endTurn }) => (block ?? endTurn) !== undefined,
    )
    yield* run.events
    if (run.outputs.some(({ endTurn }) => endTurn !== undefined)) return null
    const block = joinTexts(run.outputs.map((output) => output.block))
    if (block === null) continue
    const content = `A check before the end of the turn says that something is left to do: ${block}`
    return { record: { type: 'user', isMeta: true, message: { role: 'user', content } }, isCheck }
  }
  return null
}

// Hooks and permissions of one tool call.

/** What the hooks of a tool call returned, besides their decision. */
export interface ToolHooksOutcome {
  readonly events: readonly TurnEvent[]
  /** What they add to the context. */
  readonly context: readonly HookOutput[]
  /** Why the turn must end; null if it may go on. */
  readonly endTurn: string | null
}

/** A tool call that may run, perhaps with another input, or the result that it gets instead. */
interface PermittedCall extends ToolHooksOutcome {
  readonly call: ToolUseBlock
  /** Result of a call that must not run; null if it may run. */
  readonly refused: ToolResultContent | null
}

/** Runs the PreToolUse hooks, then the permission check and, if it asks, the PermissionRequest hooks. */
export async function decideToolPermission(turn: TurnContext, given: ToolUseBlock): Promise<PermittedCall> {
  const sessionId = turn.state.id
  const events: TurnEvent[] = []
  const context: HookOutput[] = []
  let call = given
  let hooked: ToolPermissionDecision | null = null
  let endTurn: string | null = null
  for (const group of groupParallelHooks(readHooks(turn).preToolUse ?? [])) {
    const run = await callHooks(turn, group, { call, sessionId })
    events.push(...run.events)
    context.push(...run.context)
    for (const { input, decision, reason, userReason } of run.outputs) {
      if (input !== undefined) call = { ...call, input }
      if (decision !== undefined)
        hooked = pickStricter(hooked, {
          decision,
          ...(reason === undefined ? {} : { reason }),
          ...(userReason === undefined ? {} : { userReason }),
        })
    }
    endTurn = joinTexts(run.outputs.map((output) => output.endTurn))
    if (hooked?.decision === 'deny' || endTurn !== null) break
  }
  if (endTurn !== null) return { call, refused: refuseCall(endTurn), events, context, endTurn }
  const decided = await decide(turn, call, hooked)
  if (decided.decision === 'allow') return { call, refused: null, events, context, endTurn }
  if (decided.decision === 'deny')
    return { call, refused: refuseCall(decided.reason, decided.userReason), events, context, endTurn }
  const reason = decided.reason ?? 'The call needs a permission.'
  const asked = await callHooks(
    turn,
    readHooks(turn).permissionRequest,
    { call, sessionId, reason },
    (output) => (output.decision ?? output.endTurn) !== undefined,
  )
  events.push(...asked.events)
  endTurn = joinTexts(asked.outputs.map((output) => output.endTurn))
  const answers = asked.outputs.filter(({ decision }) => decision !== undefined)
  // Among parallel hooks, one that denies counts more than one that allows.
  const answer = answers.find(({ decision }) => decision !== 'allow') ?? answers.at(-1)
  if (endTurn !== null || answer?.decision !== 'allow') {
    const refused = refuseCall(endTurn ?? answer?.reason ?? reason, answer?.userReason)
    return { call, refused, events, context, endTurn }
  }
  const input = answer.input ?? call.input
  return { call: { ...call, input }, refused: null, events, context, endTurn }
}

const STRICTNESS = { allow: 0, ask: 1, deny: 2 } as const

function pickStricter(
  first: ToolPermissionDecision | null,
  second: ToolPermissionDecision,
): ToolPermissionDecision {
  return first !== null && STRICTNESS[first.decision] > STRICTNESS[second.decision] ? first : second
}

/** Joins the decisions of hooks and permission check. If a hook allows a call, nobody is asked, but a denial still holds. */
async function decide(
  { host, signal }: TurnContext,
  call: ToolUseBlock,
  hooked: ToolPermissionDecision | null,
): Promise<ToolPermissionDecision> {
  if (hooked?.decision === 'deny' || host.canUseTool === undefined) return hooked ?? { decision: 'allow' }
  const checked = await host.canUseTool(call, signal)
  if (checked.decision === 'deny' || hooked === null) return checked
  return hooked.decision === 'allow' ? hooked : pickStricter(hooked, checked)
}

/** Creates the result of a call that was not permitted. `userReason`: what the user typed, if the user refused it. */
function refuseCall(reason: string | undefined, userReason?: string): ToolResultContent {
  const refused = { content: `${REFUSED_CALL_TEXT} ${reason ?? 'It is forbidden.'}`, is_error: true }
  if (userReason === undefined) return refused
  return { ...refused, userInputs: [{ kind: 'refusal', text: userReason }] }
}

interface CheckedResult extends ToolHooksOutcome {
  readonly result: ToolResultBlock
}

/** Runs the PostToolUse hooks on a result. Their objections are added to the result. */
export async function runPostToolUseHooks(
  turn: TurnContext,
  call: ToolUseBlock,
  result: ToolResultBlock,
): Promise<CheckedResult> {
  const { outputs, events, context } = await callHooks(turn, readHooks(turn).postToolUse, {
    call,
    result,
    sessionId: turn.state.id,
  })
  const endTurn = joinTexts(outputs.map((output) => output.endTurn))
  const objections = outputs.flatMap(({ block }) => block ?? [])
  if (objections.length === 0) return { result, events, context, endTurn }
  const added = objections.map(
    (text): Block => ({ type: 'text', text: `A check after this call says: ${text}` }),
  )
  const content = [...toBlocks(result.content ?? ''), ...added]
  return { result: { ...result, content }, events, context, endTurn }
}
