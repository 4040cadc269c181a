/** The hooks of a compaction, in their order, with what each of them said told to those who watch. */

import { ABORTED, type RewriteRefused, refused, type TurnEvent } from '../engine/events.ts'
import { type Hook, type HookContext, type Room, runHooks } from '../engine/host.ts'
import type { TurnRun } from '../engine/session-writer.ts'
import { type HookOutput, hookContext } from '../sources/builtin-sources.ts'
import type { Carried } from '../sources/context-source.ts'
import { composeInstructions } from '../summary/summary-prompt.ts'
import type { CompactionDraft } from './draft.ts'
import type { CompactionPlan } from './plan-compaction.ts'

type Hooked = { readonly ok: true; readonly instructions: string | null } | RewriteRefused

export async function* beforeCompaction(
  run: TurnRun,
  room: Room,
  { asked }: CompactionPlan,
): AsyncGenerator<TurnEvent, Hooked> {
  const { policy } = run.host
  const hooks = room.hooks?.preCompact ?? []
  const said: string[] = []
  if (hooks.length > 0) yield { type: 'phase', phase: 'running PreCompact hooks' }
  const input = {
    trigger: asked.trigger,
    customInstructions: asked.instructions ?? '',
    sessionId: run.state.id,
  }
  for await (const end of runHooks(hooks, input, rulesOf(run, room))) {
    if (!end.ok) yield { type: 'hook-failed', hook: end.name, message: end.message }
    else if (end.output !== undefined) {
      const { newCustomInstructions, userDisplayMessage, block } = end.output
      if (userDisplayMessage !== undefined)
        yield { type: 'hook-said', hook: end.name, message: userDisplayMessage }
      if (newCustomInstructions !== undefined) said.push(newCustomInstructions)
      if (block !== undefined && asked.isForced !== true)
        return refused('blocked', `The hook ${end.name} does not want a compaction now: ${block}`)
      if (block !== undefined) yield { type: 'veto-overruled', hook: end.name, reason: block }
    }
  }
  if (run.signal?.aborted === true) return ABORTED
  const { instructions, instructionCharacters } = policy.compact
  const sources = { person: asked.instructions, policy: instructions, hooks: said }
  return { ok: true, instructions: composeInstructions(sources, instructionCharacters).text }
}

export async function* sessionStarts(
  run: TurnRun,
  room: Room,
): AsyncGenerator<TurnEvent, readonly Carried[]> {
  const hooks = room.hooks?.sessionStart ?? []
  if (hooks.length === 0) return []
  yield { type: 'phase', phase: 'running SessionStart hooks' }
  return yield* contexts(run, room, { hooks, input: { source: 'compact' as const, sessionId: run.state.id } })
}

export async function* toldAfter(
  run: TurnRun,
  room: Room,
  { plan, summary, receipt }: CompactionDraft,
): AsyncGenerator<TurnEvent, readonly Carried[]> {
  const hooks = room.hooks?.postCompact ?? []
  if (hooks.length === 0) return []
  yield { type: 'phase', phase: 'running PostCompact hooks' }
  const input = { trigger: plan.asked.trigger, sessionId: run.state.id, summary: summary.text, receipt }
  return yield* contexts(run, room, { hooks, input })
}

interface Contexts<Input> {
  readonly hooks: readonly Hook<Input, HookContext>[]
  readonly input: Input
}

async function* contexts<Input>(
  run: TurnRun,
  room: Room,
  { hooks, input }: Contexts<Input>,
): AsyncGenerator<TurnEvent, readonly Carried[]> {
  const outputs: HookOutput[] = []
  for await (const end of runHooks(hooks, input, rulesOf(run, room))) {
    if (!end.ok) yield { type: 'hook-failed', hook: end.name, message: end.message }
    else if (end.output !== undefined) {
      const { additionalContext, userDisplayMessage } = end.output
      if (userDisplayMessage !== undefined)
        yield { type: 'hook-said', hook: end.name, message: userDisplayMessage }
      outputs.push({ hook: end.name, text: additionalContext ?? '' })
    }
  }
  return hookContext(outputs, { budgets: room.scaled.budgets, measure: room.estimator.text })
}

function rulesOf({ host, signal }: TurnRun, { deadlines }: Room) {
  return { deadlines, timeoutSeconds: host.policy.turn.hooks.timeoutSeconds, signal }
}
