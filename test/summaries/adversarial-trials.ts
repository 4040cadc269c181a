/** Compactions whose summariser answers wrongly: one adversary, one trigger, one window, and the result. */

import type { RefusedRewrite } from '@tidemark/core/engine/events'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { countMaximumSummaryCalls } from '@tidemark/core/testing'
import { type Script, withSummaries } from '@tidemark/simulator'
import {
  BAD_SUMMARIZER_NAMES,
  BAD_SUMMARIZERS,
  type BadSummarizerName,
  INJECTED_INSTRUCTIONS,
} from '@tidemark/simulator/internal'
import { expect } from 'vitest'
import { openTestSession, type TestSession } from '../support/test-tidemark.ts'
import {
  advanceUntilDone,
  expectUntouched,
  fillTo,
  isSummaryBody,
  type SessionSnapshot,
  takeSnapshot,
} from './session-size.ts'

export const TRIGGERS = ['auto', 'manual', 'reactive'] as const
export type Trigger = (typeof TRIGGERS)[number]
export const WINDOWS = [8_000, 16_000, 32_000, 200_000, 1_000_000] as const

export interface Trial {
  readonly adversary: BadSummarizerName
  readonly trigger: Trigger
  readonly window: number
  /** `never`: there is no local summary, so a failed summary is a failed compaction. */
  readonly local: 'last' | 'never'
}

export function trials(
  windowsOf: (adversary: number, trigger: number) => readonly number[],
  local: Trial['local'],
): readonly Trial[] {
  return BAD_SUMMARIZER_NAMES.flatMap((adversary, place) =>
    TRIGGERS.flatMap((trigger, way) =>
      windowsOf(place, way).map((window) => ({ adversary, trigger, window, local })),
    ),
  )
}

export interface TrialResult {
  readonly committed: boolean
  readonly summarizer: string
  readonly calls: number
  /** Tokens after the compaction, as a share of the target. */
  readonly filled: number
}

const answers: Script = () => ({ blocks: [{ type: 'text', text: 'Understood.' }] })

/**
 * The laws, whatever the model answers: a valid view under the target, or a typed refusal that changed nothing; no
 * more calls than allowed, and none twice.
 */
export async function runTrial(trial: Trial): Promise<TrialResult> {
  const stage = await startTrial(trial)
  const { session, bodies, events } = stage
  const before = takeSnapshot(stage)
  const sent = bodies.length
  const isReactive = trial.trigger === 'reactive'
  await trigger(trial, stage)
  const asked = bodies.slice(sent).filter(isSummaryBody)
  expect(new Set(asked).size).toBe(asked.length)
  expect(asked.length).toBeLessThanOrEqual(countMaximumSummaryCalls(DEFAULT_POLICY.compact))
  expect(asked.length).toBeGreaterThan(0)
  expect(events.some(({ type }) => type === 'reactive-compact')).toBe(isReactive)
  const failed = events.flatMap((event) => (event.type === 'compact-failed' ? [event.refused] : []))
  const made = events.flatMap((event) => (event.type === 'compact' ? [event.compaction] : []))
  expect(failed.length + made.length).toBe(1)
  const [compaction] = made
  const target = session.contextRemaining().lines?.target ?? 0
  if (compaction === undefined) expectRefused(failed[0], { stage, before, isReactive })
  else {
    expect(compaction).toMatchObject({ trigger: trial.trigger === 'manual' ? 'manual' : 'auto' })
    expect(compaction.tokensAfter).toBeLessThanOrEqual(target)
    expect(findInjectedLines(session.messages())).toEqual([])
    await expectGoesOn(stage)
  }
  return {
    committed: compaction !== undefined,
    summarizer: compaction?.summarizer ?? failed[0]?.reason ?? '',
    calls: asked.length,
    filled: compaction === undefined ? 0 : compaction.tokensAfter / target,
  }
}

/** A session with one answered prompt, filled to just below where this trigger compacts. */
export async function startTrial({ adversary, trigger, window, local }: Trial): Promise<TestSession> {
  const stage = await openTestSession({
    script: withSummaries(answers, BAD_SUMMARIZERS[adversary]),
    window,
    ...(trigger === 'reactive' ? { realWindow: Math.floor(window * 0.45) } : {}),
    policy: { compact: { chain: { local }, background: false }, notes: { enabled: false } },
  })
  const { session } = stage
  const line = session.contextRemaining().lines?.autoCompact ?? 0
  await fillTo(stage, line * (trigger === 'reactive' ? 0.3 : 0.5), 'early')
  expect(await session.run('Go on.').outcome).toMatchObject({ ok: true })
  if (trigger === 'auto') await fillTo(stage, line, 'late')
  if (trigger === 'reactive') await fillTo(stage, window * 0.7, 'late')
  return stage
}

function trigger({ trigger, adversary }: Trial, stage: TestSession): Promise<unknown> {
  const work: Promise<unknown> =
    trigger === 'manual' ? stage.session.compact() : stage.session.run('And then?').outcome
  return adversary === 'hang' ? advanceUntilDone(stage, work) : work
}

interface Before {
  readonly stage: TestSession
  readonly before: SessionSnapshot
  readonly isReactive: boolean
}

/**
 * The refusal has a reason and a message, and messages and log are unchanged to the byte. The model's summary cannot be
 * used, or it is more than the provider's window takes, which is smaller than the known one if it refused a request.
 */
function expectRefused(refused: RefusedRewrite | undefined, { stage, before, isReactive }: Before): void {
  const reasons = isReactive ? ['no-summary', 'floor'] : ['no-summary']
  expect(reasons).toContain(refused?.reason)
  expect(refused?.message.length).toBeGreaterThan(20)
  expectUntouched(stage, before)
}

/** Lines of the injected instructions that are shown outside the frame of the model's notes. */
function findInjectedLines(messages: unknown): readonly string[] {
  const text = JSON.stringify(messages).replace(/<(model-notes(?:-\d+)?)>\\n.*?\\n<\/\1>/g, '')
  return INJECTED_INSTRUCTIONS.split('\n').filter((line) => text.includes(JSON.stringify(line).slice(1, -1)))
}

async function expectGoesOn({ session, simulator }: TestSession): Promise<void> {
  expect(await session.run('And now?').outcome).toMatchObject({ ok: true })
  expect(simulator.requests.at(-1)).toMatchObject({ status: 200 })
}
